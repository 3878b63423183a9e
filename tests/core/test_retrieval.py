"""Fused search over a real store and real legs: what it finds, and that one bad leg does not stop it."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import pytest_asyncio

from core.errors import BadQuery, ModelError, StoreError, StoreMismatch
from core.providers.base import Embedder, LegSpec, Point, Vector, VectorStore, Where
from core.providers.bm25 import Bm25Embedder
from core.providers.edge import EdgeStore
from core.providers.legs import leg_kind
from core.retrieval import Found, Leg, Part, Retriever

pytestmark = pytest.mark.asyncio(loop_scope="module")

# site, document, version, chunk, language, text
PASSAGES = [
    ("towns", "taggia", "1", 0, "en", "Taggia is a town in Liguria. About 14,000 people live there."),
    ("towns", "taggia", "1", 1, "en", "The medieval bridge of Taggia has sixteen arches."),
    ("towns", "sanremo", "1", 0, "en", "Sanremo is known for its flowers and a song festival."),
    (
        "towns",
        "taggia-it",
        "1",
        0,
        "it",
        "Taggia è un comune ligure con circa 14.000 abitanti e un ponte romanico.",
    ),
    ("towns", "taggia-ko", "1", 0, "ko", "타자에서는 약 14,000명이 살고 있습니다. 올리브가 유명하다."),
    ("food", "pesto", "1", 0, "en", "Pesto is made of basil, pine nuts, garlic, parmesan and olive oil."),
    ("food", "pesto", "2", 0, "en", "Pesto is made of basil, pine nuts, garlic, pecorino and olive oil."),
    ("food", "lasagna", "1", 0, "en", "A vegan lasagna with lentils and spinach."),
    ("towns", "tokyo", "1", 0, "ja", "東京は日本の首都で、人口は約千四百万人です。"),
    ("food", "tiramisu", "1", 0, "it", "Il tiramisù si prepara con mascarpone, caffè e savoiardi."),
]

SITES = sorted({site for site, *_ in PASSAGES})


@dataclass
class Searched:
    store: EdgeStore
    legs: dict[str, Leg]
    retriever: Retriever

    async def find(self, question: str, **more: object) -> list[Found]:
        options: Mapping[str, object] = {"sites": SITES, "limit": 10, **more}
        return await self.retriever.search([Part(question)], **options)  # type: ignore[arg-type]


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def searched(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Searched]:
    async with AsyncExitStack() as stack:
        store = await EdgeStore.open(tmp_path_factory.mktemp("vectors"))
        stack.push_async_callback(store.close)
        legs: dict[str, Leg] = {}
        for name in ("bm25", "use"):
            legs[name] = Leg(await leg_kind(name).open(), leg_kind(name).weight)
            stack.push_async_callback(legs[name].embedder.close)
        retriever = Retriever(store, list(legs.values()))
        await retriever.prepare()
        await load(store, retriever)
        yield Searched(store, legs, retriever)


async def load(store: VectorStore, retriever: Retriever) -> None:
    vectors = await retriever.vectors([row[5] for row in PASSAGES], [row[4] for row in PASSAGES])
    await store.upsert(
        "content",
        [
            Point(
                str(uuid.uuid4()),
                made,
                {"site": site, "document_id": document, "version": version, "n": n, "lang": language},
            )
            for (site, document, version, n, language, _), made in zip(PASSAGES, vectors, strict=True)
        ],
    )


@dataclass
class Broken:
    """A leg whose model is down."""

    spec: LegSpec = field(
        default_factory=lambda: LegSpec("use", "universal-sentence-encoder-multilingual-3", 512)
    )
    max_tokens: int = 100

    async def documents(self, texts: Sequence[str], languages: Sequence[str]) -> list[Vector]:
        raise ModelError("the model is down")

    async def query(self, text: str, language: str) -> Vector:
        raise ModelError("the model is down")

    async def close(self) -> None: ...


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("How many people live in Taggia?", "taggia"),
        ("quanti abitanti ha Taggia?", "taggia-it"),
        ("타자에 몇 명이 살고 있나요?", "taggia-ko"),
        ("올리브", "taggia-ko"),
        ("vegan", "lasagna"),
        ("song festivals", "sanremo"),
        ("come si prepara il tiramisu", "tiramisu"),
        ("how do I make tiramisu", "tiramisu"),
        ("¿Qué ingredientes lleva el pesto?", "pesto"),
        ("a noodle dish without meat", "lasagna"),
    ],
)
async def test_the_right_document_is_first(searched: Searched, question: str, first: str) -> None:
    found = await searched.find(question, languages=["en", "it", "ko"])
    assert found[0].document_id == first


async def test_scores_are_fused_between_0_and_1_best_first_and_legs_keep_theirs(searched: Searched) -> None:
    found = await searched.find("How many people live in Taggia?")
    scores = [passage.score for passage in found]
    assert scores == sorted(scores, reverse=True)
    assert 0.9 < scores[0] <= 1.0
    assert min(scores) >= 0.0
    assert set(found[0].legs) == {"bm25", "use"}
    assert found[0].legs["bm25"] > 1.0
    assert 0.3 < found[0].legs["use"] < 1.0


async def test_a_document_is_there_once_a_version_with_the_passage_that_answers(searched: Searched) -> None:
    found = await searched.find("the arches of the bridge in Taggia")
    assert (found[0].document_id, found[0].n) == ("taggia", 1)
    seen = [(passage.document_id, passage.version) for passage in found]
    assert len(seen) == len(set(seen))
    assert {("pesto", "1"), ("pesto", "2")} <= set(seen)


async def test_all_passages_are_there_if_documents_are_not_folded(searched: Searched) -> None:
    found = await searched.find("Taggia", by_document=False)
    chunks = [passage.n for passage in found if passage.document_id == "taggia"]
    assert sorted(chunks) == [0, 1]


async def test_only_the_sites_and_documents_asked_for_are_searched(searched: Searched) -> None:
    assert {passage.site for passage in await searched.find("Taggia", sites=["food"])} == {"food"}
    assert await searched.find("Taggia", sites=[]) == []
    found = await searched.find("pesto", sites=["food"], where=Where({"version": "2"}))
    assert [(passage.document_id, passage.version) for passage in found] == [("pesto", "2")]
    assert await searched.find("pesto", sites=["food"], where=Where({"site": "towns"})) == []
    only = await searched.find("pesto", sites=["food", "towns"], where=Where({"site": "towns"}))
    assert {passage.site for passage in only} == {"towns"}


async def test_no_more_than_the_limit_come_back(searched: Searched) -> None:
    assert len(await searched.find("Taggia", limit=2)) == 2
    assert await searched.find("Taggia", limit=0) == []
    assert await searched.find("  ") == []


async def test_modes_search_one_kind_of_leg(searched: Searched) -> None:
    assert {leg for hit in await searched.find("Taggia", mode="sparse") for leg in hit.legs} == {"bm25"}
    assert {leg for hit in await searched.find("Taggia", mode="dense") for leg in hit.legs} == {"use"}
    words_alone = Retriever(searched.store, [searched.legs["bm25"]])
    with pytest.raises(BadQuery):
        await words_alone.search([Part("Taggia")], sites=SITES, limit=5, mode="dense")


async def test_a_follow_up_is_found_together_with_the_question_before(searched: Searched) -> None:
    parts = [Part("and the bridge?"), Part("Tell me about Taggia", 0.5)]
    found = await searched.retriever.search(parts, sites=SITES, limit=3)
    assert (found[0].document_id, found[0].n) == ("taggia", 1)
    other = await searched.retriever.search(
        [Part("what is it made of?"), Part("how is pesto", 0.5)], sites=SITES, limit=2
    )
    assert {passage.document_id for passage in other} == {"pesto"}


async def test_across_languages_meaning_counts_and_words_step_back(searched: Searched) -> None:
    found = await searched.find("¿Cuántas personas viven en Taggia?")
    assert {passage.document_id for passage in found[:2]} == {"taggia", "taggia-it"}
    shared = next(passage for passage in found if passage.document_id == "taggia")
    assert shared.legs["bm25"] > 0


async def test_a_question_in_characters_that_two_languages_share_is_searched_by_its_words(
    searched: Searched,
) -> None:
    (found,) = await searched.find("東京 人口", mode="sparse")
    assert found.document_id == "tokyo"
    assert (await searched.find("東京 人口"))[0].score == pytest.approx(1.0)


async def test_a_question_too_short_to_tell_is_asked_in_the_documents_languages(searched: Searched) -> None:
    unknown = await searched.find("festivals", mode="sparse")
    known = await searched.find("festivals", mode="sparse", languages=["en"])
    several = await searched.find("festivals", mode="sparse", languages=["it", "en"])
    assert unknown == []
    assert [passage.document_id for passage in known] == ["sanremo"]
    assert [passage.document_id for passage in several] == ["sanremo"]


async def test_a_leg_whose_model_is_down_does_not_stop_the_others(
    searched: Searched, caplog: pytest.LogCaptureFixture
) -> None:
    retriever = Retriever(searched.store, [searched.legs["bm25"], Leg(Broken(), 0.3)])
    found = await retriever.search([Part("vegan lasagna")], sites=SITES, limit=3)
    assert found[0].document_id == "lasagna"
    assert found[0].score == pytest.approx(1.0)
    assert "leg_failed" in [record.message for record in caplog.records]
    with pytest.raises(ModelError):
        await retriever.vectors(["a text"], ["en"])


async def test_a_leg_that_the_store_lacks_does_not_stop_the_others(searched: Searched) -> None:
    class Unfilled(Bm25Embedder):
        spec = LegSpec("not-there", "words")

    retriever = Retriever(searched.store, [searched.legs["bm25"], Leg(Unfilled(), 1.0)])
    found = await retriever.search([Part("vegan lasagna")], sites=SITES, limit=3)
    assert [passage.document_id for passage in found] == ["lasagna"]
    alone = Retriever(searched.store, [Leg(Unfilled(), 1.0)])
    with pytest.raises(StoreError, match="not-there"):
        await alone.search([Part("vegan lasagna")], sites=SITES, limit=3)


async def test_all_legs_down_is_an_error_and_not_an_empty_answer(searched: Searched) -> None:
    retriever = Retriever(searched.store, [Leg(Broken(), 1.0)])
    with pytest.raises(StoreError, match="no leg"):
        await retriever.search([Part("vegan lasagna")], sites=SITES, limit=3)


async def test_a_collection_of_another_model_is_refused_at_start(searched: Searched) -> None:
    other: Embedder = Broken(LegSpec("use", "another-model", 512))
    with pytest.raises(StoreMismatch, match="another-model"):
        await Retriever(searched.store, [Leg(other, 1.0)]).prepare()


@pytest.mark.slow
async def test_the_shipped_legs_are_better_than_words_alone_on_a_whole_collection(cases: Path) -> None:
    from bench.search import arguments_of, run

    assert await run(arguments_of([str(cases / "search" / "cranfield")])) == 0
