"""An HTML tree and the text a reader sees in it; shared by pages and microdata."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator

import lxml.etree
import lxml.html

from core.ingestion.text import names

Element = lxml.etree._Element

_BLOCKS = names(
    """address article aside blockquote body center dd details div dl dt fieldset figcaption figure footer
    form header hr html li main nav ol pre section summary table tr ul br"""
)
_PARAGRAPHS = frozenset({"p", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "table", "pre"})
_ENTRIES = frozenset({"li", "td", "th", "dd", "dt", "figcaption"})
_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_NEVER_TEXT = names(
    """script style noscript template svg math iframe object embed canvas audio video select button input
    textarea datalist head title meta link"""
)
_LINE, _PARAGRAPH = "\x1e", "\x1d"  # stand for gaps while text is put together; taken out of texts
_SPACES = re.compile(r"[^\S\n\x1d\x1e]+")
_GAP = re.compile(r"\s*[\x1d\x1e]\s*")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x84\x86-\x9f\u200b\ufeff]")


def parse(text: str) -> Element | None:
    """The tree of an HTML text, however broken; None if there is nothing in it."""
    parser = lxml.html.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, huge_tree=True)
    # Bytes in a known encoding: what the page declares must not be applied a second time.
    data = text.replace("\x00", "").encode("utf-8", "replace")
    try:
        root = lxml.html.document_fromstring(data, parser=parser)
    except (lxml.etree.LxmlError, ValueError, AssertionError):
        return None
    return root


def tag_of(element: Element) -> str:
    """The tag in lower case, "" for a comment and the like."""
    return element.tag.lower() if isinstance(element.tag, str) else ""


def visible_text(element: Element, leaves_out: Callable[[Element], bool] | None = None) -> str:
    """What a reader sees of an element: a line a block, an empty line around paragraphs and before
    headings. `leaves_out` names elements to skip with all in them."""
    parts: list[str] = []
    for event, node in _walk(element, leaves_out):
        tag = tag_of(node)
        if event == "start":
            parts.append(_gap_before(tag, node))
            parts.append(_text(node.text, tag))
        else:
            parts.append(_gap_after(tag, node))
            if node is not element:
                parts.append(
                    _text(node.tail, tag_of(parent) if (parent := node.getparent()) is not None else "")
                )
    text = _GAP.sub(_gap, _SPACES.sub(" ", "".join(parts)))
    return unicodedata.normalize("NFC", text.strip())


def _walk(root: Element, leaves_out: Callable[[Element], bool] | None) -> Iterator[tuple[str, Element]]:
    """Start and end of each element in order, without recursion: pages nest deeper than the stack."""
    stack: list[tuple[Element, bool]] = [(root, False)]
    while stack:
        node, is_done = stack.pop()
        if is_done:
            yield "end", node
            continue
        is_out = node is not root and (
            tag_of(node) in _NEVER_TEXT or not tag_of(node) or (leaves_out is not None and leaves_out(node))
        )
        if is_out:
            yield "end", node  # its tail belongs to the parent
            continue
        yield "start", node
        stack.append((node, True))
        stack.extend((child, False) for child in reversed(node))


def _gap(match: re.Match[str]) -> str:
    return "\n\n" if _PARAGRAPH in match[0] else "\n"


def _text(text: str | None, tag: str) -> str:
    if not text:
        return ""
    clean = _CONTROL.sub("", text)
    return clean if tag == "pre" else clean.replace("\n", " ")


def _gap_before(tag: str, node: Element) -> str:
    if tag in _PARAGRAPHS:
        return _LINE if _is_in_line(node) else _PARAGRAPH
    return _LINE if tag in _BLOCKS else ""


def _gap_after(tag: str, node: Element) -> str:
    if tag in _HEADINGS:
        return _LINE  # stays with what it heads
    if tag in {"td", "th"}:
        return " "
    return _gap_before(tag, node)


def _is_in_line(node: Element) -> bool:
    """Whether a paragraph is only the line of a list's or a table's entry."""
    parent = node.getparent()
    return parent is not None and tag_of(parent) in _ENTRIES
