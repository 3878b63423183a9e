"""Reads JSON objects out of a model's reply while it streams, whatever is put around them or broken in them.

The scanner finds where objects begin and end and leaves their values to a parser, so every character is
looked at a fixed number of times. It is exact for valid JSON; its rules for broken JSON never fire on valid
text: a quote that is followed by none of `,` `:` `}` `]` did not end its string, and a `{` inside an object
that follows no `:` means that the object before it was never closed.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

import json_repair
import orjson

STRUCTURE = re.compile(r'["{}\[\],:]')
IN_STRING = re.compile(r'["\\]')
OUTSIDE = re.compile(r"[{\[\],]|<think(?:ing)?>")
THOUGHT_END = re.compile(r"</think(?:ing)?>")
TAG_BEGUN = re.compile(r"</?[a-z]{0,8}\Z")  # a thinking tag that may go on in the next piece
SWALLOWED = re.compile(r"\}\s*(?:,\s*)?(\{\s*)\Z")  # what a "string" ends with that ran past its object's end
LAST_SCALAR = re.compile(r'[,{]\s*"(?:[^"\\]|\\.)*"\s*:\s*[-+.\w]*\Z')

LONGEST_TAG = 11
TAIL = 64  # characters in which a swallowed end is looked for
LAST_FIELD = 2_000  # ... and a last field that was cut off
MAX_REPAIR = 200_000  # repairing is for replies, not for floods


@dataclass(slots=True)
class _Open:
    """An object whose end has not come yet."""

    element: bool  # it came out of a list, so lists in it are its own
    text: list[str] = field(default_factory=list)
    stack: list[str] = field(default_factory=lambda: ["{"])
    braces: int = 1  # how many of them are `{`
    yielded: bool = False  # an object of one of its lists went out: it was only a wrapper


class ObjectReader:
    """Yields each JSON object as soon as its closing brace has arrived.

    Objects come from the outermost array, from an array directly under a key of an outer object, one after
    the other (JSON lines), or alone. Fences, prose and thinking around them are skipped. An outer object is
    yielded whole only if no object of its lists was. With `want`, only objects that have that key count
    there: `{"tag": "a", "sources": [{"n": 1}]}` is one object to a reader that wants `tag`, else a list.
    """

    def __init__(self, want: str = "") -> None:
        self._want = want
        self._state = self._outside
        self._held = ""  # the beginning of a thinking tag, until the rest is there
        self._last = ""  # the last structural character, "x" for anything else
        self._lists = 0  # open lists that are in no object
        self._open: _Open | None = None
        self._around: _Open | None = None
        self._mark = 0  # from here on the current piece is not in the open object's text yet
        self._found: list[dict[str, Any]] = []

    def feed(self, piece: str) -> list[dict[str, Any]]:
        """The objects that this piece completes, in order. Never raises, whatever the text."""
        piece = self._held + piece
        self._held = ""
        self._mark = 0
        at = 0
        while at < len(piece):
            at = self._state(piece, at)
        self._collect(piece, len(piece))
        return self._take_found()

    def close(self) -> list[dict[str, Any]]:
        """The end of the reply: an object that was cut off is repaired if something is in it. A number or
        word that the text ends with is left out, as the rest of it may be missing (the 8 of 85)."""
        in_string = self._state in (self._string, self._escaped)
        while self._open is not None:
            text = "".join(self._open.text)
            if not in_string:
                cut = LAST_SCALAR.search(text, max(0, len(text) - LAST_FIELD))
                text = text if cut is None else text[: cut.start() + (cut.start() == 0)]
            self._finish(text)
        self._held = ""
        self._lists = 0
        return self._take_found()

    def _take_found(self) -> list[dict[str, Any]]:
        found, self._found = self._found, []
        return found

    def _collect(self, piece: str, end: int) -> None:
        if self._open is not None and not self._open.yielded and end > self._mark:
            self._open.text.append(piece[self._mark : end])
        self._mark = end

    def _note_gap(self, piece: str, start: int, end: int) -> None:
        if end > start and not piece[start:end].isspace():
            self._last = "x"

    # ---------------------------------------------------- states: from a place in the piece to the next one

    def _outside(self, piece: str, at: int) -> int:
        found = OUTSIDE.search(piece, at)
        if found is None:
            self._note_gap(piece, at, self._hold_tag(piece, at))
            return len(piece)
        self._note_gap(piece, at, found.start())
        mark = found.group()
        if mark == "{":
            self._mark = found.start()
            self._begin(_Open(element=self._lists > 0 and self._last in ("[", ",", "}")))
        elif mark[0] == "<":
            self._state = self._thinking
        else:
            self._lists = max(0, self._lists + {"[": 1, "]": -1, ",": 0}[mark])
            self._last = mark
        return found.end()

    def _thinking(self, piece: str, at: int) -> int:
        found = THOUGHT_END.search(piece, at)
        if found is None:
            self._hold_tag(piece, at)
            return len(piece)
        self._state = self._outside
        return found.end()

    def _hold_tag(self, piece: str, at: int) -> int:
        begun = TAG_BEGUN.search(piece, max(at, len(piece) - LONGEST_TAG))
        if begun is None:
            return len(piece)
        self._held = begun.group()
        return begun.start()

    def _structure(self, piece: str, at: int) -> int:
        assert self._open is not None
        stack = self._open.stack
        found = STRUCTURE.search(piece, at)
        if found is None:
            self._note_gap(piece, at, len(piece))
            return len(piece)
        self._note_gap(piece, at, found.start())
        mark = found.group()
        before, self._last = self._last, mark
        if mark == '"':
            self._state = self._string
        elif mark == "{":
            self._open_brace(piece, found.start(), before)
        elif mark == "[":
            stack.append("[")
        elif mark == "}":
            self._close_brace(piece, found.end())
        elif mark == "]" and stack[-1] == "[":
            stack.pop()
        return found.end()

    def _string(self, piece: str, at: int) -> int:
        found = IN_STRING.search(piece, at)
        if found is None:
            return len(piece)
        self._state = self._quoted if found.group() == '"' else self._escaped
        return found.end()

    def _escaped(self, piece: str, at: int) -> int:  # noqa: ARG002
        self._state = self._string
        return at + 1

    def _quoted(self, piece: str, at: int) -> int:
        """After a quote inside a string: whether it was the string's end shows in what follows."""
        assert self._open is not None
        while at < len(piece) and piece[at].isspace():
            at += 1
        if at < len(piece):
            self._state = self._structure if piece[at] in ",:}]" else self._string
            if self._state == self._string:
                self._collect(piece, at)
                if not self._open.yielded and not self._split_swallowed():
                    self._escape_last_quote()
        return at

    # ---------------------------------------------------- where objects begin and end

    def _begin(self, opened: _Open) -> None:
        self._open = opened
        self._last = "{"
        self._state = self._structure

    def _open_brace(self, piece: str, start: int, before: str) -> None:
        assert self._open is not None
        stack = self._open.stack
        if not self._open.element and self._open.braces == 1 and stack[-1] == "[":
            self._collect(piece, start)
            self._around = self._open
            self._begin(_Open(element=True))
        elif stack[-1] == "{" and before != ":":
            self._collect(piece, start)
            self._begin_after("".join(self._open.text), "")
        else:
            stack.append("{")
            self._open.braces += 1

    def _close_brace(self, piece: str, end: int) -> None:
        assert self._open is not None
        stack = self._open.stack
        while stack.pop() == "[":  # a list that was not closed ends with its object
            pass
        self._open.braces -= 1
        if not stack:
            self._collect(piece, end)
            self._finish("".join(self._open.text))

    def _begin_after(self, unfinished: str, beginning: str) -> None:
        """An object begins where the one before it should have ended: it is of the same kind."""
        assert self._open is not None
        self._tell(unfinished)
        self._begin(_Open(element=self._open.element, text=[beginning]))

    def _split_swallowed(self) -> bool:
        """Whether a string without an end has run into the next object: then end the one, begin the other."""
        assert self._open is not None
        parts = self._open.text
        length, first = 0, len(parts)
        while first and length < TAIL:
            first -= 1
            length += len(parts[first])
        tail = "".join(parts[first:])[-TAIL:].rstrip()
        swallowed = SWALLOWED.search(tail[:-1])
        if swallowed is None:
            return False
        text = "".join(parts).rstrip()
        cut = len(text) - len(tail) + swallowed.start()
        closed = text[:cut].rstrip() + '"}'
        self._begin_after(closed if _strict(closed) else text[: cut + 1], swallowed.group(1) + '"')
        self._state = self._string
        return True

    def _escape_last_quote(self) -> None:
        """It stands inside a string, as no parser could know afterwards."""
        assert self._open is not None
        parts = self._open.text
        n = len(parts) - 1
        while '"' not in parts[n]:
            n -= 1
        head, quote, blank = parts[n].rpartition('"')
        parts[n] = f"{head}\\{quote}{blank}"

    def _finish(self, text: str) -> None:
        """The open object is over: what was around it goes on."""
        self._tell(text)
        self._open, self._around = self._around, None
        self._last = "}"
        self._state = self._outside if self._open is None else self._structure

    def _tell(self, text: str) -> None:
        """Yield the open object, or leave it to the object around it."""
        assert self._open is not None
        if self._open.yielded:
            return
        value = parse_object(text)
        if self._around is None:
            if value:
                self._found.append(value)
        elif value and (not self._want or self._want in value):
            self._found.append(value)
            self._around.yielded = True
            self._around.text.clear()
        elif not self._around.yielded:
            self._around.text.append(text)


def parse_object(text: str) -> dict[str, Any] | None:
    """The JSON object that this text is or was meant to be; None if there is none. NaN and infinities are
    null and lone surrogates U+FFFD, as neither can be sent on."""
    value = _strict(text)
    if value is not None:
        return value
    try:
        loose = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        loose = _repaired(text)
    if not isinstance(loose, dict):
        return None
    sendable = (
        json.dumps(loose, ensure_ascii=False).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    )
    value = json.loads(sendable, parse_constant=lambda _: None)
    return value if isinstance(value, dict) else None


def _strict(text: str) -> dict[str, Any] | None:
    try:
        value = orjson.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _repaired(text: str) -> Any:
    if ":" not in text or len(text) > MAX_REPAIR:
        return None
    try:
        return json_repair.loads(text, skip_json_loads=True)
    except (ValueError, RecursionError, IndexError):
        return None
