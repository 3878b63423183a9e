"""What there is to say of one item without a model: its description, what was asked for, a few facts."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from core.documents import Candidate
from core.ingestion.text import searchable_text
from core.items import DESCRIPTIONS, language_of, told
from core.passages import matching_passage, opening, properties

MAX_FACTS = 5
MAX_LISTED = 16_000  # characters of an item's properties that are looked through, the most telling first
MAX_FACT_CHARS = 100  # longer ones are lists, of ingredients for example
# Long, or of use to search engines only.
_UNTOLD = frozenset(
    {
        *DESCRIPTIONS,
        "text",
        "articleBody",
        "keywords",
        "review",
        "reviews",
        "author",
        "mainEntity",
        "subjectOf",
    }
)


@dataclass(frozen=True, slots=True)
class Digest:
    """Sentences on an item, and its facts: label and line (`Offer: 219 EUR`), the most telling first."""

    sentences: str
    facts: tuple[tuple[str, str], ...] = ()

    @property
    def text(self) -> str:
        """The sentences, and each fact on a line below them."""
        return "\n".join(part for part in (self.sentences, *(line for _, line in self.facts)) if part)


async def digest_of(candidate: Candidate, asked: str) -> Digest:
    """`asked` is what the question says beside the item's name, or "". Made beside the event loop: the whole
    item is read."""
    return await asyncio.to_thread(_digest_of, candidate, asked)


def _digest_of(candidate: Candidate, asked: str) -> Digest:
    name, language, texts = candidate.document.name, language_of(candidate), told(candidate)
    described = candidate.document.schema_object
    listed = searchable_text(
        {key: value for key, value in described.items() if key not in _UNTOLD}
        if isinstance(described, dict)
        else {}
    )[:MAX_LISTED]
    facts = [one for one in properties(listed) if len(one[1]) <= MAX_FACT_CHARS][:MAX_FACTS]
    first = opening(texts[0], language, name=name)
    answer = matching_passage("\n\n".join([*texts, listed]), asked, language, name=name) if asked else ""
    if answer and answer not in first and answer not in (line for _, line in facts):
        first = f"{answer}\n{first}"
    return Digest(first, tuple(sorted(facts, key=lambda one: one[1] != answer)))


def side_by_side(first: Digest, second: Digest) -> tuple[Digest, Digest]:
    """Two digests with what both have a fact of first, in one order."""
    shared = [label for label, _ in first.facts if label in dict(second.facts)]

    def ordered(one: Digest) -> Digest:
        place = {label: n for n, label in enumerate(shared)}
        facts = sorted(one.facts, key=lambda fact: place.get(fact[0], len(shared)))
        return Digest(one.sentences, tuple(facts))

    return ordered(first), ordered(second)
