"""Which scored items are final: at most so many, none under the threshold, none twice, in one order."""

from __future__ import annotations

from bisect import insort
from collections.abc import Collection
from dataclasses import dataclass

from core.messages import Item


@dataclass(frozen=True, slots=True)
class Ranked:
    """An item in the final order: by score, and where scores are equal by its place in retrieval."""

    item: Item
    place: int

    @property
    def order(self) -> tuple[float, int]:
        return (-(self.item.score or 0.0), self.place)


class Selection:
    """The best items so far. `start` and `size` cut the page that the client asked for."""

    def __init__(self, *, start: int, size: int, min_score: float) -> None:
        self._start = start
        self._size = size
        self.min_score = min_score
        self._ranked: list[Ranked] = []
        self._keys: set[tuple[str, str]] = set()
        self.below = 0

    def offer(self, item: Item, place: int, *, exempt: bool = False) -> bool:
        """Take the item in if it is good enough (`exempt`: whatever its score); True if the client should
        see it now, because it stands on the asked page as far as is known. On a later page nothing is known
        before the end."""
        key = (item.site, item.document_id)
        if key in self._keys:
            return False
        if not exempt and (item.score or 0.0) < self.min_score:
            self.below += 1
            return False
        self._keys.add(key)
        ranked = Ranked(item, place)
        insort(self._ranked, ranked, key=lambda r: r.order)
        if self._start:
            return False
        return self._ranked.index(ranked) < self._size

    def narrow(self, keys: Collection[tuple[str, str]]) -> None:
        """Keep only these (site, document_id), if any of them is good enough; else all stay."""
        kept = [r for r in self._ranked if (r.item.site, r.item.document_id) in keys]
        self._ranked = kept or self._ranked

    def final(self) -> list[Item]:
        """The asked page, best first."""
        return [r.item for r in self._ranked[self._start : self._start + self._size]]
