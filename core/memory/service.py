"""Decides what is kept at once and what is asked about first; hands facts to the hook, and takes them back.

Consent (contract 6): a caller without an identity, and a sensitive fact from anyone, is kept only once the
person confirms it with the token that the `remember` message carries. What would forget more than the one
fact that was named is confirmed in the same way.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

import orjson

from core.errors import AskError, BadQuery, Forbidden, NotFound
from core.identity import new_visitor
from core.memory.claims import claim, share_a_word
from core.memory.confirmations import CONFIRM_WITHIN_S, Asked, Confirmations
from core.memory.facts import (
    COOKIE_REALM,
    MAX_FACT_CHARS,
    MAX_SOURCE_CHARS,
    Asking,
    Detected,
    Fact,
    Reach,
    Request,
    Stored,
    normal,
)
from core.memory.hook import Erases, Exports, Forgets, MemoryHook, Recalls, fact_from, guarded, place_of
from core.memory.judge import Extractor, Sensitivity
from core.memory.store import Facts
from core.messages import Forgotten, Memories, Remember
from core.query import Identity, Query

T = TypeVar("T")

log = logging.getLogger(__name__)

MAX_LISTED = 100
MAX_FOUND = 1000  # that a search for facts goes through, and of our own beside those of a hook
MAX_NEAR = 5  # that may be meant by words which are not a fact's own
# Learning goes on behind the answers: so many messages wait at most, later ones are left out.
MAX_LEARNING = 32
# Names that counts of erasures have already: a hook of such a name is told apart.
OWN_PARTS = frozenset({"memory", "conversations", "feedback"})


@dataclass(frozen=True, slots=True)
class Confirmed:
    """What a confirmation did, and for whom."""

    identity: Identity
    action: Literal["remember", "forget"]
    text: str
    stored: Stored | None = None
    forgotten: tuple[str, ...] = ()
    erased: Mapping[str, Mapping[str, int]] | None = None  # counts, where everything was to be forgotten
    repeated: bool = False  # it was done before, by the same token


class Memory:
    """Long-term memory as the rest of the product sees it."""

    def __init__(
        self,
        hook: MemoryHook,
        confirmations: Confirmations,
        facts: Facts,
        *,
        expiration_s: float,
        store_scope: str = "user",
        extractor: Extractor | None = None,
        sensitivity: Sensitivity | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`extractor` makes it automatic; `sensitivity` is asked by `weighed`."""
        self.hook = hook
        self._confirmations = confirmations
        self.facts = facts
        self._expiration_s = expiration_s
        self._store_scope = store_scope
        self._extractor = extractor
        self._sensitivity = sensitivity
        self._clock = clock
        self._learning: dict[asyncio.Task[None], str] = {}
        self._keeping: dict[asyncio.Task[Stored | None], str] = {}
        self._spent: dict[str, tuple[float, asyncio.Future[Confirmed]]] = {}
        # Takes out everything of a person; set by who puts the parts together, of which this is one.
        self.erase_all: Callable[[Identity], Awaitable[Mapping[str, Mapping[str, int]]]] | None = None

    @property
    def name(self) -> str:
        """What the hook is called."""
        return self.hook.name

    # ------------------------------------------------------------ in a question

    async def recall(self, query: Query) -> Sequence[Fact]:
        """What is known of the caller. Raises AskError, whatever a hook does: it is somebody else's code."""
        if query.identity is None or not isinstance(self.hook, Recalls):
            return ()
        found = self._sound(await guarded(self.hook, self.hook.recall(query)), Fact, "recall")
        return found if self.owns_hook else self._usable(found, "recall")

    async def recall_for_agent(self, query: Query, asking: Asking) -> list[Fact]:
        """What is known of the person that an agent speaks for: of our own store what `asking` looks for, and
        what a hook beside it recalls for `query`; without that where the hook fails. Raises StoreError."""
        ours = await self.facts.recall(asking)
        if self.owns_hook:
            return ours
        try:
            return _joined([*ours, *await self.recall(query)])
        except AskError as failed:
            log.warning("memory.recall_failed", extra={"hook": self.name, "reason": failed.message})
            return ours

    async def find(
        self, identity: Identity, text: str = "", *, site: str | None = None, limit: int, offset: int = 0
    ) -> tuple[list[Fact], int]:
        """A page of what is kept of a person, here and by the hook: nearest to `text` first, else the newest;
        and how many there are on all pages. Raises AskError."""
        reach = Reach(identity.realm, identity.user, application=site)
        if self.owns_hook:
            return await page_of(self.facts, reach, text, limit=limit, offset=offset)
        ours, _ = await page_of(self.facts, reach, text, limit=MAX_FOUND)
        theirs = await self._theirs(identity, text)
        found = _joined([*ours, *(one for one in theirs if site is None or one.place.application == site)])
        if not text:
            found.sort(key=lambda fact: -fact.created_at)
        return found[offset : offset + limit], len(found)

    async def get(self, identity: Identity, memory_id: str) -> Fact:
        """One fact of a person, kept here or by the hook. Raises NotFound, AskError."""
        try:
            return await self.facts.get(Reach.of(identity), memory_id)
        except NotFound:
            for fact in await self._theirs(identity):
                if fact.memory_id == memory_id:
                    return fact
            raise

    async def _theirs(self, identity: Identity, text: str = "") -> list[Fact]:
        """What a hook beside our store gives back of a person: what it recalls for a text, else all it has.
        Raises AskError."""
        if self.owns_hook:
            return []
        if isinstance(self.hook, Recalls) and (text or not isinstance(self.hook, Exports)):
            asked = Query(
                text=text,
                query_id=secrets.token_urlsafe(12),
                conversation_id="",
                all_sites=True,
                identity=identity,
            )
            return list(await self.recall(asked))
        if isinstance(self.hook, Exports):
            kept = self._usable(await self._exported(self.hook, identity), "export")
            return [one for one in kept if not text or share_a_word(one.text, text)]
        return []

    def _usable(self, given: Sequence[Fact | Mapping[str, Any]], method: str) -> list[Fact]:
        """The facts of a hook beside our store. One that it could not forget has no id that promises that."""
        found = [fact for one in given if (fact := fact_from(one)) is not None]
        if len(found) != len(given):
            log.error("memory.hook_nonsense", extra={"hook": self.name, "method": method})
        return found if isinstance(self.hook, Forgets) else [one.with_(memory_id="") for one in found]

    def _sound(self, given: Any, kind: type[T], method: str) -> list[T]:
        """What of a hook's answer is what it should be."""
        found = [one for one in given if isinstance(one, kind)] if isinstance(given, list | tuple) else None
        if found is None or len(found) != len(given):
            log.error("memory.hook_nonsense", extra={"hook": self.hook.name, "method": method})
        return found or []

    async def handle(self, query: Query, request: Request) -> Remember | Forgotten | Memories:
        """Do what the message asks, or ask the person first. Raises AskError."""
        if request.action == "list":
            return await self._told(query)
        if request.action == "forget":
            return await self._asked_to_forget(query, request)
        return await self.remember(query, request)

    async def remember(self, query: Query, request: Request) -> Remember:
        """Keep the fact, or ask the person first. Of one that they told before there is nothing to agree to,
        and nothing to take back. Raises what the hook raises."""
        detected = self._detected(query, request)
        if query.identity is not None and self.owns_hook and await self.facts.knows(detected):
            return _known(detected)
        if query.identity is None or request.sensitive:
            return Remember(
                item_to_remember=detected.text,
                message=f"Shall I remember this? {detected.text}",
                memory_id=None,
                scope=detected.scope,
                confirm=self._ask(detected, query.identity),
            )
        stored = await self.persist(detected)
        if stored is not None and stored.repeated:
            return _known(detected)
        return Remember(
            item_to_remember=detected.text,
            message=f"I'll remember: {detected.text}"
            if stored
            else f"Sent to {self.hook.name}: {detected.text}",
            memory_id=stored.memory_id if stored else None,
            scope=detected.scope,
        )

    async def weighed(self, query: Query, asked: Sequence[Request]) -> list[Request]:
        """What was found in `query.text` by its words alone, with what the model says of how sensitive it is,
        if there is a model and it answers in time."""
        if self._sensitivity is None:
            return list(asked)
        return await self._sensitivity.weighed(query, asked)

    def learn(self, query: Query) -> None:
        """Where memory is automatic: find out behind the answer what the message tells of its writer. Only
        of a known person, and nothing sensitive: that is kept by consent alone."""
        if self._extractor is None or query.identity is None or not query.remember:
            return
        if len(self._learning) >= MAX_LEARNING:
            log.warning("memory.learning_full", extra={"query_id": query.query_id})
            return
        task = asyncio.create_task(self._learn(self._extractor, query))
        self._learning[task] = query.identity.key
        task.add_done_callback(lambda done: self._learning.pop(done, None))

    async def let_go(self, identity: Identity) -> None:
        """Before somebody is erased: what is being learned of them is dropped, what is being kept is kept
        first, and what they agreed to is forgotten."""
        tasks = [task for task, owner in self._learning.items() if owner == identity.key]
        for task in tasks:
            task.cancel()
        keeping = [task for task, owner in self._keeping.items() if owner == identity.key]
        await asyncio.gather(*tasks, *keeping, return_exceptions=True)
        for digest, (_, done) in list(self._spent.items()):
            if done.done() and done.result().identity == identity:
                del self._spent[digest]

    async def settled(self) -> None:
        """When everything that was being learned has been."""
        while self._learning:
            await asyncio.gather(*self._learning, return_exceptions=True)

    async def _learn(self, extractor: Extractor, query: Query) -> None:
        try:
            for request in await extractor.facts(query, [query.text], query.facts):
                if not request.sensitive:
                    await self.persist(self._detected(query, request))
        except AskError as failed:
            log.warning("memory.not_learned", extra={"query_id": query.query_id, "reason": failed.message})
        except Exception as failed:  # noqa: BLE001 - nobody waits for it: its place is in the log
            log.error("memory.not_learned", extra={"query_id": query.query_id, "reason": place_of(failed)})

    def _detected(self, query: Query, request: Request) -> Detected:
        return Detected(
            text=request.text[:MAX_FACT_CHARS],
            kind=request.kind,
            scope=self._scope_of(query),
            identity=query.identity or Identity(COOKIE_REALM, ""),
            site=",".join(query.sites) if not query.all_sites else "",
            conversation_id=query.conversation_id,
            query_id=query.query_id,
            source_turn=query.text[:MAX_SOURCE_CHARS],
            expires_at=self._clock() + self._expiration_s,
            nonce=secrets.token_urlsafe(12),
            subject=request.subject,
            attribute=request.attribute,
            agent=query.agent,
            asked_at=query.asked_at,
        )

    def _scope_of(self, query: Query) -> str:
        """What a fact is bound to: where there is no such agent or conversation, to its person alone, else
        nobody would find it again."""
        bound_to = {"agent": query.agent, "thread": query.conversation_id}
        return self._store_scope if bound_to.get(self._store_scope, "there") else "user"

    async def _told(self, query: Query) -> Memories:
        if query.identity is None:
            return Memories((), "Nothing is kept about you here.")
        found, total = await self.find(query.identity, limit=MAX_LISTED)
        items = tuple(_shown(fact) for fact in reversed(found))
        told = f"{total} kept about you." if total else "Nothing is kept about you here."
        if self._unread:
            sent = f"What you ask to remember is sent to {self.name}, and cannot be read here."
            told = f"{told} {sent}" if total else sent
        return Memories(items, told)

    @property
    def _unread(self) -> bool:
        """Whether facts go where they cannot be read again."""
        return not isinstance(self.hook, Recalls | Exports)

    async def _asked_to_forget(self, query: Query, request: Request) -> Forgotten:
        identity = query.identity
        if identity is None:
            return Forgotten((), "Nothing is kept about you here.")
        if request.everything:
            asked = {"owner": identity.key, "forget": "all"}
            return Forgotten((), await self._of_everything(identity), confirm=self._confirmations.ask(asked))
        meant, exact = await self._meant(identity, request.text)
        found = [fact for fact in meant if fact.memory_id]
        items = tuple({"memory_id": fact.memory_id, "text": fact.text} for fact in found)
        if not found and (meant or not self._can_take_back):
            return Forgotten(
                (), f"What you ask to remember is sent to {self.name}, and cannot be taken back here."
            )
        if not found:
            return Forgotten((), "I know nothing of the kind about you.")
        # What is only near may be another thing: then the person says whether it is meant.
        if exact and len(found) == 1 and request.certain:
            if not await self._forget_one(identity, [found[0].memory_id]):
                return Forgotten((), "I know nothing of the kind about you.")
            return Forgotten(items, f"Forgotten: {found[0].text}")
        these = {"owner": identity.key, "forget": [fact.memory_id for fact in found]}
        return Forgotten(
            items,
            "Shall I forget this?",
            confirm=self._confirmations.ask(these),
        )

    async def _of_everything(self, identity: Identity) -> str:
        """The question whether everything is to be forgotten, with what it is about."""
        try:
            _, count = await self.find(identity, limit=0)
        except AskError as failed:
            # Who wants to be forgotten is not held up by a hook that is away: the erasure goes on asking it.
            log.warning("memory.not_counted", extra={"hook": self.name, "reason": failed.message})
            count = await self.facts.count(Reach.of(identity))
        told = f"Shall I forget everything about you ({count} facts, with your conversations)?"
        stays = not self.owns_hook and not isinstance(self.hook, Erases)
        return f"{told} What was sent to {self.name} stays there." if stays else told

    @property
    def _can_take_back(self) -> bool:
        """Whether what is kept can be found again by its words, and forgotten."""
        return self.owns_hook or (isinstance(self.hook, Forgets) and not self._unread)

    async def _meant(self, identity: Identity, text: str) -> tuple[list[Fact], bool]:
        """The kept facts that a person means by these words: the one that says so (True), else those near;
        without an id those that cannot be forgotten here."""
        # All they have, where that can be had: what is meant need not be what a search would find.
        theirs = await self._theirs(identity, "" if isinstance(self.hook, Exports) else text)
        kept = [*await self.facts.all(Reach.of(identity)), *theirs]
        said, told = normal(text), claim(text)
        same = [fact for fact in kept if normal(fact.text) == said]
        if not same and told is not None:
            same = [fact for fact in kept if claim(fact.text) == told]
        if same:
            return same[:1], True
        nearest = [*await self.facts.search(Reach.of(identity), text, MAX_NEAR), *theirs]
        return [fact for fact in nearest if share_a_word(fact.text, text)][: 2 * MAX_NEAR], False

    # ------------------------------------------------------------ by the person's own hand

    async def persist(self, detected: Detected) -> Stored | None:
        """Hand a fact to the hook. Raises BadQuery for what was asked before everything of its person was
        erased, AskError, whatever a foreign hook raises."""
        # Our own store sees to it in the transaction that keeps the fact.
        if not self.owns_hook and detected.asked_at is not None:
            await self._confirmations.refuse_outdated(detected.asked_at, detected.identity)
        # Once begun it is finished, whoever leaves; and an erasure waits for it.
        keeping = asyncio.create_task(guarded(self.hook, self.hook.persist(detected)))
        self._keeping[keeping] = detected.identity.key
        keeping.add_done_callback(lambda done: self._keeping.pop(done, None))
        stored = await asyncio.shield(keeping)
        if not self.owns_hook and detected.asked_at is not None:
            await self._not_erased_meanwhile(detected.asked_at, detected.identity)
        if stored is None:
            return None
        if isinstance(stored, Stored) and isinstance(stored.memory_id, str):
            if not self.owns_hook:
                await self.facts.note_told(detected, stored.memory_id)
            return stored
        # It was handed over, but there is nothing by which it could be taken back.
        log.error("memory.hook_nonsense", extra={"hook": self.hook.name, "method": "persist"})
        return None

    async def forget(self, identity: Identity, memory_ids: Sequence[str], *, undo: bool = False) -> list[str]:
        """Forget facts, with what conversations have of them; those that were there. Raises NotFound for a
        single one that is not, AskError."""
        gone = await self.facts.forget(Reach.of(identity), memory_ids, undo=undo)
        elsewhere = [memory_id for memory_id in memory_ids if memory_id not in gone]
        if not self.owns_hook and isinstance(self.hook, Forgets):
            forgets = self.hook.forget
            theirs = [one for one in elsewhere if await guarded(self.hook, forgets(identity, one))]
            await self.facts.take_back(identity, theirs)
            gone += theirs
        if len(memory_ids) == 1 and not gone:
            raise NotFound("there is no such memory")
        return gone

    @property
    def owns_hook(self) -> bool:
        """Whether facts go to the store of our own."""
        return getattr(self.hook, "facts", None) is self.facts

    async def export(self, identity: Identity) -> list[Mapping[str, Any]]:
        """All that is kept of a person, here and by the hook."""
        reach = Reach.of(identity)
        kept, _ = await self.facts.everything(reach)
        ours: list[Mapping[str, Any]] = [fact.told() for fact in kept]
        if isinstance(self.hook, Exports):
            theirs = await self._exported(self.hook, identity)
            return theirs if self.owns_hook else ours + theirs
        return ours

    async def _exported(self, hook: Exports, identity: Identity) -> list[Mapping[str, Any]]:
        given: list[Mapping[str, Any]] = self._sound(
            await guarded(self.hook, hook.export(identity)), dict, "export"
        )
        found = [one for one in given if self.owns_hook or _is_json(one)]
        if len(found) != len(given):
            log.error("memory.hook_nonsense", extra={"hook": self.name, "method": "export"})
        return found

    async def confirm(self, token: str, caller: Identity | None) -> Confirmed:
        """Do what the token holds, for the caller or for a new visitor. A token is good for once: the same
        again only tells what it did (`repeated`), and tells nobody but who did it; it is refused after a
        restart, and once everything of the person was erased.

        Raises BadQuery for a token that is forged, used, outdated or older than ten minutes, Forbidden for
        another caller's.
        """
        asked = self._confirmations.read(token)
        owner = asked.value["owner"]
        if owner is not None and (caller is None or caller.key != owner):
            raise Forbidden("this confirmation belongs to somebody else")
        self._drop_old_tokens()
        if (before := self._spent.get(asked.digest)) is not None:
            done = await asyncio.shield(before[1])
            # A visitor's second click may come before the cookie of the first.
            if done.identity != (caller or _visitor_of(asked)):
                raise Forbidden("this confirmation was used by somebody else")
            if done.erased is None:
                await self._confirmations.refuse_outdated(asked.at, done.identity)
            return replace(done, repeated=True)
        doing = asyncio.ensure_future(self._confirm(asked, caller))
        self._spent[asked.digest] = (self._clock() + CONFIRM_WITHIN_S, doing)
        doing.add_done_callback(lambda done: self._forget_failed(asked.digest, done))
        return await asyncio.shield(doing)

    def _forget_failed(self, digest: str, done: asyncio.Future[Confirmed]) -> None:
        """It was not done: the person may try again."""
        if done.cancelled() or done.exception() is not None:
            self._spent.pop(digest, None)

    def _drop_old_tokens(self) -> None:
        now = self._clock()
        for spent in [spent for spent, (until, _) in self._spent.items() if until < now]:
            del self._spent[spent]

    async def _confirm(self, asked: Asked, caller: Identity | None) -> Confirmed:
        value = dict(asked.value)
        value.pop("owner")
        identity = caller or _visitor_of(asked)
        await self._confirmations.claim(asked, identity)
        try:
            done = await self._agreed(asked, identity, value)
        except AskError:
            await self._confirmations.release(asked)
            raise
        await self._confirmations.done(asked)
        return done

    async def _agreed(self, asked: Asked, identity: Identity, value: dict[str, Any]) -> Confirmed:
        if "forget" in value:
            return await self._confirmed_forgetting(identity, value["forget"])
        value.pop("visitor")
        detected = Detected(identity=identity, asked_at=asked.at, **value)
        return Confirmed(identity, "remember", detected.text, stored=await self.persist(detected))

    async def _not_erased_meanwhile(self, at: float, identity: Identity) -> None:
        """Another server may have erased the person while the fact was on its way: then it goes, too."""
        try:
            await self._confirmations.refuse_outdated(at, identity)
        except BadQuery:
            if self.erase_all is not None:
                await self.erase_all(identity)
            raise

    async def _confirmed_forgetting(self, caller: Identity, what: Any) -> Confirmed:
        if what == "all":
            erased = await self.erase_all(caller) if self.erase_all is not None else {}
            return Confirmed(caller, "forget", "", erased=erased)
        ids = [str(one) for one in what]
        gone = await self.forget(caller, ids) if len(ids) > 1 else await self._forget_one(caller, ids)
        return Confirmed(caller, "forget", "", forgotten=tuple(gone))

    async def _forget_one(self, caller: Identity, ids: list[str]) -> list[str]:
        try:
            return await self.forget(caller, ids)
        except NotFound:
            return []  # the second click

    def _ask(self, detected: Detected, owner: Identity | None) -> str:
        asked = {
            "owner": owner.key if owner else None,
            "visitor": new_visitor(),
            "text": detected.text,
            "kind": detected.kind,
            "scope": detected.scope,
            "site": detected.site,
            "conversation_id": detected.conversation_id,
            "query_id": detected.query_id,
            "source_turn": detected.source_turn,
            "expires_at": detected.expires_at,
            "nonce": detected.nonce,
            "subject": detected.subject,
            "attribute": detected.attribute,
            "agent": detected.agent,
        }
        return self._confirmations.ask(asked)


async def page_of(
    facts: Facts, reach: Reach, text: str = "", *, limit: int, offset: int = 0
) -> tuple[list[Fact], int]:
    """A page of the facts within reach, nearest to `text` first, else the newest; and how many there are on
    all pages. Raises StoreError."""
    if text:
        found = await facts.search(reach, text, MAX_FOUND)
        return found[offset : offset + limit], len(found)
    return await facts.all(reach, limit=limit, offset=offset), await facts.count(reach)


def _joined(found: Sequence[Fact]) -> list[Fact]:
    """Facts of two places, each once: what is said in one of them in other letters is the same."""
    return list({normal(fact.text): fact for fact in reversed(found)}.values())[::-1]


def _shown(fact: Fact) -> dict[str, Any]:
    """What a person is shown of a fact in their list; of one kept elsewhere what is known of it."""
    told = {key: fact.told()[key] for key in ("memory_id", "text", "kind", "scope", "created_at", "site")}
    if fact.identity is not None:
        return told
    del told["scope"]
    if fact.kind == "fact":
        del told["kind"]
    return {key: value for key, value in told.items() if value}


def _is_json(value: object) -> bool:
    """Whether a client can be sent this."""
    try:
        orjson.dumps(value)
    except (TypeError, RecursionError):
        return False
    return True


def _known(detected: Detected) -> Remember:
    """Without an id: to take this back would take out what was told before."""
    return Remember(
        item_to_remember=detected.text,
        message=f"I know that already: {detected.text}",
        memory_id=None,
        scope=detected.scope,
    )


def _visitor_of(asked: Asked) -> Identity:
    """Who a caller without an identity becomes by agreeing. The id is the token's, so that two clicks before
    the cookie is there make one visitor."""
    return Identity(COOKIE_REALM, asked.value["visitor"])


def erasers(memory: Memory) -> list[Erases]:
    """The parts of memory that hold something of a person: our own store, and a hook beside it."""
    parts: list[Erases] = [_FactsEraser(memory)]
    if not memory.owns_hook and isinstance(memory.hook, Erases):
        parts.append(_HookEraser(memory.hook))
    return parts


class _FactsEraser:
    name = "memory"

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    async def erase(self, identity: Identity) -> Mapping[str, int]:
        await self._memory.let_go(identity)
        # Conversations are a part of their own.
        return await self._memory.facts.erase(Reach.of(identity), traces=False)


class _HookEraser:
    """A hook as a part: its name is apart from ours, and its counts are numbers."""

    def __init__(self, hook: Erases) -> None:
        self.name = f"{hook.name} (hook)" if hook.name in OWN_PARTS else hook.name
        self.hook = hook

    async def erase(self, identity: Identity) -> Mapping[str, int]:
        counts = await guarded(self.hook, self.hook.erase(identity))
        if not isinstance(counts, Mapping):
            log.error("memory.hook_nonsense", extra={"hook": self.name, "method": "erase"})
            return {}
        return {str(what): count for what, count in counts.items() if isinstance(count, int)}
