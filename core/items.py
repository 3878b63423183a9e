"""From what the search found to what clients are shown: each document once, with a score and a passage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from core.documents import Candidate
from core.ingestion.text import plain
from core.language import detect
from core.memory.claims import leaning
from core.messages import Item, RankingType
from core.passages import best_of
from core.prompting.schema_types import kinds
from core.query import Query

# Where schema.org objects have their description, the likeliest first.
DESCRIPTIONS = ("description", "disambiguatingDescription", "abstract")


def item_of(
    query: Query,
    candidate: Candidate,
    score: float | None,
    ranking_type: RankingType,
    description: str = "",
) -> Item:
    """A candidate as it is shown; without a description by its passage that answers best."""
    return undescribed(candidate, score, ranking_type, description or passage(query, candidate))


def undescribed(
    candidate: Candidate, score: float | None, ranking_type: RankingType, description: str = ""
) -> Item:
    """A candidate whose description, which takes a look at each of its sentences, is made only once it is
    known to be shown."""
    document = candidate.document
    return Item(
        url=document.url,
        name=document.name,
        site=document.site,
        score=score,
        description=description,
        schema_object=document.schema_object,
        ranking_type=ranking_type,
        document_id=document.document_id,
    )


def with_passages(query: Query, items: Sequence[Item], among: Sequence[Candidate]) -> list[Item]:
    """The items, those without a description with their passages."""
    found = {key_of(candidate): candidate for candidate in among}
    return [
        item
        if item.description
        else replace(item, description=passage(query, found[item.site, item.document_id]))
        for item in items
    ]


def passage(query: Query, candidate: Candidate) -> str:
    """What of an item answers, by words alone: its description's best sentences, or the found chunk's."""
    asked = query.decontextualized_query or " ".join([query.text, *query.prev[-1:]])
    return best_of(told(candidate), asked, language_of(candidate), name=candidate.document.name)


def told(candidate: Candidate) -> list[str]:
    """What an item says in sentences: its description, if it has one, and the chunk that was found."""
    described = candidate.document.schema_object
    said = [described.get(key) for key in DESCRIPTIONS] if isinstance(described, dict) else []
    prose = next((plain(one) for one in said if isinstance(one, str) and one.strip()), "")
    return [prose, candidate.text] if prose else [candidate.text]


def language_of(candidate: Candidate) -> str:
    """The ISO 639-1 code of an item's language, "" if that is not sure."""
    return candidate.document.language or detect(candidate.text)


def key_of(candidate: Candidate) -> tuple[str, str]:
    """What tells documents apart."""
    return candidate.document.site, candidate.document.document_id


def once(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Each document once, at its best place."""
    first: dict[tuple[str, str], Candidate] = {}
    for candidate in candidates:
        first.setdefault(key_of(candidate), candidate)
    return list(first.values())


def of_kind(candidates: Sequence[Candidate], kind: str) -> list[Candidate]:
    """Those of this schema.org type or one below it."""
    return [one for one in candidates if kind in kinds(one.document.types)]


def leaned(query: Query, candidates: Sequence[Candidate]) -> Sequence[Candidate]:
    """The candidates in the light of what the asker likes and does not, where no model reads that."""
    if not query.facts:
        return candidates
    texts = [f"{candidate.document.name}\n{candidate.text}" for candidate in candidates]
    leans = leaning(texts, query.facts)
    moved = [replace(c, score=max(0.0, c.score + lean)) for c, lean in zip(candidates, leans, strict=True)]
    return sorted(moved, key=lambda candidate: -candidate.score)


def on_scale(candidate: Candidate, among: Sequence[Candidate]) -> float:
    """The retrieval score as 0..100 within the answer (contract 4.6)."""
    best = max(other.score for other in among)
    return round(100 * candidate.score / best, 1) if best > 0 else 0.0
