"""Questions being answered: each runs once, whoever reads it and however often the connection breaks.

A reader that comes back with `Last-Event-ID` gets the frames it missed and then the rest. When the last
reader has left, the run has a moment's grace for a reconnect and is then stopped, with all its model calls.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any

log = logging.getLogger(__name__)

# Within the second in which a person who left must cost nothing more (contract 4.4).
GRACE_S = 0.5
KEEP_S = 60.0
MAX_KEPT = 2000

Frame = dict[str, Any]


class Run:
    """One answer: its frames so far, and whether more will come."""

    def __init__(self, caller: str, closing: Callable[[list[Frame]], list[Frame]]) -> None:
        self.id = secrets.token_urlsafe(16)
        self.caller = caller
        self.frames: list[Frame] = []
        self.done = False
        self._closing = closing
        self._readers = 0
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._stop: asyncio.TimerHandle | None = None

    def start(self, frames: AsyncGenerator[Frame, None], *, on_end: Callable[[], None]) -> None:
        self._task = asyncio.create_task(self._produce(frames))
        self._task.add_done_callback(lambda _: on_end())

    async def read(self, after: int, *, every_s: float) -> AsyncGenerator[tuple[int, Frame] | None, None]:
        """Frames behind number `after`, each with its number; None whenever `every_s` passed without one."""
        if self._stop is not None:
            self._stop.cancel()
            self._stop = None
        self._readers += 1
        try:
            number = after + 1
            while True:
                while number < len(self.frames):
                    yield number, self.frames[number]
                    number += 1
                if self.done:
                    return
                news = self._news
                try:
                    await asyncio.wait_for(news.wait(), every_s)
                except TimeoutError:
                    yield None
        finally:
            self._readers -= 1
            if not self._readers and not self.done:
                self._stop = asyncio.get_running_loop().call_later(GRACE_S, self.stop)

    def stop(self) -> None:
        """Stop the work; a later reader still gets what there was, and an end."""
        if self._task is not None:
            self._task.cancel()

    async def ended(self) -> None:
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    async def _produce(self, frames: AsyncGenerator[Frame, None]) -> None:
        try:
            async with aclosing(frames):
                async for one in frames:
                    self._add(one)
        finally:
            if not self.frames or self.frames[-1].get("message_type") != "complete":
                for one in self._closing(self.frames):
                    self.frames.append(one)
            self.done = True
            self._wake()

    def _add(self, one: Frame) -> None:
        self.frames.append(one)
        self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()


class Runs:
    """The runs of the last minute."""

    def __init__(self) -> None:
        self._runs: dict[str, Run] = {}

    def start(
        self,
        caller: str,
        frames: AsyncGenerator[Frame, None],
        closing: Callable[[list[Frame]], list[Frame]],
    ) -> Run:
        """A new run; `closing` gives the last frames of one that is stopped."""
        run = Run(caller, closing)
        if len(self._runs) >= MAX_KEPT:
            self._forget_oldest_done()
        self._runs[run.id] = run
        run.start(frames, on_end=lambda: self._forget_later(run))
        return run

    def find(self, last_event_id: str, caller: str) -> tuple[Run, int] | None:
        """The run and frame number of an event id, if it is known and the caller is the same."""
        run_id, _, number = last_event_id.rpartition(".")
        run = self._runs.get(run_id)
        if run is None or run.caller != caller or not number.isdecimal():
            return None
        return run, min(int(number), len(run.frames) - 1)

    async def close(self) -> None:
        """Stop everything that still runs."""
        runs = list(self._runs.values())
        for run in runs:
            run.stop()
        for run in runs:
            await run.ended()
        self._runs.clear()

    def _forget_later(self, run: Run) -> None:
        asyncio.get_running_loop().call_later(KEEP_S, self._runs.pop, run.id, None)

    def _forget_oldest_done(self) -> None:
        for run in self._runs.values():
            if run.done:
                del self._runs[run.id]
                return
