"""What long-term memory is made of: facts, where they belong, and what is done with them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from core.errors import BadQuery
from core.language import folded
from core.query import Identity

Kind = Literal["preference", "constraint", "fact"]
ScopeName = Literal["application", "agent", "thread", "user"]
Status = Literal["active", "superseded", "deleted"]
Action = Literal["remember", "forget", "list"]

KINDS: tuple[Kind, ...] = get_args(Kind)
SCOPES: tuple[ScopeName, ...] = get_args(ScopeName)
MAX_FACT_CHARS = 1000
# What the store takes in any case: a message that a program has it keep as it is, and no sentence of ours.
MAX_KEPT_CHARS = 20_000
MAX_SOURCE_CHARS = 1000
COOKIE_REALM = "cookie"

_LOOSE = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a fact was told: the site (or app), the agent, the conversation. "" where there is none."""

    application: str = ""
    agent: str = ""
    thread: str = ""

    def of(self, scope: ScopeName) -> str:
        """What a fact of this scope is bound to; a person's own facts are bound to nothing else."""
        return "" if scope == "user" else str(getattr(self, scope))


@dataclass(frozen=True, slots=True)
class Reach:
    """Whose facts a read or a change may touch. Every method of the store takes one: there is no way past it.

    `user` None is a program that looks at all its users' facts of one application, agent or thread. Ids that
    are None are not asked for; those that are given must all match (Mem0's rule).
    """

    realm: str
    user: str | None
    application: str | None = None
    agent: str | None = None
    thread: str | None = None
    whole: bool = False  # said so: every fact of the realm

    def __post_init__(self) -> None:
        ids = (self.user, self.application, self.agent, self.thread)
        if not self.realm or (all(one is None for one in ids) and not self.whole):
            raise ValueError("a reach names whose facts it is about")
        # A person without an id would be everybody whose id got lost on the way.
        if self.user == "" and not any((self.application, self.agent, self.thread)):
            raise ValueError("a reach without a user names an application, an agent or a thread")

    @classmethod
    def of(cls, identity: Identity) -> Reach:
        """All facts of one person. Raises ValueError for an identity without an id."""
        return cls(identity.realm, identity.user)


@dataclass(frozen=True, slots=True)
class Detected:
    """A fact that a person asked to remember, as a hook gets it. Times are Unix seconds.

    The same `nonce` twice is one fact. `asked_at`: when it was asked for; if everything of the person was
    erased since, it is not kept.
    """

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
    subject: str = ""
    attribute: str = ""
    agent: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    asked_at: float | None = None

    @property
    def place(self) -> Place:
        return Place(self.site, self.agent, self.conversation_id)


@dataclass(frozen=True, slots=True)
class Stored:
    """What a hook kept; `superseded` are the ids of the older facts that it stands for now."""

    memory_id: str
    text: str
    superseded: tuple[str, ...] = ()
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class Fact:
    """A remembered fact. `score` (0..1) is there where it was searched for."""

    memory_id: str
    text: str
    kind: str = "fact"
    scope: str = "user"
    subject: str = ""
    attribute: str = ""
    status: str = "active"
    superseded_by: str | None = None
    identity: Identity | None = None
    place: Place = Place()
    source_turn: str = ""
    query_id: str = ""
    created_at: float = 0.0
    updated_at: float = 0.0
    expires_at: float | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    score: float | None = None

    def with_(self, **changes: Any) -> Fact:
        """A copy with these fields changed."""
        return replace(self, **changes)

    def told(self) -> dict[str, Any]:
        """The fact as its owner is shown it."""
        body = {
            "memory_id": self.memory_id or None,  # a hook's that it cannot forget has none
            "text": self.text,
            "kind": self.kind,
            "scope": self.scope,
            "status": self.status,
            "subject": self.subject,
            "attribute": self.attribute,
            "superseded_by": self.superseded_by,
            "site": self.place.application,
            "agent": self.place.agent,
            "conversation_id": self.place.thread,
            "source_turn": self.source_turn,
            "created_at": self.created_at,
            "updated_at": self.updated_at,
            "expires_at": self.expires_at,
            "metadata": dict(self.metadata),
        }
        if self.score is not None:
            body["score"] = round(self.score, 4)
        return body


@dataclass(frozen=True, slots=True)
class Change:
    """One step in a fact's history. Texts of a fact that was forgotten are gone (None)."""

    memory_id: str
    event: str
    old_text: str | None
    new_text: str | None
    at: float


@dataclass(frozen=True, slots=True)
class Request:
    """What the memory step found in a message: something to remember or forget, or the wish to see it all."""

    text: str
    kind: str = "fact"
    sensitive: bool = False
    action: Action = "remember"
    subject: str = ""
    attribute: str = ""
    everything: bool = False  # "forget everything about me"
    certain: bool = True  # the message says so in as many words; else it is the model's reading


def normal(text: str) -> str:
    """A text without what makes no difference: case, accents, punctuation, spaces."""
    return _LOOSE.sub(" ", folded(text)).strip()


def digest(text: str) -> str:
    """A key that two texts share if they are the same but for what makes no difference."""
    return hashlib.sha256(normal(text).encode()).hexdigest()[:32]


def outdated(field_name: str | None = None) -> BadQuery:
    """The error for what was asked for before its person was erased, and would bring something back."""
    return BadQuery(
        "this was asked before everything about you was erased: it is not done any more", field=field_name
    )


def checked_text(text: Any, field_name: str = "text", *, most: int = MAX_FACT_CHARS) -> str:
    """The text of a fact in one line. Raises BadQuery for none, or one longer than `most` characters."""
    if not isinstance(text, str) or not normal(text):
        raise BadQuery(f"`{field_name}` is needed: the fact, in words", field=field_name)
    line = " ".join(text.replace("\x00", " ").split())
    if len(line) > most:
        raise BadQuery(f"a fact may have {most} characters, not {len(line)}", field=field_name)
    return line


@dataclass(frozen=True, slots=True)
class Asking:
    """Who looks for facts, where, and for what: the scopes looked in, and what they are bound to there."""

    identity: Identity
    text: str
    scopes: tuple[str, ...]
    applications: tuple[str, ...] = ()
    thread: str = ""
    agent: str = ""

    def may_use(self, fact: Fact) -> bool:
        """Whether a fact's scope is looked in, and this is its place."""
        if fact.scope not in self.scopes:
            return False
        if fact.scope == "application":
            return not fact.place.application or bool(
                set(fact.place.application.split(",")) & set(self.applications)
            )
        if fact.scope == "agent":
            return bool(self.agent) and fact.place.agent == self.agent
        if fact.scope == "thread":
            return bool(self.thread) and fact.place.thread == self.thread
        return True
