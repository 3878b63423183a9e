"""Events as a browser reads them, and checks of what is in them against the dialects' schemas."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import jsonschema_rs
from jsonschema_rs import Draft202012Validator

from server.wire.schemas import schemas


@dataclass(frozen=True)
class Event:
    """What an EventSource dispatches."""

    name: str
    data: str
    last_id: str

    @property
    def json(self) -> Any:
        return json.loads(self.data)


@dataclass
class EventReader:
    """The event stream grammar (WHATWG HTML, 9.2.6), fed with bytes cut anywhere."""

    retry: int | None = None
    comments: int = 0
    _buffer: bytes = b""
    _id: str = ""
    _name: str = ""
    _data: list[str] = field(default_factory=list)

    def feed(self, piece: bytes) -> Iterator[Event]:
        self._buffer += piece
        *lines, self._buffer = self._buffer.split(b"\n")
        for line in lines:
            if (event := self._line(line.decode("utf-8", "strict"))) is not None:
                yield event

    def _line(self, line: str) -> Event | None:
        if line == "":
            event = Event(self._name or "message", "\n".join(self._data), self._id) if self._data else None
            self._name, self._data = "", []
            return event
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "":
            self.comments += 1
        elif name == "data":
            self._data.append(value)
        elif name == "event":
            self._name = value
        elif name == "id":
            self._id = value
        elif name == "retry":
            self.retry = int(value)
        return None


@cache
def validator(dialect: str, definition: str | None = None) -> Draft202012Validator:
    """A validator for the events of a dialect, or for one definition of its schema."""
    schema = schemas()[f"{dialect}.json"]
    if definition is not None:
        schema = {"$ref": f"#/$defs/{definition}", "$defs": schema["$defs"]}
    jsonschema_rs.meta.validate(schema)
    return Draft202012Validator(schema)


def check(dialect: str, instance: Any, definition: str | None = None) -> None:
    """Raises AssertionError saying what in `instance` is not as the schema has it."""
    wrong = [
        f"{error.instance_path}: {error.message}"
        for error in validator(dialect, definition).iter_errors(instance)
    ]
    assert not wrong, (dialect, definition, wrong, instance)


def check_legacy(frame: dict[str, Any]) -> None:
    """A legacy frame against the definition of its type: quick, and with an error that says something."""
    kinds = schemas_of_legacy()
    kind = frame["message_type"]
    check("legacy", frame, kind if kind in kinds else "header")


@cache
def schemas_of_legacy() -> frozenset[str]:
    return frozenset(schemas()["legacy.json"]["$defs"]) - {"item", "whole", "refusal", "header"}


def check_event(dialect: str, event: Event) -> None:
    """An event of any dialect as it came over the wire."""
    if dialect == "structured-0.55":
        check(dialect, {"event": event.name, "data": event.json})
        return
    assert event.name == "message"
    check(dialect, event.json)
