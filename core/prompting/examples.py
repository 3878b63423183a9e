"""The `<example>`s of a prompt: what to ask it with, and what its reply has to hold."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.prompting.variables import VARIABLES, Value

# The attributes of `<example>`, and the variables each one fills.
ATTRIBUTES: Mapping[str, tuple[str, ...]] = {
    "query": ("request.query", "request.rawQuery"),
    "prev": ("request.previousQueries",),
    "answers": ("request.prevAnswers",),
    "site": ("request.site",),
    "itemType": ("request.itemType", "site.itemType"),
    "about": ("site.description",),
    "memory": ("request.memory",),
    "context": ("request.contextDescription",),
    "language": ("request.language",),
    "item": ("item.description",),
    "item_name": ("request.item_name",),
    "details": ("request.details_requested",),
}

BOUND = re.compile(r"^\s*(>=|<=|>|<)\s*(-?\d+(?:\.\d+)?)\s*$")


@dataclass(frozen=True, slots=True)
class Example:
    """`values` by variable name; `expect` is a part of the reply (see `misses`), None where any reply will
    do."""

    values: Mapping[str, Value]
    expect: Mapping[str, Any] | None
    line: int

    @property
    def query(self) -> str:
        return str(self.values.get("request.rawQuery", ""))


def values_of(name: str, value: Value) -> dict[str, Value]:
    """The variables that an attribute (or a `<value name=...>`) fills; empty for an unknown name."""
    names = ATTRIBUTES.get(name) or ((name,) if name in VARIABLES else ())
    return dict.fromkeys(names, value)


def misses(expect: Mapping[str, Any], reply: Mapping[str, Any]) -> list[str]:
    """In what `reply` differs from `expect`, a line each; keys that are not expected are free.

    A string `">= 70"` (also `<=`, `>`, `<`) bounds a number, `"~word"` wants the word in the text (or in an
    element of the list), `"!~word"` wants it absent; other strings are compared without case and outer white
    space; objects and lists hold what is expected of each part.
    """
    return [line for key, wanted in expect.items() for line in differences(key, wanted, reply.get(key))]


def differences(where: str, wanted: Any, came: Any) -> list[str]:
    if isinstance(wanted, Mapping) and isinstance(came, Mapping):
        return [
            line for key, one in wanted.items() for line in differences(f"{where}.{key}", one, came.get(key))
        ]
    if isinstance(wanted, list) and isinstance(came, list) and len(wanted) == len(came):
        pairs = enumerate(zip(wanted, came, strict=True))
        return [line for n, (one, other) in pairs for line in differences(f"{where}[{n}]", one, other)]
    return [] if agrees(wanted, came) else [f"{where}: expected {wanted!r}, came {came!r}"]


def agrees(wanted: Any, came: Any) -> bool:
    if isinstance(wanted, bool) or isinstance(came, bool) or not isinstance(wanted, str):
        return type(wanted) is type(came) and bool(wanted == came)
    bound = BOUND.match(wanted)
    if bound:
        return isinstance(came, int | float) and within(bound[1], float(came), float(bound[2]))
    text = str(came).casefold()
    if wanted.startswith("!~"):
        return wanted[2:].casefold() not in text
    if wanted.startswith("~"):
        return wanted[1:].casefold() in text
    return isinstance(came, str) and wanted.strip().casefold() == text.strip()


def within(sign: str, number: float, bound: float) -> bool:
    if sign.startswith(">"):
        return number > bound or (sign == ">=" and number == bound)
    return number < bound or (sign == "<=" and number == bound)
