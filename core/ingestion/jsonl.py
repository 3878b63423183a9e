"""Lines of JSON, with or without an address in front, read one at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import BinaryIO

from core.ingestion import urls
from core.ingestion.decoding import guess, marked_encoding
from core.ingestion.items import NotLoaded, Read
from core.ingestion.jsonld import BadJson, Place, items_from_data, parse

MAX_LINE = 20_000_000  # bytes


def read_lines(stream: BinaryIO, source: str, fallback: str, head: bytes = b"") -> Iterator[Read]:
    """The items of each line: `address<TAB>json` (further columns are left alone) or JSON alone, an object
    or an array. A line that cannot be read is reported with its number and the rest goes on.

    `head` is the file's beginning, to tell its encoding by. Holds one line at a time (and the names of those
    without an address, to keep equal ones apart)."""
    encoding = marked_encoding(head) or _encoding_of(head)
    lines = _wide_lines(stream, encoding) if encoding.startswith(("utf-16", "utf-32")) else _lines(stream)
    fragments: dict[tuple[str, str], int] = {}
    number = 0
    for number, line in enumerate(lines, start=1):
        where = f"{source}:{number}"
        if line is None:
            yield NotLoaded(where, "", f"line longer than {MAX_LINE // 1_000_000} MB", "failed")
            continue
        try:
            text = line.decode(encoding).strip("\ufeff\r\n\t ")
        except UnicodeDecodeError as exc:
            yield NotLoaded(where, "", f"not {encoding} (byte {exc.start + 1})", "failed")
            continue
        if text:
            yield from _read_line(text, Place(where, fallback=fallback, shared=fragments))
    if number == 0:
        yield NotLoaded(source, "", "the file is empty", "skipped")


def _read_line(text: str, place: Place) -> Iterator[Read]:
    address, body = _columns(text)
    try:
        value = parse(body)
    except BadJson as exc:
        value = _first_value(body) if "\t" in body else None
        if value is None:
            where = f", column {exc.column + len(text) - len(body)}" if exc.column else ""
            yield NotLoaded(place.source, address[:200], f"no valid JSON: {exc.reason}{where}", "failed")
            return
    url = urls.safe(address)
    if address and not url:
        yield NotLoaded(place.source, address[:200], "not a web address", "failed")
        return
    yield from items_from_data(value, replace(place, url=url, is_page=bool(url)))


def _columns(text: str) -> tuple[str, str]:
    """The address in front, "" if the line is JSON alone, and the rest."""
    if text[0] in "{[" or "\t" not in text:
        return "", text
    address, _, body = text.partition("\t")
    return address.strip(), body.strip()


def _first_value(body: str) -> object | None:
    """The value a line begins with, where further columns (embeddings of another loader) follow a tab."""
    try:
        value, end = json.JSONDecoder(strict=False).raw_decode(body)
        return parse(body[:end]) if value is not None and body[end : end + 1] in {"\t", ""} else None
    except (ValueError, RecursionError):
        return None


def _encoding_of(head: bytes) -> str:
    """UTF-8 as soon as a line proves it, even if another is damaged; else what the bytes look like."""
    lines = [line for line in head[: head.rfind(b"\n") + 1 or len(head)].split(b"\n") if not line.isascii()]
    if not lines or any(map(_is_utf8, lines)):
        return "utf-8"
    return guess(b"\n".join(lines)) or "utf-8"


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _lines(stream: BinaryIO) -> Iterator[bytes | None]:
    """The lines as bytes; None stands for one that is too long."""
    while line := stream.readline(MAX_LINE + 1):
        if len(line) <= MAX_LINE:
            yield line
            continue
        yield None
        while line and not line.endswith(b"\n"):
            line = stream.readline(MAX_LINE)


def _wide_lines(stream: BinaryIO, encoding: str) -> Iterator[bytes | None]:
    """Lines of UTF-16 and UTF-32, where a line end is more than one byte."""
    end = "\n".encode(encoding)
    rest = b""
    while block := stream.read(65_536):
        rest += block
        while (cut := _aligned(rest, end)) >= 0:
            yield rest[: cut + len(end)]
            rest = rest[cut + len(end) :]
        if len(rest) > MAX_LINE:
            yield None
            return
    if rest:
        yield rest


def _aligned(data: bytes, end: bytes) -> int:
    at = data.find(end)
    while at % len(end) and at >= 0:
        at = data.find(end, at + 1)
    return at
