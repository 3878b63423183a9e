"""The legacy dialect: unnamed events told apart by `message_type`, as NLWeb's clients of 2025 read them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from core.errors import AskError
from core.messages import AnswerDelta, Failure, Header, Results, Started
from server.wire.base import Asking, Body, Frame, Sent, error_body, final_items, item_body, message_body


class Legacy:
    """Contract 4.2; NLWeb of August 2025 with event ids, and with the fields that it lacks."""

    def __init__(self, asking: Asking) -> None:
        self._query = asking.query

    def frames(self, message: Sent) -> Iterator[Frame]:
        """One unnamed event a message; `complete` comes last."""
        body = message_body(message)
        if isinstance(message, Started):
            body["conversation_id"] = self._query.conversation_id
        yield Frame(None, {**body, "query_id": self._query.query_id})

    def whole(self, messages: Sequence[Sent]) -> Body:
        """One object: keys are the message types (of two the later; of errors the first, the cause of the
        others), `results` the final items in order."""
        answer: Body = {
            "query_id": self._query.query_id,
            "conversation_id": self._query.conversation_id,
        }
        for message in messages:
            if isinstance(message, Results | AnswerDelta):
                continue  # the final items and the whole answer say it all
            body = message_body(message)
            kind = body.pop("message_type")
            if isinstance(message, Header):
                # NLWeb's one-object answer has a header's text under another name than its stream.
                body["message"] = message.content
            if not (isinstance(message, Failure) and kind in answer):
                answer[kind] = body
        answer["results"] = [item_body(item) for item in final_items(messages)]
        return answer

    @classmethod
    def refusal(cls, failed: AskError) -> Body:
        """`{error: {code, message, field}}`."""
        return {"error": error_body(failed)}
