"""Scores weighed with what the sites' owners say counts beside relevance, at one moment, for one asker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from core.documents import Candidate, Document
from core.prompting.library import PromptLibrary
from core.signals import Place, factor

# So many times what is asked for is looked for and weighed, up to so many: what is new or near may stand far
# behind what is only well worded.
WIDER = 4
WIDEST = 200


class Weighing:
    """`now` is the moment in seconds since 1970, `near` where the asker is, if that is known."""

    def __init__(self, library: PromptLibrary, now: float, near: Place | None) -> None:
        self._library = library
        self._now = now
        self._near = near

    def width(self, sites: Sequence[str], wanted: int) -> int:
        """How many documents to look for where the `wanted` best are asked for."""
        if not self._library.has_signals(sites):
            return wanted
        return max(wanted, min(WIDER * wanted, WIDEST))

    def best(self, candidates: Sequence[Candidate], wanted: int) -> list[Candidate]:
        """The `wanted` best with their weighed scores, the best first; of equal ones as they came."""
        weighed = [replace(one, score=one.score * self.factor(one.document)) for one in candidates]
        return sorted(weighed, key=lambda one: -one.score)[:wanted]

    def judged(self, document: Document, score: float, least: float) -> float:
        """A model's score (0..100), weighed. What was good enough (`least`) before is so after: age or
        distance sets an item back, and only a lack of relevance takes it out."""
        weighed = round(score * self.factor(document), 1)
        return max(weighed, min(score, least))

    def factor(self, document: Document) -> float:
        """What is left of a document's score, from 0 to 1; 1 where nothing else counts."""
        signals = self._library.signals(document.site, document.types)
        return factor(signals, document.schema_object, self._now, self._near) if signals else 1.0
