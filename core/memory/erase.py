"""Takes out everything of a person, wherever it is, and remembers without a text that it was done."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from core.database import Database, conversations, turns
from core.errors import AskError, MemoryFailed
from core.memory.claims import grounded
from core.memory.facts import Fact
from core.memory.hook import Erases
from core.query import Identity

log = logging.getLogger(__name__)

LEDGER = "erasures.jsonl"


class Ledger:
    """Who was erased when, one JSON line each: `{at, realm, user, done}`; no text of anybody.

    It is not in the database, so that a backup that is put back does not take it along: what was erased after
    the backup was made is erased again by `Erasure.replay`.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def note(self, identity: Identity, at: float, *, done: bool) -> None:
        """Write a line that is on disk when this returns."""
        line = {"at": at, "realm": identity.realm, "user": identity.user, "done": done}
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(descriptor, "ab") as file:
            file.write(orjson.dumps(line) + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def lines(self) -> list[dict[str, Any]]:
        """All lines, oldest first; one that a kill cut short is left out."""
        if not self._path.exists():
            return []
        found = []
        for raw in self._path.read_bytes().splitlines():
            try:
                found.append(orjson.loads(raw))
            except orjson.JSONDecodeError:
                continue
        return found

    def since(self, at: float) -> list[Identity]:
        """Who was erased at this time or later, each once."""
        told = [line for line in self.lines() if float(line["at"]) >= at]
        return list(dict.fromkeys(Identity(line["realm"], line["user"]) for line in told))

    def unfinished(self) -> list[Identity]:
        """Whose erasure was begun and never finished."""
        state: dict[Identity, bool] = {}
        for line in self.lines():
            state[Identity(line["realm"], line["user"])] = bool(line["done"])
        return [identity for identity, done in state.items() if not done]


class Erasure:
    """Asks every part that holds something of a person to take it out."""

    def __init__(
        self,
        parts: Sequence[Erases],
        ledger: Ledger,
        database: Database,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._parts = tuple(parts)
        self._ledger = ledger
        self._database = database
        self._clock = clock

    async def erase(self, identity: Identity) -> dict[str, Mapping[str, int]]:
        """How much of what went, by part. Raises AskError if a part failed; the others are done by then, and
        the rest is taken up again at the next start or the next call."""
        await asyncio.to_thread(self._ledger.note, identity, self._clock(), done=False)
        counts: dict[str, Mapping[str, int]] = {}
        failed: AskError | None = None
        for part in self._parts:
            try:
                counts[part.name] = await part.erase(identity)
            except AskError as one:
                failed = one
            except Exception:
                log.exception("erase.failed", extra={"part": part.name})
                failed = MemoryFailed(f"{part.name} did not erase everything: try again")
        await self._database.tidy()
        if failed is not None:
            raise failed
        await asyncio.to_thread(self._ledger.note, identity, self._clock(), done=True)
        return counts

    async def resume(self) -> int:
        """Finish what a kill interrupted. How many persons' erasures were."""
        begun = await asyncio.to_thread(self._ledger.unfinished)
        return await self._again(begun)

    async def replay(self, since: float) -> int:
        """After a backup made at `since` (Unix seconds) was put back: erase again who was erased after it."""
        return await self._again(await asyncio.to_thread(self._ledger.since, since))

    async def _again(self, identities: Sequence[Identity]) -> int:
        for identity in identities:
            try:
                await self.erase(identity)
            except AskError as failed:
                log.warning("erase.not_finished", extra={"reason": failed.message})
        return len(identities)


async def take_back(database: Database, identity: Identity, facts: Sequence[Fact]) -> None:
    """Take out the turns in which these facts were told, and what the whiteboards and titles of this person's
    conversations have of them: else they would come back in later prompts."""
    ids = [fact.query_id for fact in facts if fact.query_id]

    def work(connection: Connection) -> None:
        columns = (
            conversations.c.id,
            conversations.c.title,
            conversations.c.board,
            conversations.c.board_next,
        )
        for row in connection.execute(sa.select(*columns).where(conversations.c.owner == identity.key)).all():
            told_in = sa.and_(turns.c.conversation == row.id, turns.c.query_id.in_(ids))
            gone = set(connection.execute(sa.select(turns.c.n).where(told_in)).scalars())
            connection.execute(sa.delete(turns).where(told_in))
            board = [e for e in row.board if e["turn"] not in gone and not _says(e["text"], facts)]
            title = "" if _says(row.title, facts) else row.title
            if gone or board != row.board or title != row.title:
                # A new number for the next entry: an upkeep that has read the old state is not written.
                changed = {"board": board, "title": title, "board_next": row.board_next + 1}
                connection.execute(
                    conversations.update().where(conversations.c.id == row.id).values(**changed)
                )

    await database.write(work)


def _says(text: str, facts: Sequence[Fact]) -> bool:
    return any(grounded(text, fact.text) for fact in facts)
