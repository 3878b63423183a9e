"""Copies the prompt that holds into a site's own file, for its owner to change; what is there stays."""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lxml import etree

from core.errors import BadQuery, ConfigError
from core.prompting import schema_types
from core.prompting.library import PromptLibrary
from core.prompting.parse import (
    SITE_NAME,
    ParsedFile,
    Prompt,
    Source,
    SourceError,
    Span,
    decoded,
    encoding_of,
    local,
    parse_bytes,
    tree_of,
)
from core.prompting.refs import STEP_PREFIX
from core.prompting.schema_types import BASE

START = '<?xml version="1.0" encoding="UTF-8"?>\n<root xmlns="http://nlweb.ai/base">\n</root>\n'
TAB = "  "
NEWLINES = re.compile(r"\r\n|\r|\n")
PREFIXES = re.compile(r"(</?)[A-Za-z_][\w.-]*:(?=[A-Za-z_])")


@dataclass(frozen=True, slots=True)
class Copied:
    """What was written: where the copy is, what it is one of, and whether the file is new."""

    path: Path
    line: int
    source: Prompt
    created: bool


def copy_prompt(library: PromptLibrary, ref: str, folder: Path, *, site: str, item_type: str = "") -> Copied:
    """Write the prompt that holds for `site` and `item_type` (else the site's first type) into
    `folder/<site>.xml` as the site's own, with a comment on how to change it.

    The file is made, or added to: what stands in it stays, to the byte. Raises BadQuery where the site has
    that prompt already or there is none to copy, ConfigError where the file that is there has an error.
    """
    if not SITE_NAME.fullmatch(site):
        raise BadQuery(f"`{site}` is no site name: 1 to 64 of a-z 0-9 . _ -", field="site")
    item_type = schema_types.local_name(item_type or library.site(site).types[0])
    if item_type not in library.types:
        raise BadQuery(f"unknown type `{item_type}`{schema_types.guess(item_type)}", field="type")
    chain = library.chain(ref, site, item_type)
    if not chain:
        raise BadQuery(f"there is no `{ref}` for {item_type} to copy", field="name")
    source = chain[0]
    path = folder / f"{site}.xml"
    raw = path.read_bytes() if path.exists() else b""
    refuse_second((*chain, *usable(raw, path).prompts), ref, site, item_type)
    types = "" if library.site(site).files or item_type == BASE else item_type
    block = f"{advice(source)}\n{text_of_prompt(source)}"
    changed = with_copy(raw or START.encode(), block, site, item_type, types)
    key = (site, item_type, ref)
    own = [one for one in usable(changed, path).prompts if (one.site, one.item_type, one.ref) == key]
    if not own:
        raise ConfigError(f"{path}: cannot be added to; copy it by hand from {source.file}:{source.line}")
    folder.mkdir(parents=True, exist_ok=True)
    replace_file(path, changed)
    return Copied(path, own[-1].line, source, not raw)


def refuse_second(prompts: tuple[Prompt, ...], ref: str, site: str, item_type: str) -> None:
    for one in prompts:
        if (one.site, one.item_type, one.ref) == (site, item_type, ref):
            raise BadQuery(f"`{site}` has its own `{ref}` for {item_type} already: {one.file}:{one.line}")


def usable(raw: bytes, path: Path) -> ParsedFile:
    """The file, parsed; ConfigError with its errors. Variables of steps elsewhere are no matter here."""
    if not raw:
        return ParsedFile(str(path))
    parsed = parse_bytes(raw, str(path)).without(lambda _: True)
    wrong = [str(problem) for problem in parsed.problems if problem.severity == "error"]
    if wrong:
        raise ConfigError("\n".join(wrong))
    return parsed


def text_of_prompt(prompt: Prompt) -> str:
    """The prompt's element as it stands in its file, without its indentation."""
    text = decoded(Path(prompt.file).read_bytes())
    name = prompt.ref.removeprefix(STEP_PREFIX)
    source = Source(text)
    for element, span in elements(text):
        if source.position(span.start)[0] == prompt.line and element.get("ref", "") == name:
            whole = PREFIXES.sub(r"\1", text[span.start : text.index(">", span.end) + 1])
            return dedented(whole, span.start - (text.rfind("\n", 0, span.start) + 1))
    raise ConfigError(f"{prompt.file}:{prompt.line}: `{prompt.ref}` is not there any more")


def elements(text: str) -> Iterator[tuple[etree._Element, Span]]:
    """The elements of a file with their places, in document order. Raises ConfigError."""
    try:
        return zip(tree_of(text).iter(), Source(text).spans, strict=True)
    except SourceError as wrong:
        raise ConfigError(wrong.what) from None


def dedented(text: str, columns: int) -> str:
    first, *lines = text.split("\n")
    cut = [line[columns:] if not line[:columns].strip() else line.lstrip() for line in lines]
    return "\n".join([first, *cut])


def advice(prompt: Prompt) -> str:
    """The comment above a copy. It may not hold two dashes, so it names no options of commands."""
    keys = ", ".join(prompt.reply.keys) if prompt.reply else ""
    kept = f"Keep the keys of returnStruc ({keys}): they are what the step reads. " if keys else ""
    source = f"{Path(prompt.file).name}, line {prompt.line}".replace("--", "- -")
    said = (
        f"A copy of {source}, for this site alone. Change the words between <promptString> and "
        "</promptString> as you like; names in braces, such as {request.query}, stand for values. "
        f"{kept}Each example says what the reply to a question must hold: add those that matter to you. "
        "Then: askable prompts check, askable prompts try, askable prompts test. A running server takes the "
        "file as soon as it is saved and has no error. Delete this element, and the default holds again."
    )
    return f"<!-- {textwrap.fill(said, 100, subsequent_indent='     ', break_on_hyphens=False)} -->"


def with_copy(raw: bytes, element: str, site: str, item_type: str, types: str) -> bytes:
    """The file with `element` as the last prompt of its site and type; every other byte as it was."""
    mark, encoding = encoding_of(raw)
    original = raw[len(mark) :].decode(encoding)
    text = NEWLINES.sub("\n", original)
    start, end, inserted = insertion(text, element, site, item_type, types)
    if "\r\n" in original:
        inserted = inserted.replace("\n", "\r\n")
    start, end = start + longer_by(original, start), end + longer_by(original, end)
    changed = original[:start] + inserted + original[end:]
    return mark + changed.encode(encoding, "xmlcharrefreplace")


def insertion(text: str, block: str, site: str, item_type: str, types: str) -> tuple[int, int, str]:
    """What to put in place of which part of the text: the block inside the innermost element there is of
    root, site and type, those that lack around it."""
    spans = dict(elements(text))
    root = next(iter(spans))
    parent = next((one for one in root if local(one) == "Site" and name_of_site(one) == site), None)
    kind = None
    if parent is not None:
        named = [one for one in parent if schema_types.local_name(local(one)) == item_type]
        kind = named[-1] if named else None
    if kind is None:
        block = wrapped(block, f"<{item_type}>", f"</{item_type}>")
    if parent is None:
        said = f' types="{types}"' if types else ""
        block = wrapped(block, f'<Site ref="{site}"{said}>', "</Site>")
    return inside(text, spans[kind if kind is not None else parent if parent is not None else root], block)


def name_of_site(element: etree._Element) -> str:
    return next((given.strip() for key in ("ref", "id", "name") if (given := element.get(key))), "")


def wrapped(block: str, start: str, end: str) -> str:
    return "\n".join((start, indented(block, TAB), end))


def indented(block: str, pad: str) -> str:
    return "\n".join(pad + line if line.strip() else line for line in block.split("\n"))


def inside(text: str, span: Span, block: str) -> tuple[int, int, str]:
    """The block as the last thing in an element, which may be an empty one (`<a/>`)."""
    line = text.rfind("\n", 0, span.start) + 1
    pad = text[line : span.start] if not text[line : span.start].strip() else ""
    block = indented(block, pad + TAB)
    if text[span.inside - 2 : span.inside] == "/>":
        tag = re.split(r"[\s/>]", text[span.start + 1 : span.inside], maxsplit=1)[0]
        return span.inside - 2, span.inside, f">\n{block}\n{pad}</{tag}>"
    last = text.rfind("\n", 0, span.end) + 1
    if last >= span.inside and not text[last : span.end].strip():
        return last, last, f"{block}\n"
    return span.end, span.end, f"\n{block}\n{pad}"


def longer_by(original: str, at: int) -> int:
    """How many characters more stand before a place in the original, whose line ends may have two."""
    longer = 0
    for found in NEWLINES.finditer(original):
        if found.start() - longer >= at:
            break
        longer += len(found.group()) - 1
    return longer


def replace_file(path: Path, raw: bytes) -> None:
    """Write the file whole or not at all: a server that watches it never sees a half."""
    beside = path.with_name(f".{path.name}.new")
    beside.write_bytes(raw)
    if path.exists():
        beside.chmod(path.stat().st_mode)
    os.replace(beside, path)
