"""What comes back from an OpenAI-compatible endpoint: events, text without thinking, usage, failures."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

import orjson

from core.errors import BadModelReply, ModelBusy, ModelError, ModelRefused
from core.providers.base import Usage

CHARS_PER_TOKEN = 4
DONE = b"[DONE]"
THINK = re.compile(r"<think(?:ing)?>")
THOUGHT_END = re.compile(r"</think(?:ing)?>")
LONGEST_TAG = 11
NAMED_FAILURES = {  # error codes and types that stand where a status should
    "rate_limit": 429,
    "too_many": 429,
    "insufficient_quota": 429,
    "overloaded": 503,
    "invalid_api_key": 401,
    "authentication": 401,
    "permission": 403,
    "invalid_request": 400,
    "not_found": 404,
}


class Again(Exception):
    """A failure after which the call may be tried again: after so many seconds if the endpoint said so, and
    without counting as a retry if `free`."""

    def __init__(self, error: ModelError, after: float | None = None, *, free: bool = False) -> None:
        super().__init__(error.message)
        self.error = error
        self.after = after
        self.free = free


# ---------------------------------------------------------------- events and text


class Events:
    """Server-sent events from network chunks that end anywhere: the `data` of each
    (https://html.spec.whatwg.org/multipage/server-sent-events.html). Bytes stay bytes, so that no character
    is cut."""

    def __init__(self) -> None:
        self._tail = b""
        self._data: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        """The events that end in this chunk."""
        *lines, self._tail = (self._tail + chunk).split(b"\n")
        return [event for line in lines for event in self._line(line.removesuffix(b"\r"))]

    def close(self) -> list[bytes]:
        """An event that no blank line ended, as some endpoints leave it out."""
        return [*self._line(self._tail.removesuffix(b"\r")), *self._line(b"")]

    def _line(self, line: bytes) -> list[bytes]:
        if line.startswith(b"data:"):
            self._data.append(line[5:].removeprefix(b" "))
        elif not line and self._data:
            event = b"\n".join(self._data)
            self._data = []
            return [event]
        return []


class ReplyText:
    """A reply's text without the thinking in front of it and with characters made whole again. Thinking
    counts only before the answer: later on `<think>` is text like any other."""

    def __init__(self) -> None:
        self._state = "front"
        self._held = ""

    def feed(self, piece: str) -> str:
        """What of this piece, and of what was held back before, belongs to the answer."""
        text = self._held + piece
        self._held = ""
        while self._state != "answer":
            if self._state == "thinking":
                end = THOUGHT_END.search(text)
                if end is None:
                    self._held = text[-LONGEST_TAG:]
                    return ""
                self._state, text = "front", text[end.end() :]
            text = text.lstrip()
            begin = THINK.match(text)
            if begin is not None:
                self._state, text = "thinking", text[begin.end() :]
            elif "<thinking>".startswith(text) or text == "<think":
                self._held = text
                return ""
            else:
                self._state = "answer"
        return self._whole_characters(text)

    def close(self) -> str:
        """What was held back; thinking that never ended is none of it."""
        held, self._held = self._held, ""
        return "" if self._state == "thinking" else joined(held)

    def _whole_characters(self, text: str) -> str:
        if text and "\ud800" <= text[-1] <= "\udbff":  # the first half of a character, escaped in two deltas
            text, self._held = text[:-1], text[-1]
        return joined(text)


def joined(text: str) -> str:
    """Surrogate pairs as one character, halves without the other as U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def whole_text(text: str) -> str:
    """A complete reply without its thinking, also where the template ate the opening tag."""
    reader = ReplyText()
    answer = reader.feed(text) + reader.close()
    head, end, rest = answer.partition("</think>")
    return rest.lstrip() if end and not head.lstrip().startswith(("{", "[")) else answer


def content_text(content: Any) -> str:
    """A message's or delta's content: a string, or a list of typed parts of which the texts count."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = [part for part in content if isinstance(part, dict) and part.get("type") == "text"]
        return "".join(str(part.get("text") or "") for part in parts)
    return ""


def parse(data: bytes) -> Any:
    """The JSON in a body or event, also with halves of characters or broken UTF-8 in it. Raises
    BadModelReply."""
    try:
        return orjson.loads(data)
    except ValueError:
        pass
    try:
        return json.loads(data.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        raise BadModelReply("the model endpoint sent something that is not JSON") from None


@dataclass(slots=True)
class Part:
    """What one event or one whole reply says."""

    text: str
    finished: bool
    declined: bool


def part_of(payload: Any) -> Part:
    """The first choice of a reply, whole or in pieces; reasoning fields are left where they are. Raises
    BadModelReply for something else than a reply."""
    choices = payload.get("choices") if isinstance(payload, dict) else None
    if not isinstance(choices, list):
        raise BadModelReply("the model endpoint sent something that is not a reply")
    choice = choices[0] if choices and isinstance(choices[0], dict) else {}
    message = choice.get("delta") or choice.get("message") or {}
    if not isinstance(message, dict):
        raise BadModelReply("the model endpoint sent something that is not a reply")
    return Part(
        text=content_text(message.get("content")),
        finished=bool(choice.get("finish_reason")),
        declined=bool(message.get("refusal")) or choice.get("finish_reason") == "content_filter",
    )


class Meter:
    """Tokens of one call: as reported, else estimated from the characters."""

    def __init__(self, messages: list[dict[str, str]]) -> None:
        self._prompt_chars = sum(len(message["content"]) for message in messages)
        self._chars = 0
        self._reported: tuple[int, int] | None = None
        self._cached: int | None = None

    def saw(self, payload: Mapping[str, Any], text: str) -> None:
        """Count a reply or a part of one."""
        self._chars += len(text)
        usage = payload.get("usage")
        if isinstance(usage, dict):
            counts = usage.get("prompt_tokens"), usage.get("completion_tokens")
            if isinstance(counts[0], int) and isinstance(counts[1], int):
                self._reported = counts[0], counts[1]
            details = usage.get("prompt_tokens_details")
            cached = details.get("cached_tokens") if isinstance(details, dict) else None
            if isinstance(cached, int):
                self._cached = cached

    def total(self) -> Usage:
        """What the call took so far, the call itself not counted."""
        estimate = self._prompt_chars // CHARS_PER_TOKEN, self._chars // CHARS_PER_TOKEN
        prompt, completion = self._reported or estimate
        return Usage(prompt_tokens=prompt, completion_tokens=completion, cached_tokens=self._cached)


# ---------------------------------------------------------------- failures


def failed_status(payload: Any) -> int | None:
    """The status of an error that came in a body or event of status 200; None if it holds no error."""
    error = payload.get("error") if isinstance(payload, dict) else None
    if not error:
        return None
    code = error.get("code") if isinstance(error, dict) else None
    if str(code).isdecimal() and 400 <= int(str(code)) < 600:
        return int(str(code))
    named = f"{code} {error.get('type')}".lower() if isinstance(error, dict) else ""
    return next((status for name, status in NAMED_FAILURES.items() if name in named), 502)


def complaint_in(payload: Any) -> str:
    """What an endpoint says against a request: which parameter, then why. What it echoes is left out."""
    if not isinstance(payload, dict):
        return ""
    error = payload.get("error") or payload
    if not isinstance(error, dict):
        return str(error)
    detail = error.get("detail")
    if isinstance(detail, list):  # validation errors as FastAPI writes them
        return " ".join(f"{item.get('loc')} {item.get('msg')}" for item in detail if isinstance(item, dict))
    return " ".join(str(error[key]) for key in ("param", "code", "message", "detail") if error.get(key))


def failure(status: int, headers: Mapping[str, str], complaint: str, model: str) -> Again | ModelError:
    """What a status means. The endpoint's own words stay out of it: they may hold the key."""
    told = f"(status {status})"
    if status in (401, 403):
        return ModelRefused(f"the model endpoint refused the key {told}: check `llm.api_key`")
    if status == 429 and "insufficient_quota" in complaint:
        return ModelRefused(f"the quota of the model endpoint is used up {told}")
    if status in (429, 503, 529):
        return Again(ModelBusy(f"the model endpoint is busy {told}"), retry_after(headers))
    if status >= 500 or status in (408, 409, 425):
        return Again(ModelError(f"the model endpoint failed {told}"), retry_after(headers))
    if status == 404 or "model_not_found" in complaint:
        return ModelRefused(
            f"the model endpoint has no model `{model}` {told}: check the model and `llm.base_url`"
        )
    if status == 413 or "context_length" in complaint or "context length" in complaint.lower():
        return ModelRefused(f"the prompt is too long for `{model}` {told}")
    return ModelRefused(f"the model endpoint refused the request for `{model}` {told}")


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds until an endpoint wants to be asked again: `Retry-After` in seconds or as a date (RFC 9110,
    10.2.3), or the `retry-after-ms` of OpenAI."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            seconds = float(value) * unit
        except ValueError:
            continue
        if not math.isnan(seconds):
            return max(0.0, seconds)
    try:
        return max(0.0, parsedate_to_datetime(headers.get("retry-after", "")).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None
