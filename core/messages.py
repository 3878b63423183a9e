"""Everything a client can receive from a question, as frozen values; the wire dialects render them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

RankingType = Literal["FAST_TRACK", "REGULAR_TRACK", "PROVISIONAL", "RETRIEVAL"]
NoResultsReason = Literal["site_empty", "below_min_score", "filters", "retrieval_failed"]


@dataclass(frozen=True, slots=True)
class Started:
    """First of every answer."""

    type: ClassVar[str] = "api_version"
    api_version: str
    llm: str


@dataclass(frozen=True, slots=True)
class Header:
    """One per configured header (`license`, `data_retention`, ...): the name is the message type."""

    type: ClassVar[str] = "header"
    name: str
    content: str


@dataclass(frozen=True, slots=True)
class AskingSites:
    type: ClassVar[str] = "asking_sites"
    message: str
    sites: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Decontextualized:
    type: ClassVar[str] = "decontextualized_query"
    decontextualized_query: str
    original_query: str


@dataclass(frozen=True, slots=True)
class Remember:
    """`memory_id` is None and `confirm` a token where the person has to agree first."""

    type: ClassVar[str] = "remember"
    item_to_remember: str
    message: str
    memory_id: str | None
    scope: str
    confirm: str | None = None


@dataclass(frozen=True, slots=True)
class Item:
    """A stored item as shown. `schema_object` is the item's schema.org object as it was loaded."""

    url: str
    name: str
    site: str
    score: float | None
    description: str
    schema_object: Any
    ranking_type: RankingType
    document_id: str
    citations: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Results:
    type: ClassVar[str] = "result_batch"
    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class UsedMemories:
    """Long-term facts that this answer was made with, shown to the person they are of."""

    type: ClassVar[str] = "used_memories"
    items: tuple[dict[str, str], ...]


@dataclass(frozen=True, slots=True)
class NoResults:
    type: ClassVar[str] = "no_results"
    message: str
    reason: NoResultsReason


@dataclass(frozen=True, slots=True)
class Failure:
    """Something failed; what was had stays. Never the last message: `Complete` is."""

    type: ClassVar[str] = "error"
    code: str
    message: str
    retryable: bool


@dataclass(frozen=True, slots=True)
class Complete:
    """Always the last. `order` are the final items' document ids, best first."""

    type: ClassVar[str] = "complete"
    order: tuple[str, ...]
    degraded: bool = False
    timings: dict[str, float] = field(default_factory=dict)
    usage: dict[str, int] = field(default_factory=dict)


Message = (
    Started
    | Header
    | AskingSites
    | Decontextualized
    | Remember
    | Results
    | UsedMemories
    | NoResults
    | Failure
    | Complete
)
