"""Find passages: every leg is searched at once and their scores are fused."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from heapq import nsmallest
from typing import Any, Literal

from core import language, tags
from core.errors import AskError, BadQuery, StoreError
from core.prompting.schema_types import BASE
from core.providers.base import Embedder, Hit, LegQuery, SparseVector, Vector, VectorStore, Where

log = logging.getLogger(__name__)

SearchMode = Literal["hybrid", "dense", "sparse"]

MORE_ROUNDS = 2  # of searching where a few long documents filled the depth
DEPTH = 200  # passages taken from each leg
FIELDS = ("site", "document_id", "version", "n", "lang")
KEYWORD_FIELDS = ("site", "document_id", "version", "types", tags.FIELD)
ACROSS_LANGUAGES = 0.25  # of a sparse leg's weight that is left when only names can be the same word
QUESTION_LANGUAGES = 4  # whose stems are tried for a question that is too short to tell its own
UNSURE_STEMS = 0.6  # of their weight: a word in the text's own language would else count twice


@dataclass(frozen=True, slots=True)
class Leg:
    """What is searched and how much it counts."""

    embedder: Embedder
    weight: float


@dataclass(frozen=True, slots=True)
class Part:
    """A text to search for; e.g. the question, and the one before it at a lower weight."""

    text: str
    weight: float = 1.0


def filtered(item_type: str | None, wanted: tags.TagFilter) -> Where | None:
    """What the store is to leave out: items of other schema.org types (every item is a `Thing`), and those
    whose tags do not fit. None if nothing."""
    kinds = {} if item_type is None or item_type == BASE else {"types": item_type}
    return Where(must=kinds, any_of=tags.groups(wanted)) if kinds or wanted else None


@dataclass(frozen=True, slots=True)
class Found:
    """A passage: chunk `n` of a document's version. `score` is fused, 0..1; `legs` has each leg's own."""

    site: str
    document_id: str
    version: str
    n: int
    score: float
    legs: dict[str, float]


class Retriever:
    """Searches one collection by all legs."""

    def __init__(self, store: VectorStore, legs: Sequence[Leg], collection: str = "content") -> None:
        self._store = store
        self._legs = {leg.embedder.spec.name: leg for leg in legs}
        self._collection = collection

    async def prepare(self) -> None:
        """Have the collection with all legs, and what questions' languages are told by. Raises StoreMismatch
        if the collection was made with other models."""
        await asyncio.to_thread(language.prepare)
        specs = [leg.embedder.spec for leg in self._legs.values()]
        await self._store.ensure(self._collection, specs, KEYWORD_FIELDS)

    async def vectors(self, texts: Sequence[str], languages: Sequence[str]) -> list[dict[str, Vector]]:
        """For every text its vector by leg, for loading. Raises what an embedder raises: a passage that
        some leg could not find would be missed for ever."""
        legs = list(self._legs.items())
        made = await asyncio.gather(*(leg.embedder.documents(texts, languages) for _, leg in legs))
        return [
            {name: vectors[at] for (name, _), vectors in zip(legs, made, strict=True)}
            for at in range(len(texts))
        ]

    async def search(
        self,
        parts: Sequence[Part],
        *,
        sites: Sequence[str],
        limit: int,
        where: Where | None = None,
        languages: Sequence[str] = (),
        by_document: bool = True,
        mode: SearchMode = "hybrid",
        on_failure: Callable[[AskError], None] = lambda _: None,
    ) -> list[Found]:
        """The best passages of these sites (of none: nothing), one a document's version if `by_document`;
        `languages` are those of the documents, where known, the most frequent first. A leg that fails is left
        out and `on_failure` is told; StoreError if all do."""
        legs = self._chosen(mode)
        parts = [part for part in parts if part.text.strip() and part.weight > 0]
        if not parts or not sites or limit < 1:
            return []
        spoken = language.detect(parts[0].text)
        queries = await self._queries(legs, parts, languages, max(DEPTH, 4 * limit), on_failure)
        selected = _selected(sites, where)
        hits = await self._hits(queries, selected, on_failure)
        if not by_document:
            return _Fusion(legs, hits, spoken).passages(limit)
        for _ in range(MORE_ROUNDS):
            seen = {str(hit.payload["document_id"]) for found in hits.values() for hit in found}
            full = any(len(hits.get(query.leg, ())) >= query.limit for query in queries)
            if len(seen) >= limit or not full:
                break
            # One long document fills a leg's depth: look again for what stands behind it.
            others = replace(selected, not_={**selected.not_, "document_id": sorted(seen)})
            more = await self._hits(queries, others, on_failure)
            if not any(more.values()):
                break
            hits = {leg: [*hits.get(leg, ()), *more.get(leg, ())] for leg in {*hits, *more}}
            queries = [LegQuery(q.leg, q.vector, q.limit + len(hits.get(q.leg, ()))) for q in queries]
        return _Fusion(legs, hits, spoken).documents(limit)

    def _chosen(self, mode: SearchMode) -> dict[str, Leg]:
        chosen = {
            name: leg
            for name, leg in self._legs.items()
            if mode == "hybrid" or leg.embedder.spec.sparse == (mode == "sparse")
        }
        if not chosen:
            raise BadQuery(f"there is no {mode} leg to search by", field="mode")
        return chosen

    async def _queries(
        self,
        legs: Mapping[str, Leg],
        parts: Sequence[Part],
        languages: Sequence[str],
        depth: int,
        on_failure: Callable[[AskError], None],
    ) -> list[LegQuery]:
        made = await asyncio.gather(
            *(_query_vector(leg.embedder, parts, languages) for leg in legs.values()), return_exceptions=True
        )
        queries: list[LegQuery] = []
        failed: list[BaseException] = []
        for name, vector in zip(legs, made, strict=True):
            if isinstance(vector, AskError):
                log.warning("leg_failed", extra={"leg": name, "error": vector.message})
                failed.append(vector)
                on_failure(StoreError(f"a part of the search (`{name}`) is not working: {vector.message}"))
            elif isinstance(vector, BaseException):
                raise vector  # ours to mend, not the leg's
            else:
                queries.append(LegQuery(name, vector, depth))
        if not queries:
            raise StoreError("no leg could be searched") from failed[0]
        return queries

    async def _hits(
        self, queries: Sequence[LegQuery], where: Where, on_failure: Callable[[AskError], None]
    ) -> dict[str, list[Hit]]:
        try:
            found = await self._store.search(self._collection, queries, where, FIELDS)
        except StoreError:
            if len(queries) == 1:
                raise
            return await self._hits_one_by_one(queries, where, on_failure)
        return {query.leg: hits for query, hits in zip(queries, found, strict=True)}

    async def _hits_one_by_one(
        self, queries: Sequence[LegQuery], where: Where, on_failure: Callable[[AskError], None]
    ) -> dict[str, list[Hit]]:
        """When all legs at once failed: it may be one that the store lacks."""
        hits: dict[str, list[Hit]] = {}
        for query in queries:
            try:
                (hits[query.leg],) = await self._store.search(self._collection, [query], where, FIELDS)
            except StoreError as exc:
                log.warning("leg_failed", extra={"leg": query.leg, "error": exc.message})
                on_failure(exc)
                failed = exc
        if not hits:
            raise failed
        return hits


async def _query_vector(embedder: Embedder, parts: Sequence[Part], languages: Sequence[str]) -> Vector:
    """One vector for all parts: scores are inner products, so adding vectors adds scores."""
    made = await asyncio.gather(*(_part_vector(embedder, part.text, languages) for part in parts))
    vectors = [(part.weight, vector) for part, vector in zip(parts, made, strict=True)]
    if isinstance(vectors[0][1], SparseVector):
        return _sparse_sum(
            [(weight, vector) for weight, vector in vectors if isinstance(vector, SparseVector)]
        )
    if len(vectors) == 1:
        return vectors[0][1]
    dense = [(weight, vector) for weight, vector in vectors if not isinstance(vector, SparseVector)]
    return [sum(weight * vector[at] for weight, vector in dense) for at in range(len(dense[0][1]))]


async def _part_vector(embedder: Embedder, text: str, languages: Sequence[str]) -> Vector:
    spoken = _asked_in(language.detect(text), languages)
    plain = await embedder.query(text, spoken)
    if spoken or not isinstance(plain, SparseVector):
        return plain
    # "best hotels" is too short to tell, so its stems in the documents' languages are asked for as well.
    union = dict(zip(plain.indices, plain.values, strict=True))
    for tried in languages[:QUESTION_LANGUAGES]:
        vector = await embedder.query(text, tried)
        assert isinstance(vector, SparseVector)  # it made one for the same text
        for index, value in zip(vector.indices, vector.values, strict=True):
            union[index] = max(union.get(index, 0.0), UNSURE_STEMS * value)
    return SparseVector(list(union), list(union.values()))


def _asked_in(spoken: str, languages: Sequence[str]) -> str:
    """The language whose stems to use: one of the documents' where the question may well be in it."""
    if not spoken:
        return languages[0] if len(languages) == 1 else ""
    return next(
        (written for written in sorted(languages, key=spoken.__ne__) if language.akin(spoken, written)),
        spoken,
    )


def _sparse_sum(vectors: Iterable[tuple[float, SparseVector]]) -> SparseVector:
    total: dict[int, float] = defaultdict(float)
    for weight, vector in vectors:
        for index, value in zip(vector.indices, vector.values, strict=True):
            total[index] += weight * value
    return SparseVector(list(total), list(total.values()))


def _selected(sites: Sequence[str], where: Where | None) -> Where:
    where = where or Where()
    allowed = list(sites)
    asked = where.must.get("site")
    if asked is not None:
        wanted = {asked} if isinstance(asked, str | int) else set(asked)
        allowed = [site for site in allowed if site in wanted]
    return replace(where, must={**where.must, "site": allowed})


# ---------------------------------------------------------------- fusion


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A passage or a document with each leg's own score and the same between 0 and 1."""

    payload: Mapping[str, Any]
    raw: dict[str, float]
    scaled: dict[str, float]


class _Fusion:
    """A weighted sum of the legs' scores ("convex combination"): words' scores by their maximum, cosines
    between the worst and the best that was found; what a leg did not find counts 0 there."""

    def __init__(self, legs: Mapping[str, Leg], hits: Mapping[str, Sequence[Hit]], spoken: str) -> None:
        self._spoken = spoken
        self._same = _weights(legs, hits, across=False)
        self._other = _weights(legs, hits, across=True)
        self._candidates: dict[str, _Candidate] = {}
        for name, found in hits.items():
            for hit, scaled in zip(
                found, _scaled(found, sparse=legs[name].embedder.spec.sparse), strict=True
            ):
                candidate = self._candidates.setdefault(hit.id, _Candidate(hit.payload, {}, {}))
                candidate.raw[name] = hit.score
                candidate.scaled[name] = scaled

    def passages(self, limit: int) -> list[Found]:
        """The best passages, each by itself."""
        return self._best(self._candidates.values(), limit)

    def documents(self, limit: int) -> list[Found]:
        """The best documents, each version by its best passage in each leg, which need not be the same one in
        all; shown is the passage that is best by itself. (On Cranfield .396 nDCG@10, .393 by passages.)"""
        grouped: dict[tuple[str, str, str], list[_Candidate]] = defaultdict(list)
        for candidate in self._candidates.values():
            payload = candidate.payload
            grouped[payload["site"], payload["document_id"], payload["version"]].append(candidate)
        return self._best(map(self._document, grouped.values()), limit)

    def _document(self, passages: Sequence[_Candidate]) -> _Candidate:
        if len(passages) == 1:
            return passages[0]
        shown = max(passages, key=self._score)
        raw, scaled = _highest(each.raw for each in passages), _highest(each.scaled for each in passages)
        return _Candidate(shown.payload, raw, scaled)

    def _score(self, candidate: _Candidate) -> float:
        weights = self._other if _across(self._spoken, candidate.payload.get("lang")) else self._same
        return min(1.0, sum((weights[name] * scaled for name, scaled in candidate.scaled.items()), 0.0))

    def _best(self, candidates: Iterable[_Candidate], limit: int) -> list[Found]:
        return [
            Found(
                site=candidate.payload["site"],
                document_id=candidate.payload["document_id"],
                version=candidate.payload["version"],
                n=candidate.payload["n"],
                score=score,
                legs=candidate.raw,
            )
            for score, candidate in nsmallest(
                limit, ((self._score(each), each) for each in candidates), key=_order
            )
        ]


def _order(scored: tuple[float, _Candidate]) -> tuple[float, str, str, int, str]:
    """Best first; what is equally good always in the same order, however the store gave it."""
    score, candidate = scored
    payload = candidate.payload
    return -score, payload["site"], payload["document_id"], payload["n"], payload["version"]


def _highest(scores: Iterable[Mapping[str, float]]) -> dict[str, float]:
    best: dict[str, float] = {}
    for one in scores:
        for name, value in one.items():
            best[name] = max(best.get(name, value), value)
    return best


def _scaled(found: Sequence[Hit], *, sparse: bool) -> list[float]:
    if not found:
        return []
    best = found[0].score
    worst = 0.0 if sparse else found[-1].score
    if best <= worst:
        return [1.0] * len(found)
    return [(hit.score - worst) / (best - worst) for hit in found]


def _weights(legs: Mapping[str, Leg], searched: Iterable[str], *, across: bool) -> dict[str, float]:
    """Each leg's share, summing to 1. Across languages words are mostly different ones and only names meet,
    so most of the sparse legs' share goes to the dense legs."""
    raw = {name: legs[name].weight for name in searched}
    sparse = [name for name in raw if legs[name].embedder.spec.sparse]
    dense = sum(raw[name] for name in raw if name not in sparse)
    if across and dense > 0:
        moved = sum(raw[name] for name in sparse) * (1 - ACROSS_LANGUAGES)
        for name in raw:
            raw[name] *= ACROSS_LANGUAGES if name in sparse else 1 + moved / dense
    total = sum(raw.values()) or 1.0
    return {name: weight / total for name, weight in raw.items()}


@lru_cache(maxsize=1024)
def _across(spoken: str, written: str | None) -> bool:
    return bool(spoken and written) and not language.akin(spoken, written or "")
