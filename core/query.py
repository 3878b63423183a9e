"""What was asked, by whom, in which conversation: frozen values that steps read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

Mode = Literal["list", "summarize", "generate"]

MAX_QUERY_CHARS = 8000


@dataclass(frozen=True, slots=True)
class Identity:
    """Who is asking: `realm` is a key's name, an issuer, or "cookie"; ids of two realms never meet."""

    realm: str
    user: str

    @property
    def key(self) -> str:
        """One string for stores and filters; injective, as the realm's length stands in front."""
        return f"{len(self.realm)}:{self.realm}:{self.user}"

    @classmethod
    def of_key(cls, key: str) -> Identity:
        """The identity that has this `key`."""
        size, rest = key.split(":", 1)
        return cls(rest[: int(size)], rest[int(size) + 1 :])


@dataclass(frozen=True, slots=True)
class Shown:
    """An item that an earlier answer showed (`last_ans`); `question` is what that answer was to, if known."""

    title: str
    url: str
    question: str = ""


@dataclass(frozen=True, slots=True)
class Query:
    """A question as the pipeline takes it. `sites` are the sites searched, already checked and readable."""

    text: str
    query_id: str
    conversation_id: str
    sites: tuple[str, ...] = ()
    all_sites: bool = False
    prev: tuple[str, ...] = ()
    history_given: bool = False  # the client sent `prev`, be it an empty one: then no stored turn is used
    searched: tuple[str, ...] = ()  # what each of `prev` was searched as, where that is known
    asked_back: tuple[str, ...] = ()  # what each of `prev` was asked back, "" for nothing, where known
    last_answers: tuple[Shown, ...] = ()
    decontextualized_query: str | None = None
    context_url: str = ""
    context_text: str = ""
    memory: tuple[str, ...] = ()
    mode: Mode = "list"
    num_results: int = 50
    max_results: int = 10
    min_score: int | None = None  # None: the client named none, the setting holds
    start_num: int = 0
    item_type: str | None = None
    tool: str | None = None  # the tool the client insists on
    tags: tuple[Mapping[str, tuple[str, ...]], ...] = ()  # any object; all its names; any value
    near: tuple[float, float] | None = None  # where the asker is: latitude, longitude
    provisional: bool = False
    remember: bool = True
    debug: bool = False  # only ever True for an operator
    language: str = ""
    identity: Identity | None = None
    query_id_given: bool = False  # the client chose the id: somebody else may choose, or guess, the same
    asked_at: float | None = None  # when it came (Unix seconds), filled in by the pipeline
    agent: str = ""  # the agent that asks for the person, where one was named
    whiteboard: tuple[str, ...] = ()  # what the conversation's whiteboard says, filled in by the pipeline
    facts: tuple[str, ...] = field(default=())  # recalled long-term facts, filled in by the pipeline

    def with_(self, **changes: Any) -> Query:
        """A copy with these fields changed."""
        return replace(self, **changes)
