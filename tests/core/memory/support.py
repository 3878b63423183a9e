"""A store of facts over real parts, with a clock that tests move."""

from __future__ import annotations

from collections.abc import AsyncIterator
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


@asynccontextmanager
async def memory_in(
    folder: Path, *, clock: Clock | None = None, judge: Judge | None = None
) -> AsyncIterator[Kept]:
    """A memory in this folder, which may hold one already."""
    clock = clock or Clock()
    database = await Database.open(None, folder)
    store = await EdgeStore.open(folder / "vectors")
    leg = Leg(Bm25Embedder(), 1.0)
    try:
        await store.ensure(COLLECTION, [leg.embedder.spec], KEYWORDS)
        retriever = Retriever(store, [leg], COLLECTION)
        yield Kept(Facts(database, store, retriever, judge=judge, clock=clock), database, store, clock)
    finally:
        await store.close()
        await database.close()
