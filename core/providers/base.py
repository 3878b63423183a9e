"""What the product needs of the outside world, as small protocols; a file per vendor implements them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from core.deadline import Deadline

Tier = Literal["high", "low"]


# ---------------------------------------------------------------- language model


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One filled prompt. `schema` is the JSON schema of the reply (an object, or an array of objects for
    batches); `None` asks for plain text. `site` is whose slot it takes in the fair queue."""

    prompt: str
    system: str = ""
    schema: Mapping[str, Any] | None = None
    schema_name: str = "reply"
    tier: Tier = "low"
    site: str = ""
    temperature: float = 0.0
    max_tokens: int | None = None
    timeout_s: float | None = None  # None: the setting's
    deadline: Deadline | None = None  # the answer's; the call ends by then, whatever else it may take
    # So many retries at least, whatever the setting says. Where the reply had begun, its reader makes them.
    retries: int = 0
    # Read by a person while it is written: may take longer than its limit as long as it keeps coming.
    written: bool = False
    source: str = ""  # file and line of the prompt, for the operator


@dataclass(slots=True)
class Usage:
    """Tokens and calls, summed over one question. `cached_tokens` are those of the prompts that the endpoint
    had cached, None where it does not tell; `model` is the one that was asked last."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int | None = None
    model: str = ""

    def add(self, other: Usage) -> None:
        self.calls += other.calls
        self.prompt_tokens += other.prompt_tokens
        self.completion_tokens += other.completion_tokens
        if other.cached_tokens is not None:
            self.cached_tokens = (self.cached_tokens or 0) + other.cached_tokens
        self.model = other.model or self.model


class ChatModel(Protocol):
    """A chat model behind any OpenAI-compatible endpoint."""

    @property
    def name(self) -> str:
        """What `api_version.llm` tells clients, e.g. `gpt-4.1`."""
        ...

    @property
    def trouble(self) -> str:
        """What the last call failed of, for the operator; empty since the last one that did not."""
        ...

    async def complete(self, call: ModelCall, usage: Usage) -> str:
        """The whole reply text (thinking removed). Raises ModelError and its kinds. Retries (honouring
        Retry-After) stay inside the call's time budget; cancellation closes the connection."""
        ...

    def stream(self, call: ModelCall, usage: Usage) -> AsyncGenerator[str, None]:
        """The reply as pieces of text as they arrive (an async generator: close it to stop the call).
        Retries only while nothing has been yielded. Raises as `complete`."""
        ...

    async def close(self) -> None: ...


# ---------------------------------------------------------------- vectors


@dataclass(frozen=True, slots=True)
class SparseVector:
    indices: Sequence[int]
    values: Sequence[float]


Vector = Sequence[float] | SparseVector


@dataclass(frozen=True, slots=True)
class LegSpec:
    """One searched vector space of a collection. `size` is None for a sparse leg (IDF at query time).
    `model` names what made the vectors; a store made with another one is refused at start."""

    name: str
    model: str
    size: int | None = None

    @property
    def sparse(self) -> bool:
        return self.size is None


class Embedder(Protocol):
    """Makes a leg's vectors. Never blocks the event loop: heavy work is in another process."""

    spec: LegSpec
    max_tokens: int  # the longest text (in words, roughly) that it represents well

    async def documents(self, texts: Sequence[str], languages: Sequence[str]) -> list[Vector]:
        """A vector per text; `languages` are ISO 639-1 codes or ""."""
        ...

    async def query(self, text: str, language: str) -> Vector:
        """The vector of a question. Goes ahead of waiting documents."""
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Point:
    """A stored chunk: `id` is a UUID string, `vectors` by leg name, `payload` is small and filterable."""

    id: str
    vectors: Mapping[str, Vector]
    payload: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Hit:
    id: str
    score: float
    payload: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Where:
    """A filter: every key must equal the value, or one of the values where a list is given; `not_` keys
    must equal none. Of `any_of`, if there are any, one group must hold whole: each of its (key, values) with
    one of the values, and a key may come in it more than once. Where a payload holds a list, one of its
    values is enough. An empty list of values, or an empty group, matches nothing. Keys are payload keys with
    a keyword index."""

    must: Mapping[str, str | int | Sequence[str]] = field(default_factory=dict)
    not_: Mapping[str, str | int | Sequence[str]] = field(default_factory=dict)
    any_of: Sequence[Sequence[tuple[str, Sequence[str]]]] = ()


@dataclass(frozen=True, slots=True)
class LegQuery:
    """One nearest-neighbour search in one leg."""

    leg: str
    vector: Vector
    limit: int


class VectorStore(Protocol):
    """Named vectors with filterable payload, in named collections. All methods raise StoreError."""

    async def ensure(self, collection: str, legs: Sequence[LegSpec], keyword_fields: Sequence[str]) -> None:
        """Create the collection or check it: StoreMismatch names both models (or sizes) and the way out.
        A leg that is new to the collection is added to it."""
        ...

    async def upsert(self, collection: str, points: Sequence[Point]) -> None:
        """Durable when it returns (a kill -9 after it loses nothing)."""
        ...

    async def search(
        self, collection: str, queries: Sequence[LegQuery], where: Where, fields: Sequence[str]
    ) -> list[list[Hit]]:
        """Best first, one list a query; each hit's payload holds `fields` only."""
        ...

    async def scroll(
        self, collection: str, where: Where, *, limit: int = 1000, offset: str | None = None
    ) -> tuple[list[Hit], str | None]:
        """Points by filter in id order (score 0), and the offset of the next page."""
        ...

    async def set_payload(self, collection: str, where: Where, payload: Mapping[str, Any]) -> None: ...

    async def delete(self, collection: str, where: Where) -> int:
        """How many went. An empty filter is refused with ValueError."""
        ...

    async def delete_ids(self, collection: str, ids: Sequence[str]) -> None: ...

    async def count(self, collection: str, where: Where) -> int: ...

    async def ready(self) -> bool:
        """Whether it answers now; cheap; never raises."""
        ...

    async def close(self) -> None: ...
