"""From what the search found to what clients are shown: each document once, with a score and a passage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from core.documents import Candidate
from core.ingestion.text import plain, shortened
from core.language import detect
from core.memory.claims import leaning
from core.messages import Citation, Item, RankingType
from core.pace import Pace
from core.passages import best_of
from core.prompting.schema_types import kinds
from core.query import Query

# Characters of one text of an item that are read for a question, which is done for each item that is shown.
# What a question found far behind that is in the found chunk, a text of its own.
MAX_READ = 4_000
MAX_MARKED_UP = 4 * MAX_READ  # of a description before its markup is taken out
# Where schema.org objects have their description, the likeliest first.
DESCRIPTIONS = ("description", "disambiguatingDescription", "abstract")
CITED_CHARS = 800  # of the passage that an item was found by: all of most


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
        citations=(Citation(candidate.n, shortened(candidate.text, CITED_CHARS)),),
    )


async def with_passages(query: Query, items: Sequence[Item], among: Sequence[Candidate]) -> list[Item]:
    """The items, those without a description with their passages: each takes a while where the question and
    the item are long."""
    found = {key_of(candidate): candidate for candidate in among}
    pace = Pace()
    shown = []
    for item in items:
        if item.description:
            shown.append(item)
            continue
        shown.append(replace(item, description=passage(query, found[item.site, item.document_id])))
        await pace.turn()
    return shown


def passage(query: Query, candidate: Candidate) -> str:
    """What of an item answers, by words alone: its description's best sentences, or the found chunk's."""
    asked = query.decontextualized_query or " ".join([query.text, *query.prev[-1:]])
    return best_of(told(candidate), asked, language_of(candidate), name=candidate.document.name)


def told(candidate: Candidate) -> list[str]:
    """What an item says in sentences: its description, if it has one, and the chunk that was found; at most
    `MAX_READ` characters of each."""
    described = candidate.document.schema_object
    said = [described.get(key) for key in DESCRIPTIONS] if isinstance(described, dict) else []
    written = next((one for one in said if isinstance(one, str) and one.strip()), "")
    prose = shortened(plain(written[:MAX_MARKED_UP]), MAX_READ)
    found = shortened(candidate.text, MAX_READ)
    return [prose, found] if prose else [found]


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
