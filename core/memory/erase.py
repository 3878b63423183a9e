"""Takes out everything of a person, wherever it is, and remembers without a text that it was done."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from core.database import Database, insert_missing
from core.errors import AskError, MemoryFailed
from core.identity import Signer
from core.memory.hook import Erases, place_of
from core.memory.tables import erasures
from core.query import Identity

log = logging.getLogger(__name__)

LEDGER = "erasures.jsonl"
_PURPOSE = "erasures"


@dataclass(frozen=True, slots=True)
class Erased:
    """A line of the ledger: who was to be erased when (Unix seconds), under a number of its own."""

    number: str
    at: float
    identity: Identity


class Ledger:
    """Who was erased when, one JSON line each: `{number, at, who}`; `who` is sealed with the server's secret.

    It is not in the database, so that a backup that is put back does not take it along: what the database has
    not been through is erased again by `Erasure.resume`.
    """

    def __init__(self, path: Path, signer: Signer) -> None:
        self._path = path
        self._signer = signer

    def note(self, erased: Erased) -> None:
        """Write a line that is on disk when this returns."""
        who = {"realm": erased.identity.realm, "user": erased.identity.user}
        line = {"number": erased.number, "at": erased.at, "who": self._signer.seal(_PURPOSE, who)}
        self._path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(descriptor, "rb+", buffering=0) as file:
            # A line that a kill cut short must not spoil the one after it.
            size = file.seek(0, os.SEEK_END)
            cut = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
            file.write(b"\n" * cut + orjson.dumps(line) + b"\n")
            os.fsync(descriptor)
        _sync_folder(self._path.parent)

    def load(self) -> tuple[list[Erased], int]:
        """The file's entries, oldest first, and how many of its lines are none (`read`)."""
        return self.read(self._path.read_bytes().splitlines()) if self._path.exists() else ([], 0)

    def read(self, lines: Iterable[bytes | str]) -> tuple[list[Erased], int]:
        """The entries of a ledger's lines, and how many lines are none: cut short by a kill, or of a server
        with another secret."""
        found = []
        others = 0
        for raw in lines:
            if not raw.strip():
                continue
            entry = self._entry(raw)
            if entry is None:
                others += 1
            else:
                found.append(entry)
        return found, others

    def _entry(self, raw: bytes | str) -> Erased | None:
        try:
            line = orjson.loads(raw)
            who = self._signer.unseal(_PURPOSE, str(line["who"]))
            if who is None:
                return None
            return Erased(
                str(line["number"]), float(line["at"]), Identity(str(who["realm"]), str(who["user"]))
            )
        except (ValueError, KeyError, TypeError):
            return None


def _sync_folder(folder: Path) -> None:
    """Make a file's name as durable as its content."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def owner_digest(signer: Signer, identity: Identity) -> str:
    """What stands for a person in the database's list of erasures."""
    return signer.digest(_PURPOSE, identity.key)


def last_erased(connection: Connection, owner: str) -> float | None:
    """When everything of this `owner_digest` was last erased (Unix seconds)."""
    when = connection.scalar(sa.select(sa.func.max(erasures.c.at)).where(erasures.c.owner == owner))
    return None if when is None else float(when)


def erased_since(signer: Signer) -> Callable[[Connection, Identity, float], bool]:
    """Whether everything of a person was erased at a time (Unix seconds) or later, as a function of the
    transaction that would keep something of them: nothing comes between the two."""

    def since(connection: Connection, identity: Identity, at: float) -> bool:
        last = last_erased(connection, owner_digest(signer, identity))
        return last is not None and at <= last

    return since


class Erasure:
    """Asks every part that holds something of a person to take it out."""

    def __init__(
        self,
        parts: Sequence[Erases],
        ledger: Ledger,
        database: Database,
        signer: Signer,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """The names of `parts` differ."""
        self._parts = tuple(parts)
        self.ledger = ledger
        self._database = database
        self._signer = signer
        self._clock = clock

    async def erase(self, identity: Identity) -> dict[str, Mapping[str, int]]:
        """How much of what went, by part. Raises AskError if a part failed; the others are done by then, and
        the rest is taken up again at the next start or the next call."""
        erased = Erased(secrets.token_hex(8), self._clock(), identity)
        await asyncio.to_thread(self.ledger.note, erased)
        return await self._erase(identity, [erased.number], self._parts)

    async def resume(self) -> int:
        """Finish what a kill or an outage interrupted, and do again what this database has not been through:
        it was put back from a backup that is older. How many persons' erasures were finished."""
        entries, unreadable = await asyncio.to_thread(self.ledger.load)
        if unreadable:
            log.warning("erase.ledger_unreadable", extra={"lines": unreadable})
        return (await self.replay(entries))[0]

    async def replay(self, entries: Sequence[Erased], since: float | None = None) -> tuple[int, int]:
        """Erase again who is in these entries: with `since` everybody who was erased at that time (Unix
        seconds) or later, else those whose erasure the database has not been through. How many persons that
        were, and of how many of them something is left because a part failed."""
        known = await self._known()
        persons: dict[Identity, list[str]] = {}
        for entry in entries:
            if known.get(entry.number) != () if since is None else entry.at >= since:
                persons.setdefault(entry.identity, []).append(entry.number)
        failed = 0
        for identity, numbers in persons.items():
            # What was told after an erasure that failed in one part only is not taken out by doing the rest.
            left = {name for number in numbers for name in known.get(number) or self._names}
            parts = [part for part in self._parts if since is not None or part.name in left]
            try:
                await self._erase(identity, numbers, parts)
            except AskError as one:
                log.warning("erase.not_finished", extra={"reason": one.message})
                failed += 1
        return len(persons) - failed, failed

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(part.name for part in self._parts)

    async def _known(self) -> dict[str, tuple[str, ...] | None]:
        """What is left of each erasure that the database knows of: () nothing, None possibly everything."""
        chosen = sa.select(erasures.c.number, erasures.c.left)
        rows = await self._database.read(lambda c: c.execute(chosen).all())
        return {number: None if left is None else tuple(left) for number, left in rows}

    async def _erase(
        self, identity: Identity, numbers: Sequence[str], parts: Sequence[Erases]
    ) -> dict[str, Mapping[str, int]]:
        whole = len(parts) == len(self._parts)
        await self._begin(identity, numbers, whole=whole)
        counts: dict[str, Mapping[str, int]] = {}
        left: list[str] = []
        failed: AskError | None = None
        for part in parts:
            try:
                counts[part.name] = await part.erase(identity)
            except AskError as one:
                failed = one
                left.append(part.name)
            except Exception as one:  # noqa: BLE001 - whatever one part does, the others are asked, too
                log.error("erase.failed", extra={"part": part.name, "reason": place_of(one)})
                failed = MemoryFailed(f"{part.name} did not erase everything: try again")
                left.append(part.name)
        await self._database.tidy()
        await self._end(numbers, left, whole=whole)
        if failed is not None:
            raise failed
        return counts

    async def _begin(self, identity: Identity, numbers: Sequence[str], *, whole: bool) -> None:
        """From here on no confirmation of before is taken (where everything goes)."""
        owner, now = owner_digest(self._signer, identity), self._clock()

        def work(connection: Connection) -> None:
            for number in numbers:
                new = insert_missing(connection, erasures, number=number, owner=owner, at=now, left=None)
                if whole and not new:
                    connection.execute(
                        sa.update(erasures).where(erasures.c.number == number).values(at=now, left=None)
                    )

        await self._database.write(work)

    async def _end(self, numbers: Sequence[str], left: list[str], *, whole: bool) -> None:
        values: dict[str, Any] = {"left": left, **({"at": self._clock()} if whole else {})}
        change = sa.update(erasures).where(erasures.c.number.in_(numbers)).values(values)
        await self._database.write(lambda c: c.execute(change))
