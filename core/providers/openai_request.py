"""What is sent to an OpenAI-compatible endpoint, by what the model there was found able to do."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from typing import Any

import orjson

from core.providers.base import ModelCall

WRAPPER = "items"  # json_schema and json_object allow no list as the root, so lists stand under this key
TOLD_SCHEMA = "Reply with JSON and nothing before or after it. It has to fit this JSON schema:\n"
FORMAT_WORDS = (
    "response_format",
    "response format",
    "json_schema",
    "json_object",
    "json mode",
    "structured output",
)
STRICT_WORDS = ("invalid schema", "strict", "additionalproperties", "'required'")

# https://platform.openai.com/docs/guides/structured-outputs: what a strict schema may hold.
STRICT_KEYS = frozenset(
    {
        *("type", "properties", "required", "additionalProperties", "items", "enum", "const", "description"),
        *("title", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        *("minItems", "maxItems", "pattern"),
    }
)
STRICT_TYPES = frozenset({"object", "array", "string", "integer", "number", "boolean", "null"})


class Structured(IntEnum):
    """Means to get JSON, best first."""

    STRICT = 0
    SCHEMA = 1
    OBJECT = 2
    TEXT = 3


@dataclass(slots=True)
class Abilities:
    """What a model takes, as far as is known; it only ever goes down, so learning ends."""

    structured: Structured = Structured.STRICT
    max_tokens_name: str | None = "max_tokens"
    temperature: bool = True
    stream_usage: bool = True

    def learn(self, body: Mapping[str, Any], complaint: str) -> bool:
        """Step down by what an endpoint complained of. True if `body` held it: without it, the call may
        work."""
        text = complaint.lower()
        if "context length" in text or "context_length" in text:
            return False
        wanted = body.get("response_format")
        if wanted and any(word in text for word in FORMAT_WORDS):
            self.structured = max(self.structured, step_below(wanted, text))
        elif "stream_options" in body and ("stream_options" in text or "include_usage" in text):
            self.stream_usage = False
        elif "max_tokens" in body and "max_tokens" in text:
            self.max_tokens_name = self.max_tokens_name and "max_completion_tokens"
        elif "max_completion_tokens" in body and "max_completion_tokens" in text:
            self.max_tokens_name = None
        elif "temperature" in body and "temperature" in text:
            self.temperature = False
        else:
            return False
        return True


def step_below(wanted: Mapping[str, Any], complaint: str) -> Structured:
    """The next means after the one that was complained of."""
    if wanted["type"] == "json_object":
        return Structured.TEXT
    if wanted["json_schema"].get("strict") and any(word in complaint for word in STRICT_WORDS):
        return Structured.SCHEMA
    return Structured.OBJECT


def request_body(call: ModelCall, model: str, abilities: Abilities, *, streamed: bool) -> dict[str, Any]:
    """The body of POST /chat/completions."""
    wanted, told = None, ""
    if call.schema is not None:
        schema = orjson.dumps(dict(call.schema))
        wanted, told = response_format(schema, call.schema_name, abilities.structured)
    system = "\n\n".join(part for part in (call.system, told) if part)
    messages = [{"role": "system", "content": system}] if system else []
    messages.append({"role": "user", "content": call.prompt})
    body: dict[str, Any] = {"model": model, "messages": messages}
    if wanted is not None:
        body["response_format"] = wanted
    if abilities.temperature:
        body["temperature"] = call.temperature
    if call.max_tokens is not None and abilities.max_tokens_name is not None:
        body[abilities.max_tokens_name] = call.max_tokens
    if streamed:
        body["stream"] = True
        if abilities.stream_usage:
            body["stream_options"] = {"include_usage": True}
    return body


@lru_cache(maxsize=512)
def response_format(schema: bytes, name: str, means: Structured) -> tuple[dict[str, Any] | None, str]:
    """The request's `response_format` for this schema (as JSON), and what the system message has to tell."""
    wrapped = wrap(orjson.loads(schema))
    if means <= Structured.SCHEMA:
        strict = strict_schema(wrapped) if means == Structured.STRICT else None
        named = {"name": re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64] or "reply"}
        if strict is None:
            return {"type": "json_schema", "json_schema": {**named, "schema": wrapped}}, ""
        return {"type": "json_schema", "json_schema": {**named, "schema": strict, "strict": True}}, ""
    told = TOLD_SCHEMA + orjson.dumps({"title": name, **wrapped}).decode()
    return ({"type": "json_object"} if means == Structured.OBJECT else None), told


def wrap(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with an object as its root."""
    if schema.get("type") != "array":
        return schema
    return {
        "type": "object",
        "properties": {WRAPPER: schema},
        "required": [WRAPPER],
        "additionalProperties": False,
    }


def strict_schema(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """The schema as strict mode wants it, or None where that would change what it means."""
    if not schema.keys() <= STRICT_KEYS or str(schema.get("type")) not in STRICT_TYPES:
        return None
    if schema["type"] == "array":
        items = strict_schema(schema["items"]) if "items" in schema else None
        return None if items is None else {**schema, "items": items}
    if schema["type"] != "object":
        return dict(schema)
    properties = {name: strict_schema(sub) for name, sub in schema.get("properties", {}).items()}
    whole = (
        properties and None not in properties.values() and set(schema.get("required", ())) == set(properties)
    )
    if not whole or schema.get("additionalProperties", False) is not False:
        return None
    return {**schema, "properties": properties, "additionalProperties": False}
