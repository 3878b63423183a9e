"""The rows of conversations: functions of a connection, run by `core.conversation` in a transaction each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from core.database import conversations, insert_missing, messages, seen_messages, turns
from core.prompting.variables import write_json

# A turn is a question and its answer: two messages.
MESSAGES_A_TURN = 2
# A board that is further behind than this (its model was away for long) loses the oldest of what it missed.
MAX_BEHIND = 200
MAX_RESUMED = 1000
# One thing said may be this long in a maintenance prompt; a question may have 8000 characters.
MAX_SAID_CHARS = 8000


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of a conversation is kept, and how long. `hold_unseen`: until its whiteboard has seen it."""

    turns: int
    expiration_s: float
    hold_unseen: bool


@dataclass(frozen=True, slots=True)
class ShownItem:
    title: str
    url: str
    document_id: str
    site: str


@dataclass(frozen=True, slots=True)
class Turn:
    """What was asked, what was searched for it, what was shown and answered. `sites` is empty for all.

    `told` are ids of the remembered facts that it names in the person's own words, `used` of those that the
    model knew when it wrote `searched` and `answer`, be it from turns before.
    """

    n: int
    query_id: str
    asked: str
    searched: str
    shown: tuple[ShownItem, ...]
    answer: str
    sites: tuple[str, ...]
    created_at: float
    told: tuple[str, ...] = ()
    used: tuple[str, ...] = ()
    asks: bool = False  # `answer` is a question back

    def without(self, ids: Collection[str]) -> Turn:
        """The turn without what a model may have written from these facts: as it was asked."""
        kept = tuple(one for one in self.used if one not in ids)
        return replace(self, searched=self.asked, answer="", used=kept)


@dataclass(frozen=True, slots=True)
class Said:
    """A message of an agent's conversation. `n` and `created_at` are given by the store."""

    role: str
    content: str
    name: str = ""
    sites: tuple[str, ...] = ()
    n: int = 0
    created_at: float = 0.0


@dataclass(frozen=True, slots=True)
class Entry:
    """A whiteboard entry: `kind` is requirement, proposal, decision or action; `turn` where it comes from.
    `used`: ids of the remembered facts that it may have words of."""

    id: str
    kind: str
    text: str
    turn: int
    used: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class History:
    """What a question sees of its conversation; `last_n` counts all that was ever said in it, `row` is its
    row id, None where it is not there."""

    turns: tuple[Turn, ...] = ()
    board: tuple[Entry, ...] = ()
    last_n: int = 0
    row: int | None = None


@dataclass(frozen=True, slots=True)
class Overview:
    """A conversation in a list. Times are Unix seconds."""

    id: str
    title: str
    turns: int
    created_at: float
    used_at: float
    expires_at: float


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation with all that is kept of it. `pending`: the board has not seen everything yet."""

    overview: Overview
    turns: tuple[Turn, ...]
    messages: tuple[Said, ...]
    board: tuple[Entry, ...]
    pending: bool


@dataclass(frozen=True, slots=True)
class Unseen:
    """What a board is to be brought up to date with: `said`, in the form of prompts, up to number `upto`.
    `used`: ids of the remembered facts that it may have words of."""

    row: int
    conversation_id: str
    board: tuple[Entry, ...]
    next_entry: int
    seen: int
    upto: int
    said: tuple[dict[str, Any], ...]
    sites: tuple[str, ...]
    used: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Gone:
    """Remembered facts that count no more: their ids, the questions (`query_id`) they were told with, and
    whether a text tells one of them (`told`), or is little else than words of one (`echoed`)."""

    ids: frozenset[str]
    query_ids: frozenset[str]
    told: Callable[[str], bool]
    echoed: Callable[[str], bool]


# ---------------------------------------------------------------- reading


def history(c: Connection, owner: str, conversation_id: str, now: float, limits: Limits) -> History:
    row = find(c, owner, conversation_id, now, limits)
    if row is None:
        return History()
    return History(tuple(newest_turns(c, row.id, limits.turns)), board_of(row), row.last_n, row.id)


def whole(c: Connection, owner: str, conversation_id: str, now: float, limits: Limits) -> Conversation | None:
    row = find(c, owner, conversation_id, now, limits)
    if row is None:
        return None
    kept = newest_turns(c, row.id, limits.turns)
    said = c.execute(
        sa.select(messages)
        .where(messages.c.conversation == row.id)
        .order_by(messages.c.n.desc())
        .limit(limits.turns * MESSAGES_A_TURN)
    ).all()
    return Conversation(
        overview=overview(row, len(kept), limits),
        turns=tuple(kept),
        messages=tuple(said_of(one) for one in reversed(said)),
        board=board_of(row),
        pending=limits.hold_unseen and row.board_seen < row.last_n,
    )


def listed(
    c: Connection,
    owner: str,
    limit: int,
    before: tuple[float, int] | None,
    now: float,
    limits: Limits,
) -> tuple[list[Overview], tuple[float, int] | None]:
    number = (
        sa.select(sa.func.count())
        .where(turns.c.conversation == conversations.c.id)
        .scalar_subquery()
        .label("turns")
    )
    wanted = sa.select(conversations, number).where(
        conversations.c.owner == owner, conversations.c.used_at > now - limits.expiration_s
    )
    if before is not None:
        wanted = wanted.where(sa.tuple_(conversations.c.used_at, conversations.c.id) < before)
    found = c.execute(
        wanted.order_by(conversations.c.used_at.desc(), conversations.c.id.desc()).limit(limit)
    ).all()
    further = (found[-1].used_at, found[-1].id) if len(found) == limit else None
    return [overview(row, min(row.turns, limits.turns), limits) for row in found], further


def unseen(c: Connection, row_id: int, room: int) -> Unseen | None:
    row = c.execute(sa.select(conversations).where(conversations.c.id == row_id)).one_or_none()
    if row is None or row.board_seen >= row.last_n:
        return None
    waiting: list[tuple[int, Row[Any], list[dict[str, Any]]]] = []
    for table, form in ((turns, turn_as_said), (messages, message_as_said)):
        after = sa.select(table).where(table.c.conversation == row_id, table.c.n > row.board_seen)
        waiting += [(one.n, one, form(one)) for one in c.execute(after)]
    waiting.sort(key=lambda one: one[0])
    said: list[dict[str, Any]] = []
    used: set[str] = set()
    sites: tuple[str, ...] = ()
    # Where nothing waits (it was cut long ago) the board is up to date as it is.
    upto = row.last_n
    for at, (n, one, what) in enumerate(waiting):
        room -= len(write_json(what))
        if at and room < 0:
            break
        said += what
        used |= facts_of(one)
        sites, upto = tuple(one.sites) or sites, n
    else:
        upto = row.last_n
    return Unseen(
        row=row_id,
        conversation_id=row.conversation_id,
        board=board_of(row),
        next_entry=row.board_next,
        seen=row.board_seen,
        upto=upto,
        said=tuple(said),
        sites=sites,
        used=frozenset(used | given_to_agents(c, row_id)),
    )


def behind(c: Connection, now: float, limits: Limits) -> list[int]:
    found = c.execute(
        sa.select(conversations.c.id)
        .where(
            conversations.c.board_seen < conversations.c.last_n,
            conversations.c.used_at > now - limits.expiration_s,
        )
        .order_by(conversations.c.used_at.desc())
        .limit(MAX_RESUMED)
    )
    return list(found.scalars())


def owner_of(c: Connection, row_id: int) -> str | None:
    """The key of whose conversation this row is; None if it is gone."""
    owner = c.scalar(sa.select(conversations.c.owner).where(conversations.c.id == row_id))
    return None if owner is None else str(owner)


# ---------------------------------------------------------------- writing


def start(
    c: Connection, owner: str, conversation_id: str, title: str, now: float, limits: Limits
) -> tuple[Overview, bool]:
    new = find(c, owner, conversation_id, now, limits) is None
    open_row(c, owner, conversation_id, now, limits, title)
    row = find(c, owner, conversation_id, now, limits)
    assert row is not None
    return overview(row, len(newest_turns(c, row.id, limits.turns)), limits), new


def add_turn(c: Connection, owner: str, conversation_id: str, turn: Turn, title: str, limits: Limits) -> int:
    """Store the turn under the next number; the conversation's row id."""
    row_id = open_row(c, owner, conversation_id, turn.created_at, limits)
    n = next_number(c, row_id, turn.created_at)
    c.execute(
        turns.insert().values(
            conversation=row_id,
            n=n,
            query_id=turn.query_id,
            asked=turn.asked,
            searched=turn.searched,
            shown=[asdict(item) for item in turn.shown],
            answer=turn.answer,
            sites=list(turn.sites),
            created_at=turn.created_at,
            asks=turn.asks,
            told=list(turn.told),
            used=list(turn.used),
        )
    )
    name_if_nameless(c, row_id, title)
    cut(c, row_id, limits)
    return row_id


def add_messages(
    c: Connection,
    owner: str,
    conversation_id: str,
    said: Sequence[tuple[str | None, Said]],
    title: str,
    now: float,
    limits: Limits,
) -> tuple[int, int]:
    """The conversation's row id, and how many of the messages had not been seen before."""
    row_id = open_row(c, owner, conversation_id, now, limits)
    touch(c, row_id, now)
    new = 0
    for message_id, one in said:
        if message_id is not None and not insert_missing(
            c, seen_messages, conversation=row_id, message_id=message_id
        ):
            continue
        new += 1
        c.execute(
            messages.insert().values(
                conversation=row_id,
                n=next_number(c, row_id, now),
                role=one.role,
                name=one.name,
                content=one.content,
                sites=list(one.sites),
                created_at=now,
            )
        )
    name_if_nameless(c, row_id, title)
    cut(c, row_id, limits)
    return row_id, new


def put_board(c: Connection, had: Unseen, board: Sequence[Entry], next_entry: int, limits: Limits) -> bool:
    put = c.execute(
        conversations.update()
        .where(
            conversations.c.id == had.row,
            conversations.c.board_seen == had.seen,
            conversations.c.board_next == had.next_entry,
        )
        .values(board=[asdict(entry) for entry in board], board_seen=had.upto, board_next=next_entry)
    )
    if put.rowcount:
        cut(c, had.row, limits)
    return bool(put.rowcount)


def note_used(
    c: Connection, owner: str, conversation_id: str, ids: Collection[str], now: float, limits: Limits
) -> None:
    """An agent was given these facts, and the board: what it says from here on may have words of them."""
    row = find(c, owner, conversation_id, now, limits)
    if row is None:
        return
    newest = sa.select(sa.func.max(messages.c.n)).where(messages.c.conversation == row.id)
    known = {one for entry in board_of(row) for one in entry.used} | given_to_agents(c, row.id)
    this = (messages.c.conversation == row.id, messages.c.n == newest.scalar_subquery())
    c.execute(messages.update().where(*this).values(used=sorted(known | set(ids))))


def note_told(c: Connection, owner: str, query_id: str, memory_id: str) -> None:
    """The turn of this question told the fact, as is known only now; later ones may have words of it."""
    of_owner = turns.c.conversation.in_(sa.select(conversations.c.id).where(conversations.c.owner == owner))
    if not query_id:
        return
    asked = c.execute(sa.select(turns).where(of_owner, turns.c.query_id == query_id)).first()
    if asked is None:
        return
    of_row = turns.c.conversation == asked.conversation
    told = sorted({*asked.told, memory_id})
    c.execute(turns.update().where(of_row, turns.c.n == asked.n).values(told=told))
    for later in c.execute(sa.select(turns.c.n, turns.c.used).where(of_row, turns.c.n > asked.n)).all():
        used = sorted({*later.used, memory_id})
        c.execute(turns.update().where(of_row, turns.c.n == later.n).values(used=used))
    this = conversations.c.id == asked.conversation
    board = board_of(c.execute(sa.select(conversations).where(this)).one())
    noted = [
        asdict(replace(entry, used=(*entry.used, memory_id)) if entry.turn >= asked.n else entry)
        for entry in board
    ]
    if noted:
        c.execute(conversations.update().where(this).values(board=noted))


def take_back(c: Connection, owner: str, gone: Gone) -> None:
    """Leave nothing of these facts in what later prompts are made of.

    Turns and messages that tell one go. In turns that a model had a part in while it knew one, the question
    is as it was asked and the answer is dropped; what agents said from then on goes, too. Board entries that
    may have words of one go, and the board looks again at what is left.
    """
    for row in c.execute(sa.select(conversations).where(conversations.c.owner == owner)).all():
        _take_back(c, row, gone)


def _take_back(c: Connection, row: Row[Any], gone: Gone) -> None:
    told: list[Row[Any]] = []
    made: list[int] = []  # numbers of what stays and was made with one of the facts
    of_row = turns.c.conversation == row.id
    for turn in c.execute(sa.select(turns).where(of_row)).all():
        if turn.query_id in gone.query_ids or gone.ids.intersection(turn.told) or gone.told(turn.asked):
            told.append(turn)
        elif gone.ids.intersection(turn.used):
            clean = turn_of(turn).without(gone.ids)
            plain = turns.update().where(of_row, turns.c.n == turn.n)
            c.execute(plain.values(searched=clean.searched, answer=clean.answer, used=list(clean.used)))
            made.append(turn.n)
    c.execute(turns.delete().where(of_row, turns.c.n.in_([turn.n for turn in told])))
    silenced, heard = _silence(c, row.id, gone)
    out = {turn.n for turn in told} | silenced
    board = [
        entry
        for entry in board_of(row)
        if entry.turn not in out and not gone.ids.intersection(entry.used) and not gone.echoed(entry.text)
    ]
    named = any(" ".join(turn.asked.split()).startswith(row.title.rstrip("…")) for turn in told)
    title = "" if named or gone.echoed(row.title) or gone.told(row.title) else row.title
    dropped = len(board) < len(row.board)
    seen = min([row.board_seen, *(n - 1 for n in [*made, *heard])]) if dropped else row.board_seen
    if told or made or silenced or dropped or title != row.title:
        # A new number for the next entry: an upkeep that has read the old state is not written.
        changed = {
            "board": [asdict(entry) for entry in board],
            "board_seen": seen,
            "board_next": row.board_next + 1,
            "title": title,
        }
        c.execute(conversations.update().where(conversations.c.id == row.id).values(**changed))


def _silence(c: Connection, row_id: int, gone: Gone) -> tuple[set[int], list[int]]:
    """Delete the messages that tell one of the facts, and what agents said once they may have known it; the
    numbers of those, and of the messages that stay from there on."""
    of_row = messages.c.conversation == row_id
    knows = False
    out: set[int] = set()
    heard: list[int] = []
    for said in c.execute(sa.select(messages).where(of_row).order_by(messages.c.n)).all():
        agents = said.role == "assistant"
        tells = gone.told(said.content) or (agents and gone.echoed(said.content))
        if tells or (knows and agents):
            out.add(said.n)
        elif knows:
            heard.append(said.n)
        knows = knows or tells or bool(gone.ids.intersection(said.used))
        if gone.ids.intersection(said.used):
            kept = [one for one in said.used if one not in gone.ids]
            c.execute(messages.update().where(of_row, messages.c.n == said.n).values(used=kept))
    c.execute(messages.delete().where(of_row, messages.c.n.in_(out)))
    return out, heard


def rename(c: Connection, owner: str, conversation_id: str, title: str, now: float, limits: Limits) -> bool:
    row = find(c, owner, conversation_id, now, limits)
    if row is not None:
        c.execute(conversations.update().where(conversations.c.id == row.id).values(title=title))
    return row is not None


def delete(c: Connection, owner: str, conversation_id: str | None = None) -> dict[str, int]:
    """One conversation of this owner, or all; how many rows of each kind went."""
    mine = sa.select(conversations.c.id, conversations.c.board).where(conversations.c.owner == owner)
    if conversation_id is not None:
        mine = mine.where(conversations.c.conversation_id == conversation_id)
    found = c.execute(mine).all()
    entries = sum(len(row.board) for row in found)
    return {**delete_rows(c, [row.id for row in found]), "whiteboard_entries": entries}


def purge(c: Connection, now: float, limits: Limits) -> int:
    expired = c.execute(
        sa.select(conversations.c.id).where(conversations.c.used_at <= now - limits.expiration_s)
    ).scalars()
    return delete_rows(c, list(expired))["conversations"]


# ---------------------------------------------------------------- parts


def find(c: Connection, owner: str, conversation_id: str, now: float, limits: Limits) -> Row[Any] | None:
    """The one place where a conversation is found by its id: never without its owner, never expired."""
    return c.execute(
        sa.select(conversations).where(
            conversations.c.owner == owner,
            conversations.c.conversation_id == conversation_id,
            conversations.c.used_at > now - limits.expiration_s,
        )
    ).one_or_none()


def open_row(
    c: Connection, owner: str, conversation_id: str, now: float, limits: Limits, title: str = ""
) -> int:
    """The conversation's row id: made if it is not there, and anew if it has expired."""
    this = (conversations.c.owner == owner, conversations.c.conversation_id == conversation_id)
    expired = sa.select(conversations.c.id).where(*this, conversations.c.used_at <= now - limits.expiration_s)
    delete_rows(c, list(c.execute(expired).scalars()))
    there = c.execute(sa.select(conversations.c.id).where(*this)).scalar()
    if there is not None:
        # An insert that finds the row would still use up an id (PostgreSQL).
        return int(there)
    insert_missing(
        c,
        conversations,
        owner=owner,
        conversation_id=conversation_id,
        title=title,
        last_n=0,
        created_at=now,
        used_at=now,
        board=[],
        board_seen=0,
        board_next=1,
    )
    return int(c.execute(sa.select(conversations.c.id).where(*this)).scalar_one())


def next_number(c: Connection, row_id: int, now: float) -> int:
    """Numbers are given in the transaction that uses them: two answers at once get two."""
    return int(
        c.execute(
            conversations.update()
            .where(conversations.c.id == row_id)
            .values(last_n=conversations.c.last_n + 1, used_at=now)
            .returning(conversations.c.last_n)
        ).scalar_one()
    )


def touch(c: Connection, row_id: int, now: float) -> None:
    c.execute(conversations.update().where(conversations.c.id == row_id).values(used_at=now))


def name_if_nameless(c: Connection, row_id: int, title: str) -> None:
    nameless = (conversations.c.id == row_id, conversations.c.title == "")
    c.execute(conversations.update().where(*nameless).values(title=title))


def cut(c: Connection, row_id: int, limits: Limits) -> None:
    """Delete what is beyond the limit, but for what the whiteboard is still to see."""
    row = c.execute(
        sa.select(conversations.c.last_n, conversations.c.board_seen).where(conversations.c.id == row_id)
    ).one()
    for table, most in ((turns, limits.turns), (messages, limits.turns * MESSAGES_A_TURN)):
        of_row = table.c.conversation == row_id
        oldest = c.execute(
            sa.select(table.c.n).where(of_row).order_by(table.c.n.desc()).offset(most).limit(1)
        ).scalar()
        if oldest is None:
            continue
        if limits.hold_unseen:
            oldest = min(oldest, max(row.board_seen, row.last_n - MAX_BEHIND))
        c.execute(table.delete().where(of_row, table.c.n <= oldest))


def delete_rows(c: Connection, ids: Iterable[int]) -> dict[str, int]:
    gone = {"conversations": 0, "turns": 0, "messages": 0}
    for row_id in ids:
        for table in (turns, messages, seen_messages):
            count = c.execute(table.delete().where(table.c.conversation == row_id)).rowcount
            if table.name in gone:
                gone[table.name] += count
        gone["conversations"] += c.execute(
            conversations.delete().where(conversations.c.id == row_id)
        ).rowcount
    return gone


def newest_turns(c: Connection, row_id: int, most: int) -> list[Turn]:
    """Oldest first."""
    found = c.execute(
        sa.select(turns).where(turns.c.conversation == row_id).order_by(turns.c.n.desc()).limit(most)
    ).all()
    return [turn_of(row) for row in reversed(found)]


def turn_of(row: Row[Any]) -> Turn:
    return Turn(
        n=row.n,
        query_id=row.query_id,
        asked=row.asked,
        searched=row.searched,
        shown=tuple(ShownItem(**item) for item in row.shown),
        answer=row.answer,
        sites=tuple(row.sites),
        created_at=row.created_at,
        told=tuple(row.told),
        used=tuple(row.used),
        asks=row.asks,
    )


def facts_of(row: Row[Any]) -> set[str]:
    """Ids of the remembered facts that a turn, or a message, may have words of."""
    return {*row.used, *getattr(row, "told", ())}


def given_to_agents(c: Connection, row_id: int) -> set[str]:
    """Ids of the facts that agents were given in this conversation."""
    used = c.execute(sa.select(messages.c.used).where(messages.c.conversation == row_id)).scalars()
    return {one for ids in used for one in ids}


def said_of(row: Row[Any]) -> Said:
    return Said(row.role, row.content, row.name, tuple(row.sites), row.n, row.created_at)


def overview(row: Row[Any], kept: int, limits: Limits) -> Overview:
    return Overview(
        id=row.conversation_id,
        title=row.title,
        turns=kept,
        created_at=row.created_at,
        used_at=row.used_at,
        expires_at=row.used_at + limits.expiration_s,
    )


def board_of(row: Row[Any]) -> tuple[Entry, ...]:
    return tuple(Entry(**{**entry, "used": tuple(entry.get("used", ()))}) for entry in row.board)


def for_owner(one: Turn | Entry) -> dict[str, Any]:
    """A turn or an entry as its owner sees it: which facts it was made with is for `take_back` alone."""
    return {name: value for name, value in asdict(one).items() if name not in ("told", "used")}


def turn_as_said(row: Row[Any]) -> list[dict[str, Any]]:
    """A turn as two messages of a maintenance prompt."""
    asked: dict[str, Any] = {"turn": row.n, "role": "user", "content": row.asked[:MAX_SAID_CHARS]}
    if row.searched != row.asked:
        asked["searched"] = row.searched
    answered: dict[str, Any] = {"turn": row.n, "role": "assistant", "content": row.answer[:MAX_SAID_CHARS]}
    if row.shown:
        answered["shown"] = [item["title"] for item in row.shown]
    return [asked, answered]


def message_as_said(row: Row[Any]) -> list[dict[str, Any]]:
    said = {"turn": row.n, "role": row.role, "content": row.content[:MAX_SAID_CHARS]}
    return [{**said, "name": row.name} if row.name else said]
