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
    CompareItems,
    Complete,
    EnsembleResult,
    Failure,
    Irrelevant,
    ItemDetails,
    NoResults,
    Results,
    Summary,
)
from server.wire.base import Asking, Frame, Sent
from server.wire.legacy import Legacy

INTERMEDIATE = "intermediate_message"


class Legacy2025(Legacy):
    """`legacy` with these differences in the stream.

    An item that `item_details` or `ensemble_result` shows is no `result_batch` too. A comparison comes once
    more as `summary`, after its items. `no_results`, `error` and `site_is_irrelevant_to_query` come after an
    `intermediate_message` of the same words.
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
            case EnsembleResult():
                self._shown |= set(_put_together(message.result))
            case CompareItems():
                self._compared = Summary(_text(message.comparison))
            case NoResults() | Failure() | Irrelevant():
                yield Frame(
                    None,
                    {
                        "message_type": INTERMEDIATE,
                        "message": message.message,
                        "query_id": self._query.query_id,
                    },
                )
            case Complete():
                yield from self._comparison()
        yield from super().frames(message)

    def _comparison(self) -> Iterator[Frame]:
        if self._compared is not None:
            told, self._compared = self._compared, None
            yield from super().frames(told)


def _text(comparison: str | dict[str, Any]) -> str:
    """A comparison by points as lines."""
    if isinstance(comparison, str):
        return comparison
    return "\n".join(f"{point}: {said}" for point, said in comparison.items())


def _put_together(result: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    """Which stored items are shown in an ensemble."""
    chosen = result.get("recommendations", {}).get("items", [])
    return ((one.get("site"), one.get("document_id")) for one in chosen)
