"""Conversations: what each person asked, was shown and answered, kept for a while for them alone.

A conversation belongs to (identity, id): the same id of two people is two conversations. A turn is stored
when its answer is complete or stopped; storing never fails an answer, and once begun it is finished.
"""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Protocol

from sqlalchemy.engine import Connection

from core import conversation_rows as rows
from core.conversation_rows import Conversation, History, Overview, Said, ShownItem, Turn, Unseen
from core.database import Database
from core.errors import BadQuery, NotFound, StoreError
from core.messages import (
    AskUser,
    CompareItems,
    Complete,
    Decontextualized,
    EnsembleResult,
    Forgotten,
    GeneratedAnswer,
    Irrelevant,
    Item,
    ItemDetails,
    Message,
    NoResults,
    Remember,
    Results,
    Summary,
    UsedMemories,
)
from core.prompting.variables import clean, write_json
from core.query import Identity, Query, Shown

log = logging.getLogger(__name__)

ID = re.compile(r"[A-Za-z0-9._:~-]{1,128}")
MAX_TITLE_CHARS = 200
FIRST_TITLE_CHARS = 80
MAX_ANSWER_CHARS = 20_000
MAX_ASKED_BACK_CHARS = 500
MAX_SHOWN = 100
# The next question of a quick client should find the turn; no answer waits longer than this for the store.
KEEP_WITHIN_S = 0.5
PURGE_EVERY_S = 600.0
# Of answers before the last one, the items that a follow-up may still mean.
SHOWN_OF_OLDER = 3


class Record:
    """Collects from an answer's messages what becomes its turn."""

    def __init__(self, query: Query, owner: Identity) -> None:
        self.owner = owner
        self.conversation_id = query.conversation_id
        self.void = False  # erased while the answer was on its way
        self.asked_at = query.asked_at
        self.row: int | None = None  # of the conversation that the question saw
        self.stored: asyncio.Task[None] | None = None
        self.kept: Turn | None = None  # what is being stored
        self._query = query
        self._searched = query.decontextualized_query or query.text
        self._items: dict[tuple[str, str], Item] = {}
        self._others: list[ShownItem] = []
        self._answer: list[str] = []
        self._asked_back = ""
        self._order: Sequence[str] | None = None
        self._told: set[str] = set()
        self._used: set[str] = set()

    def build_on(self, history: History) -> None:
        """Take note of what the question saw: what is written of it may have words of the same facts."""
        self.row = history.row
        for turn in history.turns:
            self._used.update(turn.told, turn.used)
        for entry in history.board:
            self._used.update(entry.used)

    def see(self, message: Message) -> None:
        """Take note of a message that goes to the client."""
        match message:
            case Decontextualized(decontextualized_query=searched):
                self._searched = searched
            case Results(items=items):
                self._items.update({(item.site, item.document_id): item for item in items})
            case Complete(order=order):
                self._order = order
            case GeneratedAnswer(answer=answer, items=sources):
                self._answer.append(answer)
                self._others += [_source(one) for one in sources]
            case ItemDetails():
                self._answer.append(_as_text(message.details))
                self._others.append(ShownItem(message.name, message.url, message.document_id, message.site))
            case CompareItems(item1=first, item2=second):
                self._answer.append(_as_text(message.comparison))
                self._others += [
                    ShownItem(one.name, one.url, one.document_id, one.site) for one in (first, second)
                ]
            case EnsembleResult(result=result):
                self._answer.append(_as_text(result))
            case Remember(memory_id=memory_id):
                self._answer.append(message.message)
                self._told.update([memory_id] if memory_id else [])
            case Forgotten(items=named):
                self._told.update(str(one["memory_id"]) for one in named)
            case UsedMemories(items=recalled):
                self._used.update(str(one["memory_id"]) for one in recalled)
            case AskUser(message=question):
                self._asked_back = " ".join(question.split())
            case Summary() | NoResults() | Irrelevant():
                self._answer.append(message.message)
            case _:
                pass

    def turn(self, now: float) -> Turn:
        """The turn as it stands: of an answer that was stopped, what was had."""
        return Turn(
            n=0,
            query_id=self._query.query_id,
            asked=clean(self._query.text),
            searched=clean(self._searched),
            shown=tuple(self._shown()),
            answer=clean("\n\n".join(filter(None, [*self._answer, self._asked_back]))[:MAX_ANSWER_CHARS]),
            sites=() if self._query.all_sites else self._query.sites,
            created_at=now,
            told=tuple(sorted(self._told)),
            used=tuple(sorted(self._used)),
            asks=bool(self._asked_back),
        )

    def _shown(self) -> list[ShownItem]:
        if self._order is not None:
            place = {document_id: at for at, document_id in enumerate(self._order)}
            kept = [item for item in self._items.values() if item.document_id in place]
            kept.sort(key=lambda item: place[item.document_id])
        else:
            kept = sorted(self._items.values(), key=lambda item: -(item.score or 0))
            kept = kept[: self._query.max_results]
        listed = [ShownItem(item.name, item.url, item.document_id, item.site) for item in kept]
        return list(dict.fromkeys([*listed, *self._others]))[:MAX_SHOWN]


class RememberedFacts(Protocol):
    """What conversations ask of long-term memory: words of a fact that is gone are in no prompt."""

    async def expire(self, owner: Identity) -> None:
        """Let go of this person's facts whose time is up. Raises StoreError."""
        ...

    def erased_since(self, connection: Connection, owner: Identity, at: float | None) -> bool:
        """Whether everything of this person was erased at this time (Unix seconds; None: never) or later."""
        ...

    def told_with(self, connection: Connection, owner: Identity, query_id: str) -> Collection[str]:
        """Ids of the facts that were told with this question, forgotten ones too."""
        ...

    def gone(self, connection: Connection, ids: Collection[str]) -> frozenset[str]:
        """Those of these facts that were forgotten or have expired."""
        ...


class Conversations:
    """Keeps conversations. `notify` is called with a conversation's row id after something was said in it."""

    def __init__(
        self,
        database: Database,
        *,
        message_limit: int,
        expiration_s: float,
        whiteboard: bool = False,
        maintained: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`whiteboard`: boards are given out. `maintained`: somebody keeps them up (there is a model), so
        that a turn beyond the limit stays, unread, until its board has seen it."""
        self._database = database
        self._limits = rows.Limits(turns=message_limit, expiration_s=expiration_s, hold_unseen=maintained)
        self._whiteboard = whiteboard
        self._clock = clock
        self._records: set[Record] = set()
        self._purging: asyncio.Task[None] | None = None
        self.notify: Callable[[int], None] = lambda _id: None
        self.facts: RememberedFacts | None = None  # set by who puts the parts together

    # ------------------------------------------------------------ beside a question

    async def history(self, owner: Identity, conversation_id: str) -> History:
        """What was said before, oldest first; empty for an unknown or expired one. Turns that a slow database
        is still storing are among it. Raises StoreError."""
        if self.facts is not None:
            await self.facts.expire(owner)
        # Looked for before reading: one that is stored meanwhile is found twice, and none is missed.
        storing = [
            one
            for one in self._records
            if one.kept is not None and (one.owner, one.conversation_id) == (owner, conversation_id)
        ]

        def read(c: Connection) -> tuple[History, list[Turn | None]]:
            late = [self._as_remembered(c, owner, one.kept) for one in storing if one.kept and not one.void]
            return rows.history(c, owner.key, conversation_id, self._clock(), self._limits), late

        found, late = await self._database.read(read)
        found = found if self._whiteboard else replace(found, board=())
        return self._with_those(found, [turn for turn in late if turn is not None])

    def _with_those(self, found: History, storing: Sequence[Turn]) -> History:
        had = {(turn.query_id, turn.created_at) for turn in found.turns}
        late = [turn for turn in storing if (turn.query_id, turn.created_at) not in had]
        late.sort(key=lambda turn: turn.created_at)
        turns = (*found.turns, *late)[-self._limits.turns :]
        return replace(found, turns=turns, last_n=found.last_n + len(late))

    def record(self, query: Query) -> Record | None:
        """What is to become the question's turn; None for a caller nobody knows, or who wants none kept."""
        if query.identity is None or not query.remember:
            return None
        record = Record(query, query.identity)
        self._records.add(record)
        return record

    def keep(self, record: Record) -> asyncio.Task[None]:
        """Store the turn, once, whatever becomes of who called; the task never raises."""
        if record.stored is None:
            record.stored = asyncio.create_task(self._store(record))
        return record.stored

    async def keep_in_time(self, record: Record) -> None:
        """`keep`, waited for as long as an answer may wait."""
        await asyncio.wait({self.keep(record)}, timeout=KEEP_WITHIN_S)

    async def _store(self, record: Record) -> None:
        try:
            if not record.void:
                turn = record.kept = record.turn(self._clock())
                row = await self._database.write(lambda c: self._put(c, record, turn))
                if row is not None:
                    self.notify(row)
        except StoreError as failed:
            log.warning("conversation.not_kept", extra={"reason": failed.message})
        except Exception:
            # Nobody waits for this task's error: it must not be lost.
            log.exception("conversation.not_kept")
        finally:
            self._records.discard(record)

    def _put(self, c: Connection, record: Record, made: Turn) -> int | None:
        """The row id; None where there is nothing to be kept: also where the person was erased, or the
        conversation deleted, since the question came, be it by another server."""
        erased = self.facts is not None and self.facts.erased_since(c, record.owner, record.asked_at)
        if erased or (record.row is not None and rows.owner_of(c, record.row) is None):
            return None
        turn = self._as_remembered(c, record.owner, made)
        if turn is None:
            return None
        return rows.add_turn(
            c, record.owner.key, record.conversation_id, turn, title_from(turn.asked), self._limits
        )

    def _as_remembered(self, c: Connection, owner: Identity, turn: Turn) -> Turn | None:
        """A turn on its way without facts that were forgotten meanwhile; None where it tells one of them."""
        if self.facts is None:
            return turn
        told = {*turn.told, *self.facts.told_with(c, owner, turn.query_id)}
        turn = replace(turn, told=tuple(sorted(told)))
        gone = self.facts.gone(c, {*turn.told, *turn.used})
        if gone.intersection(turn.told):
            return None
        return turn.without(gone) if gone.intersection(turn.used) else turn

    # ------------------------------------------------------------ for their owner

    async def start(
        self, owner: Identity, conversation_id: str | None = None, title: str = ""
    ) -> tuple[Overview, bool]:
        """A conversation to be kept, and whether it is new. Raises BadQuery for a bad id or title."""
        made = conversation_id or secrets.token_urlsafe(12)
        if not ID.fullmatch(made):
            raise BadQuery("`id` is 1-128 of A-Z a-z 0-9 . _ : ~ -", field="id")
        wanted = checked_title(title) if title else ""
        return await self._database.write(
            lambda c: rows.start(c, owner.key, made, wanted, self._clock(), self._limits)
        )

    async def listed(
        self, owner: Identity, *, limit: int, before: tuple[float, int] | None = None
    ) -> tuple[list[Overview], tuple[float, int] | None]:
        """Last used first, and where the next page starts."""
        return await self._database.read(
            lambda c: rows.listed(c, owner.key, limit, before, self._clock(), self._limits)
        )

    async def get(self, owner: Identity, conversation_id: str) -> Conversation:
        """Raises NotFound for what is not there, has expired, or is another's."""
        if self.facts is not None:
            await self.facts.expire(owner)
        found = await self._database.read(
            lambda c: rows.whole(c, owner.key, conversation_id, self._clock(), self._limits)
        )
        if found is None:
            raise not_found(conversation_id)
        return found if self._whiteboard else replace(found, board=())

    async def rename(self, owner: Identity, conversation_id: str, title: str) -> Conversation:
        """Raises BadQuery for a title that is none, NotFound as `get`."""
        wanted = checked_title(title)
        done = await self._database.write(
            lambda c: rows.rename(c, owner.key, conversation_id, wanted, self._clock(), self._limits)
        )
        if not done:
            raise not_found(conversation_id)
        return await self.get(owner, conversation_id)

    async def delete(self, owner: Identity, conversation_id: str) -> dict[str, int]:
        """How many rows went. An answer still on its way into it is not kept. Raises NotFound as `get`."""
        await self._void(owner.key, {conversation_id})
        gone = await self._delete(owner.key, conversation_id)
        if not gone["conversations"]:
            raise not_found(conversation_id)
        return gone

    async def erase(self, identity: Identity) -> dict[str, int]:
        """All of this identity; how many conversations, turns, messages and whiteboard entries went."""
        await self._void(identity.key)
        return await self._delete(identity.key)

    async def _delete(self, owner: str, conversation_id: str | None = None) -> dict[str, int]:
        gone = await self._database.write(lambda c: rows.delete(c, owner, conversation_id))
        if gone["conversations"]:
            self._database.untidy = True
        return gone

    # ------------------------------------------------------------ for agents and the whiteboard

    async def say(
        self, owner: Identity, conversation_id: str, said: Sequence[tuple[str | None, Said]]
    ) -> int:
        """Store messages, each with its id if it has one; how many were new. Raises BadQuery, StoreError."""
        if not ID.fullmatch(conversation_id):
            raise BadQuery("`conversation_id` is 1-128 of A-Z a-z 0-9 . _ : ~ -", field="conversation_id")
        title = next((title_from(one.content) for _, one in said if one.role == "user"), "")
        row, new = await self._database.write(
            lambda c: rows.add_messages(
                c, owner.key, conversation_id, said, title, self._clock(), self._limits
            )
        )
        if new:
            self.notify(row)
        return new

    async def note_used(self, owner: Identity, conversation_id: str, ids: Collection[str]) -> None:
        """An agent was given these facts and the board, and writes with them. Raises StoreError."""
        await self._database.write(
            lambda c: rows.note_used(c, owner.key, conversation_id, ids, self._clock(), self._limits)
        )

    async def unseen(self, row: int, room: int) -> Unseen | None:
        """What the board of this row has not seen, oldest first, at least one and at most `room` characters;
        None if there is nothing, or no such conversation any more."""
        owner = await self._database.read(lambda c: rows.owner_of(c, row))
        if self.facts is not None and owner is not None:
            await self.facts.expire(Identity.of_key(owner))
        return await self._database.read(lambda c: rows.unseen(c, row, room))

    async def put_board(self, had: Unseen, board: Sequence[rows.Entry], next_entry: int) -> bool:
        """The board after `had`; False if the conversation is gone or another process was first."""
        return await self._database.write(lambda c: rows.put_board(c, had, board, next_entry, self._limits))

    async def behind(self) -> list[int]:
        """Rows whose board has not seen everything, last used first."""
        return await self._database.read(lambda c: rows.behind(c, self._clock(), self._limits))

    # ------------------------------------------------------------ housekeeping

    async def purge(self) -> int:
        """Delete what has expired; how many conversations that were."""
        gone = await self._database.write(lambda c: rows.purge(c, self._clock(), self._limits))
        if gone:
            self._database.untidy = True
        return gone

    def start_purging(self) -> None:
        """Purge now and every ten minutes, until `close`."""
        self._purging = asyncio.create_task(self._purge_on())

    async def stored(self) -> None:
        """Wait until every turn that is being stored is stored."""
        while running := [one.stored for one in self._records if one.stored is not None]:
            await asyncio.wait(running)

    async def close(self) -> None:
        """Finish storing, stop purging."""
        await self.stored()
        if self._purging is not None:
            self._purging.cancel()
            await asyncio.gather(self._purging, return_exceptions=True)

    async def _purge_on(self) -> None:
        while True:
            with suppress(StoreError):
                if gone := await self.purge():
                    log.info("conversation.purged", extra={"conversations": gone})
            await asyncio.sleep(PURGE_EVERY_S)

    async def _void(self, owner: str, ids: Collection[str] | None = None) -> None:
        """No answer on its way may bring back what is being deleted."""
        mine = [
            one
            for one in self._records
            if one.owner.key == owner and (ids is None or one.conversation_id in ids)
        ]
        for one in mine:
            one.void = True
        if storing := [one.stored for one in mine if one.stored is not None]:
            await asyncio.wait(storing)


def with_history(query: Query, history: History) -> Query:
    """The query with the stored conversation where the client sent none of its own.

    The whiteboard comes along where the question sees less than all of the conversation.
    """
    last = history.turns[-1] if history.turns else None
    continues = last is not None and query.prev[-1:] in ((last.asked,), (last.searched,))
    if not query.history_given:
        query = query.with_(
            prev=tuple(turn.asked for turn in history.turns),
            searched=tuple(turn.searched for turn in history.turns),
            asked_back=tuple(_asked_back(turn) for turn in history.turns),
        )
    elif not query.prev:
        # The client says that this is a first question.
        return query
    elif last is not None and continues:
        query = query.with_(asked_back=(*[""] * (len(query.prev) - 1), _asked_back(last)))
    if not query.last_answers and (continues or not query.history_given):
        query = query.with_(last_answers=_last_answers(history.turns))
    cut = history.last_n > len(query.prev)
    return query.with_(whiteboard=told(history.board)) if cut else query


def _asked_back(turn: Turn) -> str:
    """The question back that a turn ended with."""
    return turn.answer.rpartition("\n\n")[2][:MAX_ASKED_BACK_CHARS] if turn.asks else ""


def told(board: Sequence[rows.Entry]) -> tuple[str, ...]:
    """The whiteboard as prompts get it."""
    return tuple(f"{entry.kind}: {entry.text}" for entry in board)


def title_from(question: str) -> str:
    """A conversation's first title: its first question, at most a line of it."""
    line = " ".join(clean(question).split())
    return line if len(line) <= FIRST_TITLE_CHARS else line[: FIRST_TITLE_CHARS - 1].rstrip() + "…"


def checked_title(title: str) -> str:
    """One line, 1 to 200 characters. Raises BadQuery."""
    line = " ".join(clean(title).split())
    if not 0 < len(line) <= MAX_TITLE_CHARS:
        raise BadQuery(f"`title` has 1 to {MAX_TITLE_CHARS} characters", field="title")
    return line


def not_found(conversation_id: str) -> NotFound:
    return NotFound(f"there is no conversation `{conversation_id[:128]}`", field="id")


def _last_answers(turns: Sequence[Turn]) -> tuple[Shown, ...]:
    """What was shown: all of the last answer that showed anything, then the best of those before it."""
    showed = [turn for turn in reversed(turns) if turn.shown]
    answers: list[Shown] = []
    for age, turn in enumerate(showed):
        items = turn.shown if age == 0 else turn.shown[:SHOWN_OF_OLDER]
        answers += [Shown(item.title, item.url, turn.searched) for item in items]
    return tuple(answers)


def _source(source: Mapping[str, object]) -> ShownItem:
    name, url, document_id, site = (str(source.get(k) or "") for k in ("name", "url", "document_id", "site"))
    return ShownItem(name, url, document_id, site)


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else write_json(value)
