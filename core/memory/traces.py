"""What facts that are gone have left in their person's conversations: how it is recognised."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from core.conversation_rows import Gone
from core.language import detect
from core.memory.claims import grounded
from core.providers.bm25 import stems


class Row(Protocol):
    """A row of the table of facts, or what stands for one."""

    def __getitem__(self, name: str, /) -> Any: ...


def traces_of(rows: Sequence[Row]) -> Gone:
    """By the rows of these facts as they were, with their texts."""
    texts = [row["text"] for row in rows if row["text"]]
    return Gone(
        ids=frozenset(str(row["memory_id"]) for row in rows),
        query_ids=frozenset(row["query_id"] for row in rows if row["query_id"]),
        told=lambda text: any(_tells(text, fact) for fact in texts),
        echoed=lambda text: any(grounded(text, fact) for fact in texts),
    )


def _tells(text: str, fact: str) -> bool:
    """Whether all the words of a fact are in a text: some of them are anybody's."""
    language = detect(text) or detect(fact)
    words = stems(fact, language)
    return bool(words) and words <= stems(text, language)
