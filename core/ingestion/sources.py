"""Find what to load (files, folders, patterns, standard input) and read it, whatever kind it is."""

from __future__ import annotations

import glob
import io
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Literal, cast
from urllib.parse import quote

import orjson

from core.ingestion.decoding import decode, marked_encoding
from core.ingestion.items import NotLoaded, Outcome, Read
from core.ingestion.jsonl import read_lines
from core.ingestion.jsonld import BadJson, Place, items_from_data, parse
from core.ingestion.pages import read_page
from core.ingestion.text import names

MAX_BYTES = 100_000_000  # of one file; files of lines are read line by line and may be larger

_HEAD = 65_536
_MARKS = {
    b"%PDF": "PDF",
    b"PK\x03\x04": "ZIP or Office document",
    b"\xd0\xcf\x11\xe0": "Office document",
    b"\x1f\x8b": "gzip",
    b"\x89PNG": "image",
    b"GIF8": "image",
    b"\xff\xd8\xff": "image",
    b"{\\rtf": "RTF",
}
_PAGE_NAMES = frozenset({".html", ".htm", ".xhtml", ".shtml"})
_LINE_NAMES = frozenset({".jsonl", ".ndjson", ".jsonlines"})
_JSON_NAMES = frozenset({".json", ".jsonld"})
_PARTS_OF_PAGES = names(
    """.css .js .mjs .map .png .jpg .jpeg .gif .webp .avif .svg .ico .woff .woff2 .ttf .otf .eot .mp4 .webm
    .mp3"""
)
_LOOKS_LIKE_PAGE = re.compile(
    r"<(?:!doctype\s+html|html|head|body|meta|title|script|div|main|article|p|h1)\b", re.I
)
_FEED = re.compile(r"<(?:rss|feed|rdf:RDF|urlset|sitemapindex)\b", re.I)
_ADDRESS_AND_JSON = re.compile(r"[^\s{\[\"]\S*\t\s*[{\[]")
_URL = re.compile(r"[a-z][a-z0-9+.-]*://", re.I)

Kind = Literal["page", "lines", "json"]


@dataclass(frozen=True, slots=True)
class Source:
    """One file to read. `name` is what reports call it, `problem` says why it cannot be read.

    `address` is what its items are called that have no address of their own: `file:` and the path from the
    working folder, however it was named; for what lies outside of it, from the parent of what was named."""

    name: str
    path: Path | None = None
    data: bytes | None = None  # instead of a path: what was uploaded
    address: str = ""
    problem: str = ""
    in_folder: bool = False  # found by looking through a folder, not named


STDIN = Source("standard input", address="file:stdin")


def uploaded(name: str, data: bytes) -> Source:
    """A source of bytes that came with a name (an upload)."""
    return Source(name, data=data, address=_file_address(name.replace("\\", "/").rsplit("/", 1)[-1]))


def discover(sources: Sequence[str]) -> Iterator[Source]:
    """The files that `sources` mean, each once: a file, a folder (all below it, sorted, hidden ones left
    out), a pattern (`**` for folders), `-` for standard input. What is missing comes with its `problem`."""
    seen: set[Path] = set()
    addresses: dict[str, int] = {}
    for given in sources:
        for source in _discover_one(given):
            if source.path is not None:
                real = source.path.resolve()
                if real in seen:
                    continue
                seen.add(real)
            yield replace(source, address=_unique(source, addresses))


def read_source(source: Source) -> Iterator[Read]:
    """The items of a source, and a word on all that became none. Never raises because of what a file holds;
    one that cannot be read is a NotLoaded."""
    if source.problem:
        yield NotLoaded(source.name, "", source.problem, "skipped" if source.in_folder else "failed")
        return
    try:
        with _opened(source) as stream:
            yield from _read(stream, source)
    except OSError as exc:
        yield NotLoaded(source.name, "", f"cannot be read: {exc.strerror or exc}", "failed")


# ---------------------------------------------------------------- finding


def _discover_one(given: str) -> Iterator[Source]:
    if given == "-":
        yield STDIN
        return
    if _URL.match(given):
        reason = "fetching web addresses is not available yet; save the page and load the file"
        yield Source(given, problem=reason)
        return
    path = Path(given)
    try:
        if path.is_dir():
            yield from _folder(path)
        elif path.is_file():
            yield Source(_shown(path), path, address=_address(path, path.parent))
        elif glob.has_magic(given):
            yield from _pattern(given)
        elif path.exists():
            yield Source(given, problem="not a regular file")
        else:
            yield Source(given, problem="there is no such file or folder")
    except (OSError, ValueError) as exc:
        yield Source(given, problem=f"cannot be read: {exc}")


def _folder(folder: Path) -> Iterator[Source]:
    found = False
    for where, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            if not name.startswith("."):
                found = True
                path = Path(where, name)
                address = _address(path, folder)
                problem = "" if path.is_file() else "not a regular file"
                yield Source(_shown(path), path, address=address, in_folder=True, problem=problem)
    if not found:
        yield Source(str(folder), problem="the folder holds no files")


def _pattern(pattern: str) -> Iterator[Source]:
    root = Path(*_fixed_parts(pattern))
    found = False
    for name in sorted(glob.glob(pattern, recursive=True)):
        path = Path(name)
        if path.is_file():
            found = True
            yield Source(_shown(path), path, address=_address(path, root), in_folder=True)
    if not found:
        yield Source(pattern, problem="no file matches")


def _fixed_parts(pattern: str) -> list[str]:
    parts: list[str] = []
    for part in Path(pattern).parts[:-1]:
        if glob.has_magic(part):
            break
        parts.append(part)
    return parts


def _address(path: Path, named: Path) -> str:
    """The same for a file whichever way it was named, and another for its namesake in another folder."""
    absolute = os.path.abspath(path)
    inside = os.path.relpath(absolute)
    if inside.startswith(os.pardir):
        # The path up to there is nobody's business.
        inside = os.path.relpath(absolute, os.path.dirname(os.path.abspath(named)))
    return _file_address(inside)


def _shown(path: Path) -> str:
    """A path for reports: file names are bytes, and not all of them are UTF-8."""
    return os.fsencode(path).decode("utf-8", "replace")


def _file_address(path: str) -> str:
    return f"file:{quote(path.lstrip('/'), safe='/-._~()', errors='replace')}"


def _unique(source: Source, addresses: dict[str, int]) -> str:
    """Two files of one name from two folders stay two."""
    number = addresses[source.address] = addresses.get(source.address, 0) + 1
    return source.address if number == 1 or not source.address else f"{source.address}~{number}"


# ---------------------------------------------------------------- reading


def _opened(source: Source) -> AbstractContextManager[BinaryIO]:
    if source.data is not None:
        return io.BytesIO(source.data)
    if source.path is None:
        return nullcontext(cast(BinaryIO, sys.stdin.buffer))
    return source.path.open("rb")


def _read(stream: BinaryIO, source: Source) -> Iterator[Read]:
    head = stream.read(_HEAD)
    if not head.strip(b" \t\r\n\x00\xef\xbb\xbf"):
        yield NotLoaded(source.name, "", "the file is empty", "skipped")
        return
    kind = _kind(source, head)
    if isinstance(kind, NotLoaded):
        yield kind
    elif kind == "lines":
        whole = cast(BinaryIO, io.BufferedReader(_Chained(head, stream)))
        yield from read_lines(whole, source.name, source.address, head)
    else:
        data = head + stream.read(MAX_BYTES - len(head) + 1)
        if len(data) > MAX_BYTES:
            reason = f"larger than {MAX_BYTES // 1_000_000} MB"
            yield NotLoaded(source.name, "", reason, "failed")
        elif kind == "page":
            yield from read_page(data, source.name, source.address)
        else:
            yield from _read_json(data, source)


def _read_json(data: bytes, source: Source) -> Iterator[Read]:
    try:
        value = parse(decode(data))
    except BadJson as exc:
        where = f"{source.name}:{exc.line}:{exc.column}" if exc.line else source.name
        yield NotLoaded(where, "", f"no valid JSON: {exc.reason}", "failed")
        return
    yield from items_from_data(value, Place(source.name, fallback=source.address))


class _Chained(io.RawIOBase):
    """What was read ahead, then the rest of a stream that cannot be wound back."""

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        self._head = head
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(cast(bytearray, buffer))
        data = self._head[: len(view)] or self._rest.read(len(view))
        self._head = self._head[len(data) :]
        view[: len(data)] = data
        return len(data)


# ---------------------------------------------------------------- kinds


def _kind(source: Source, head: bytes) -> Kind | NotLoaded:
    """What a file is, by its content where that is plain, else by its name."""
    name = (source.path.name if source.path else source.name).lower()
    suffix = Path(name).suffix
    if source.in_folder and suffix in _PARTS_OF_PAGES:
        return NotLoaded(source.name, "", f"not content ({suffix[1:]})", "skipped")
    for mark, what in _MARKS.items():
        if head.startswith(mark):
            return _unsupported(source, what)
    start = _start(head)
    is_page = suffix in _PAGE_NAMES or (
        start[:1] == "<" and not _FEED.search(start[:2000]) and bool(_LOOKS_LIKE_PAGE.search(start[:2000]))
    )
    if b"\x00" in head and not marked_encoding(head) and not (is_page and start[:1] == "<"):
        return _unsupported(source, "binary data")
    if suffix in _LINE_NAMES:
        return "lines"
    if start[:1] in {"{", "["}:
        return "lines" if _is_line(start) else "json"
    if _ADDRESS_AND_JSON.match(start):
        return "lines"
    if suffix in _JSON_NAMES:
        return "json"
    if is_page:
        return "page"
    return _unsupported(source, suffix[1:] or "plain text")


def _unsupported(source: Source, what: str) -> NotLoaded:
    """A failure where a person named the file; what lies about in a folder is passed over."""
    outcome: Outcome = "skipped" if source.in_folder else "failed"
    return NotLoaded(source.name, "", f"kind not supported yet: {what}", outcome)


def _start(head: bytes) -> str:
    encoding = marked_encoding(head) or "utf-8"
    return head.decode(encoding, "replace").lstrip("\ufeff \t\r\n")


def _is_line(start: str) -> bool:
    """Whether the first line is JSON of its own with another line after it."""
    line, _, rest = start.partition("\n")
    if not rest.strip():
        return False
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError:
        return False
    return True
