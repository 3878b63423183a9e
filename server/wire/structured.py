"""The structured dialect 0.55: events named `start`, `result`, `complete`, and else by their legacy name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from core.errors import AskError
from core.messages import Complete, Item, Results, Started
from server.wire.base import Asking, Body, Frame, Promised, Sent, item_body, message_body, plain
from server.wire.envelopes import Envelopes, response_type

VERSION = "0.55"


def _item(item: Item) -> Body:
    return {"@type": "Item", **item_body(item)}


ENVELOPES = Envelopes(VERSION, _item)


class Structured:
    """Contract 4.3. An item that comes again keeps its `index`: it replaces what stood there."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking
        self._had: list[Sent] = []
        self._index: dict[tuple[str, str], int] = {}

    def frames(self, message: Sent) -> Iterator[Frame]:
        """Events with names."""
        self._had.append(message)
        if isinstance(message, Started):
            yield Frame("start", {"_meta": self._meta(), "streaming": True})
        elif isinstance(message, Results):
            for item in message.items:
                index = self._index.setdefault((item.site, item.document_id), len(self._index))
                yield Frame("result", {"index": index, "item": _item(item)})
        elif isinstance(message, Complete):
            failed = {"error": True} if response_type(self._had) == "Failure" else {}
            yield Frame("complete", {"_meta": {**self._meta(), **plain(message)}, **failed})
        elif isinstance(message, Promised):
            yield Frame("start", {"_meta": self._meta(), "streaming": True})
            yield Frame("promise", plain(message))
            yield Frame("complete", {"_meta": self._meta()})
        else:
            body = message_body(message)
            yield Frame(body["message_type"], {**body, "query_id": self._asking.query.query_id})

    def whole(self, messages: Sequence[Sent]) -> Body:
        """One of the four envelopes."""
        return ENVELOPES.envelope(self._asking, messages)

    @classmethod
    def refusal(cls, failed: AskError) -> Body:
        """A Failure."""
        return ENVELOPES.refusal(failed)

    def _meta(self) -> Body:
        # In this version's stream the type is in small letters.
        return ENVELOPES.meta(self._asking, response_type(self._had).lower(), self._had)
