"""What a person has yet to agree to, as signed tokens: each is good for once, also after a restart.

A token says in itself what it is for. What is kept is only that it was used, until it is too old anyway; and
one that was given out before its person was erased is none any more.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from core.database import Database, insert_missing
from core.errors import BadQuery
from core.identity import Signer
from core.memory.erase import erased_since
from core.memory.facts import outdated
from core.memory.tables import confirmations as table
from core.query import Identity

CONFIRM_WITHIN_S = 600
_PURPOSE = "memory-confirm"


@dataclass(frozen=True, slots=True)
class Asked:
    """What a token asks to agree to: `value` is what was signed, `at` when (Unix seconds)."""

    digest: str
    at: float
    value: Mapping[str, Any]


class Confirmations:
    """Gives out tokens and takes each once."""

    def __init__(self, signer: Signer, database: Database, *, clock: Callable[[], float] = time.time) -> None:
        self._signer = signer
        self._database = database
        self._clock = clock

    def ask(self, value: Mapping[str, Any]) -> str:
        """A token that stands for this, good for ten minutes."""
        return self._signer.sign(_PURPOSE, {**value, "at": self._clock()}, ttl_s=CONFIRM_WITHIN_S)

    def read(self, token: str) -> Asked:
        """What it asks. Raises BadQuery for one that is forged or older than ten minutes."""
        value = self._signer.verify(_PURPOSE, token)
        if value is None:
            raise BadQuery(
                "this confirmation is not valid or older than ten minutes: ask again", field="token"
            )
        at = float(value.pop("at", 0.0))
        return Asked(hashlib.sha256(token.encode()).hexdigest(), at, value)

    async def claim(self, asked: Asked, identity: Identity) -> None:
        """Take it for this person, who may take it again until it is `done`: what a kill interrupted.

        Raises BadQuery for one that was used, or given out before everything of this person was erased.
        """
        by = self._signer.digest("confirmation", f"{asked.digest} {identity.key}")
        now = self._clock()
        row = {"digest": asked.digest, "by": by, "done": 0, "expires_at": now + CONFIRM_WITHIN_S}

        def work(connection: Connection) -> bool:
            connection.execute(sa.delete(table).where(table.c.expires_at < now))
            if insert_missing(connection, table, **row):
                return True
            there = connection.execute(sa.select(table).where(table.c.digest == asked.digest)).one()
            return there.by == by and not there.done

        await self.refuse_outdated(asked.at, identity)
        if not await self._database.write(work):
            raise BadQuery("this confirmation was used already", field="token")

    async def refuse_outdated(self, at: float, identity: Identity) -> None:
        """Raises BadQuery where everything of this person was erased since it was asked (Unix seconds)."""
        since = erased_since(self._signer)
        if await self._database.read(lambda c: since(c, identity, at)):
            raise outdated("token")

    async def done(self, asked: Asked) -> None:
        """It is used up."""
        change = sa.update(table).where(table.c.digest == asked.digest).values(done=1)
        await self._database.write(lambda c: c.execute(change))

    async def release(self, asked: Asked) -> None:
        """It was not done: the person may try again."""
        undo = sa.delete(table).where(table.c.digest == asked.digest, table.c.done == 0)
        await self._database.write(lambda c: c.execute(undo))
