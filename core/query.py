"""What was asked, by whom, in which conversation: frozen values that steps read."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

Mode = Literal["list", "summarize", "generate"]
Dialect = Literal["legacy", "legacy-2026", "structured"]

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


@dataclass(frozen=True, slots=True)
class Shown:
    """An item that an earlier answer showed (`last_ans`)."""

    title: str
    url: str


@dataclass(frozen=True, slots=True)
class Query:
    """A question as the pipeline takes it. `sites` are the sites searched, already checked and readable."""

    text: str
    query_id: str
    conversation_id: str
    sites: tuple[str, ...] = ()
    all_sites: bool = False
    prev: tuple[str, ...] = ()
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
    provisional: bool = False
    remember: bool = True
    language: str = ""
    identity: Identity | None = None
    facts: tuple[str, ...] = field(default=())  # recalled long-term facts, filled in by the pipeline

    def with_(self, **changes: Any) -> Query:
        """A copy with these fields changed."""
        return replace(self, **changes)
