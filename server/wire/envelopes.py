"""An answer as one object of the structured protocol: Answer, Elicitation, Promise or Failure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from core.errors import AskError
from core.messages import (
    AnswerDelta,
    AskUser,
    CompareItems,
    Complete,
    Decontextualized,
    EnsembleResult,
    Failure,
    GeneratedAnswer,
    Item,
    ItemDetails,
    Results,
    Started,
    Summary,
)
from server.wire.base import Asking, Body, Promised, Sent, error_body, final_items, message_body, plain
from server.wire.words import prose

ResponseType = Literal["Answer", "Elicitation", "Promise", "Failure"]
MessageT = TypeVar("MessageT", bound=Sent)
ToBody = Callable[[Item], Body]

# What is shown beside the items: results of a type of their own, in the order in which they came.
SHOWN = {
    Summary: "Summary",
    GeneratedAnswer: "GeneratedAnswer",
    ItemDetails: "ItemDetails",
    CompareItems: "CompareItems",
    EnsembleResult: "EnsembleResult",
}
# What an envelope says elsewhere, or not at all: pieces of a text that it has whole.
SAID_ELSEWHERE = (Started, Results, AnswerDelta, Complete, Decontextualized, AskUser, Promised, *SHOWN)


@dataclass(frozen=True, slots=True)
class Envelopes:
    """Envelopes of one version; `item` gives an item the form that this version's clients know."""

    version: str
    item: ToBody

    def meta(self, asking: Asking, response_type: str, messages: Sequence[Sent]) -> Body:
        """`_meta` as far as it is known from these messages."""
        query = asking.query
        started = _last(messages, Started)
        llm = started.llm if started else asking.llm
        told = _last(messages, Decontextualized)
        rewritten = told.decontextualized_query if told else query.decontextualized_query
        return {
            "version": self.version,
            "response_type": response_type,
            "response_format": asking.response_format,
            "mode": query.mode,
            "site": asking.site,
            "query_id": query.query_id,
            "request_id": query.query_id,
            "conversation_id": query.conversation_id,
            "session_context": {"conversation_id": query.conversation_id},
            **({"llm": llm} if llm else {}),
            **({"decontextualized_query": rewritten} if rewritten else {}),
        }

    def envelope(self, asking: Asking, messages: Sequence[Sent]) -> Body:
        """The one object for these messages."""
        kind = response_type(messages)
        meta = self.meta(asking, kind, messages) | outcome(messages)
        if kind == "Answer":
            results = self.results(messages)
            if asking.response_format == "chatgpt_app":
                text = [{"type": "text", "text": prose(messages)}]
                return {"_meta": meta, "content": text, "structuredData": results}
            return {"_meta": meta, "results": results}
        return {"_meta": meta, **special(messages)}

    def results(self, messages: Sequence[Sent]) -> list[Body]:
        """The final items, best first, then what is shown beside them."""
        beside = [shown(message) for message in messages if type(message) in SHOWN]
        return [*(self.item(item) for item in final_items(messages)), *beside]

    def refusal(self, failed: AskError) -> Body:
        """The Failure where no answer was begun."""
        return {
            "_meta": {"version": self.version, "response_type": "Failure"},
            "error": error_body(failed),
        }


def response_type(messages: Sequence[Sent]) -> ResponseType:
    """A Failure is an answer that failed and has nothing to show; one with something to show is an Answer."""
    kinds = {type(message) for message in messages}
    if Promised in kinds:
        return "Promise"
    if AskUser in kinds:
        return "Elicitation"
    complete = _last(messages, Complete)
    # In mid-answer what was shown counts; at its end what stays.
    items = final_items(messages) if complete else Results in kinds
    failed = Failure in kinds and (complete is None or complete.degraded)
    return "Failure" if failed and not items and not kinds & SHOWN.keys() else "Answer"


def special(messages: Sequence[Sent]) -> Body:
    """What an envelope holds that is no Answer, under its key."""
    if promised := _last(messages, Promised):
        return {"promise": plain(promised)}
    if asked := _last(messages, AskUser):
        return {"elicitation": elicitation(asked)}
    # The first thing that failed is the cause of what failed after it.
    failed = next(message for message in messages if isinstance(message, Failure))
    return {"error": plain(failed)}


def elicitation(asked: AskUser) -> Body:
    """What is asked back; a message without questions of its own is the question."""
    questions = plain(asked.questions) or [
        {"id": "answer", "text": asked.message, "type": "text", "options": []}
    ]
    return {"text": asked.message, "questions": questions}


def outcome(messages: Sequence[Sent]) -> Body:
    """The part of `_meta` that is known at the end, with the messages that have no place of their own."""
    complete = _last(messages, Complete)
    told = [message_body(m) for m in messages if not isinstance(m, SAID_ELSEWHERE)]
    return {**(plain(complete) if complete else {}), **({"messages": told} if told else {})}


def shown(message: Sent) -> Body:
    """A summary, an answer, what a tool found: as a result of its own type."""
    if isinstance(message, Summary):
        return {"@type": "Summary", "text": message.message}
    return {"@type": SHOWN[type(message)], **plain(message)}


def _last(messages: Sequence[Sent], kind: type[MessageT]) -> MessageT | None:
    return next((message for message in reversed(messages) if isinstance(message, kind)), None)


def status_of(body: object) -> int:
    """The HTTP status of an answer that is not streamed: a Failure has its error's, all else is 200."""
    if isinstance(body, dict) and body.get("_meta", {}).get("response_type") == "Failure":
        return STATUS.get(body["error"]["code"], AskError.status)
    return 200


def _statuses(kind: type[AskError]) -> Iterator[tuple[str, int]]:
    yield kind.code, kind.status
    for below in kind.__subclasses__():
        yield from _statuses(below)


STATUS = dict(_statuses(AskError))
