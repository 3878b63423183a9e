"""How well search finds, on the Cranfield collection: `python -m bench.search FOLDER [--legs bm25,use]`.

FOLDER holds docs.jsonl, queries.jsonl and qrels.tsv. Every leg set is searched as the server searches; the
exit code is 1 where the shipped legs are below MIN_NDCG or worse than words alone by more than TOLERANCE.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import math
import pickle
import sys
import tempfile
import time
import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from core.ingestion.chunks import cut
from core.providers.base import Point, Vector
from core.providers.edge import EdgeStore
from core.providers.legs import leg_kind
from core.retrieval import Leg, Part, Retriever

MIN_NDCG = 0.38
TOLERANCE = 0.005
SHIPPED = ("bm25", "use")
WORDS = 100
OVERLAP = 10
LANGUAGE = "en"


@dataclass(frozen=True, slots=True)
class Collection:
    """Documents as passages, questions, and the grades of documents by question."""

    passages: list[tuple[str, int, str]]
    questions: dict[str, str]
    grades: Mapping[str, Mapping[str, int]]


def read(folder: Path) -> Collection:
    """The collection in `folder`; a document without text counts by its title, without both not at all."""
    passages: list[tuple[str, int, str]] = []
    for document in _lines(folder / "docs.jsonl"):
        name, title = str(document["id"]), document["title"] or ""
        chunks = [chunk.text for chunk in cut(document["text"] or "", max_words=WORDS, overlap_words=OVERLAP)]
        texts = [f"{title}\n{text}".strip() for text in chunks or [""]]
        passages += [(name, n, text) for n, text in enumerate(texts) if text]
    questions = {str(line["id"]): str(line["query"]) for line in _lines(folder / "queries.jsonl")}
    grades: dict[str, dict[str, int]] = defaultdict(dict)
    for line in (folder / "qrels.tsv").read_text().splitlines()[1:]:
        question, document, grade = line.split("\t")
        grades[question][document] = int(grade)
    return Collection(passages, questions, grades)


def measures(
    ranked: Mapping[str, Sequence[str]], grades: Mapping[str, Mapping[str, int]]
) -> tuple[float, ...]:
    """nDCG@10, recall@100 and MRR@10, means over the questions that have an answer."""
    rows = []
    for question, documents in ranked.items():
        relevant = {name: grade for name, grade in grades.get(question, {}).items() if grade > 0}
        if relevant:
            rows.append(
                (_ndcg(documents, relevant, 10), _recall(documents, relevant, 100), _mrr(documents, relevant))
            )
    return tuple(sum(column) / len(rows) for column in zip(*rows, strict=True))


def _ndcg(documents: Sequence[str], relevant: Mapping[str, int], k: int) -> float:
    gain = sum(relevant.get(name, 0) / math.log2(rank + 2) for rank, name in enumerate(documents[:k]))
    best = sorted(relevant.values(), reverse=True)[:k]
    return gain / sum(grade / math.log2(rank + 2) for rank, grade in enumerate(best))


def _recall(documents: Sequence[str], relevant: Mapping[str, int], k: int) -> float:
    return len(set(documents[:k]) & set(relevant)) / len(relevant)


def _mrr(documents: Sequence[str], relevant: Mapping[str, int]) -> float:
    return next((1 / (rank + 1) for rank, name in enumerate(documents[:10]) if name in relevant), 0.0)


async def vectors_of(leg: Leg, texts: Sequence[str], cache: Path | None) -> list[Vector]:
    """The leg's vectors; kept in `cache`, as embedding takes minutes."""
    model = leg.embedder.spec.model
    key = hashlib.sha256(orjson.dumps([model, list(texts)])).hexdigest()[:16]
    file = (
        None
        if cache is None or leg.embedder.spec.sparse
        else cache / f"{leg.embedder.spec.name}-{key}.pickle"
    )
    if file is not None and file.exists():
        kept: list[Vector] = pickle.loads(file.read_bytes())
        return kept
    started = time.perf_counter()
    vectors = await leg.embedder.documents(texts, [LANGUAGE] * len(texts))
    seconds = time.perf_counter() - started
    print(f"{leg.embedder.spec.name}: {len(texts)} passages, {len(texts) / seconds:.0f}/s", file=sys.stderr)
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(pickle.dumps(vectors))
    return vectors


async def run(arguments: argparse.Namespace) -> int:
    """Load, search by every leg set, print; the exit code."""
    collection = read(arguments.folder)
    names = arguments.legs.split(",")
    async with AsyncExitStack() as stack:
        store = await EdgeStore.open(Path(stack.enter_context(tempfile.TemporaryDirectory())))
        stack.push_async_callback(store.close)
        legs = {}
        for name in names:
            kind = leg_kind(name)
            legs[name] = Leg(await kind.open(), kind.weight)
            stack.push_async_callback(legs[name].embedder.close)
        await load(store, legs, collection, arguments.cache)
        sets = [(name,) for name in names] + ([tuple(names)] if len(names) > 1 else [])
        scores = {legs_: await score(store, [legs[name] for name in legs_], collection) for legs_ in sets}
    return verdict(scores)


async def load(store: EdgeStore, legs: Mapping[str, Leg], collection: Collection, cache: Path | None) -> None:
    """Put every passage into the store."""
    await Retriever(store, list(legs.values())).prepare()
    texts = [text for _, _, text in collection.passages]
    made = {name: await vectors_of(leg, texts, cache) for name, leg in legs.items()}
    points = [
        Point(str(uuid.uuid4()), {name: made[name][at] for name in legs}, _payload(document, n))
        for at, (document, n, _) in enumerate(collection.passages)
    ]
    await store.upsert("content", points)


async def score(store: EdgeStore, legs: Sequence[Leg], collection: Collection) -> tuple[float, ...]:
    """The measures of one leg set, with the median seconds of a search as the last."""
    retriever = Retriever(store, legs)
    ranked: dict[str, list[str]] = {}
    seconds: list[float] = []
    for name, question in collection.questions.items():
        started = time.perf_counter()
        found = await retriever.search([Part(question)], sites=["cranfield"], limit=100, languages=[LANGUAGE])
        seconds.append(time.perf_counter() - started)
        ranked[name] = [passage.document_id for passage in found]
    return *measures(ranked, collection.grades), sorted(seconds)[len(seconds) // 2]


def verdict(scores: Mapping[tuple[str, ...], tuple[float, ...]]) -> int:
    """Print a table; 1 if the shipped legs do not keep what is promised."""
    print(f"{'legs':<16}{'nDCG@10':>9}{'recall@100':>12}{'MRR@10':>9}{'p50 ms':>9}")
    for legs, (ndcg, recall, mrr, median) in scores.items():
        print(f"{'+'.join(legs):<16}{ndcg:>9.4f}{recall:>12.4f}{mrr:>9.4f}{median * 1000:>9.1f}")
    shipped, words = scores.get(SHIPPED), scores.get(("bm25",))
    if shipped is None or words is None:
        return 0
    return int(shipped[0] < MIN_NDCG or shipped[0] < words[0] - TOLERANCE)


def _payload(document: str, n: int) -> dict[str, Any]:
    return {"site": "cranfield", "document_id": document, "version": "1", "n": n, "lang": LANGUAGE}


def _lines(path: Path) -> list[Any]:
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


def arguments_of(given: Sequence[str] | None) -> argparse.Namespace:
    """The command line, or the process's own."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="with docs.jsonl, queries.jsonl, qrels.tsv")
    parser.add_argument(
        "--legs", default=",".join(SHIPPED), help="names, parted by commas (default: %(default)s)"
    )
    parser.add_argument("--cache", type=Path, help="a folder to keep dense vectors in between runs")
    return parser.parse_args(given)


if __name__ == "__main__":
    sys.exit(asyncio.run(run(arguments_of(None))))
