"""The structured dialect 0.54: unnamed events keyed `_meta`, `results`, `elicitation`, `promise`, `error`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from core.errors import AskError
from core.messages import AskUser, Complete, Item, Results
from server.wire.base import Asking, Body, Frame, Promised, Sent, item_body
from server.wire.envelopes import SHOWN, Envelopes, outcome, response_type, shown, special

VERSION = "0.54"


def _item(item: Item) -> Body:
    """An item with its schema.org fields beside ours; where a name is in both, ours holds."""
    body = item_body(item)
    stored = body.pop("schema_object")
    if isinstance(stored, list):
        stored = next((one for one in stored if isinstance(one, Mapping)), {})
    fields = dict(stored) if isinstance(stored, Mapping) else {}
    if "score" not in body:
        fields.pop("score", None)  # a field of the page that happens to be called so is no score of ours
    grounding = {"source_urls": [item.url] if item.url else [], "citations": body["citations"]}
    return {"@type": "Item", **fields, **body, "grounding": grounding}


ENVELOPES = Envelopes(VERSION, _item)


class Structured054:
    """Contract 4.3. `_meta` comes when it is known what the answer is, and again at the end with how it went;
    the stream ends by ending. Pieces of a text have no place here: it comes whole."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking
        self._had: list[Sent] = []
        self._begun = False

    def frames(self, message: Sent) -> Iterator[Frame]:
        """Unnamed events. Whether an error is a Failure shows at the end only: until then it waits."""
        self._had.append(message)
        if isinstance(message, Results):
            yield from self._begin()
            yield Frame(None, {"results": [_item(item) for item in message.items]})
        elif type(message) in SHOWN:
            yield from self._begin()
            yield Frame(None, {"results": [shown(message)]})
        elif isinstance(message, AskUser | Promised):
            yield from self._begin()
            yield Frame(None, special(self._had))
        elif isinstance(message, Complete):
            yield from self._end()

    def whole(self, messages: Sequence[Sent]) -> Body:
        """One of the four envelopes."""
        return ENVELOPES.envelope(self._asking, messages)

    @classmethod
    def refusal(cls, failed: AskError) -> Body:
        """A Failure."""
        return ENVELOPES.refusal(failed)

    def _begin(self) -> Iterator[Frame]:
        if not self._begun:
            self._begun = True
            yield Frame(None, {"_meta": self._meta()})

    def _end(self) -> Iterator[Frame]:
        kind = response_type(self._had)
        yield from self._begin()
        if kind == "Failure":
            yield Frame(None, special(self._had))
        elif kind == "Answer" and not any(isinstance(m, Results) or type(m) in SHOWN for m in self._had):
            yield Frame(None, {"results": []})
        yield Frame(None, {"_meta": {**self._meta(), **outcome(self._had)}})

    def _meta(self) -> Body:
        return ENVELOPES.meta(self._asking, response_type(self._had), self._had)
