"""The tests' own event loop: limits run by the time that the process had."""

from __future__ import annotations

import asyncio
import math

import pytest

from tests.steady_loop import MOST_S, SteadyLoop


class Clock:
    """Goes on by a step whenever it is looked at."""

    def __init__(self, step: float) -> None:
        self.step = step
        self.looked_at = 0

    def __call__(self) -> float:
        self.looked_at += 1
        return self.looked_at * self.step


async def times_out(limit: float) -> None:
    async with asyncio.timeout(limit):
        await asyncio.Event().wait()


async def test_every_test_runs_in_it() -> None:
    assert isinstance(asyncio.get_running_loop(), SteadyLoop)


def test_a_jump_of_the_clock_counts_as_a_short_moment() -> None:
    loop = SteadyLoop(Clock(1000.0))
    began = loop.time()
    assert loop.time() - began == pytest.approx(MOST_S)
    loop.close()


def test_what_passes_without_a_jump_counts_whole() -> None:
    loop = SteadyLoop(Clock(MOST_S / 2))
    began = loop.time()
    assert loop.time() - began == pytest.approx(MOST_S / 2)
    loop.close()


def test_a_limit_lasts_over_many_jumps_and_has_an_end() -> None:
    clock = Clock(1000.0)
    limit = 2.0
    loop = SteadyLoop(clock)
    with pytest.raises(TimeoutError):
        loop.run_until_complete(times_out(limit))
    loop.close()
    assert clock.looked_at >= math.floor(limit / MOST_S)
