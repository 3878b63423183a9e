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
from core.database import Database, conversations, insert_missing
from core.errors import AskError, BadQuery, NotFound
from core.feedback import feedback
from core.language import detect
from core.memory.claims import claim, kind_of, opposed, says_the_same, share_a_word
from core.memory.facts import (
    KINDS,
    MAX_KEPT_CHARS,
    SCOPES,
    Asking,
    Change,
    Detected,
    Fact,
    Kind,
    Place,
    Reach,
    Stored,
    checked_text,
    digest,
    normal,
    outdated,
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
# Always in mind: what must hold for a person, whatever else there is, and what they prefer as far as there is
# room beside it. Of what a question calls up there is room for some in any case.
MAX_CONSTRAINTS = 50
MAX_ALWAYS = 12
ALWAYS: Mapping[Kind, int] = {"constraint": MAX_CONSTRAINTS, "preference": MAX_ALWAYS}
MAX_RECALLED = 20
SEARCHED = 40
# How many are looked at where facts of other places stand before those of this one.
SEARCHED_ON = 400
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
    """How a new fact stands to the older ones: it repeats or replaces one of them, or stands beside them.
    `new` and `old`: whom or what the two are about, and which property of it (`Fact.subject`, `attribute`),
    for one of them that was kept without."""

    relation: Literal["repeats", "replaces", "adds"]
    memory_id: str = ""
    new: tuple[str, str] = ("", "")
    old: tuple[str, str] = ("", "")


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
        erased_since: Callable[[Connection, Identity, float], bool] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`retriever` searches COLLECTION; `erased_since` says whether everything of a person was erased at
        a time or later."""
        self._database = database
        self._store = store
        self._retriever = retriever
        self._judge = judge
        self._erased_since = erased_since
        self._clock = clock
        self.dropped = asyncio.Event()  # set when points were deleted: it is time to `compact`
        # Facts that went with their rows, and those of a foreign hook: an answer on its way may have them.
        self._gone: dict[str, None] = {}
        # Facts that were told with a question and are not its own, by their person and the question: its
        # turn is yet to be stored.
        self._retold: dict[tuple[str, str], str] = {}

    # ------------------------------------------------------------ keep

    async def remember(self, new: Detected) -> Stored:
        """Keep a fact, once. One that was there already stays; one that it contradicts is superseded.

        Raises BadQuery for a text that is none, and for what was asked before everything of its person was
        erased; StoreError.
        """
        text = checked_text(new.text, most=MAX_KEPT_CHARS)
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
            if self.erased_since(connection, new.identity, new.asked_at):
                raise outdated()
            kept, late = self._keep(connection, row, verdict)
            note_told(connection, new.identity.key, new.query_id, kept.memory_id)
            if kept.repeated:
                self._remember_retold(new, kept.memory_id)
            return kept, late

        kept, late = await self._database.write(keep)
        if not kept.repeated:
            await self._index([kept.memory_id], drop=[*kept.superseded, *late])
        return kept

    async def knows(self, new: Detected) -> bool:
        """Whether this is kept already, in as many words. Raises StoreError."""
        place = {
            "realm": new.identity.realm,
            "user_id": new.identity.user,
            "scope": new.scope,
            "bound_to": _bound(new.scope, new.place),
        }
        chosen = sa.select(table.c.memory_id).where(
            _same_place(place), _alive(self._clock()), table.c.digest == digest(new.text)
        )
        there = await self._database.read(lambda c: c.scalar(chosen))
        if there is not None:
            self._remember_retold(new, there)
        return there is not None

    def _remember_retold(self, new: Detected, memory_id: str) -> None:
        self._retold[new.identity.key, new.query_id] = memory_id
        while len(self._retold) > MAX_GONE:
            del self._retold[next(iter(self._retold))]

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
        replaced = verdict.memory_id if verdict.relation == "replaces" else ""
        superseded = _supersede(connection, row, now, replaced)
        return Stored(row["memory_id"], row["text"], tuple(superseded)), late

    def _held(self, connection: Connection, row: Mapping[str, Any]) -> str:
        same = sa.select(table.c.memory_id).where(
            _same_place(row), table.c.digest == row["digest"], table.c.status == "active"
        )
        return str(connection.scalar(same) or row["memory_id"])

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
        if named is None or not _may(verdict, row, named):
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
        """What a person told that bears on what they ask: constraints always, preferences as far as there is
        room, of the rest what the question calls up; each once, oldest first. Raises StoreError."""
        # Neither waits for the other: an answer waits for both.
        newest, found = await asyncio.gather(
            self._database.read(lambda c: self._newest_always(c, asking)), self._called_up(asking)
        )
        called = [fact for fact, near in found if near]
        kept = _in_mind(newest, called)
        room = max(MAX_RECALLED, len(kept) + MAX_RECALLED - MAX_ALWAYS)
        rest = (fact for fact in called if fact not in kept)
        chosen = _once([*kept, *rest])[:room]
        return sorted(chosen, key=lambda fact: (fact.created_at, fact.memory_id))

    async def _called_up(self, asking: Asking) -> list[tuple[Fact, bool]]:
        """The facts of this place that a search finds, best first, each with whether it is near enough to
        bear on the question."""
        reach = Reach.of(asking.identity)
        for limit in (SEARCHED, SEARCHED_ON):
            try:
                found = await self._find(_where(reach), asking.text, limit)
            except AskError as failed:
                # Without the search there is still what is always in mind.
                log.warning("memory.search_failed", extra={"reason": failed.message})
                return []
            place = {one.document_id: (n, _near(one)) for n, one in enumerate(found)}
            chosen = sa.select(table).where(
                _within(reach), _alive(self._clock()), _of_place(asking), table.c.memory_id.in_(place)
            )
            rows = await self._database.read(lambda c, chosen=chosen: c.execute(chosen).mappings().all())  # type: ignore[misc]
            here = [fact for fact in map(_fact, rows) if asking.may_use(fact)]
            if len(found) < limit or len(here) >= MAX_RECALLED:
                break
        here.sort(key=lambda fact: place[fact.memory_id][0])
        return [(fact, place[fact.memory_id][1]) for fact in here]

    def _newest_always(self, connection: Connection, asking: Asking) -> dict[Kind, list[Fact]]:
        """The newest of what is always in mind, of each kind as many as there may be room for."""
        here = (_within(Reach.of(asking.identity)), _alive(self._clock()), _of_place(asking))
        newest: dict[Kind, list[Fact]] = {}
        for kind, most in ALWAYS.items():
            chosen = connection.execute(
                sa.select(table)
                .where(*here, table.c.kind == kind)
                .order_by(table.c.created_at.desc(), table.c.memory_id)
                .limit(most)
            ).mappings()
            newest[kind] = [fact for fact in map(_fact, chosen) if asking.may_use(fact)]
        return newest

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
        """The realms in which something is kept of a user of this id, be it conversations or feedback alone:
        the operator has to say which one is meant."""

        def read(connection: Connection) -> set[str]:
            told = sa.select(table.c.realm).where(table.c.user_id == user).distinct()
            found = {str(realm) for realm in connection.scalars(told)}
            for owner in (conversations.c.owner, feedback.c.owner):
                alike = sa.select(owner).where(owner.endswith(f":{user}", autoescape=True)).distinct()
                owners = [Identity.of_key(key) for key in connection.scalars(alike)]
                found |= {one.realm for one in owners if one.user == user}
            return found

        return sorted(await self._database.read(read))

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
        created_at: float | None = None,
    ) -> Fact:
        """Change what is given; what a new text contradicts is superseded. Raises NotFound, BadQuery (another
        fact says that already), StoreError."""
        given = {"text": text, "kind": kind, "metadata": metadata, "expires_at": expires_at}
        await self.update_all(reach, [(memory_id, {**given, "created_at": created_at})])
        return await self.get(reach, memory_id)

    async def update_all(self, reach: Reach, changes: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        """Change several facts, each by its id and what `update` takes by name: all of them, or, where one is
        refused, none. Raises as `update`."""
        planned = [
            (memory_id, _changed_values(await self.get(reach, memory_id), given))
            for memory_id, given in changes
        ]

        def change(connection: Connection) -> list[str]:
            gone: list[str] = []
            for memory_id, values in planned:
                if values:
                    gone += self._change(connection, reach, memory_id, values)
            return gone

        await self._index([], drop=await self._database.write(change))
        self._database.untidy = self._database.untidy or any("digest" in values for _, values in planned)
        moved = [memory_id for memory_id, values in planned if "indexed" in values]
        for start in range(0, len(moved), PIECE):
            piece = moved[start : start + PIECE]
            # Taken out first, so that what the older text was found by is among what `compact` drops.
            await self._index(piece, drop=piece)

    def _change(
        self, connection: Connection, reach: Reach, memory_id: str, values: dict[str, Any]
    ) -> list[str]:
        """The ids of the facts that are found no more."""
        row = connection.execute(_owned(reach, memory_id)).mappings().first()
        if row is None or row["status"] != "active":
            raise NotFound("there is no such memory")
        now = self._clock()
        gone: list[str] = []
        if "digest" in values:
            for same in _saying_the_same(connection, {**row, **values}):
                if not _expired(same, now):
                    raise BadQuery("another fact says that already", field="text")
                _let_go(connection, [same["memory_id"]])
                gone.append(str(same["memory_id"]))
        connection.execute(
            sa.update(table).where(table.c.memory_id == memory_id).values(**values, updated_at=now)
        )
        if values.get("text", row["text"]) != row["text"]:
            _take_back(connection, [row])
            _note(connection, row, "UPDATE", row["text"], values["text"], now)
            gone += _supersede(connection, {**row, **values}, now)
        return gone

    async def restore(self, reach: Reach, memory_id: str) -> Fact:
        """Make a superseded fact the one that holds; what holds in its place is superseded in turn, and
        whatever else it contradicts.

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
        out = {one["memory_id"]: one for one in _against(connection, row)}
        if (holds := _in_its_place(connection, row)) is not None:
            out[holds["memory_id"]] = holds
        for other in out.values():
            _become(connection, other, "superseded", now, by=memory_id)
        _become(connection, row, "active", now)
        return [str(one) for one in out]

    async def forget(self, reach: Reach, memory_ids: Sequence[str], *, undo: bool = False) -> list[str]:
        """Forget these facts: their text is gone from rows, history and search, and what later prompts of
        their person would have of them from conversations; a mark without text stays. With `undo` what they
        superseded holds again. The ids of those that were there. Raises StoreError."""
        gone, back = await self._database.write(lambda c: self._forget(c, reach, memory_ids, undo))
        self._database.untidy = self._database.untidy or bool(gone)
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
            if undo and row["status"] == "active":
                back += _bring_back(connection, reach, row, now)
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
        self._database.untidy = True
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
        self._database.untidy = True

    async def note_told(self, told: Detected, memory_id: str) -> None:
        """A fact that a conversation's turn told is kept elsewhere, under this id. Raises StoreError."""
        if told.query_id:
            self._remember_retold(told, memory_id)
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
            self._database.untidy = True

    def told_with(self, connection: Connection, owner: Identity, query_id: str) -> list[str]:
        """Ids of the facts that were told with this question, forgotten ones too."""
        told = sa.select(table.c.memory_id).where(_within(Reach.of(owner)), table.c.query_id == query_id)
        again = self._retold.get((owner.key, query_id))
        return [*map(str, connection.scalars(told)), *([again] if again else [])]

    def erased_since(self, connection: Connection, owner: Identity, at: float | None) -> bool:
        """Whether everything of this person was erased at this time (Unix seconds; None: never) or later."""
        return at is not None and self._erased_since is not None and self._erased_since(connection, owner, at)

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
        """Where something that was told was deleted, and nothing was or could be tidied then: leave nothing
        of it in the database's files. Raises StoreError."""
        if self._database.untidy:
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
            self._database.untidy = True
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
        await self._drop(await self._database.write(lambda c: _found(c, [str(r["memory_id"]) for r in rows])))

    async def _drop(self, memory_ids: Sequence[str]) -> None:
        if memory_ids:
            await self._store.delete_ids(COLLECTION, memory_ids)
            self.dropped.set()
            lost = sa.update(table).where(table.c.memory_id.in_(memory_ids)).values(indexed=0)
            await self._database.write(lambda c: c.execute(lost))

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


def _of_place(asking: Asking) -> sa.ColumnElement[bool]:
    """Facts whose scope is looked in, and that are of this place; with them those of several sites, of which
    this may be one (`Asking.may_use`)."""
    site = table.c.application
    here: dict[str, sa.ColumnElement[bool]] = {
        "user": sa.true(),
        "application": sa.or_(site == "", site.in_(asking.applications), site.contains(",")),
        "agent": sa.and_(table.c.agent == asking.agent, table.c.agent != ""),
        "thread": sa.and_(table.c.thread == asking.thread, table.c.thread != ""),
    }
    looked_in = [sa.and_(table.c.scope == scope, here[scope]) for scope in here if scope in asking.scopes]
    return sa.or_(sa.false(), *looked_in)


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


def _changed_values(old: Fact, given: Mapping[str, Any]) -> dict[str, Any]:
    """The columns that what is given changes. Raises BadQuery for what no fact can be."""
    if old.status != "active":
        raise BadQuery("this fact was superseded: restore it first", field="memory_id")
    values = {
        name: given[name] for name in ("kind", "expires_at", "created_at") if given.get(name) is not None
    }
    if values.get("kind", KINDS[0]) not in KINDS:
        raise BadQuery(f"`kind` is one of {', '.join(KINDS)}", field="kind")
    if given.get("metadata") is not None:
        values["metadata"] = dict(given["metadata"])
    if given.get("text") is not None:
        line = checked_text(given["text"], most=MAX_KEPT_CHARS)
        if line != old.text:
            told = claim(line)
            values |= {"text": line, "digest": digest(line), "indexed": 0, "subject": ""}
            values["attribute"] = told.topic if told else ""
            if old.kind == kind_of(old.text):  # its words said so, and nobody else
                values.setdefault("kind", kind_of(line))
    return values


def _may(verdict: Verdict, row: Mapping[str, Any], old: Fact) -> bool:
    """Whether the model may have its way: only between facts about the same thing, and never so that what
    must always hold for a person is hidden, or not kept, by its word alone."""
    binding = row["kind"] == "constraint"
    about = _labels(verdict.new, row["subject"], row["attribute"])
    alike = all(about) and about == _labels(verdict.old, old.subject, old.attribute)
    if verdict.relation == "replaces":
        kept_so = bool(row["attribute"] and old.attribute)
        same = alike and (kept_so or share_a_word(row["text"], old.text))
        return same and (binding or old.kind != "constraint")
    if binding != (old.kind == "constraint"):
        return False
    new_claim, old_claim = claim(row["text"]), claim(old.text)
    if new_claim is not None and old_claim is not None:
        return new_claim == old_claim
    languages = detect(row["text"]), detect(old.text)
    translated = all(languages) and languages[0] != languages[1]
    return says_the_same(row["text"], old.text, whole=binding) or (alike and translated and not binding)


def _labels(told: tuple[str, str], subject: str, attribute: str) -> tuple[str, str]:
    """Whom or what a fact is about, and which property of it: as it was kept, else as is said now."""
    return normal(subject or told[0]), normal(attribute or told[1])


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


def _saying_the_same(connection: Connection, row: Mapping[str, Any] | RowMapping) -> Sequence[RowMapping]:
    """Other active facts of the same place that say the same: there can be one."""
    same = sa.select(table).where(
        _same_place(row),
        table.c.digest == row["digest"],
        table.c.status == "active",
        table.c.memory_id != row["memory_id"],
    )
    return connection.execute(same).mappings().all()


def _against(connection: Connection, row: Mapping[str, Any] | RowMapping) -> list[RowMapping]:
    """The active facts of the same place that cannot hold beside this one: what says the same, and what it
    contradicts."""
    topics = opposed(row["text"], row["attribute"])
    chosen = sa.select(table).where(
        _same_place(row),
        table.c.status == "active",
        table.c.memory_id != row["memory_id"],
        table.c.attribute.in_(topics),
    )
    others = connection.execute(chosen).mappings().all() if topics else ()
    contrary = [old for old in others if _contradicts(row["text"], old["text"])]
    return [*_saying_the_same(connection, row), *contrary]


def _supersede(connection: Connection, row: Mapping[str, Any], now: float, replaced: str = "") -> list[str]:
    """Let a fact stand in the place of what it contradicts, and of the one it is said to replace."""
    out = {one["memory_id"]: one for one in _against(connection, row)}
    if replaced:
        chosen = sa.select(table).where(
            _same_place(row), table.c.memory_id == replaced, table.c.status == "active"
        )
        out |= {one["memory_id"]: one for one in connection.execute(chosen).mappings()}
    for old in out.values():
        _become(connection, old, "superseded", now, by=row["memory_id"])
    return [str(one) for one in out]


def _in_its_place(connection: Connection, row: RowMapping) -> RowMapping | None:
    """The active fact at the end of what superseded this one, what superseded that, and so on; a mark without
    text may stand between."""
    seen = {row["memory_id"]}
    while row["superseded_by"] is not None and row["superseded_by"] not in seen:
        seen.add(row["superseded_by"])
        newer = sa.select(table).where(_same_place(row), table.c.memory_id == row["superseded_by"])
        found = connection.execute(newer).mappings().first()
        if found is None:
            return None
        row = found
    return row if row["status"] == "active" else None


def _bring_back(connection: Connection, reach: Reach, row: RowMapping, now: float) -> list[str]:
    """What this fact superseded holds again, but for what has expired, and where something that holds now
    says the same or the contrary."""
    older = sa.select(table).where(
        _within(reach), table.c.superseded_by == row["memory_id"], table.c.status == "superseded"
    )
    back = []
    for old in connection.execute(older).mappings().all():
        if not _expired(old, now) and not _against(connection, old):
            _become(connection, old, "active", now)
            back.append(str(old["memory_id"]))
    return back


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


def _found(connection: Connection, memory_ids: Sequence[str]) -> list[str]:
    """Mark that these facts can be found; the ids of those that went while their points were written."""
    here = (table.c.memory_id.in_(memory_ids), table.c.status == "active")
    marked = connection.scalars(
        sa.update(table).where(*here).values(indexed=1).returning(table.c.memory_id)
    ).all()
    return [memory_id for memory_id in memory_ids if memory_id not in marked]


def _remove(connection: Connection, memory_ids: Sequence[str]) -> int:
    """Delete rows and their history; how many steps of history went. What they superseded stands behind
    what superseded them."""
    between = sa.select(table.c.memory_id, table.c.superseded_by).where(
        table.c.memory_id.in_(memory_ids), table.c.superseded_by.is_not(None)
    )
    for memory_id, by in connection.execute(between).all():
        behind = sa.update(table).where(table.c.superseded_by == memory_id)
        connection.execute(behind.values(superseded_by=by))
    steps = connection.execute(sa.delete(history).where(history.c.memory_id.in_(memory_ids))).rowcount
    connection.execute(sa.delete(table).where(table.c.memory_id.in_(memory_ids)))
    return int(steps)


def _in_mind(newest: Mapping[Kind, Sequence[Fact]], called: Sequence[Fact]) -> list[Fact]:
    """What is always in mind. Where there is more than there is room for, what the question is about goes
    first, then the newest."""

    def of_kind(kind: Kind, room: int) -> list[Fact]:
        usable = newest[kind]
        if len(usable) >= room:
            usable = [*(fact for fact in called if fact.kind == kind), *usable]
        return _once(usable)[:room]

    constraints = of_kind("constraint", MAX_CONSTRAINTS)
    return [*constraints, *of_kind("preference", max(0, MAX_ALWAYS - len(constraints)))]


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
