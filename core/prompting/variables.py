"""The variables a prompt may use: their names, their kinds, and how a value is written into a prompt."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import orjson

Kind = Literal["text", "list", "json", "number"]
Value: TypeAlias = str | int | float | bool | Sequence[Any] | Mapping[str, Any] | None

NONE = "(none)"


@dataclass(frozen=True, slots=True)
class Variable:
    """`kind` says what a step gives for it: text, a list (written as a JSON array), any JSON, or a number."""

    name: str
    kind: Kind
    meaning: str


VARIABLES: Mapping[str, Variable] = {
    one.name: one
    for one in (
        Variable("request.site", "text", "the name of the site that is asked"),
        Variable("request.query", "text", "the question, made self-contained once that step has run"),
        Variable("request.rawQuery", "text", "the question exactly as it was typed"),
        Variable("request.previousQueries", "list", "earlier questions of the conversation, oldest first"),
        Variable(
            "request.prevAnswers", "list", "items shown by the last answers (title and url), best first"
        ),
        Variable("request.contextUrl", "text", "address of the page the question is asked on"),
        Variable("request.contextDescription", "text", "what that page is about"),
        Variable("request.itemType", "text", "the kind of item the question is after (a schema.org type)"),
        Variable("request.answers", "json", "the items found for this question, best first"),
        Variable("request.language", "text", "the language of the question (ISO 639-1), if it is known"),
        Variable("request.memory", "list", "what this person asked to remember that may matter here"),
        Variable("request.whiteboard", "list", "requirements, proposals, decisions, actions so far"),
        Variable("request.top_k", "number", "how many items are wanted"),
        Variable("request.item_name", "text", "the name of the item the question is about"),
        Variable("request.details_requested", "text", "which details of that item are wanted"),
        Variable("site.itemType", "text", "the site's kind of items (a schema.org type)"),
        Variable("site.description", "text", "the site's own description of itself"),
        Variable("item.name", "text", "the name of the item at hand; for a batch the list of their names"),
        Variable("item.description", "json", "the item at hand as schema.org JSON; for a batch all of them"),
        Variable("tool.description", "text", "what the tool at hand does"),
        Variable("tools.description", "json", "what each of the tools does"),
        Variable("whiteboard.max", "number", "how many entries the whiteboard may hold"),
        Variable("whiteboard.current", "json", "the whiteboard's entries as they are now"),
        Variable("whiteboard.messages", "list", "the messages since it was last kept up, oldest first"),
    )
}

# Names that NLWeb's own files use for the same things (or that it never filled): they load and are filled.
OLDER_NAMES: Mapping[str, str] = {
    "request.context": "request.contextDescription",
    "request.answer": "request.answers",
    "request.item1_description": "request.answers",
    "request.item2_description": "request.answers",
    "ensemble.queries": "request.query",
    "ensemble.results": "request.answers",
    "item.type": "request.itemType",
}

# `{request.query}` is a variable; `{"a": 1}` and `{}` in a prompt are text.
USE = re.compile(r"\{\s*([A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)+)\s*\}")
# What looks like one to a person but has no dot: left as it is, and reported.
BARE_USE = re.compile(r"\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}")

LONE_SURROGATE = re.compile("[\ud800-\udfff\x00]")


def split(text: str) -> tuple[str, ...]:
    """The pieces of a prompt: literal text at even places, variable names at odd ones."""
    return tuple(USE.split(text))


def write(value: Value) -> str:
    """A value as it stands in a prompt: text as it is, lists and objects as JSON, nothing as `(none)`.

    NUL and lone surrogates, which no JSON request to a model can carry, become U+FFFD.
    """
    if value is None or value == "" or value == [] or value == () or value == {}:
        return NONE
    if isinstance(value, str):
        return clean(value)
    return write_json(value)


def write_json(value: Any) -> str:
    """Compact JSON, letters of all scripts as they are."""
    try:
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS, default=plain).decode()
    except (TypeError, ValueError):
        # lone surrogates and huge integers: rare, and worth a slower second try
        return orjson.dumps(made_plain(value), option=orjson.OPT_NON_STR_KEYS).decode()


def clean(text: str) -> str:
    return LONE_SURROGATE.sub("\ufffd", text)


def plain(value: Any) -> Any:
    """What orjson doesn't know: mappings and sequences of other kinds, else its text."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence | set | frozenset):
        return list(value)
    return str(value)


def made_plain(value: Any, depth: int = 0) -> Any:
    """`value` as orjson takes it; what is nested deeper than any item is goes."""
    if isinstance(value, str):
        return clean(value)
    if depth > 100:
        return None
    if isinstance(value, Mapping):
        return {clean(str(key)): made_plain(one, depth + 1) for key, one in value.items()}
    if isinstance(value, Sequence):
        return [made_plain(one, depth + 1) for one in value]
    if value is None or isinstance(value, bool | float):
        return value
    return value if isinstance(value, int) and abs(value) < 2**53 else clean(str(value))
