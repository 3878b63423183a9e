"""Long-term memory: what a person asks to remember goes to a hook, and comes back with later questions.

Consent (contract 6): a caller without an identity, and a sensitive fact from anyone, is kept only once the
person confirms it with the token that the `remember` message carries.
"""

from __future__ import annotations

import logging
import secrets
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any, Protocol, runtime_checkable

from core.errors import AskError, BadQuery, ConfigError, Forbidden
from core.identity import Signer, new_visitor
from core.language import detect
from core.messages import Remember
from core.providers.base import Point, VectorStore, Where
from core.query import Identity, Query
from core.retrieval import Retriever

log = logging.getLogger(__name__)

COLLECTION = "memories"
KEYWORDS = ("identity", "memory_id", "scope", "site")
ENTRY_POINTS = "askable.memory_hooks"
CONFIRM_WITHIN_S = 600
MAX_FACT_CHARS = 1000
# As many of the newest facts as go into prompts; a person rarely has more, and prompts must stay small.
MAX_RECALLED = 20
COOKIE_REALM = "cookie"
_PURPOSE = "memory-confirm"
_MEMORIES = uuid.UUID("0d8c6ce4-9f0e-5e0b-8a0c-6f7a2f0a9b11")


@dataclass(frozen=True, slots=True)
class Detected:
    """A fact that a person asked to remember, as a hook gets it. Times are Unix seconds."""

    text: str
    kind: str
    scope: str
    identity: Identity
    site: str
    conversation_id: str
    query_id: str
    source_turn: str
    expires_at: float | None
    nonce: str


@dataclass(frozen=True, slots=True)
class Stored:
    """What a hook kept."""

    memory_id: str
    text: str
    superseded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Fact:
    """A remembered fact."""

    memory_id: str
    text: str


@dataclass(frozen=True, slots=True)
class Request:
    """What the memory step found in a question: a fact to remember, and whether it is a sensitive one."""

    text: str
    kind: str = "fact"
    sensitive: bool = False


class MemoryHook(Protocol):
    """Where detected facts go. Own ones: a class without arguments, in `askable.memory_hooks`."""

    name: str

    async def persist(self, detected: Detected) -> Stored | None:
        """Keep the fact; None if it keeps no id (then there is nothing to undo). The same `nonce` twice is
        one fact."""
        ...


@runtime_checkable
class Recalls(Protocol):
    """A hook that gives facts back."""

    async def recall(self, query: Query) -> Sequence[Fact]:
        """What is known of `query.identity` (never None here)."""
        ...


class StoreMemory:
    """The default hook: facts as points in the vector store, found by their owner's identity alone."""

    name = "askable"

    def __init__(
        self, store: VectorStore, retriever: Retriever, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._store = store
        self._retriever = retriever
        self._clock = clock

    async def persist(self, detected: Detected) -> Stored | None:
        owner = detected.identity.key
        for hit in await self._facts_of(owner):
            if _same(str(hit["text"]), detected.text):
                return Stored(str(hit["memory_id"]), str(hit["text"]))
        memory_id = str(uuid.uuid5(_MEMORIES, f"{owner}\n{detected.nonce}"))
        (vectors,) = await self._retriever.vectors([detected.text], [detect(detected.text)])
        payload = {
            "identity": owner,
            "memory_id": memory_id,
            "text": detected.text,
            "kind": detected.kind,
            "scope": detected.scope,
            "site": detected.site,
            "conversation_id": detected.conversation_id,
            "query_id": detected.query_id,
            "source_turn": detected.source_turn,
            "created_at": self._clock(),
            "expires_at": detected.expires_at,
        }
        await self._store.upsert(COLLECTION, [Point(memory_id, vectors, payload)])
        return Stored(memory_id, detected.text)

    async def recall(self, query: Query) -> Sequence[Fact]:
        """The newest facts of who asks, oldest first."""
        facts = await self._facts_of(query.identity.key) if query.identity else []
        newest = sorted(facts, key=lambda fact: float(fact["created_at"]))[-MAX_RECALLED:]
        return [Fact(str(fact["memory_id"]), str(fact["text"])) for fact in newest]

    async def _facts_of(self, owner: str) -> list[Mapping[str, Any]]:
        now = self._clock()
        facts: list[Mapping[str, Any]] = []
        offset: str | None = None
        while True:
            hits, offset = await self._store.scroll(
                COLLECTION, Where(must={"identity": owner}), offset=offset
            )
            facts += [hit.payload for hit in hits if (hit.payload.get("expires_at") or float("inf")) > now]
            if offset is None:
                return facts


class Memory:
    """Decides what is kept at once and what is asked about first; hands both to the hook."""

    def __init__(
        self,
        hook: MemoryHook,
        signer: Signer,
        *,
        expiration_s: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._hook = hook
        self._signer = signer
        self._expiration_s = expiration_s
        self._clock = clock

    async def recall(self, query: Query) -> Sequence[Fact]:
        """What is known of the caller. A memory that fails is logged and never stops an answer."""
        if query.identity is None or not isinstance(self._hook, Recalls):
            return ()
        try:
            return await self._hook.recall(query)
        except AskError as failed:
            log.warning("memory.recall_failed", extra={"reason": failed.message})
            return ()

    async def remember(self, query: Query, request: Request) -> Remember:
        """Keep the fact, or ask the person first. Raises what the hook raises."""
        detected = Detected(
            text=request.text[:MAX_FACT_CHARS],
            kind=request.kind,
            scope="user",
            identity=query.identity or Identity(COOKIE_REALM, ""),
            site=",".join(query.sites) if not query.all_sites else "",
            conversation_id=query.conversation_id,
            query_id=query.query_id,
            source_turn=query.text,
            expires_at=self._clock() + self._expiration_s,
            nonce=secrets.token_urlsafe(12),
        )
        if query.identity is None or request.sensitive:
            return Remember(
                item_to_remember=detected.text,
                message=f"Shall I remember this? {detected.text}",
                memory_id=None,
                scope=detected.scope,
                confirm=self._ask(detected, query.identity),
            )
        stored = await self._hook.persist(detected)
        return Remember(
            item_to_remember=detected.text,
            message=f"I'll remember: {detected.text}"
            if stored
            else f"Sent to {self._hook.name}: {detected.text}",
            memory_id=stored.memory_id if stored else None,
            scope=detected.scope,
        )

    async def confirm(self, token: str, caller: Identity | None) -> tuple[Identity, Detected, Stored | None]:
        """Keep what the token holds, for the caller or for a new visitor. Confirming twice keeps one fact.

        Raises BadQuery for a token that is forged or older than ten minutes, Forbidden for another caller's.
        """
        asked = self._signer.verify(_PURPOSE, token)
        if asked is None:
            raise BadQuery(
                "this confirmation is not valid or older than ten minutes: ask again", field="token"
            )
        owner = asked.pop("owner")
        if owner is not None and (caller is None or caller.key != owner):
            raise Forbidden("this confirmation belongs to somebody else")
        # The visitor's id is the token's, so that two clicks before the cookie is there make one visitor.
        identity = caller or Identity(COOKIE_REALM, asked["visitor"])
        asked.pop("visitor")
        detected = Detected(identity=identity, **asked)
        return identity, detected, await self._hook.persist(detected)

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
            "source_turn": detected.source_turn[:MAX_FACT_CHARS],
            "expires_at": detected.expires_at,
            "nonce": detected.nonce,
        }
        return self._signer.sign(_PURPOSE, asked, ttl_s=CONFIRM_WITHIN_S)


def load_hook(name: str, default: MemoryHook) -> MemoryHook:
    """The hook of this name: `default`, or one that an installed package offers. Raises ConfigError."""
    if name == "default":
        return default
    for entry in entry_points(group=ENTRY_POINTS):
        if entry.name == name:
            hook: MemoryHook = entry.load()()
            return hook
    offered = ", ".join(sorted(entry.name for entry in entry_points(group=ENTRY_POINTS))) or "none"
    raise ConfigError(f"`memory.hook`: no installed package offers `{name}` (offered: default, {offered})")


def _same(one: str, other: str) -> bool:
    return " ".join(one.casefold().split()).rstrip(".!") == " ".join(other.casefold().split()).rstrip(".!")
