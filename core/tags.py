"""Tags: what a document is filed under as `name:value`, and filters over them (contract 8)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from core.errors import BadQuery

FIELD = "tags"  # of a point's payload: a list of `name:value`
MAX_NAME = 100
MAX_VALUE = 500
MAX_TAGS = 200
RESERVED = "__"
CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
SHAPES = "`tags` must be `{name: value or values}`, `name:value`, or a list of these"

TagFilter = Sequence[Mapping[str, Sequence[str]]]
"""Objects of which one must hold whole: all its names, each with one of the values. None: no filter."""


def keyword(name: str, value: str) -> str:
    """A tag as it is stored. A name has no colon in it, so no two tags are the same keyword.

    Raises BadQuery for a name or a value that is none."""
    name, value = name.strip(), value.strip()
    if not name or ":" in name or len(name) > MAX_NAME:
        raise BadQuery(
            f"`tags`: `{name[:80]}` is no name: 1-{MAX_NAME} characters without a colon", field="tags"
        )
    if name.startswith(RESERVED):
        raise BadQuery(f"`tags`: the name `{name[:80]}` is reserved", field="tags")
    if CONTROL.search(name + value):
        raise BadQuery("`tags`: a control character cannot be in a tag", field="tags")
    if not value or len(value) > MAX_VALUE:
        raise BadQuery(f"`tags`: `{name[:80]}` needs a value of 1-{MAX_VALUE} characters", field="tags")
    return f"{name}:{value}"


def split(tag: str) -> tuple[str, str]:
    """Name and value, cut at the first colon. Raises BadQuery where there is none."""
    name, colon, value = tag.partition(":")
    if not colon:
        raise BadQuery(f"`tags`: `{tag[:80]}` is neither JSON nor `name:value`", field="tags")
    return name.strip(), value.strip()


def read(given: Any) -> tuple[str, ...]:
    """The tags of a document, sorted: `name:value`, `{name: value or values}`, or a list of these.

    Raises BadQuery for anything else, and for more than a document can have."""
    tags = tuple(sorted(set(_keywords(given))))
    if len(tags) > MAX_TAGS:
        raise BadQuery(f"`tags`: a document may have {MAX_TAGS}, not {len(tags)}", field="tags")
    return tags


def shown(tags: Iterable[str]) -> dict[str, list[str]]:
    """The tags as an object `{name: values}`, the shape that filters have."""
    by_name: dict[str, list[str]] = {}
    for tag in tags:
        name, _, value = tag.partition(":")
        by_name.setdefault(name, []).append(value)
    return by_name


def groups(wanted: TagFilter) -> list[list[tuple[str, list[str]]]]:
    """The filter for the vector store, as `Where.any_of`."""
    return [[(FIELD, keywords) for keywords in _accepted(one)] for one in wanted]


def fits(tags: Iterable[str], wanted: TagFilter) -> bool:
    """Whether a document with these tags passes the filter."""
    there = set(tags)
    return not wanted or any(
        one and all(not there.isdisjoint(keywords) for keywords in _accepted(one)) for one in wanted
    )


def _accepted(one: Mapping[str, Sequence[str]]) -> list[list[str]]:
    return [[f"{name}:{value}" for value in values] for name, values in one.items()]


def _keywords(given: Any) -> Iterator[str]:
    if isinstance(given, str):
        yield keyword(*split(given))
    elif isinstance(given, Mapping):
        for name, values in given.items():
            for value in values if isinstance(values, list) else [values]:
                if not isinstance(value, str):
                    raise BadQuery(f"`tags`: a value of `{str(name)[:80]}` is no text", field="tags")
                yield keyword(str(name), value)
    elif isinstance(given, list | tuple):
        for one in given:
            if not isinstance(one, str | Mapping):
                raise BadQuery(SHAPES, field="tags")
            yield from _keywords(one)
    else:
        raise BadQuery(SHAPES, field="tags")
