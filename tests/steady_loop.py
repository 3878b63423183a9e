"""The event loop of the tests: its clock stands still while the machine does.

On a busy machine a whole process may stop for seconds. Every limit that runs would then be over at once, and
a test would see a late model where there was none. So time that nobody had, neither the code nor what it
waits for, does not count: `asyncio.timeout`, `sleep` and the deadlines of the product all read this clock.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Callable

TICK_S = 0.05  # the longest wait before the clock is read again
MOST_S = 0.2  # what may pass between two readings: more is the machine's


class _Ticking(selectors.DefaultSelector):
    """Waits in short pieces, so that a stop in the midst of a long wait is seen."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        return super().select(TICK_S if timeout is None else min(timeout, TICK_S))


class SteadyLoop(asyncio.SelectorEventLoop):
    """A loop of which the clock never jumps by more than `MOST_S`."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._read_at = clock()
        self._stood = 0.0
        super().__init__(_Ticking())

    def time(self) -> float:
        """Seconds, without those in which the process could not run."""
        now = self._clock()
        self._stood += max(0.0, now - self._read_at - MOST_S)
        self._read_at = now
        return now - self._stood
