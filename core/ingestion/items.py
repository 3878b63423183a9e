"""What reading a source yields: items to store, and a word on everything that did not become one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from core.ingestion.urls import canonical

Outcome = Literal["skipped", "failed"]


@dataclass(frozen=True, slots=True)
class SourceItem:
    """One thing that can become a search result.

    `url` is the address as it was given (resolved, made safe), for showing; `key` is what makes two
    spellings of it one item. `text` is what is searched, without the name; it may be empty, then the item
    is found by its name. `types` are bare schema.org names, `language` a primary subtag ("pt") or "".
    """

    url: str
    name: str
    types: tuple[str, ...]
    schema_object: Any
    text: str
    language: str = ""
    source: str = ""  # where it came from: a file, with its line or block

    @property
    def key(self) -> str:
        """The canonical form of `url`: equal for equal addresses, whatever their percent-encoding."""
        return canonical(self.url)


@dataclass(frozen=True, slots=True)
class NotLoaded:
    """Something in a source that became no item: `skipped` is as it should be, `failed` needs a person.

    `what` is its name, address or type, or "" for a whole source."""

    source: str
    what: str
    reason: str
    outcome: Outcome


Read = SourceItem | NotLoaded
