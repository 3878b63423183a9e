"""Erasures that are finished after a kill or repeated after a restore, and files without what was deleted."""

from __future__ import annotations

import asyncio
import math
import os
import shutil
import signal
import struct
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import sqlalchemy as sa

from core.database import Database
from core.errors import MemoryFailed
from core.identity import Signer
from core.language import detect
from core.memory import COLLECTION, Erased, Erases, Erasure, Facts, Ledger, Reach
from core.memory.tables import erasures
from core.providers.base import LegQuery, LegSpec, Point, SparseVector, Where
from core.providers.bm25 import Bm25Embedder
from core.providers.edge import EdgeStore
from core.query import Identity
from tests.core.memory.support import ANNA, BO, Clock, held, memory_in

SIGNER = Signer(b"0123456789abcdef0123456789abcdef")
OTHER = Signer(b"another secret of another server")


class Part:
    """A part that says whom it was asked to erase."""

    def __init__(self, name: str = "part") -> None:
        self.name = name
        self.asked: list[str] = []
        self.broken = False

    async def erase(self, identity: Identity) -> Mapping[str, int]:
        self.asked.append(identity.user)
        if self.broken:
            raise MemoryFailed(f"{self.name} is away")
        return {"things": 1}


def erasure(folder: Path, database: Database, *parts: Erases, clock: Clock | None = None) -> Erasure:
    return Erasure(parts, Ledger(folder / "ledger", SIGNER), database, SIGNER, clock=clock or Clock())


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    database = await Database.open(None, tmp_path)
    yield database
    await database.close()


# ---------------------------------------------------------------- the ledger


def test_ledger_tells_who_only_to_its_own_server(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "ledger"
    Ledger(path, SIGNER).note(Erased("n1", 5.0, ANNA))
    assert Ledger(path, SIGNER).load() == ([Erased("n1", 5.0, ANNA)], 0)
    assert Ledger(path, OTHER).load() == ([], 1)
    assert b"anna" not in path.read_bytes()
    assert b"key:shop" not in path.read_bytes()
    assert path.stat().st_mode & 0o777 == 0o600


def test_line_that_a_kill_cut_short_spoils_no_other(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    ledger = Ledger(path, SIGNER)
    ledger.note(Erased("n1", 1.0, ANNA))
    with path.open("ab") as file:
        file.write(b'{"number":"n2","at":2.0,"wh')
    ledger.note(Erased("n3", 3.0, BO))
    found, others = ledger.load()
    assert ([one.number for one in found], others) == (["n1", "n3"], 1)


@pytest.mark.parametrize(
    "line", ["", "[]", "7", '{"number": 1}', '{"number":"n","at":"x","who":"y"}', "\udce9"]
)
def test_lines_that_are_none_are_no_entries(tmp_path: Path, line: str) -> None:
    found, _ = Ledger(tmp_path / "ledger", SIGNER).read([line])
    assert found == []


# ---------------------------------------------------------------- doing it again


async def test_erasure_is_done_once_where_nothing_went_wrong(tmp_path: Path, database: Database) -> None:
    part = Part()
    one = erasure(tmp_path, database, part)
    assert await one.erase(ANNA) == {"part": {"things": 1}}
    assert await one.resume() == 0
    assert part.asked == ["anna"]


async def test_erasure_that_never_began_or_was_cut_short_is_finished(
    tmp_path: Path, database: Database
) -> None:
    part = Part()
    one = erasure(tmp_path, database, part)
    one.ledger.note(Erased("n1", 1.0, ANNA))  # killed before the database heard of it
    one.ledger.note(Erased("n2", 2.0, BO))  # killed in the middle
    await database.write(
        lambda c: c.execute(sa.insert(erasures).values(number="n2", owner="x", at=2.0, left=None))
    )
    assert await one.resume() == 2
    assert part.asked == ["anna", "bo"]
    assert await one.resume() == 0


async def test_only_the_part_that_failed_is_asked_again(tmp_path: Path, database: Database) -> None:
    here, crm = Part("here"), Part("crm")
    crm.broken = True
    one = erasure(tmp_path, database, here, crm)
    with pytest.raises(MemoryFailed):
        await one.erase(ANNA)
    assert await one.resume() == 0
    crm.broken = False
    assert await one.resume() == 1
    # What was told here since is not taken out.
    assert (here.asked, crm.asked) == (["anna"], ["anna"] * 3)


async def test_database_that_is_older_than_the_ledger_is_brought_up_to_date(tmp_path: Path) -> None:
    clock = Clock()
    part = Part("crm")
    async with memory_in(tmp_path / "a", clock=clock) as kept:
        await kept.say("I love coriander")
        await kept.say("I love rice", BO)
    backup = (tmp_path / "a" / "askable.db").read_bytes()
    async with memory_in(tmp_path / "a", clock=clock) as kept:
        one = erasure(tmp_path, kept.database, FactsPart(kept.facts), part, clock=clock)
        await one.erase(ANNA)
        assert await kept.facts.all(Reach.of(ANNA)) == []
    (tmp_path / "a" / "askable.db").write_bytes(backup)
    async with memory_in(tmp_path / "a", clock=clock) as kept:
        assert len(await kept.facts.all(Reach.of(ANNA))) == 1
        again = erasure(tmp_path, kept.database, FactsPart(kept.facts), part, clock=clock)
        assert await again.resume() == 1
        assert await kept.facts.all(Reach.of(ANNA)) == []
        assert len(await kept.facts.all(Reach.of(BO))) == 1
        # Told anew: once is enough.
        await kept.say("I love basil")
        assert await again.resume() == 0
        assert len(await kept.facts.all(Reach.of(ANNA))) == 1
    assert part.asked == ["anna", "anna"]


async def test_replay_since_a_time_erases_everybody_from_then_on_once_each(
    tmp_path: Path, database: Database
) -> None:
    clock = Clock()
    part = Part()
    one = erasure(tmp_path, database, part, clock=clock)
    await one.erase(BO)
    since = clock()
    await one.erase(ANNA)
    await one.erase(ANNA)
    part.asked.clear()
    entries, _ = one.ledger.load()
    assert await one.replay(entries, since) == (1, 0)
    assert await one.replay(entries, since) == (1, 0)
    assert part.asked == ["anna", "anna"]
    part.broken = True
    assert await one.replay(entries, since) == (0, 1)
    assert await one.replay(entries, clock()) == (0, 0)


@dataclass
class FactsPart:
    """The store of facts as a part."""

    facts: Facts
    name: str = "memory"

    async def erase(self, identity: Identity) -> Mapping[str, int]:
        return await self.facts.erase(Reach.of(identity))


# ---------------------------------------------------------------- the vector store's files


LEGS = [LegSpec("dense", "m", 8), LegSpec("bm25", "b")]
NUMBERS = [0.1, -0.2, 0.3, 0.4, -0.5, 0.35, 0.25, 0.51]
TOKEN = 0xDEADBEEF
TRACES = {
    "dense": struct.pack("<2f", *(number / math.hypot(*NUMBERS) for number in NUMBERS[2:4])),
    "token": struct.pack(">I", TOKEN),
    "token in segment": struct.pack("<I", TOKEN),
    "payload": b"the-document-of-anna",
}


def traces(folder: Path) -> set[str]:
    """What of anna's point is in any file."""
    found = held(folder, TRACES.values())
    return {name for name, trace in TRACES.items() if trace in found}


def other(n: int) -> Point:
    vector = [math.sin(n + k) for k in range(8)]
    payload = {"site": "key:shop", "identity": BO.key, "document_id": f"d{n}"}
    return Point(str(uuid.UUID(int=n)), {"dense": vector, "bm25": SparseVector([n], [1.0])}, payload)


async def annas(store: EdgeStore) -> None:
    vectors = {"dense": NUMBERS, "bm25": SparseVector([TOKEN], [1.5])}
    payload = {"site": "key:shop", "identity": ANNA.key, "document_id": "the-document-of-anna"}
    await store.upsert(COLLECTION, [Point(str(uuid.UUID(int=10**9)), vectors, payload)])


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[EdgeStore]:
    store = await EdgeStore.open(tmp_path / "vectors")
    await store.ensure(COLLECTION, LEGS, ["site", "identity", "document_id"])
    await store.upsert(COLLECTION, [other(n) for n in range(1, 301)])
    await annas(store)
    yield store
    await store.close()


async def hits(store: EdgeStore, n: int) -> list[str]:
    vector = [math.sin(n + k) for k in range(8)]
    (found,) = await store.search(
        COLLECTION, [LegQuery("dense", vector, 1)], Where({"identity": BO.key}), ["document_id"]
    )
    return [str(hit.payload["document_id"]) for hit in found]


async def test_compacting_leaves_nothing_of_what_was_deleted_and_all_of_the_rest(
    store: EdgeStore, tmp_path: Path
) -> None:
    folder = tmp_path / "vectors"
    assert {"dense", "token", "payload"} <= traces(folder)
    await store.delete(COLLECTION, Where({"identity": ANNA.key}))
    assert "dense" in traces(folder)  # the engine itself keeps it
    assert await store.compact(COLLECTION)
    assert traces(folder) == set()
    assert sorted(path.name for path in folder.iterdir() if path.is_dir()) == [COLLECTION]
    assert await store.count(COLLECTION, Where()) == 300
    assert await hits(store, 77) == ["d77"]
    (words,) = await store.search(
        COLLECTION, [LegQuery("bm25", SparseVector([123], [1.0]), 5)], Where(), ["document_id"]
    )
    assert [hit.payload["document_id"] for hit in words] == ["d123"]
    assert not await store.compact(COLLECTION)


async def test_what_is_written_while_the_files_are_rewritten_is_there_afterwards(store: EdgeStore) -> None:
    await store.delete(COLLECTION, Where({"identity": ANNA.key}))
    rewriting = asyncio.create_task(store.compact(COLLECTION))
    await asyncio.gather(
        store.upsert(COLLECTION, [other(n) for n in range(1000, 1100)]),
        store.delete_ids(COLLECTION, [str(uuid.UUID(int=n)) for n in (1, 2, 299, 300)]),
        store.set_payload(COLLECTION, Where({"document_id": "d5"}), {"document_id": "d5-changed"}),
    )
    assert await rewriting
    assert await store.count(COLLECTION, Where()) == 396
    assert await store.count(COLLECTION, Where({"document_id": ["d1", "d2", "d299", "d300", "d5"]})) == 0
    assert await hits(store, 1050) == ["d1050"]
    assert await hits(store, 5) == ["d5-changed"]


@pytest.mark.parametrize("swapped", [False, True])
async def test_rewriting_that_a_kill_interrupts_is_done_at_the_next_start(
    store: EdgeStore, tmp_path: Path, swapped: bool
) -> None:
    folder = tmp_path / "vectors"
    await store.delete(COLLECTION, Where({"identity": ANNA.key}))
    await store._call("compact", COLLECTION)
    if swapped:
        # Killed between the two renamings: the copy is whole, the old files are aside.
        while not await store._call("compact", COLLECTION):
            pass
        await store.close()
        shutil.copytree(folder / COLLECTION, folder / f"{COLLECTION}.new")
        (folder / COLLECTION).rename(folder / f"{COLLECTION}.old")
    else:
        assert store.pid is not None
        os.kill(store.pid, signal.SIGKILL)
        await store.close()
    again = await EdgeStore.open(folder)
    try:
        await again.ensure(COLLECTION, LEGS, ["site", "identity", "document_id"])
        assert await again.count(COLLECTION, Where()) == 300
        assert await again.compact(COLLECTION) is not swapped
        assert traces(folder) == set()
    finally:
        await again.close()
    assert sorted(path.name for path in folder.iterdir() if path.is_dir()) == [COLLECTION]


async def test_texts_are_gone_from_the_vectors_also_where_a_fact_was_changed(tmp_path: Path) -> None:
    async with memory_in(tmp_path) as kept:
        memory_id = await kept.say("I love zanzibarquince")
        (vector,) = await Bm25Embedder().documents(["zanzibarquince"], [detect("I love zanzibarquince")])
        assert isinstance(vector, SparseVector)
        words = tuple(vector.indices)
        assert _has(tmp_path, words)
        await kept.facts.update(Reach.of(ANNA), memory_id, text="I love rice")
        assert kept.facts.dropped.is_set()
        assert await kept.facts.compact()
        assert not _has(tmp_path, words)
        assert [fact.text for fact in await kept.facts.search(Reach.of(ANNA), "rice", 5)] == ["I love rice"]


def _has(folder: Path, words: Sequence[int]) -> bool:
    forms = [struct.pack(order, word) for word in words for order in (">I", "<I")]
    return bool(held(folder / "vectors", forms))
