"""What is shown without a model: `python -m bench.cutoff [--legs bm25,use] [--cranfield FOLDER]`.

Asks the sample sites their judged questions and others that nothing there answers, and prints how many of the
ten best of the search are shown, how many right ones that loses, what of the others is still shown, and the
mean and spread of unrelated cosines (`Unrelated` in `core/providers/legs.py`). With a judged collection in
FOLDER (as for `bench.search`), the same of that. Exits 1 if more than LOST of the right items are lost.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

from bench.judged import SITES, load_samples, read_judged
from bench.search import LANGUAGE, load, measures, read
from core import resources
from core.cutoff import related
from core.documents import Candidate, Document
from core.providers.edge import EdgeStore
from core.providers.legs import leg_kind
from core.retrieval import Found, Leg, Part, Retriever
from core.settings import LegSettings, LlmSettings, RetrievalSettings, Settings
from server.cli.client import Api, connect

LOST = 0.005
PAGE = 10
DEPTH = 50
# Nothing on recipes, on Ligurian towns or in a collection on aerodynamics of 1963 answers these.
NONSENSE = (
    "kubernetes ingress controller",
    "best laptop for gaming",
    "tax return deadline",
    "football world cup winners",
    "show me good running shoes",
    "lung cancer treatment options",
    "asdfgh qwerty",
    "quantum chromodynamics",
    "how do I replace the brake pads of my car",
    "mejores portátiles para jugar",
    "tratamiento del cáncer de pulmón",
    "dichiarazione dei redditi",
    "freni della mia auto",
    "游戏笔记本电脑推荐",
    "肺癌治疗方案",
    "게임용 노트북 추천",
    "소득세 신고 방법",
)


@dataclass
class Shown:
    """Counts over questions; `right` are those that stood among the ten best of the search."""

    questions: int = 0
    shown: int = 0
    empty: int = 0
    right: int = 0
    lost: list[str] = field(default_factory=list)

    def add(
        self, question: str, before: Sequence[str], after: Sequence[str], right: Mapping[str, int]
    ) -> None:
        """One question: the documents that the search has, those that are shown, and the grades."""
        self.questions += 1
        self.shown += len(after[:PAGE])
        self.empty += not after
        stood = [name for name in before[:PAGE] if right.get(name, 0) > 0]
        self.right += len(stood)
        self.lost += [f"{question}: {name}" for name in stood if name not in after]

    def told(self, what: str) -> str:
        """A line of the table."""
        return (
            f"{what:<28}{self.questions:>5} questions, {self.shown / self.questions:>5.2f} shown of {PAGE}, "
            f"{self.empty:>3} empty, right {self.right}, lost {len(self.lost)}"
        )


async def on_samples(legs: Sequence[str]) -> Shown:
    """The sample sites through the server, as a newcomer asks them."""
    with tempfile.TemporaryDirectory(prefix="askable-cutoff-") as folder:
        settings = Settings(
            data_dir=Path(folder),
            llm=LlmSettings(),
            retrieval=RetrievalSettings(legs=tuple(LegSettings(name=leg) for leg in legs)),
        )
        async with connect(settings, create=True) as api:
            await load_samples(api)
            judged = Shown()
            for line in read_judged(resources.samples_dir() / "judged.jsonl"):
                site = line.get("site", "all")
                before = [hit["url"] for hit in await searched(api, line["query"], site)]
                judged.add(line["query"], before, await asked(api, line["query"], site), line["relevant"])
            print(judged.told("judged"))
            await nothing_answers(api)
    return judged


async def nothing_answers(api: Api) -> None:
    """A line for each question and the noise of the dense legs."""
    cosines: dict[str, list[float]] = {}
    for question in NONSENSE:
        kept = []
        for site in SITES:
            for hit in await searched(api, question, site):
                for leg, score in hit["scores"].items():
                    if not leg_kind(leg).spec.sparse:
                        cosines.setdefault(leg, []).append(score)
            kept.append(f"{site} {len((await asked(api, question, site))[:PAGE])}")
        print(f"    {question:<44}{', '.join(kept)}")
    for leg, found in cosines.items():
        print(
            f"unrelated by {leg}: mean {fmean(found):.3f}, spread {pstdev(found):.3f} of {len(found)} cosines"
        )


async def searched(api: Api, question: str, site: str) -> list[dict[str, Any]]:
    """The best passage of each document, in the order of the search."""
    body = {"query": question, "site": [] if site == "all" else [site], "limit": DEPTH}
    found = await api.json("POST", "/search", body=body)
    once: dict[str, dict[str, Any]] = {}
    for hit in found["results"]:
        once.setdefault(hit["document_id"], hit)
    return list(once.values())


async def asked(api: Api, question: str, site: str) -> list[str]:
    """The addresses of what is shown."""
    answer = await api.json("POST", "/ask", body={"query": question, "site": site, "streaming": False})
    return [item["url"] for item in answer["results"]]


async def on_collection(folder: Path, legs: Sequence[str], cache: Path | None) -> Shown:
    """A judged collection, its candidates cut as an answer's are."""
    collection = read(folder)
    texts = {(document, n): text for document, n, text in collection.passages}
    passages = len(texts)
    shown, strangers = Shown(), Shown()
    before: dict[str, list[str]] = {}
    after: dict[str, list[str]] = {}
    async with AsyncExitStack() as stack:
        store = await EdgeStore.open(Path(stack.enter_context(tempfile.TemporaryDirectory())))
        stack.push_async_callback(store.close)
        opened = {}
        for name in legs:
            kind = leg_kind(name)
            opened[name] = Leg(await kind.open(), kind.weight)
            stack.push_async_callback(opened[name].embedder.close)
        await load(store, opened, collection, cache)
        retriever = Retriever(store, list(opened.values()))
        questions = [*collection.questions.items(), *(("", question) for question in NONSENSE)]
        for name, question in questions:
            parts = [Part(question)]
            found = await retriever.search(parts, sites=["cranfield"], limit=DEPTH, languages=[LANGUAGE])
            candidates = [candidate(one, texts[one.document_id, one.n]) for one in found]
            had = [one.document_id for one in found]
            kept = [one.document.document_id for one in related(parts, candidates, passages)]
            if name:
                before[name], after[name] = had, kept
                shown.add(question, had, kept, collection.grades.get(name, {}))
            else:
                strangers.add(question, had, kept, {})
    print(shown.told(folder.name))
    print(strangers.told("... nothing answers"))
    ndcg = [measures(ranked, collection.grades)[0] for ranked in (before, after)]
    print(f"nDCG@10 of the search {ndcg[0]:.4f}, of what is shown {ndcg[1]:.4f}")
    return shown


def candidate(one: Found, text: str) -> Candidate:
    """What the documents' table would make of it."""
    document = Document(one.site, one.document_id, one.version, "", "", (), LANGUAGE, b"{}", "", 1)
    return Candidate(document, one.n, text, one.score, one.legs)


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--legs", default="bm25,use", help="names, parted by commas (default: %(default)s)")
    parser.add_argument("--cranfield", type=Path, help="with docs.jsonl, queries.jsonl, qrels.tsv")
    parser.add_argument("--cache", type=Path, help="a folder to keep dense vectors in between runs")
    args = parser.parse_args()
    legs = args.legs.split(",")
    results = [await on_samples(legs)]
    if args.cranfield is not None:
        results.append(await on_collection(args.cranfield, legs, args.cache))
    for one in results:
        print(*(f"lost  {what}" for what in one.lost), sep="\n", end="\n" if one.lost else "")
    return int(any(len(one.lost) > LOST * one.right for one in results))


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
