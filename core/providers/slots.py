"""Bounded concurrency that a busy site cannot take from the others: waiting sites are served in turns."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class FairSlots:
    """`limit` slots of one event loop; waiting sites are served round-robin, each first come first."""

    def __init__(self, limit: int) -> None:
        if limit < 1:
            raise ValueError("there must be at least one slot")
        self._free = limit
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @property
    def waiting(self) -> int:
        """How many takers have no slot yet."""
        return sum(len(takers) for takers in self._waiting.values())

    @asynccontextmanager
    async def take(self, site: str) -> AsyncIterator[None]:
        """Hold a slot for the length of the block; a taker cancelled while waiting leaves no trace."""
        await self.acquire(site)
        try:
            yield
        finally:
            self.release()

    async def acquire(self, site: str) -> None:
        """Wait for a slot; every one that was got is given back with `release`."""
        if self._free:
            self._free -= 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(site, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            # Cancelled in the moment between being served and running: the slot is ours and goes on.
            if turn.done() and not turn.cancelled():
                self.release()
            else:
                self._forget(site, turn)
            raise

    def release(self) -> None:
        """Give a slot back: to the next site's first taker, if any waits."""
        while self._waiting:
            site, takers = next(iter(self._waiting.items()))
            turn = takers.popleft()
            if takers:
                self._waiting.move_to_end(site)
            else:
                del self._waiting[site]
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1

    def _forget(self, site: str, turn: asyncio.Future[None]) -> None:
        takers = self._waiting.get(site)
        if takers and turn in takers:
            takers.remove(turn)
            if not takers:
                del self._waiting[site]
