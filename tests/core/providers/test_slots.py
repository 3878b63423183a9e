"""Slots are never more than the limit, never lost, and shared in turns."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.providers.slots import FairSlots


async def turns(steps: int = 3) -> None:
    for _ in range(steps):
        await asyncio.sleep(0)


async def test_a_busy_site_does_not_keep_another_waiting_for_its_whole_queue() -> None:
    slots, served = FairSlots(1), []

    async def one(site: str, n: int) -> None:
        async with slots.take(site):
            served.append(f"{site}{n}")
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        for site, count in (("a", 5), ("b", 2), ("c", 1)):
            for n in range(count):
                group.create_task(one(site, n))
    assert served == ["a0", "a1", "b0", "c0", "a2", "b1", "a3", "a4"]


async def test_a_taker_cancelled_just_as_it_is_served_passes_the_slot_on() -> None:
    slots = FairSlots(1)
    await slots.acquire("a")
    doomed = asyncio.create_task(slots.acquire("a"))
    next_one = asyncio.create_task(slots.acquire("b"))
    await turns()
    slots.release()
    doomed.cancel()
    await asyncio.wait_for(next_one, 5)
    assert doomed.cancelled()
    assert slots.waiting == 0


def test_no_slot_at_all_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        FairSlots(0)


@given(
    limit=st.integers(1, 3),
    actions=st.lists(
        st.tuples(st.sampled_from(["take", "end", "cancel", "end+cancel", "run"]), st.integers(0, 9))
    ),
)
def test_whatever_is_cancelled_no_slot_is_lost_or_made(limit: int, actions: list[tuple[str, int]]) -> None:
    async def scenario() -> None:
        slots, holding = FairSlots(limit), 0
        tasks: list[tuple[asyncio.Task[None], asyncio.Event]] = []

        async def hold(site: str, end: asyncio.Event) -> None:
            nonlocal holding
            async with slots.take(site):
                holding += 1
                try:
                    assert holding <= limit
                    await end.wait()
                finally:
                    holding -= 1

        for action, n in actions:
            if action == "take":
                end = asyncio.Event()
                tasks.append((asyncio.create_task(hold(f"site{n % 3}", end)), end))
            elif action == "run":
                await turns()
                unfinished = sum(not task.done() for task, _ in tasks)
                assert holding + slots.waiting == unfinished
                assert holding == min(limit, unfinished) or any(end.is_set() for _, end in tasks)
            elif tasks:
                if "end" in action:
                    tasks[n % len(tasks)][1].set()
                if "cancel" in action:
                    tasks[(n * 7 + 1) % len(tasks)][0].cancel()
        for _, end in tasks:
            end.set()
        done = await asyncio.wait_for(asyncio.gather(*(t for t, _ in tasks), return_exceptions=True), 10)
        assert [result for result in done if isinstance(result, AssertionError)] == []
        assert slots.waiting == 0
        for n in range(limit):  # all of them are free again
            await asyncio.wait_for(slots.acquire(str(n)), 5)

    asyncio.run(scenario())
