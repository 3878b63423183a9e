"""The legacy dialect of NLWeb's mainline of 2026: every message in an envelope, its matter in `content`."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from core.errors import AskError
from core.messages import AnswerDelta, Complete, Failure, GeneratedAnswer, Item, Results, Started, Summary
from server.wire.base import (
    Asking,
    Body,
    Frame,
    Sent,
    error_body,
    final_items,
    item_body,
    message_body,
    plain,
)

BEGIN = "begin-nlweb-response"
END = "end-nlweb-response"
SENDER = {"id": "askable", "name": "askable"}


class Legacy2026:
    """Contract 4.2, `legacy-2026`. `complete` comes as in the older dialect, after it the end envelope."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking
        self._number = 0
        self._prefix = f"msg_{time.time_ns() // 1_000_000}_{secrets.token_hex(5)[:9]}"
        self._failed = False

    def frames(self, message: Sent) -> Iterator[Frame]:
        """`begin-nlweb-response`, a message for each of ours, `end-nlweb-response`; all unnamed events."""
        query = self._asking.query
        if isinstance(message, Started):
            begin = {"query": query.text, **plain(message)}
            yield Frame(None, {"message_type": BEGIN, **begin, **self._common()})
            return
        yield Frame(None, self._message(message))
        if isinstance(message, Failure):
            self._failed = True
        if isinstance(message, Complete):
            error = {"error": True} if self._failed else {}
            yield Frame(None, {"message_type": END, **error, **self._common()})

    def whole(self, messages: Sequence[Sent]) -> list[Body]:
        """A list of messages, the person's own question first; the results are one message of final items."""
        query = self._asking.query
        asked = {"query": query.text, "site": self._asking.site, "mode": query.mode, "prev": list(query.prev)}
        listed = [self._envelope({"message_type": "query", "content": asked}, sender_type="user")]
        for message in messages:
            if isinstance(message, Started | Results | AnswerDelta):
                continue
            if isinstance(message, Complete):
                listed.append(self._message(Results(tuple(final_items(messages)))))
            listed.append(self._message(message))
        return listed

    @classmethod
    def refusal(cls, failed: AskError) -> Body:
        """`{error: {code, message, field}}`."""
        return {"error": error_body(failed)}

    def _message(self, message: Sent) -> Body:
        return self._envelope(_matter(message))

    def _envelope(self, body: Body, *, sender_type: str = "assistant") -> Body:
        self._number += 1
        sender = SENDER if sender_type == "assistant" else {"id": "user", "name": "user"}
        return {
            **body,
            "message_id": f"{self._prefix}#{self._number}",
            "sender_type": sender_type,
            "sender_info": sender,
            **self._common(),
        }

    def _common(self) -> Body:
        query = self._asking.query
        return {
            "timestamp": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "conversation_id": query.conversation_id,
            "query_id": query.query_id,
        }


def _matter(message: Sent) -> Body:
    """Type and `content`: a message's text if it has one, with its other fields beside; else its fields."""
    if isinstance(message, Results):
        return {"message_type": "result", "content": [_item(item) for item in message.items]}
    if isinstance(message, Summary):
        return {"message_type": "result", "@type": "Summary", "content": message.message}
    if isinstance(message, GeneratedAnswer):
        return {"message_type": message.type, "content": {"@type": "GeneratedAnswer", **plain(message)}}
    body = message_body(message)
    kind = body.pop("message_type")
    for text in ("content", "message", "text"):
        if text in body:
            return {"message_type": kind, "content": body.pop(text), **body}
    return {"message_type": kind, "content": body}


def _item(item: Item) -> Body:
    return {"@type": "Item", **item_body(item)}
