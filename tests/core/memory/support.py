"""A store of facts over real parts, with a clock that tests move."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from core.database import Database
from core.memory import COLLECTION, KEYWORDS, Detected, Facts, Judge
from core.providers.bm25 import Bm25Embedder
from core.providers.edge import EdgeStore
from core.query import Identity
from core.retrieval import Leg, Retriever

ANNA = Identity("key:shop", "anna")
BO = Identity("key:shop", "bo")
DAY_S = 86_400.0


@dataclass
class Clock:
    """Unix seconds that stand still until a test moves them; each look is a little later than the last."""

    now: float = 1_800_000_000.0

    def __call__(self) -> float:
        self.now += 0.001
        return self.now


@dataclass
class Kept:
    """The parts of one memory."""

    facts: Facts
    database: Database
    store: EdgeStore
    clock: Clock = field(default_factory=Clock)
    told: int = 0

    async def say(self, text: str, who: Identity = ANNA, **more: Any) -> str:
        """Remember it; the memory's id."""
        return (await self.facts.remember(self.detected(text, who, **more))).memory_id

    def detected(self, text: str, who: Identity = ANNA, **more: Any) -> Detected:
        self.told += 1
        values: dict[str, Any] = {
            "text": text,
            "kind": "",
            "scope": "user",
            "identity": who,
            "site": "",
            "conversation_id": "",
            "query_id": f"q{self.told}",
            "source_turn": f"remember that {text}",
            "expires_at": self.clock.now + 365 * DAY_S,
            "nonce": f"n{self.told}",
        }
        return Detected(**{**values, **more})


def content(path: Path) -> bytes:
    """What is written in a file, without its holes: the engine reserves a hundred megabytes of them."""
    parts = []
    descriptor = os.open(path, os.O_RDONLY)
    try:
        size, at = os.fstat(descriptor).st_size, 0
        while at < size:
            try:
                at = os.lseek(descriptor, at, os.SEEK_DATA)
            except OSError:
                break  # nothing but a hole from here on
            end = os.lseek(descriptor, at, os.SEEK_HOLE)
            parts.append(os.pread(descriptor, end - at, at))
            at = end
    finally:
        os.close(descriptor)
    return b"".join(parts)


def held(folder: Path, needles: Iterable[bytes]) -> set[bytes]:
    """Which of these are in any file of the folder."""
    files = [content(path) for path in folder.rglob("*") if path.is_file()]
    return {needle for needle in needles if any(needle in file for file in files)}


@asynccontextmanager
async def memory_in(
    folder: Path,
    *,
    url: str | None = None,
    clock: Clock | None = None,
    judge: Judge | None = None,
    legs: Sequence[Leg] = (),
) -> AsyncIterator[Kept]:
    """A memory in this folder (and in the database at `url`), which may hold one already; it is searched by
    words, and by these legs."""
    clock = clock or Clock()
    database = await Database.open(url, folder)
    store = await EdgeStore.open(folder / "vectors")
    legs = [Leg(Bm25Embedder(), 1.0), *legs]
    try:
        await store.ensure(COLLECTION, [leg.embedder.spec for leg in legs], KEYWORDS)
        retriever = Retriever(store, legs, COLLECTION)
        yield Kept(Facts(database, store, retriever, judge=judge, clock=clock), database, store, clock)
    finally:
        await store.close()
        await database.close()
