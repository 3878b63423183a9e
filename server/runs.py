"""Questions being answered: each runs once, whoever reads it and however often the connection breaks.

A reader that comes back with `Last-Event-ID` gets the frames it missed and then the rest. When the last
reader has left, the run has a moment's grace for a reconnect and is then stopped, with all its model calls.
A promised run has no reader: it goes on until it is done or cancelled, and its token gets the answer.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Protocol

from core.messages import Complete, Failure
from server.wire.base import Dialect, Frame, Sent

log = logging.getLogger(__name__)

# Within the second in which a person who left must cost nothing more (contract 4.4).
GRACE_S = 0.5
KEEP_S = 60.0
KEEP_PROMISED_S = 600.0
HEARTBEAT_S = 15.0
MAX_KEPT = 2000
MAX_PROMISED = 100
# The caller of a run that nobody is bound to: its unguessable id is all there is to know it by.
NOBODY = ""


LOST = Failure("stopped", "the connection was lost and the answer was stopped", retryable=True)
CANCELLED = Failure("cancelled", "the question was cancelled", retryable=False)
BROKEN = Failure("internal", "the server failed on this question", retryable=False)


class Closing(Protocol):
    """The last messages of a run that ends before its time, from those it had and why it ends."""

    def __call__(self, had: Sequence[Sent], why: Failure, /) -> Iterable[Sent]: ...


class Run:
    """One answer: its messages and frames so far, and whether more will come."""

    def __init__(self, caller: str, dialect: Dialect, closing: Closing, grace_s: float) -> None:
        self.id = secrets.token_urlsafe(16)
        self.caller = caller
        self.dialect = dialect
        self.messages: list[Sent] = []
        self.frames: list[Frame] = []
        self.done = False
        self._closing = closing
        self._why = LOST
        self._grace_s = grace_s
        self._readers = 0
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._stop: asyncio.TimerHandle | None = None

    def start(self, messages: AsyncGenerator[Sent, None]) -> asyncio.Task[None]:
        self._task = asyncio.create_task(self._produce(messages))
        return self._task

    def belongs_to(self, caller: str) -> bool:
        """Whether this caller may read it. One begun by nobody known may be read on by who knows its id: a
        visitor gets its cookie in mid-answer, by agreeing that something is remembered."""
        return self.caller in (NOBODY, caller)

    async def read(self, after: int, *, every_s: float) -> AsyncGenerator[list[tuple[int, Frame]], None]:
        """Frames behind number `after`, each with its number, those that are there together; none whenever
        `every_s` passed without one."""
        if self._stop is not None:
            self._stop.cancel()
            self._stop = None
        self._readers += 1
        try:
            number = after + 1
            while True:
                while number < len(self.frames):
                    ready = [*enumerate(self.frames[number:], number)]
                    number += len(ready)
                    yield ready
                if self.done:
                    return
                try:
                    async with asyncio.timeout(every_s):
                        await self._news.wait()
                except TimeoutError:
                    yield []
        finally:
            self._readers -= 1
            if not self._readers and not self.done:
                self._stop = asyncio.get_running_loop().call_later(self._grace_s, self.stop)

    def stop(self, why: Failure = LOST) -> None:
        """Stop the work; a later reader still gets what there was, and an end that says why."""
        self._why = why
        if self._task is not None:
            self._task.cancel()

    async def ended(self) -> None:
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    async def _produce(self, messages: AsyncGenerator[Sent, None]) -> None:
        whole = False
        try:
            async with aclosing(messages):
                async for one in messages:
                    self._add(one)
            whole = True
        except Exception:
            log.exception("run.failed")
            self._why = BROKEN
        finally:
            if not whole and not (self.messages and isinstance(self.messages[-1], Complete)):
                for one in self._closing(tuple(self.messages), self._why):
                    self._add(one)
            self.done = True
            self._wake()

    def _add(self, one: Sent) -> None:
        self.messages.append(one)
        # A message that this dialect has no frame for wakes nobody: the heartbeat counts from the last frame.
        if frames := list(self.dialect.frames(one)):
            self.frames.extend(frames)
            self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()


@dataclass
class Runs:
    """The runs of the last minute, and the promised ones. Times in seconds."""

    grace_s: float = GRACE_S
    keep_s: float = KEEP_S
    keep_promised_s: float = KEEP_PROMISED_S
    heartbeat_s: float = HEARTBEAT_S

    def __post_init__(self) -> None:
        self._runs: dict[str, Run] = {}
        self._promised: dict[str, Run] = {}

    def start(
        self, caller: str, dialect: Dialect, messages: AsyncGenerator[Sent, None], closing: Closing
    ) -> Run:
        """A new run for somebody who reads it as it goes."""
        run = Run(caller, dialect, closing, self.grace_s)
        if len(self._runs) >= MAX_KEPT:
            self._forget_oldest_done()
        self._runs[run.id] = run
        run.start(messages).add_done_callback(lambda _: _later(self.keep_s, self._runs, run.id))
        return run

    def find(self, last_event_id: str, caller: str) -> tuple[Run, int] | None:
        """The run and frame number of an event id: if it is known, is the caller's, and has more to read."""
        run_id, _, number = last_event_id.rpartition(".")
        run = self._runs.get(run_id)
        # isascii: other scripts have digits too, and their numbers may be thousands of signs long.
        if run is None or not run.belongs_to(caller) or not (number.isascii() and number.isdecimal()):
            return None
        at = min(int(number[:9]), len(run.frames) - 1)
        return None if run.done and at == len(run.frames) - 1 else (run, at)

    def promise(
        self, caller: str, dialect: Dialect, messages: AsyncGenerator[Sent, None], closing: Closing
    ) -> str | None:
        """Start a run that goes on without a reader; its token, or None if too many go on already."""
        if sum(not run.done for run in self._promised.values()) >= MAX_PROMISED:
            return None
        run = Run(caller, dialect, closing, self.grace_s)
        token = secrets.token_urlsafe(32)
        self._promised[token] = run
        run.start(messages).add_done_callback(lambda _: _later(self.keep_promised_s, self._promised, token))
        return token

    def promised(self, token: str, caller: str) -> Run | None:
        """The run of a token, if it is known and the caller's."""
        run = self._promised.get(token)
        return run if run is not None and run.belongs_to(caller) else None

    def cancel(self, token: str) -> None:
        """Stop a promised run and forget it."""
        if run := self._promised.pop(token, None):
            run.stop(CANCELLED)

    async def close(self) -> None:
        """Stop everything that still runs."""
        runs = [*self._runs.values(), *self._promised.values()]
        for run in runs:
            run.stop()
        for run in runs:
            await run.ended()
        self._runs.clear()
        self._promised.clear()

    def _forget_oldest_done(self) -> None:
        for run in self._runs.values():
            if run.done:
                del self._runs[run.id]
                return


def _later(seconds: float, kept: dict[str, Run], key: str) -> None:
    asyncio.get_running_loop().call_later(seconds, kept.pop, key, None)
