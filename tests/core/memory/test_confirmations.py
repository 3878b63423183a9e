"""A confirmation is good for once: also at the same moment, after a restart, on another server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import sqlalchemy as sa

from core.errors import BadQuery, Forbidden, MemoryFailed
from core.identity import Signer
from core.memory import (
    CONFIRM_WITHIN_S,
    Confirmations,
    Detected,
    Erasure,
    Ledger,
    Memory,
    MemoryHook,
    Reach,
    Request,
    Stored,
    StoreMemory,
    erasers,
)
from core.memory.tables import confirmations, erasures
from core.query import Identity, Query
from tests.core.memory.support import ANNA, BO, Clock, Kept, memory_in

SECRET = b"0123456789abcdef0123456789abcdef"
SENSITIVE = Request(text="I have diabetes", sensitive=True)


@dataclass
class Slow:
    """A hook that waits for the test, and fails as often as it is told to."""

    name: str = "slow"
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    failing: int = 0
    got: list[Detected] = field(default_factory=list)

    async def persist(self, detected: Detected) -> Stored | None:
        self.begun.set()
        await self.go_on.wait()
        if self.failing:
            self.failing -= 1
            raise MemoryFailed("away")
        self.got.append(detected)
        return None


def service(kept: Kept, folder: Path, hook: MemoryHook | None = None) -> Memory:
    """A server's memory; several on one data folder are a restart, or several servers."""
    signer = Signer(SECRET, kept.clock)
    memory = Memory(
        hook or StoreMemory(kept.facts),
        Confirmations(signer, kept.database, clock=kept.clock),
        kept.facts,
        expiration_s=1e6,
        clock=kept.clock,
    )
    ledger = Ledger(folder / "ledger", signer)
    memory.erase_all = Erasure(erasers(memory), ledger, kept.database, signer, clock=kept.clock).erase
    return memory


@asynccontextmanager
async def started(folder: Path, clock: Clock | None = None) -> AsyncIterator[tuple[Kept, Memory]]:
    async with memory_in(folder, clock=clock) as kept:
        yield kept, service(kept, folder)


async def asked(memory: Memory, who: Identity | None, request: Request = SENSITIVE) -> str:
    told = await memory.handle(Query(text="x", query_id="q1", conversation_id="c1", identity=who), request)
    token = getattr(told, "confirm", None)
    assert isinstance(token, str)
    return token


async def texts(kept: Kept, who: Identity = ANNA) -> list[str]:
    return [fact.text for fact in await kept.facts.all(Reach.of(who))]


@pytest.mark.parametrize("who", [None, ANNA])
async def test_token_is_refused_after_a_restart(tmp_path: Path, who: Identity | None) -> None:
    clock = Clock()
    async with started(tmp_path, clock) as (kept, memory):
        token = await asked(memory, who)
        done = await memory.confirm(token, who)
        assert done.stored is not None
    async with started(tmp_path, clock) as (kept, memory):
        await kept.facts.forget(Reach.of(done.identity), [done.stored.memory_id])
        with pytest.raises(BadQuery, match="used already") as refused:
            await memory.confirm(token, who)
        assert refused.value.field == "token"
        assert await texts(kept, done.identity) == []


async def test_token_to_forget_is_refused_after_a_restart(tmp_path: Path) -> None:
    clock = Clock()
    async with started(tmp_path, clock) as (kept, memory):
        await kept.say("I love coriander")
        everything = await asked(memory, ANNA, Request(text="", action="forget", everything=True))
        done = await memory.confirm(everything, ANNA)
        assert done.erased is not None
        assert done.erased["memory"]["memories"] == 1
    async with started(tmp_path, clock) as (kept, memory):
        await kept.say("I love basil", nonce="later")
        with pytest.raises(BadQuery):
            await memory.confirm(everything, ANNA)
        assert await texts(kept) == ["I love basil"]


async def test_what_was_asked_before_an_erasure_is_not_done_after_it(tmp_path: Path) -> None:
    clock = Clock()
    async with started(tmp_path, clock) as (kept, memory):
        mine, anybodys = await asked(memory, ANNA), await asked(memory, None)
        used, bos = await asked(memory, ANNA), await asked(memory, BO)
        await kept.say("I love coriander")
        await memory.confirm(used, ANNA)
        forget = await asked(memory, ANNA, Request(text="I adore coriander", action="forget", certain=False))
        assert memory.erase_all is not None
        await memory.erase_all(ANNA)
        await kept.say("I love coriander", nonce="later")
        for token in (mine, anybodys, used, forget):
            with pytest.raises(BadQuery, match="erased"):
                await memory.confirm(token, ANNA)
        await memory.confirm(bos, BO)
    async with started(tmp_path, clock) as (kept, memory):
        for token in (mine, anybodys, used, forget):
            with pytest.raises(BadQuery, match="erased"):
                await memory.confirm(token, ANNA)
        assert await texts(kept) == ["I love coriander"]
        assert await texts(kept, BO) == ["I have diabetes"]
        # Asked anew it is kept.
        await memory.confirm(await asked(memory, ANNA), ANNA)
        assert len(await texts(kept)) == 2


@pytest.mark.parametrize("servers", [1, 2])
async def test_many_confirmations_at_once_keep_one_fact(tmp_path: Path, servers: int) -> None:
    async with started(tmp_path) as (kept, memory):
        several = [memory, service(kept, tmp_path)][:servers]
        token = await asked(memory, ANNA)
        done = await asyncio.gather(
            *(one.confirm(token, ANNA) for one in several * 5), return_exceptions=True
        )
        kept_ids = {one.stored.memory_id for one in done if not isinstance(one, BaseException) and one.stored}
        assert len(kept_ids) == 1
        assert all(isinstance(one, BadQuery) for one in done if isinstance(one, BaseException))
        assert await texts(kept) == ["I have diabetes"]


async def test_two_persons_with_one_token_on_two_servers_are_not_both_served(tmp_path: Path) -> None:
    async with started(tmp_path) as (kept, memory):
        token = await asked(memory, None)
        other = service(kept, tmp_path)
        done = await asyncio.gather(
            memory.confirm(token, ANNA), other.confirm(token, BO), return_exceptions=True
        )
        assert sum(isinstance(one, BadQuery) for one in done) == 1
        assert sorted([*await texts(kept), *await texts(kept, BO)]) == ["I have diabetes"]


async def test_used_token_tells_nobody_else_what_it_did(tmp_path: Path) -> None:
    async with started(tmp_path) as (_, memory):
        token = await asked(memory, None)
        assert not (await memory.confirm(token, ANNA)).repeated
        assert (await memory.confirm(token, ANNA)).repeated
        with pytest.raises(Forbidden):
            await memory.confirm(token, BO)


async def test_confirmation_that_failed_or_was_interrupted_can_be_given_again(tmp_path: Path) -> None:
    async with started(tmp_path) as (kept, memory):
        hook = Slow(failing=1)
        hook.go_on.set()
        memory = service(kept, tmp_path, hook)
        token = await asked(memory, ANNA)
        with pytest.raises(MemoryFailed):
            await memory.confirm(token, ANNA)
        await memory.confirm(token, ANNA)
        assert len(hook.got) == 1
        # A kill in the middle: the token was taken, and the same person goes on with it.
        token = await asked(memory, ANNA)
        confirmations_ = Confirmations(Signer(SECRET, kept.clock), kept.database, clock=kept.clock)
        await confirmations_.claim(confirmations_.read(token), ANNA)
        await service(kept, tmp_path, hook).confirm(token, ANNA)
        assert len(hook.got) == 2


async def test_erasure_waits_for_what_is_being_kept(tmp_path: Path) -> None:
    async with started(tmp_path) as (kept, _):
        hook = Slow()
        memory = service(kept, tmp_path, hook)
        confirming = asyncio.create_task(memory.confirm(await asked(memory, ANNA), ANNA))
        await hook.begun.wait()
        assert memory.erase_all is not None
        erasing = asyncio.create_task(memory.erase_all(ANNA))
        begun = sa.select(sa.func.count()).select_from(erasures)
        while not await kept.database.read(lambda c: c.scalar(begun)):
            assert not erasing.done()
        hook.go_on.set()
        await erasing
        # It was kept before the erasure was done; who confirmed is told that it is not there any more.
        assert len(hook.got) == 1
        with pytest.raises(BadQuery, match="erased"):
            await confirming


async def test_used_tokens_are_not_kept_longer_than_they_could_be_used(tmp_path: Path) -> None:
    async with started(tmp_path) as (kept, memory):
        await memory.confirm(await asked(memory, ANNA), ANNA)
        kept.clock.now += CONFIRM_WITHIN_S + 1
        await memory.confirm(await asked(memory, BO), BO)
        rows = await kept.database.read(lambda c: c.execute(sa.select(confirmations)).mappings().all())
        assert len(rows) == 1
        # Neither the token nor who it was can be read from it.
        assert "bo" not in {str(value) for value in rows[0].values()}
        assert BO.key not in str(dict(rows[0]))
