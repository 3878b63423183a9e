"""What the vector stores have in common: filters as lists of values, legs that do not fit, names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the store's process reads this at its start, and has no use for the rest
    from core.providers.base import Where

COLLECTION_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
Values = list[str] | list[int]
Pairs = list[tuple[str, Values]]
Conditions = tuple[Pairs, Pairs, list[Pairs]]


def conditions(where: Where) -> Conditions | None:
    """`(must, not, any_of)` as pairs of key and accepted values, or None where nothing can match."""
    must = _pairs(where.must)
    groups = [[(key, _values(values)) for key, values in group] for group in where.any_of]
    possible = [group for group in groups if group and all(values for _, values in group)]
    if not all(values for _, values in must) or (groups and not possible):
        return None
    return must, [pair for pair in _pairs(where.not_) if pair[1]], possible


def refuse_all(where: Where) -> None:
    """Raise ValueError for a filter that would select every point."""
    if not any(conditions(where) or [True]):
        raise ValueError("a filter is needed: this would delete everything")


def mismatch(collection: str, leg: str, there: tuple[str, int | None], wanted: tuple[str, int | None]) -> str:
    """What to tell a person whose store holds a leg of another `(model, size)` than the settings want."""
    return (
        f"the vectors `{leg}` of collection `{collection}` were made with {_described(*there)}, "
        f"but the settings want {_described(*wanted)}: set the former again, or make them anew with "
        "`askable reembed`"
    )


def _described(model: str, size: int | None) -> str:
    return f"`{model}` ({size} dimensions)" if size else f"`{model}`"


def _pairs(selected: Mapping[str, str | int | Sequence[str]]) -> Pairs:
    return [(key, _values(value)) for key, value in selected.items()]


def _values(value: str | int | Sequence[str]) -> Values:
    if isinstance(value, str):
        return [value]
    if isinstance(value, int):
        return [value]
    return list(value)
