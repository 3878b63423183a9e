"""An answer's messages in plain words, for clients that show nothing but a text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from core.messages import (
    AskingSites,
    CompareItems,
    EnsembleResult,
    Failure,
    Forgotten,
    GeneratedAnswer,
    Irrelevant,
    Item,
    ItemDetails,
    Memories,
    NoResults,
    Remember,
    Summary,
)
from server.wire.base import Sent, final_items

NOTHING = "There is no answer to this."


def prose(messages: Sequence[Sent]) -> str:
    """The whole answer as a text to read, never empty: what was done for the person's memory, then what was
    written, or what a tool says and the items as a list; where there is none of it, why."""
    done = [line for message in messages for line in _of_memory(message)]
    written = next((one.answer for one in reversed(messages) if isinstance(one, GeneratedAnswer)), "")
    said = [written] if written else [*_told(messages), *_listed(messages)]
    return "\n".join([*done, *said]) or "\n".join(_reasons(messages)) or NOTHING


def facts(message: Memories | Forgotten) -> Iterator[str]:
    """The message, and the facts it is about that are not in it."""
    yield message.message
    for one in message.items:
        if (fact := str(one.get("text") or "")) not in message.message:
            yield fact


def by_points(told: Any, between: str = "\n") -> str:
    """What is told by points as lines."""
    if isinstance(told, dict):
        return between.join(f"{point}: {by_points(said, ', ')}" for point, said in told.items())
    if isinstance(told, list):
        return between.join(by_points(one, ", ") for one in told)
    return str(told)


def details(message: ItemDetails) -> str:
    """What was asked about an item, with its name."""
    return f"{message.name}: {by_points(message.details, '; ')}"


def menu(put_together: dict[str, Any]) -> str:
    """Theme, items and tips of an ensemble on lines that are also read without line ends."""
    lines = [str(put_together.get("theme") or "")]
    for one in put_together.get("items", []):
        told = f"{one.get('category') or ''}: {one.get('name') or ''}. {one.get('description') or ''}"
        lines.append(told.removeprefix(": ").removesuffix(". "))
    lines += map(str, put_together.get("overall_tips", []))
    return "\n".join(line if line[-1] in ".!?。！？" else f"{line}." for line in lines if line)


def _of_memory(message: Sent) -> Iterator[str]:
    if isinstance(message, Remember):
        yield message.message
    elif isinstance(message, Memories | Forgotten):
        yield from facts(message)


def _told(messages: Sequence[Sent]) -> Iterator[str]:
    for message in messages:
        match message:
            case ItemDetails():
                yield details(message) + (f" ({message.url})" if message.url else "")
            case CompareItems():
                yield by_points(message.comparison)
            case EnsembleResult():
                yield menu(message.result.get("recommendations", {}))
            case Summary() | Irrelevant():
                yield message.message


def _listed(messages: Sequence[Sent]) -> Iterator[str]:
    """The items; those that a tool has told of by name and address alone, or not again."""
    named = {(one.site, one.document_id) for one in messages if isinstance(one, ItemDetails)}
    described = any(isinstance(one, CompareItems | EnsembleResult) for one in messages)
    left = [one for one in final_items(messages) if (one.site, one.document_id) not in named]
    for n, item in enumerate(left, 1):
        yield f"{n}. {item.name} ({item.url})" if described else f"{n}. {_card(item)}"


def _card(item: Item) -> str:
    return f"{item.name}: {' '.join(item.description.split())} ({item.url})"


def _reasons(messages: Sequence[Sent]) -> Iterator[str]:
    """Why there is nothing else to say: what was not found, else what failed."""
    for kinds in (NoResults, Failure, AskingSites):
        if found := [one.message for one in messages if isinstance(one, kinds)]:
            yield found[-1]
            return
