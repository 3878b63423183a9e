"""The store of facts: rows in the database are the truth, vectors beside them only find them.

A vector point holds no text, so forgetting a fact leaves none of it in the search engine's files; and what a
search finds counts only if its row is active, unexpired and within the caller's `Reach`. A fact is there
from the moment its row is committed; `indexed` says what a kill left undone, and `sweep` does it at the next
start.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

import orjson
import sqlalchemy as sa
from sqlalchemy.engine import Connection, RowMapping

from core.conversation_rows import note_told, take_back
from core.database import Database, insert_missing
from core.errors import AskError, BadQuery, NotFound
from core.language import detect
from core.memory.claims import claim, kind_of, share_a_word
from core.memory.facts import (
    KINDS,
    SCOPES,
    Asking,
    Change,
    Detected,
    Fact,
    Place,
    Reach,
    Stored,
    checked_text,
    digest,
    normal,
)
from core.memory.tables import facts as table
from core.memory.tables import history
from core.memory.traces import traces_of
from core.prompting.variables import clean
from core.providers.base import Point, VectorStore, Where
from core.query import Identity
from core.retrieval import Found, Part, Retriever

log = logging.getLogger(__name__)

COLLECTION = "memories"
# `site` is the realm: the retriever searches nothing without one.
KEYWORDS = ("site", "identity", "application", "agent", "thread", "document_id")
# Always in mind: what a person prefers and what must hold for them. Beside it, what a question calls up.
MAX_ALWAYS = 12
MAX_RECALLED = 20
SEARCHED = 40
CANDIDATES = 5  # older facts that a new one is held against
PIECE = 64
MAX_BOUND_BYTES = 1000
MAX_GONE = 10_000  # ids of facts without a row that are known to be gone
# A leg that finds everything, near or far, has found a fact from this score on (a cosine). The sentence
# encoder has 17 of 20 facts above it that bear on a question, and one in eight of 272 pairs that have nothing
# to do with each other. A word in common counts at any score.
FLOORS: Mapping[str, float] = {"use": 0.18}
_MEMORIES = uuid.UUID("0d8c6ce4-9f0e-5e0b-8a0c-6f7a2f0a9b11")


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a new fact stands to the older ones: it repeats or replaces one of them, or stands beside them."""

    relation: Literal["repeats", "replaces", "adds"]
    memory_id: str = ""


class Judge(Protocol):
    """Says how a new fact stands to older ones; raises AskError where it cannot."""

    async def compare(self, new: Detected, older: Sequence[Fact]) -> Verdict: ...


@runtime_checkable
class Compacts(Protocol):
    """A vector store whose files are ours, and can be rid of what was deleted."""

    async def compact(self, collection: str) -> bool:
        """Write the collection's files anew where something was deleted; whether there was anything to do.
        Raises StoreError."""
        ...


class Facts:
    """All facts of everybody; every method but the maintenance takes the `Reach` it is allowed."""

    def __init__(
        self,
        database: Database,
        store: VectorStore,
        retriever: Retriever,
        *,
        judge: Judge | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`retriever` searches COLLECTION."""
        self._database = database
        self._store = store
        self._retriever = retriever
        self._judge = judge
        self._clock = clock
        self.dropped = asyncio.Event()  # set when points were deleted: it is time to `compact`
        self._untidy = False
        # Facts that went with their rows, and those of a foreign hook: an answer on its way may have them.
        self._gone: dict[str, None] = {}

    # ------------------------------------------------------------ keep

    async def remember(self, new: Detected) -> Stored:
        """Keep a fact, once. One that was there already stays; one that it contradicts is superseded.

        Raises BadQuery for a text that is none, StoreError.
        """
        text = checked_text(new.text)
        told = claim(text)
        row = {
            "memory_id": str(uuid.uuid5(_MEMORIES, f"{new.identity.key}\n{new.nonce}")),
            "realm": new.identity.realm,
            "user_id": new.identity.user,
            "application": new.site,
            "agent": new.agent,
            "thread": new.conversation_id,
            "scope": new.scope if new.scope in SCOPES else "user",
            "kind": new.kind if new.kind in KINDS else kind_of(text),
            "subject": normal(new.subject)[:200],
            # Where the words tell it, the rule's name for it: two models would call one thing differently.
            "attribute": told.topic if told else normal(new.attribute)[:200],
            "text": text,
            "digest": digest(text),
            "status": "active",
            "superseded_by": None,
            "query_id": new.query_id,
            "source_turn": clean(new.source_turn),
            "metadata": dict(new.metadata),
            "expires_at": new.expires_at,
            "indexed": 0,
        }
        row["bound_to"] = _bound(str(row["scope"]), new.place)
        verdict = await self._verdict(new, row)

        def keep(connection: Connection) -> tuple[Stored, list[str]]:
            kept, late = self._keep(connection, row, verdict)
            note_told(connection, new.identity.key, new.query_id, kept.memory_id)
            return kept, late

        kept, late = await self._database.write(keep)
        if not kept.repeated:
            await self._index([kept.memory_id], drop=[*kept.superseded, *late])
        return kept

    def _keep(
        self, connection: Connection, row: dict[str, Any], verdict: Verdict
    ) -> tuple[Stored, list[str]]:
        """What is kept, and the ids of facts that went because they had expired."""
        late: list[str] = []
        there = (
            connection.execute(
                sa.select(table).where(
                    sa.or_(
                        table.c.memory_id == row["memory_id"],
                        sa.and_(
                            _same_place(row), table.c.digest == row["digest"], table.c.status == "active"
                        ),
                    )
                )
            )
            .mappings()
            .all()
        )
        for old in there:
            # Expired but not purged yet: the person says it anew, so it is kept anew.
            if old["memory_id"] != row["memory_id"] and _expired(old, self._clock()):
                _take_back(connection, [old])
                _remove(connection, [old["memory_id"]])
                late.append(str(old["memory_id"]))
                continue
            return Stored(old["memory_id"], old["text"] or row["text"], repeated=True), late
        if verdict.relation == "repeats":
            old_text = connection.scalar(_active(verdict.memory_id, table.c.text))
            if old_text is not None:
                return Stored(verdict.memory_id, old_text, repeated=True), late
        now = self._clock()
        if not insert_missing(connection, table, **row, created_at=now, updated_at=now):
            # Another server said it at the same moment.
            return Stored(self._held(connection, row), row["text"], repeated=True), late
        _note(connection, row, "ADD", None, row["text"], now)
        superseded = self._supersede(connection, row, verdict, now)
        return Stored(row["memory_id"], row["text"], tuple(superseded)), late

    def _held(self, connection: Connection, row: Mapping[str, Any]) -> str:
        same = sa.select(table.c.memory_id).where(
            _same_place(row), table.c.digest == row["digest"], table.c.status == "active"
        )
        return str(connection.scalar(same) or row["memory_id"])

    def _supersede(
        self, connection: Connection, row: dict[str, Any], verdict: Verdict, now: float
    ) -> list[str]:
        gone = []
        for old in connection.execute(
            sa.select(table).where(
                _same_place(row),
                table.c.status == "active",
                table.c.memory_id != row["memory_id"],
                sa.or_(
                    sa.and_(table.c.attribute == row["attribute"], table.c.attribute != ""),
                    table.c.memory_id == verdict.memory_id,
                ),
            )
        ).mappings():
            by_verdict = verdict.relation == "replaces" and old["memory_id"] == verdict.memory_id
            if by_verdict or _contradicts(row["text"], old["text"]):
                _become(connection, old, "superseded", now, by=row["memory_id"])
                gone.append(str(old["memory_id"]))
        return gone

    async def _verdict(self, new: Detected, row: Mapping[str, Any]) -> Verdict:
        """What the model says of the older facts nearest to the new one, as far as the rules let it."""
        beside = Verdict("adds")
        if self._judge is None:
            return beside
        try:
            older = await self._candidates(row)
            if not older or any(_contradicts(row["text"], old.text) for old in older):
                return beside
            verdict = await self._judge.compare(new, older)
        except AskError as failed:
            log.warning("memory.conflict_unjudged", extra={"reason": failed.message})
            return beside
        named = next((old for old in older if old.memory_id == verdict.memory_id), None)
        if named is None or not _comparable(row, named, verdict):
            return beside
        return verdict

    async def _candidates(self, row: Mapping[str, Any]) -> list[Fact]:
        owner = Identity(row["realm"], row["user_id"])
        where = Where({"site": owner.realm, "identity": owner.key})
        near = [found.document_id for found in await self._find(where, row["text"], CANDIDATES * 4)]

        def read(connection: Connection) -> list[Fact]:
            chosen = connection.execute(
                sa.select(table).where(
                    _same_place(row),
                    _alive(self._clock()),
                    sa.or_(
                        table.c.memory_id.in_(near),
                        sa.and_(table.c.attribute == row["attribute"], table.c.attribute != ""),
                    ),
                )
            ).mappings()
            return [_fact(one) for one in chosen]

        place = {memory_id: n for n, memory_id in enumerate(near)}
        found = await self._database.read(read)
        return sorted(found, key=lambda fact: place.get(fact.memory_id, -1))[:CANDIDATES]

    # ------------------------------------------------------------ find

    async def recall(self, asking: Asking) -> list[Fact]:
        """What a person told that bears on what they ask: preferences and constraints always, of the rest
        what the question calls up; each once, oldest first. Raises StoreError."""
        reach = Reach.of(asking.identity)
        try:
            scores = {
                found.document_id: found.score
                for found in await self._find(_where(reach), asking.text, SEARCHED)
                if _near(found)
            }
        except AskError as failed:
            # Without the search there is still what is always in mind.
            log.warning("memory.search_failed", extra={"reason": failed.message})
            scores = {}
        always = table.c.kind.in_(("preference", "constraint"))

        def read(connection: Connection) -> list[Fact]:
            chosen = connection.execute(
                sa.select(table)
                .where(_within(reach), _alive(self._clock()), sa.or_(always, table.c.memory_id.in_(scores)))
                .order_by(table.c.created_at.desc(), table.c.memory_id)
                .limit(MAX_ALWAYS + MAX_RECALLED + SEARCHED)
            ).mappings()
            return [_fact(row) for row in chosen]

        usable = [fact for fact in await self._database.read(read) if asking.may_use(fact)]
        kept = [fact for fact in usable if fact.kind != "fact"][:MAX_ALWAYS]
        # A caller may have many more preferences than fit: those that the question is about go first.
        rest = sorted(
            (fact for fact in usable if fact not in kept and fact.memory_id in scores),
            key=lambda fact: -scores[fact.memory_id],
        )
        chosen = _once([*kept, *rest])[:MAX_RECALLED]
        return sorted(chosen, key=lambda fact: (fact.created_at, fact.memory_id))

    async def search(self, reach: Reach, text: str, limit: int) -> list[Fact]:
        """The active facts nearest to a text, best first, each with its score. Raises StoreError."""
        found = {
            one.document_id: one.score
            for one in await self._find(_where(reach), text, max(limit, CANDIDATES))
        }
        kept = await self._rows(reach, table.c.memory_id.in_(found))
        ranked = sorted(
            (fact.with_(score=found[fact.memory_id]) for fact in kept), key=lambda fact: -(fact.score or 0.0)
        )
        return ranked[:limit]

    async def all(
        self, reach: Reach, *, site: str | None = None, limit: int = 1000, offset: int = 0
    ) -> list[Fact]:
        """The active facts, newest first. Raises StoreError."""
        by_site = sa.true() if site is None else table.c.application == site
        return await self._rows(reach, by_site, limit=limit, offset=offset)

    async def count(self, reach: Reach) -> int:
        """How many active facts there are."""
        chosen = sa.select(sa.func.count()).where(_within(reach), _alive(self._clock()))
        return await self._database.read(lambda c: int(c.scalar(chosen) or 0))

    async def everything(self, reach: Reach) -> tuple[list[Fact], list[Change]]:
        """All that is kept, superseded facts and history too: for an export."""

        def read(connection: Connection) -> tuple[list[Fact], list[Change]]:
            rows = connection.execute(
                sa.select(table).where(_within(reach)).order_by(table.c.created_at, table.c.memory_id)
            ).mappings()
            kept = [_fact(row) for row in rows]
            ids = {fact.memory_id for fact in kept}
            changes = connection.execute(
                sa.select(history).where(*_history_within(reach)).order_by(history.c.n)
            ).mappings()
            return kept, [_change(row) for row in changes if row["memory_id"] in ids]

        return await self._database.read(read)

    async def get(self, reach: Reach, memory_id: str) -> Fact:
        """A fact that is not forgotten. Raises NotFound, the same for another's and for none."""
        chosen = sa.select(table).where(
            _within(reach),
            table.c.memory_id == memory_id,
            table.c.status != "deleted",
            _lasting(self._clock()),
        )
        row = await self._database.read(lambda c: c.execute(chosen).mappings().first())
        if row is None:
            raise NotFound("there is no such memory")
        return _fact(row)

    async def changes(self, reach: Reach, memory_id: str) -> list[Change]:
        """A fact's history, oldest first; of a forgotten one without its texts. Raises NotFound."""
        chosen = (
            sa.select(history)
            .where(*_history_within(reach), history.c.memory_id == memory_id)
            .order_by(history.c.n)
        )
        owned = sa.select(table.c.memory_id).where(_within(reach), table.c.memory_id == memory_id)

        def read(connection: Connection) -> list[Change] | None:
            if connection.scalar(owned) is None:
                return None
            return [_change(row) for row in connection.execute(chosen).mappings()]

        found = await self._database.read(read)
        if found is None:
            raise NotFound("there is no such memory")
        return found

    async def entities(self, reach: Reach) -> list[dict[str, Any]]:
        """The users, agents, applications and threads of the facts within reach, with their numbers."""
        kinds = (("user", "user_id"), ("agent", "agent"), ("app", "application"), ("run", "thread"))

        def read(connection: Connection) -> list[dict[str, Any]]:
            found = []
            for kind, column in kinds:
                rows = connection.execute(
                    sa.select(
                        table.c[column],
                        sa.func.count(),
                        sa.func.min(table.c.created_at),
                        sa.func.max(table.c.updated_at),
                    )
                    .where(_within(reach), table.c[column] != "", _alive(self._clock()))
                    .group_by(table.c[column])
                    .order_by(table.c[column])
                )
                found += [
                    {"type": kind, "name": name, "total": total, "created_at": first, "updated_at": last}
                    for name, total, first, last in rows
                ]
            return found

        return await self._database.read(read)

    async def realms_of(self, user: str) -> list[str]:
        """The realms in which a user of this id has facts: the operator has to say which one is meant."""
        chosen = sa.select(table.c.realm).where(table.c.user_id == user).distinct().order_by(table.c.realm)
        return [str(realm) for realm in await self._database.read(lambda c: list(c.scalars(chosen)))]

    # ------------------------------------------------------------ change

    async def update(
        self,
        reach: Reach,
        memory_id: str,
        *,
        text: str | None = None,
        kind: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        expires_at: float | None = None,
    ) -> Fact:
        """Change what is given. Raises NotFound, BadQuery (another fact says that already), StoreError."""
        old = await self.get(reach, memory_id)
        if old.status != "active":
            raise BadQuery("this fact was superseded: restore it first", field="memory_id")
        values: dict[str, Any] = {}
        if text is not None:
            line = checked_text(text)
            told = claim(line)
            values |= {"text": line, "digest": digest(line), "attribute": told.topic if told else ""}
            if line != old.text:
                values["indexed"] = 0
        if kind is not None:
            if kind not in KINDS:
                raise BadQuery(f"`kind` is one of {', '.join(KINDS)}", field="kind")
            values["kind"] = kind
        if metadata is not None:
            values["metadata"] = dict(metadata)
        if expires_at is not None:
            values["expires_at"] = expires_at
        if values:
            await self._database.write(lambda c: self._change(c, reach, memory_id, values))
            if "indexed" in values:
                # Taken out first, so that what the older text was found by is among what `compact` drops.
                await self._index([memory_id], drop=[memory_id])
        return await self.get(reach, memory_id)

    def _change(self, connection: Connection, reach: Reach, memory_id: str, values: dict[str, Any]) -> None:
        row = connection.execute(_owned(reach, memory_id)).mappings().first()
        if row is None or row["status"] != "active":
            raise NotFound("there is no such memory")
        if "digest" in values:
            same = sa.select(table.c.memory_id).where(
                _same_place(row),
                table.c.digest == values["digest"],
                table.c.status == "active",
                table.c.memory_id != memory_id,
            )
            if connection.scalar(same) is not None:
                raise BadQuery("another fact says that already", field="text")
        now = self._clock()
        connection.execute(
            sa.update(table).where(table.c.memory_id == memory_id).values(**values, updated_at=now)
        )
        if values.get("text", row["text"]) != row["text"]:
            _take_back(connection, [row])
            _note(connection, row, "UPDATE", row["text"], values["text"], now)

    async def restore(self, reach: Reach, memory_id: str) -> Fact:
        """Make a superseded fact the one that holds; what superseded it is superseded in turn.

        Raises NotFound, also for a forgotten fact: its text is gone.
        """
        changed = await self._database.write(lambda c: self._restore(c, reach, memory_id))
        if changed is not None:
            await self._index([memory_id], drop=changed)
        return await self.get(reach, memory_id)

    def _restore(self, connection: Connection, reach: Reach, memory_id: str) -> list[str] | None:
        row = connection.execute(_owned(reach, memory_id)).mappings().first()
        if row is None or row["status"] == "deleted" or _expired(row, self._clock()):
            raise NotFound("there is no such memory")
        if row["status"] == "active":
            return None
        now = self._clock()
        others = connection.execute(
            sa.select(table).where(
                _same_place(row),
                table.c.status == "active",
                sa.or_(table.c.memory_id == row["superseded_by"], table.c.digest == row["digest"]),
            )
        ).mappings()
        dropped = []
        for other in others:
            _become(connection, other, "superseded", now, by=memory_id)
            dropped.append(str(other["memory_id"]))
        _become(connection, row, "active", now)
        return dropped

    async def forget(self, reach: Reach, memory_ids: Sequence[str], *, undo: bool = False) -> list[str]:
        """Forget these facts: their text is gone from rows, history and search, and what later prompts of
        their person would have of them from conversations; a mark without text stays. With `undo` what they
        superseded holds again. The ids of those that were there. Raises StoreError."""
        gone, back = await self._database.write(lambda c: self._forget(c, reach, memory_ids, undo))
        self._untidy = self._untidy or bool(gone)
        await self._index(back, drop=gone)
        return gone

    def _forget(
        self, connection: Connection, reach: Reach, memory_ids: Sequence[str], undo: bool
    ) -> tuple[list[str], list[str]]:
        now = self._clock()
        gone: list[str] = []
        back: list[str] = []
        for memory_id in memory_ids:
            row = connection.execute(_owned(reach, memory_id)).mappings().first()
            if row is None or row["status"] == "deleted":
                continue
            _take_back(connection, [row])
            _blank(connection, row, now)
            gone.append(str(memory_id))
            older = sa.select(table).where(_within(reach), table.c.superseded_by == memory_id)
            for old in connection.execute(older).mappings() if undo and row["status"] == "active" else ():
                _become(connection, old, "active", now)
                back.append(str(old["memory_id"]))
        return gone, [memory_id for memory_id in back if memory_id not in gone]

    async def erase(self, reach: Reach, *, traces: bool = True) -> dict[str, int]:
        """Take out everything within reach: facts, what was superseded, marks of forgotten ones, history,
        vectors; and their `traces` in conversations, unless these are erased, too. How many of each went.
        Raises StoreError; then it can be called again."""

        # Marks first: what a kill leaves behind is without text already, and `sweep` takes the points out.
        def blank(connection: Connection) -> int:
            rows = connection.execute(sa.select(table).where(_within(reach))).mappings().all()
            if traces:
                _take_back(connection, rows)
            self._remember_gone([row["memory_id"] for row in rows])
            for row in rows:
                _blank(connection, row, self._clock())
            return sum(row["status"] != "deleted" for row in rows)

        def remove(connection: Connection) -> int:
            ids = list(connection.scalars(sa.select(table.c.memory_id).where(_within(reach))))
            return _remove(connection, ids)

        records = await self._database.write(blank)
        vectors = await self._store.delete(COLLECTION, _where(reach))
        self.dropped.set()
        steps = await self._database.write(remove)
        # The marks that were set here are no history of the person's.
        return {"memories": records, "vectors": vectors, "history": steps - records}

    # ------------------------------------------------------------ in conversations

    async def take_back(self, identity: Identity, memory_ids: Sequence[str]) -> None:
        """Take out of a person's conversations what they have of facts that were kept elsewhere and forgotten
        there. Raises StoreError."""
        if not memory_ids:
            return
        self._remember_gone(memory_ids)
        gone = traces_of([{"memory_id": one, "text": "", "query_id": ""} for one in memory_ids])
        await self._database.write(lambda c: take_back(c, identity.key, gone))

    async def note_told(self, told: Detected, memory_id: str) -> None:
        """A fact that a conversation's turn told is kept elsewhere, under this id. Raises StoreError."""
        if told.query_id:
            await self._database.write(lambda c: note_told(c, told.identity.key, told.query_id, memory_id))

    async def expire(self, owner: Identity) -> None:
        """Let go of a person's facts whose time is up: nothing of them is in a prompt from now on, though
        `purge` has not come by yet. Raises StoreError."""
        now = self._clock()
        late = sa.select(table).where(
            _within(Reach.of(owner)), table.c.expires_at <= now, table.c.status != "deleted"
        )

        def expire(connection: Connection) -> None:
            rows = connection.execute(late).mappings().all()
            _take_back(connection, rows)
            for row in rows:
                _blank(connection, row, now)

        if await self._database.read(lambda c: c.execute(late.limit(1)).first()) is not None:
            await self._database.write(expire)

    def told_with(self, connection: Connection, owner: Identity, query_id: str) -> list[str]:
        """Ids of the facts that were told with this question, forgotten ones too."""
        told = sa.select(table.c.memory_id).where(_within(Reach.of(owner)), table.c.query_id == query_id)
        return [str(one) for one in connection.scalars(told)]

    def gone(self, connection: Connection, ids: Collection[str]) -> frozenset[str]:
        """Those of these facts that were forgotten or have expired."""
        if not ids:
            return frozenset()
        out = sa.or_(table.c.status == "deleted", sa.not_(_lasting(self._clock())))
        marked = connection.scalars(sa.select(table.c.memory_id).where(table.c.memory_id.in_(ids), out))
        return frozenset([*marked, *self._gone.keys() & set(ids)])

    def _remember_gone(self, memory_ids: Collection[str]) -> None:
        self._gone.update(dict.fromkeys(memory_ids))
        for oldest in list(self._gone)[: max(0, len(self._gone) - MAX_GONE)]:
            del self._gone[oldest]

    # ------------------------------------------------------------ maintenance

    async def tidy(self) -> None:
        """Where facts were forgotten one by one, or nothing could be tidied when they were: leave nothing of
        them in the database's files. Raises StoreError."""
        if self._untidy or self._database.untidy:
            self._untidy = False
            await self._database.tidy()

    async def compact(self) -> bool:
        """Leave nothing of deleted points in the vector store's files, where these are ours; whether anything
        was to be done. Searches go on meanwhile. Raises StoreError."""
        return isinstance(self._store, Compacts) and await self._store.compact(COLLECTION)

    async def purge(self) -> int:
        """Take out what has expired. How many facts went."""
        now = self._clock()
        late = sa.select(table.c.memory_id).where(table.c.expires_at <= now)
        ids = [str(one) for one in await self._database.read(lambda c: list(c.scalars(late)))]
        for start in range(0, len(ids), PIECE):
            piece = ids[start : start + PIECE]
            await self._store.delete_ids(COLLECTION, piece)
            self.dropped.set()
            self._untidy = True
            self._remember_gone(piece)
            await self._database.write(lambda c, piece=piece: _let_go(c, piece))  # type: ignore[misc]
        return len(ids)

    async def sweep(self) -> int:
        """Bring the vectors in step with the rows: what a kill, or a lost vector store, left undone. How many
        facts were put right."""
        held = await self._store.count(COLLECTION, Where())
        indexed = sa.select(sa.func.count()).where(table.c.indexed == 1, table.c.status == "active")
        if held < await self._database.read(lambda c: int(c.scalar(indexed) or 0)):
            await self._database.write(lambda c: c.execute(sa.update(table).values(indexed=0)))
        done = 0
        while True:
            undone = (
                sa.select(table.c.memory_id, table.c.status)
                .where((table.c.status == "active") != (table.c.indexed == 1))
                .limit(PIECE)
            )
            rows = await self._database.read(lambda c, undone=undone: c.execute(undone).all())  # type: ignore[misc]
            if not rows:
                return done
            missing = [memory_id for memory_id, status in rows if status == "active"]
            await self._put(missing)
            await self._drop([memory_id for memory_id, status in rows if status != "active"])
            done += len(rows)

    async def _index(self, memory_ids: Sequence[str], *, drop: Sequence[str] = ()) -> None:
        """Put the points of these facts, take out those of others. A fact is kept whether or not it can be
        searched for at the moment: what fails here is done by the next `sweep`."""
        try:
            await self._drop(drop)
            await self._put(memory_ids)
        except AskError as failed:
            log.warning("memory.not_indexed", extra={"facts": len(memory_ids), "reason": failed.message})

    async def _put(self, memory_ids: Sequence[str]) -> None:
        if not memory_ids:
            return
        chosen = sa.select(table).where(table.c.memory_id.in_(memory_ids), table.c.status == "active")
        rows = await self._database.read(lambda c: c.execute(chosen).mappings().all())
        languages = [detect(row["text"]) for row in rows]
        vectors = await self._retriever.vectors([row["text"] for row in rows], languages)
        points = [
            Point(row["memory_id"], vector, _payload(row, language))
            for row, vector, language in zip(rows, vectors, languages, strict=True)
        ]
        await self._store.upsert(COLLECTION, points)
        await self._mark([str(row["memory_id"]) for row in rows], indexed=1)

    async def _drop(self, memory_ids: Sequence[str]) -> None:
        if memory_ids:
            await self._store.delete_ids(COLLECTION, memory_ids)
            self.dropped.set()
            await self._mark(memory_ids, indexed=0)

    async def _mark(self, memory_ids: Sequence[str], *, indexed: int) -> None:
        change = sa.update(table).where(table.c.memory_id.in_(memory_ids)).values(indexed=indexed)
        await self._database.write(lambda c: c.execute(change))

    async def _rows(
        self, reach: Reach, condition: sa.ColumnElement[bool], *, limit: int = 1000, offset: int = 0
    ) -> list[Fact]:
        chosen = (
            sa.select(table)
            .where(_within(reach), _alive(self._clock()), condition)
            .order_by(table.c.created_at.desc(), table.c.memory_id)
            .limit(limit)
            .offset(offset)
        )
        return await self._database.read(lambda c: [_fact(row) for row in c.execute(chosen).mappings()])

    async def _find(self, where: Where, text: str, limit: int) -> list[Found]:
        """What the vectors say: ids and scores."""
        if not normal(text):
            return []
        realm = str(where.must["site"])
        return await self._retriever.search(
            [Part(text)], sites=[realm], limit=limit, where=where, by_document=False
        )


# ---------------------------------------------------------------- conditions


def _within(reach: Reach) -> sa.ColumnElement[bool]:
    """The one condition of every statement: whose facts, and of which places."""
    ids = {
        "user_id": reach.user,
        "application": reach.application,
        "agent": reach.agent,
        "thread": reach.thread,
    }
    return sa.and_(
        table.c.realm == reach.realm,
        *(table.c[column] == value for column, value in ids.items() if value is not None),
    )


def _history_within(reach: Reach) -> list[sa.ColumnElement[bool]]:
    conditions: list[sa.ColumnElement[bool]] = [history.c.realm == reach.realm]
    if reach.user is not None:
        conditions.append(history.c.user_id == reach.user)
    return conditions


def _where(reach: Reach) -> Where:
    """The same for the vector store. A person is found by the one string of both ids."""
    must: dict[str, str] = {"site": reach.realm}
    if reach.user is not None:
        must["identity"] = Identity(reach.realm, reach.user).key
    for name in ("application", "agent", "thread"):
        value = getattr(reach, name)
        if value is not None:
            must[name] = value
    return Where(must)


def _owned(reach: Reach, memory_id: str) -> sa.Select[Any]:
    return sa.select(table).where(_within(reach), table.c.memory_id == memory_id)


def _alive(now: float) -> sa.ColumnElement[bool]:
    return sa.and_(table.c.status == "active", _lasting(now))


def _lasting(now: float) -> sa.ColumnElement[bool]:
    return sa.or_(table.c.expires_at.is_(None), table.c.expires_at > now)


def _active(memory_id: str, column: Any) -> sa.Select[Any]:
    return sa.select(column).where(table.c.memory_id == memory_id, table.c.status == "active")


def _same_place(row: Mapping[str, Any] | RowMapping) -> sa.ColumnElement[bool]:
    return sa.and_(*(table.c[name] == row[name] for name in ("realm", "user_id", "scope", "bound_to")))


def _expired(row: RowMapping, now: float) -> bool:
    return row["expires_at"] is not None and float(row["expires_at"]) <= now


def _bound(scope: str, place: Place) -> str:
    """Within what facts are the same or contradict each other: the ids down to the scope's own."""
    ids = (place.application, place.agent, place.thread)
    depth = {"user": 0, "application": 1, "agent": 2, "thread": 3}[scope]
    if not depth:
        return ""
    told = orjson.dumps(ids[:depth])
    # It is part of an index, and PostgreSQL's take only so much.
    return told.decode() if len(told) <= MAX_BOUND_BYTES else hashlib.sha256(told).hexdigest()


def _contradicts(new: str, old: str) -> bool:
    one, other = claim(new), claim(old)
    return one is not None and other is not None and one.replaces(other)


def _comparable(row: Mapping[str, Any], old: Fact, verdict: Verdict) -> bool:
    """Whether the model may have its way: only between facts about the same thing."""
    if row["attribute"] and old.attribute:
        same = row["attribute"] == old.attribute and (row["subject"] or "") == (old.subject or "")
        if verdict.relation == "replaces":
            return same
        if same:
            return True
    if verdict.relation == "repeats" and detect(row["text"]) != detect(old.text):
        return True  # said again in another language
    return share_a_word(row["text"], old.text)


# ---------------------------------------------------------------- rows


def _fact(row: RowMapping) -> Fact:
    return Fact(
        memory_id=row["memory_id"],
        text=row["text"],
        kind=row["kind"],
        scope=row["scope"],
        subject=row["subject"],
        attribute=row["attribute"],
        status=row["status"],
        superseded_by=row["superseded_by"],
        identity=Identity(row["realm"], row["user_id"]),
        place=Place(row["application"], row["agent"], row["thread"]),
        source_turn=row["source_turn"],
        query_id=row["query_id"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        expires_at=row["expires_at"],
        metadata=row["metadata"],
    )


def _change(row: RowMapping) -> Change:
    return Change(row["memory_id"], row["event"], row["old_text"], row["new_text"], row["at"])


def _payload(row: RowMapping, language: str) -> dict[str, Any]:
    """What a point is filtered and found by; never the text. `site`, `document_id`, `version` and `n` are the
    retriever's names."""
    return {
        "identity": Identity(row["realm"], row["user_id"]).key,
        "application": row["application"],
        "agent": row["agent"],
        "thread": row["thread"],
        "site": row["realm"],
        "document_id": row["memory_id"],
        "version": "",
        "n": 0,
        "lang": language,
    }


def _note(
    connection: Connection,
    row: Mapping[str, Any] | RowMapping,
    event: str,
    old: str | None,
    new: str | None,
    now: float,
) -> None:
    connection.execute(
        sa.insert(history).values(
            memory_id=row["memory_id"],
            realm=row["realm"],
            user_id=row["user_id"],
            event=event,
            old_text=old,
            new_text=new,
            at=now,
        )
    )


def _become(
    connection: Connection, row: RowMapping, status: str, now: float, *, by: str | None = None
) -> None:
    connection.execute(
        sa.update(table)
        .where(table.c.memory_id == row["memory_id"])
        .values(status=status, superseded_by=by, updated_at=now)
    )
    event = {"superseded": "SUPERSEDE", "active": "RESTORE"}[status]
    _note(connection, row, event, row["text"], row["text"] if status == "active" else None, now)


def _blank(connection: Connection, row: RowMapping, now: float) -> None:
    """Leave a mark that there was a fact, and nothing of what it said. The mark names the question: its turn
    may still be on its way."""
    memory_id = row["memory_id"]
    connection.execute(
        sa.update(table)
        .where(table.c.memory_id == memory_id)
        .values(
            status="deleted",
            text="",
            digest="",
            subject="",
            attribute="",
            source_turn="",
            metadata={},
            superseded_by=None,
            updated_at=now,
        )
    )
    connection.execute(
        sa.update(history).where(history.c.memory_id == memory_id).values(old_text=None, new_text=None)
    )
    if row["status"] != "deleted":
        _note(connection, row, "DELETE", None, None, now)


def _owner(row: Mapping[str, Any] | RowMapping) -> Identity:
    return Identity(row["realm"], row["user_id"])


def _take_back(connection: Connection, rows: Sequence[RowMapping]) -> None:
    """Take out of their persons' conversations what later prompts would have of these facts."""
    owners: dict[Identity, list[RowMapping]] = {}
    for row in rows:
        owners.setdefault(_owner(row), []).append(row)
    for owner, theirs in owners.items():
        take_back(connection, owner.key, traces_of(theirs))


def _let_go(connection: Connection, memory_ids: Sequence[str]) -> None:
    """Delete facts, and what conversations have of them."""
    chosen = sa.select(table).where(table.c.memory_id.in_(memory_ids), table.c.status != "deleted")
    _take_back(connection, connection.execute(chosen).mappings().all())
    _remove(connection, memory_ids)


def _near(found: Found) -> bool:
    """Whether a leg found the fact that can tell far from near."""
    return any(score >= FLOORS.get(leg, 0.0) for leg, score in found.legs.items())


def _remove(connection: Connection, memory_ids: Sequence[str]) -> int:
    """Delete rows and their history; how many steps of history went."""
    steps = connection.execute(sa.delete(history).where(history.c.memory_id.in_(memory_ids))).rowcount
    connection.execute(sa.delete(table).where(table.c.memory_id.in_(memory_ids)))
    return int(steps)


def _once(found: Sequence[Fact]) -> list[Fact]:
    """Facts that say the same in other letters once: a repeated fact only makes readers skip it."""
    seen: set[str] = set()
    kept = []
    for fact in found:
        key = normal(fact.text)
        if key not in seen:
            seen.add(key)
            kept.append(fact)
    return kept
