"""How well a judged list is answered: recall@k, nDCG@k and MRR of `/ask` without a model.

    python -m bench.judged [samples/judged.jsonl] [--k 5] [--least 0.95]

loads the sample sites into a folder of its own, asks every line `{query, site?, relevant: {url: grade}}`,
prints the figures and each question that missed something, and exits 1 if recall@k is below `--least`.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from core import resources
from core.settings import LlmSettings, Settings
from server.cli.client import Api, connect
from server.cli.load import load_sources

SITES = ("trattoria", "liguria")


@dataclass(frozen=True)
class Judged:
    """One question with its grades and the addresses that were answered, best first."""

    query: str
    relevant: Mapping[str, int]
    found: Sequence[str]

    def recall(self, k: int) -> float:
        """The share of the relevant that stands among the first k (of k at most)."""
        hit = sum(url in self.relevant for url in self.found[:k])
        return hit / min(k, len(self.relevant))

    def ndcg(self, k: int) -> float:
        """Normalised discounted cumulative gain (Jaervelin and Kekaelaeinen 2002), gain = grade."""
        ideal = sorted(self.relevant.values(), reverse=True)[:k]
        return dcg([self.relevant.get(url, 0) for url in self.found[:k]]) / dcg(ideal)

    def reciprocal_rank(self) -> float:
        return next((1 / n for n, url in enumerate(self.found, 1) if url in self.relevant), 0.0)


def dcg(grades: Sequence[int]) -> float:
    return sum(grade / math.log2(n + 1) for n, grade in enumerate(grades, 1))


def read_judged(path: Path) -> list[dict[str, Any]]:
    """The lines of a judged list."""
    return [orjson.loads(line) for line in path.read_bytes().splitlines() if line.strip()]


async def judge(api: Api, lines: Sequence[Mapping[str, Any]]) -> list[Judged]:
    """Ask every question."""
    judged = []
    for line in lines:
        body = {"query": line["query"], "site": line.get("site", "all"), "streaming": False}
        answer = await api.json("POST", "/ask", body=body)
        found = [item["url"] for item in answer["results"]]
        judged.append(Judged(line["query"], line["relevant"], found))
    return judged


async def load_samples(api: Api) -> None:
    for site in SITES:
        report = await load_sources(api, (str(resources.samples_dir() / site),), site)
        if report.counts["failed"]:
            raise SystemExit(f"{site}: {report.not_loaded}")


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("file", nargs="?", type=Path, default=resources.samples_dir() / "judged.jsonl")
    parser.add_argument("--k", type=int, default=5)
    parser.add_argument("--least", type=float, default=0.95)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="askable-judged-") as folder:
        settings = Settings(data_dir=Path(folder), llm=LlmSettings())
        async with connect(settings, create=True) as api:
            await load_samples(api)
            judged = await judge(api, read_judged(args.file))
    for one in judged:
        if one.recall(args.k) < 1:
            print(f"missed  {one.query}")
            print(f"        wanted {', '.join(one.relevant)}")
            print(f"        found  {', '.join(one.found[: args.k])}")
    recall = sum(one.recall(args.k) for one in judged) / len(judged)
    print(f"questions  {len(judged)}")
    print(f"recall@{args.k}   {recall:.3f}")
    print(f"nDCG@{args.k}     {sum(one.ndcg(args.k) for one in judged) / len(judged):.3f}")
    print(f"MRR        {sum(one.reciprocal_rank() for one in judged) / len(judged):.3f}")
    return 0 if recall >= args.least else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
