"""The legacy dialect as the pages of NLWeb's program of 2025 show it, for who asks with `generate_mode`.

Those pages draw the whole answer anew whenever a result comes: a menu or a comparison before it is gone, an
item that was told in detail is there twice. And they have no case for some messages that give the only words
of an answer. So the same answer comes here in the order and the types that they draw.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from core.messages import (
    AskUser,
    CompareItems,
    Complete,
    EnsembleResult,
    Failure,
    Forgotten,
    Irrelevant,
    ItemDetails,
    Memories,
    NoResults,
    Results,
    Summary,
)
from server.wire.base import Asking, Frame, Sent
from server.wire.legacy import Legacy
from server.wire.words import by_points, details, facts, menu

INTERMEDIATE = "intermediate_message"


class Legacy2025(Legacy):
    """`legacy` with these differences in the stream.

    An item that `item_details` or `ensemble_result` shows is no `result_batch` too; `item_details` has its
    words as `message`, too. A comparison comes once more as `summary`, after its items. What some pages have
    no case for comes after an `intermediate_message` (`memories`, `forgotten`: `ask_user`) of the same words.
    """

    def __init__(self, asking: Asking) -> None:
        super().__init__(asking)
        self._shown: set[tuple[Any, Any]] = set()
        self._compared: Summary | None = None

    def frames(self, message: Sent) -> Iterator[Frame]:
        """As in `legacy`, or fewer, or more."""
        match message:
            case Results():
                left = tuple(one for one in message.items if (one.site, one.document_id) not in self._shown)
                if left:
                    yield from super().frames(replace(message, items=left))
                yield from self._comparison()
                return
            case ItemDetails():
                self._shown.add((message.site, message.document_id))
                (frame,) = super().frames(message)
                yield Frame(frame.name, {**frame.body, "message": details(message)})
                return
            case EnsembleResult():
                self._shown |= set(_put_together(message.result))
                yield self._in_words(menu(message.result.get("recommendations", {})))
            case CompareItems():
                self._compared = Summary(by_points(message.comparison))
            case NoResults() | Failure() | Irrelevant():
                yield self._in_words(message.message)
            case Forgotten() | Memories():
                # The one type of plain words that all of those pages leave standing without an item.
                yield from super().frames(AskUser("\n".join(facts(message))))
            case Complete():
                yield from self._comparison()
        yield from super().frames(message)

    def _in_words(self, told: str) -> Frame:
        body = {"message_type": INTERMEDIATE, "message": told, "query_id": self._query.query_id}
        return Frame(None, body)

    def _comparison(self) -> Iterator[Frame]:
        if self._compared is not None:
            told, self._compared = self._compared, None
            yield from super().frames(told)


def _put_together(result: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    """Which stored items are shown in an ensemble."""
    chosen = result.get("recommendations", {}).get("items", [])
    return ((one.get("site"), one.get("document_id")) for one in chosen)
