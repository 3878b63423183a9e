"""The dialects as JSON Schemas (2020-12), made from the messages. `python -m server.wire.schemas DIR`."""

from __future__ import annotations

import json
import sys
import types
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from core.messages import (
    Complete,
    Failure,
    GeneratedAnswer,
    Header,
    Item,
    ItemDetails,
    Message,
    Question,
    Results,
    Started,
    Summary,
)
from core.query import MAX_QUERY_CHARS, Mode
from server.wire.base import NULL_FIELDS, Promised, ResponseFormat
from server.wire.envelopes import SHOWN
from server.wire.legacy_2025 import INTERMEDIATE
from server.wire.legacy_2026 import BEGIN, END
from server.wire.request import PLACES

Schema = dict[str, Any]

DRAFT = "https://json-schema.org/draft/2020-12/schema"
TEXT: Schema = {"type": "string"}
SCALARS: Mapping[Any, Schema] = {
    str: TEXT,
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    Any: {},
}
MESSAGES: tuple[type[Any], ...] = get_args(Message)
NO_MORE: Mapping[str, Schema] = types.MappingProxyType({})


def schemas() -> dict[str, Schema]:
    """File name -> schema: of the events of each dialect, with its one-object answers under `$defs`."""
    return {
        "legacy.json": _legacy(),
        "legacy-2025.json": _legacy_2025(),
        "legacy-2026.json": _legacy_2026(),
        "structured-0.55.json": _structured(),
        "structured-0.54.json": _structured_054(),
        "structured-request.json": _request(),
    }


# ---------------------------------------------------------------- values


def of_type(hint: Any) -> Schema:
    """The schema of a value of this type, as `server.wire.base.plain` writes it."""
    if hint in SCALARS:
        return SCALARS[hint]
    origin, args = get_origin(hint), get_args(hint)
    if origin is Literal:
        return {"enum": list(args)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [of_type(arg) for arg in args]}
    if origin is tuple:
        return {"type": "array", "items": of_type(args[0])}
    if origin in (dict, Mapping):
        return {"type": "object", "additionalProperties": of_type(args[1])}
    if is_dataclass(hint) and isinstance(hint, type):
        return of_fields(hint)
    raise TypeError(f"no schema for {hint!r}")


def of_fields(kind: type[Any]) -> Schema:
    """A dataclass as an object; what may be None may be absent instead."""
    hints = get_type_hints(kind)
    properties: dict[str, Schema] = {}
    required = []
    for one in fields(kind):
        hint = hints[one.name]
        present = tuple(arg for arg in get_args(hint) if arg is not type(None))
        optional = get_origin(hint) in (Union, types.UnionType) and len(present) < len(get_args(hint))
        if optional and one.name not in NULL_FIELDS:
            hint = Union[present]  # noqa: UP007 - the members are known only here
        else:
            required.append(one.name)
        properties[one.name] = of_type(hint)
    return _object(properties, required)


def _object(properties: Mapping[str, Schema], required: Iterable[str] | None = None) -> Schema:
    needed = list(properties) if required is None else list(required)
    return {
        "type": "object",
        "properties": dict(properties),
        "required": needed,
        "additionalProperties": False,
    }


def _with(schema: Schema, **more: Schema) -> Schema:
    return _object({**more, **schema["properties"]}, [*more, *schema["required"]])


def _const(value: str) -> Schema:
    return {"const": value}


def _array(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _item() -> Schema:
    """An item on the wire: it has its site twice, and a score only where there is one."""
    schema = of_fields(Item)
    return {**_object({**schema["properties"], "siteUrl": TEXT}, [*schema["required"], "siteUrl"])}


def _items_of_type() -> Schema:
    return _with(_item(), **{"@type": _const("Item")})


def _file(title: str, defs: Mapping[str, Schema], one_of: Iterable[Schema]) -> Schema:
    return {"$schema": DRAFT, "title": title, "oneOf": list(one_of), "$defs": dict(defs)}


# ---------------------------------------------------------------- legacy


def _bodies(more: Mapping[str, Schema] = NO_MORE) -> dict[str, Schema]:
    """By message type: type and fields, as `server.wire.base.message_body` writes them, or as `more` has.

    A header's type is the name that the operator gave it: any other.
    """
    bodies: dict[str, Schema] = {}
    for kind in MESSAGES:
        if kind is Results:
            schema = _object({"results": _array(_ref("item"))})
        elif kind is not Header:
            schema = of_fields(kind)
        else:
            continue
        bodies[kind.type] = _with(schema, message_type=_const(kind.type))
    bodies |= more
    named = {"type": "string", "not": {"enum": sorted(bodies)}}
    bodies[Header.type] = _object({"message_type": named, "content": TEXT})
    return bodies


def _legacy(title: str = "An event of the legacy dialect", more: Mapping[str, Schema] = NO_MORE) -> Schema:
    events = {
        kind: _with(body, query_id=TEXT, **({"conversation_id": TEXT} if kind == Started.type else {}))
        for kind, body in _bodies(more).items()
    }
    whole = {kind: _without_type(body) for kind, body in _bodies().items() if kind != Results.type}
    header = _with(whole.pop(Header.type), message=TEXT)
    answer = {
        "type": "object",
        "properties": {
            "query_id": TEXT,
            "conversation_id": TEXT,
            "results": _array(_ref("item")),
            **whole,
        },
        "required": ["query_id", "conversation_id", "results", Started.type, Complete.type],
        "additionalProperties": header,
    }
    defs = {"item": _item(), **events, "whole": answer, "refusal": _object({"error": _error()})}
    return _file(title, defs, (_ref(kind) for kind in events))


def _legacy_2025() -> Schema:
    told = _object({"message_type": _const(INTERMEDIATE), "message": TEXT})
    details = _with(of_fields(ItemDetails), message_type=_const(ItemDetails.type), message=TEXT)
    more = {INTERMEDIATE: told, ItemDetails.type: details}
    return _legacy("An event of the legacy-2025 dialect", more)


def _without_type(body: Schema) -> Schema:
    properties = {name: one for name, one in body["properties"].items() if name != "message_type"}
    return _object(properties, [name for name in body["required"] if name != "message_type"])


def _error() -> Schema:
    return _object({"code": TEXT, "message": TEXT, "field": {"type": ["string", "null"]}})


# ---------------------------------------------------------------- legacy-2026


def _legacy_2026() -> Schema:
    common: dict[str, Schema] = {
        "timestamp": {"type": "string", "format": "date-time"},
        "conversation_id": TEXT,
        "query_id": TEXT,
    }
    sender: dict[str, Schema] = {
        "message_id": {"type": "string", "pattern": r"^msg_\d+_[0-9a-f]{9}#\d+$"},
        "sender_type": {"enum": ["user", "assistant", "system"]},
        "sender_info": _object({"id": TEXT, "name": TEXT}),
    }
    messages = {kind: _with(body, **sender, **common) for kind, body in _matters().items()}
    asked = _object({"query": TEXT, "site": TEXT, "mode": of_type(Mode), "prev": _array(TEXT)})
    question = _object({"message_type": _const("query"), "content": asked, **sender, **common})
    begin = _with(of_fields(Started), message_type=_const(BEGIN), query=TEXT, **common)
    end = _object(
        {"message_type": _const(END), "error": {"const": True}, **common}, ["message_type", *common]
    )
    whole = {
        "type": "array",
        "prefixItems": [_ref("query")],
        "items": {"oneOf": [_ref(kind) for kind in messages]},
        "minItems": 3,
    }
    events = {BEGIN: begin, **messages, END: end}
    refusal = _object({"error": _error()})
    defs = {"item": _items_of_type(), **events, "query": question, "whole": whole, "refusal": refusal}
    return _file("An event of the legacy-2026 dialect", defs, (_ref(kind) for kind in events))


def _matters() -> dict[str, Schema]:
    """By message type: type and `content`, with the fields beside it."""
    matters: dict[str, Schema] = {
        "result": _object({"message_type": _const("result"), "content": _array(_ref("item"))}),
        Summary.type: _object(
            {"message_type": _const("result"), "@type": _const("Summary"), "content": TEXT}
        ),
        GeneratedAnswer.type: _object(
            {
                "message_type": _const(GeneratedAnswer.type),
                "content": _with(of_fields(GeneratedAnswer), **{"@type": _const("GeneratedAnswer")}),
            }
        ),
    }
    for kind, body in _bodies().items():
        if kind in (Results.type, Started.type, *matters):
            continue
        typed = body["properties"]["message_type"]
        rest = _without_type(body)
        text = next((name for name in ("content", "message", "text") if name in rest["properties"]), None)
        if text is None:
            matters[kind] = _object({"message_type": typed, "content": rest})
            continue
        beside = {name: one for name, one in rest["properties"].items() if name != text}
        needed = ["message_type", "content", *(name for name in rest["required"] if name != text)]
        matters[kind] = _object({"message_type": typed, "content": TEXT, **beside}, needed)
    return matters


# ---------------------------------------------------------------- structured


def _meta(*response_types: str, needed: Iterable[str] = (), version: str) -> Schema:
    complete = of_fields(Complete)["properties"]
    properties: dict[str, Schema] = {
        "version": _const(version),
        "response_type": {"enum": list(response_types)},
        "response_format": of_type(ResponseFormat),
        "mode": of_type(Mode),
        "site": TEXT,
        "query_id": TEXT,
        "request_id": TEXT,
        "conversation_id": TEXT,
        "session_context": _object({"conversation_id": TEXT}),
    }
    later = {"llm": TEXT, "decontextualized_query": TEXT, **complete, "messages": _array(_ref("message"))}
    return _object({**properties, **later}, [*properties, *needed])


def _beside() -> Schema:
    """What is shown beside the items: see `server.wire.envelopes.shown`."""
    kinds = [
        _object({"@type": _const("Summary"), "text": TEXT})
        if kind is Summary
        else _with(of_fields(kind), **{"@type": _const(name)})
        for kind, name in SHOWN.items()
    ]
    return {"oneOf": kinds}


def _elicitation() -> Schema:
    return _object({"text": TEXT, "questions": _array(of_fields(Question))})


def _envelopes(version: str, item: Schema) -> dict[str, Schema]:
    """The definitions that both versions share."""
    results = _array({"oneOf": [_ref("item"), _ref("shown")]})
    text = _object({"type": _const("text"), "text": TEXT})
    done = tuple(of_fields(Complete)["required"])
    refused = _object({"version": _const(version), "response_type": _const("Failure")})
    answer = _meta("Answer", needed=("llm", *done), version=version)
    messages = _bodies()
    told = [name for name in messages if name not in (Started.type, Results.type, Complete.type)]
    return {
        "item": item,
        "shown": _beside(),
        "message": {"oneOf": [messages[name] for name in told]},
        "Answer": {
            "oneOf": [
                _object({"_meta": answer, "results": results}),
                _object({"_meta": answer, "content": _array(text), "structuredData": results}),
            ]
        },
        "Elicitation": _object(
            {"_meta": _meta("Elicitation", version=version), "elicitation": _elicitation()}
        ),
        "Promise": _object({"_meta": _meta("Promise", version=version), "promise": of_fields(Promised)}),
        "Failure": {
            "oneOf": [
                _object({"_meta": _meta("Failure", version=version), "error": of_fields(Failure)}),
                _object({"_meta": refused, "error": _error()}),
            ]
        },
        "whole": {"oneOf": [_ref(name) for name in ("Answer", "Elicitation", "Promise", "Failure")]},
    }


def _structured() -> Schema:
    types_ = ("answer", "elicitation", "promise", "failure")
    meta = _meta(*types_, version="0.55")
    data: dict[str, Schema] = {
        "start": _object({"_meta": meta, "streaming": {"const": True}}),
        "result": _object({"index": {"type": "integer", "minimum": 0}, "item": _ref("item")}),
        "complete": _object({"_meta": meta, "error": {"const": True}}, ["_meta"]),
        "promise": of_fields(Promised),
    }
    for kind, body in _bodies().items():
        if kind not in (Started.type, Results.type, Complete.type, Header.type):
            data[kind] = _with(body, query_id=TEXT)
    header = _with(_bodies()[Header.type], query_id=TEXT)
    events = {f"event:{name}": _object({"event": _const(name), "data": one}) for name, one in data.items()}
    named = {"type": "string", "not": {"enum": sorted(data)}}
    events["event:header"] = _object({"event": named, "data": header})
    defs = {**_envelopes("0.55", _items_of_type()), **events}
    return _file(
        "An event {event, data} of the structured dialect 0.55", defs, (_ref(name) for name in events)
    )


def _structured_054() -> Schema:
    schema = _item()
    own = {name: one for name, one in schema["properties"].items() if name != "schema_object"}
    needed = [name for name in schema["required"] if name != "schema_object"]
    # Open: the item's schema.org fields stand beside these.
    item: Schema = {
        "type": "object",
        "properties": {
            "@type": {"not": {"enum": sorted(SHOWN.values())}},
            **own,
            "grounding": _object({"source_urls": _array(TEXT), "citations": own["citations"]}),
        },
        "required": ["@type", *needed, "grounding"],
    }
    kinds = ("Answer", "Elicitation", "Promise", "Failure")
    frames = {
        "frame:_meta": _object({"_meta": _meta(*kinds, version="0.54")}),
        "frame:results": _object({"results": _array({"oneOf": [_ref("item"), _ref("shown")]})}),
        "frame:elicitation": _object({"elicitation": _elicitation()}),
        "frame:promise": _object({"promise": of_fields(Promised)}),
        "frame:error": _object({"error": of_fields(Failure)}),
    }
    defs = {**_envelopes("0.54", item), **frames}
    return _file("An event of the structured dialect 0.54", defs, (_ref(name) for name in frames))


# ---------------------------------------------------------------- the structured request

NUMBERS = {"num_results": (1, 1000), "max_results": (1, 100), "min_score": (0, 100), "start_num": (0, 1000)}
FLAGS = ("streaming", "provisional", "respond_async", "remember", "debug")


def _request() -> Schema:
    """What can be asked: the places of `server.wire.request`. Under `query` nothing else is taken."""
    parts: dict[str, Schema] = {}
    for place, name in PLACES.items():
        *path, key = place.split(".")
        at = parts
        for step in path:
            at = at.setdefault(step, {"type": "object", "properties": {}})["properties"]
        at[key] = _parameter(name)
    parts["query"] |= {"required": ["text"], "additionalProperties": False}
    return {
        "$schema": DRAFT,
        "title": "A question in the structured dialect",
        "type": "object",
        "properties": parts,
        "required": ["query"],
    }


def _parameter(name: str) -> Schema:
    texts = {"anyOf": [TEXT, _array(TEXT)]}
    if name in NUMBERS:
        low, high = NUMBERS[name]
        return {"type": "integer", "minimum": low, "maximum": high}
    if name in FLAGS:
        return {"type": "boolean"}
    if name == "query":
        return {"type": "string", "minLength": 1, "maxLength": MAX_QUERY_CHARS}
    if name in ("site", "memory"):
        return texts
    if name == "prev":
        return _array({"type": ["string", "object"]})
    if name in ("last_ans", "tags", "filters"):
        return _array({"type": "object"})
    if name == "response_format":
        return of_type(ResponseFormat)
    return TEXT


def main(folder: Path) -> None:
    """Write the files."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, schema in schemas().items():
        (folder / name).write_text(written(schema), encoding="utf-8")


def written(schema: Schema) -> str:
    """A schema as its file holds it."""
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
