"""What a wire dialect is: an answer's messages as the frames, and the one object, that its clients know."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

from core.errors import AskError
from core.messages import Complete, Failure, Header, Item, Message, Results
from core.query import Query

Body = dict[str, Any]
ResponseFormat = Literal["conv_search", "chatgpt_app"]

# Fields whose emptiness says something; any other that has no value is left out.
NULL_FIELDS = frozenset({"memory_id", "model", "cache", "prompt", "page", "section"})


class Frame(NamedTuple):
    """One event: its name (None: an unnamed one) and its JSON object."""

    name: str | None
    body: Body


@dataclass(frozen=True, slots=True)
class Asking:
    """The question that is answered, and the shape its answer is wanted in where a dialect has several."""

    query: Query
    response_format: ResponseFormat = "conv_search"
    llm: str = ""  # of what is no answer, so that no `Started` tells it

    @property
    def site(self) -> str:
        """What was asked, as one text: `all`, a name, or names with commas."""
        return "all" if self.query.all_sites else ",".join(self.query.sites)


@dataclass(frozen=True, slots=True)
class Promised:
    """In place of an answer: it is being worked on, and `POST /await` with the token gets it.

    No pipeline says this, and only the structured dialects can.
    """

    type: ClassVar[str] = "promise"
    token: str
    estimated_time: int  # seconds


Sent = Message | Promised


class Dialect(Protocol):
    """How one answer travels; made for each answer, as frames are numbered and refer to earlier ones."""

    def __init__(self, asking: Asking) -> None: ...

    def frames(self, message: Sent) -> Iterable[Frame]:
        """The events for the next message of the answer; often one, sometimes none or several."""
        ...

    def whole(self, messages: Sequence[Sent]) -> Any:
        """The same answer, not streamed: one JSON value."""
        ...

    @classmethod
    def refusal(cls, failed: AskError) -> Body:
        """What is said where no answer was begun."""
        ...


def plain(value: Any) -> Any:
    """A message's value as JSON has it, without what is not there. Stored JSON is not copied."""
    if is_dataclass(value) and not isinstance(value, type):
        named = ((one.name, getattr(value, one.name)) for one in fields(value))
        return {name: plain(v) for name, v in named if v is not None or name in NULL_FIELDS}
    if isinstance(value, tuple):
        return [plain(one) for one in value]
    return value


def error_body(failed: AskError) -> Body:
    """`{code, message, field}` of an error before an answer (contract 4)."""
    return {"code": failed.code, "message": failed.message, "field": failed.field}


def item_body(item: Item) -> Body:
    """An item with NLWeb's field names; `score` is absent where none is known yet (provisional results)."""
    return {**plain(item), "siteUrl": item.site, "schema_object": item.schema_object}


def message_body(message: Sent) -> Body:
    """A message's type and fields, as the legacy dialect names them."""
    if isinstance(message, Header):
        return {"message_type": message.name, "content": message.content}
    if isinstance(message, Results):
        return {"message_type": message.type, "results": [item_body(item) for item in message.items]}
    return {"message_type": message.type, **plain(message)}


def final_items(messages: Iterable[Sent]) -> list[Item]:
    """The items that `complete` names, best first; of one that came twice, the later."""
    items: dict[tuple[str, str], Item] = {}
    order: Sequence[str] = ()
    for message in messages:
        if isinstance(message, Results):
            items.update({(item.site, item.document_id): item for item in message.items})
        elif isinstance(message, Complete):
            order = message.order
    place = {document_id: n for n, document_id in enumerate(order)}
    final = [item for item in items.values() if item.document_id in place]
    return sorted(final, key=lambda item: place[item.document_id])


def stopped(query: Query, had: Iterable[Sent], why: Failure) -> list[Message]:
    """The end of an answer that ends before its time: the best of what it had is what is final."""
    scored: dict[tuple[str, str], Item] = {}
    for message in had:
        if isinstance(message, Results):
            scored.update({(item.site, item.document_id): item for item in message.items})
    best = sorted(scored.values(), key=lambda item: -(item.score or 0))[: query.max_results]
    return [
        why,
        Complete(order=tuple(item.document_id for item in best), degraded=True),
    ]
