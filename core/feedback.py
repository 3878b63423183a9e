"""What people say of an answer or of an item in it: kept, changed, withdrawn, erased.

Feedback is taken only on what this process answered to the same caller within the last hour, so nobody can
fill the store with judgements on answers that never were. Which answers those are is known in memory alone.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from core.database import PERSONAL, Database, metadata
from core.errors import BadQuery, Forbidden, NotFound, TooMany
from core.identity import COOKIE_REALM
from core.messages import CompareItems, GeneratedAnswer, ItemDetails, Message, Results
from core.prompting.variables import clean
from core.query import Identity, Query

Rating = Literal["up", "down"]

MAX_ANSWERS = 20_000
KEEP_S = 3600.0
# How often what is said of one answer may change: people change their minds, programs loop.
MAX_CHANGES = 100
MAX_COMMENT_CHARS = 2000
MAX_REASONS = 10
MAX_REASON_CHARS = 100

feedback = sa.Table(
    "feedback",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("query_id", sa.Text, nullable=False),
    # Who gave it, as the server tells its callers apart; `owner` is the identity's key, "" for nobody known.
    sa.Column("caller", sa.Text, nullable=False),
    sa.Column("owner", sa.Text, nullable=False, index=True),
    # Both empty where the whole answer is meant.
    sa.Column("site", sa.Text, nullable=False),
    sa.Column("document_id", sa.Text, nullable=False),
    sa.Column("rating", sa.Text, nullable=False),
    sa.Column("reasons", sa.JSON, nullable=False),
    sa.Column("comment", sa.Text, nullable=False),
    sa.Column("question", sa.Text, nullable=False),
    sa.Column("sites", sa.JSON, nullable=False),
    sa.Column("created_at", sa.Float, nullable=False),
    sa.UniqueConstraint("query_id", "caller", "site", "document_id"),
    info=PERSONAL,
)


@dataclass(slots=True)
class Answered:
    """An answer that was given: what it was to, and the items (site, document id) it showed."""

    query: Query
    until: float
    shown: set[tuple[str, str]] = field(default_factory=set)
    changes: int = 0

    def see(self, message: Message) -> None:
        """Take note of the items in a message of the answer."""
        if isinstance(message, Results):
            self.shown.update((item.site, item.document_id) for item in message.items)
        elif isinstance(message, ItemDetails):
            self.shown.add((message.site, message.document_id))
        elif isinstance(message, CompareItems):
            self.shown.update((one.site, one.document_id) for one in (message.item1, message.item2))
        elif isinstance(message, GeneratedAnswer):
            self.shown.update((str(i["site"]), str(i["document_id"])) for i in message.items)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What somebody says. `document_id` empty: of the whole answer. `rating` None: it is withdrawn."""

    query_id: str
    document_id: str
    site: str
    rating: Rating | None
    reasons: tuple[str, ...] = ()
    comment: str = ""


@dataclass(frozen=True, slots=True)
class Given:
    """Stored feedback, as an operator reads it. `question` is empty where the asker wanted nothing kept."""

    id: int
    query_id: str
    site: str
    document_id: str
    rating: Rating
    reasons: list[str]
    comment: str
    question: str
    sites: list[str]
    created_at: float


class Feedback:
    """`caller` is one text for the same caller at each request; `anonymous` that of all who are not known."""

    def __init__(self, database: Database, *, anonymous: str, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._anonymous = anonymous
        self._clock = clock
        self._answers: OrderedDict[tuple[str, str], Answered] = OrderedDict()

    def begin(self, caller: str, query: Query) -> Answered:
        """An answer begins; its messages are to be shown to what is returned."""
        now = self._clock()
        while self._answers and (
            len(self._answers) >= MAX_ANSWERS or next(iter(self._answers.values())).until < now
        ):
            self._answers.popitem(last=False)
        key = (caller, query.query_id)
        self._answers.pop(key, None)
        answered = self._answers[key] = Answered(query, now + KEEP_S)
        return answered

    async def give(self, caller: str, identity: Identity | None, said: Judgement) -> None:
        """Keep what is said in place of what the same caller said of the same before, or withdraw that.

        Callers that nobody knows are told apart by the ids of their answers alone: where the client chose the
        id, which another may choose or guess, what was said first stays.

        Raises NotFound for an answer that was not given to the caller lately or showed no such item,
        Forbidden for a change that may be another's, BadQuery for an item that several sites have, TooMany,
        StoreError.
        """
        answered = self._answered(caller, identity, said.query_id)
        site = _site_of(answered, said) if said.document_id else ""
        if answered.changes >= MAX_CHANGES:
            raise TooMany("enough was said of this answer")
        answered.changes += 1
        of_this = {"query_id": said.query_id, "caller": caller, "site": site, "document_id": said.document_id}
        row = {
            **of_this,
            "owner": identity.key if identity else "",
            "rating": said.rating,
            "reasons": list(said.reasons),
            "comment": clean(said.comment),
            "question": clean(answered.query.text) if answered.query.remember else "",
            "sites": [] if answered.query.all_sites else list(answered.query.sites),
            "created_at": self._clock(),
        }

        final = caller == self._anonymous and answered.query.query_id_given

        def work(c: Connection) -> None:
            if c.execute(sa.delete(feedback).filter_by(**of_this)).rowcount and final:
                raise Forbidden("this was judged already; without a `query_id` of your own it can be changed")
            if said.rating is not None:
                c.execute(sa.insert(feedback).values(**row))

        await self._database.write(work)
        self._database.untidy = self._database.untidy or said.rating is None

    async def listed(self, *, before: int | None, limit: int) -> list[Given]:
        """What was said, the latest first, from behind the id `before`; for operators."""
        columns = [feedback.c[name] for name in Given.__dataclass_fields__]
        query = sa.select(*columns).order_by(feedback.c.id.desc()).limit(limit)
        if before is not None:
            query = query.where(feedback.c.id < before)
        return await self._database.read(lambda c: [Given(*row) for row in c.execute(query)])

    async def erase(self, identity: Identity) -> int:
        """Delete all that this person said; how much it was."""
        for key in [key for key, one in self._answers.items() if one.query.identity == identity]:
            del self._answers[key]
        query = sa.delete(feedback).where(feedback.c.owner == identity.key)
        return await self._database.write(lambda c: c.execute(query).rowcount)

    def _answered(self, caller: str, identity: Identity | None, query_id: str) -> Answered:
        found = self._current(caller, query_id)
        # A visitor who got the cookie since is no longer anonymous: an id of our own shows that it is they.
        if found is None and identity is not None and identity.realm == COOKIE_REALM:
            before = self._current(self._anonymous, query_id)
            found = before if before is not None and not before.query.query_id_given else None
        if found is not None:
            return found
        raise NotFound("no answer of the last hour has this `query_id`", field="query_id")

    def _current(self, caller: str, query_id: str) -> Answered | None:
        found = self._answers.get((caller, query_id))
        return found if found is not None and found.until >= self._clock() else None


def _site_of(answered: Answered, said: Judgement) -> str:
    sites = sorted(
        site
        for site, document_id in answered.shown
        if document_id == said.document_id and said.site in ("", site)
    )
    if not sites:
        raise NotFound("the answer showed no such item", field="document_id")
    if len(sites) > 1:
        raise BadQuery(f"several sites have this item: name one as `site`: {', '.join(sites)}", field="site")
    return sites[0]
