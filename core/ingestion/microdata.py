"""Microdata in a page as JSON-LD-like nodes (WHATWG HTML, section 5: microdata)."""

from __future__ import annotations

from itertools import islice
from typing import Any
from urllib.parse import urljoin

from core.ingestion.jsonld import Node
from core.ingestion.markup import Element, tag_of, visible_text

_MAX_ITEMS = 500
_MAX_VALUES = 50_000  # of a page, by number and length: `itemref` can name the same part again and again
_MAX_DEPTH = 12
_ADDRESS_IN = {
    "a": "href",
    "area": "href",
    "link": "href",
    "audio": "src",
    "embed": "src",
    "iframe": "src",
    "img": "src",
    "source": "src",
    "track": "src",
    "video": "src",
    "object": "data",
}


def microdata(root: Element, base: str) -> list[Node]:
    """The top-level items of a page, in order, with addresses resolved against `base`."""
    reader = _Reader(root, base)
    tops = (
        element
        for element in root.iter("*")
        if "itemscope" in element.attrib and "itemprop" not in element.attrib
    )
    return [reader.item(element, ()) for element in islice(tops, _MAX_ITEMS)]


class _Reader:
    def __init__(self, root: Element, base: str) -> None:
        self._base = base
        self._left = _MAX_VALUES
        self._by_id: dict[str, Element] = {}
        for element in root.iter("*"):
            if identity := element.get("id"):
                self._by_id.setdefault(identity, element)

    def item(self, element: Element, path: tuple[Element, ...]) -> Node:
        """One item with its properties; an item that holds itself is cut where it does."""
        node: Node = {}
        types = (element.get("itemtype") or "").split()
        if types:
            node["@type"] = types[0] if len(types) == 1 else types
        if identity := (element.get("itemid") or "").strip():
            node["@id"] = self._resolved(identity)
        if element in path or len(path) >= _MAX_DEPTH:
            return node
        values: dict[str, list[Any]] = {}
        for found in self._properties(element) if self._left > 0 else []:
            value = self._value(found, (*path, element))
            self._left -= 1 + (len(value) // 10 if isinstance(value, str) else 0)
            for name in (found.get("itemprop") or "").split():
                values.setdefault(name.rstrip("/#").rsplit("/", 1)[-1], []).append(value)
        node.update({name: _one_or_list(found) for name, found in values.items() if found != [""]})
        return node

    def _properties(self, item: Element) -> list[Element]:
        """The elements that add a property to `item`, in the order of the walk: its descendants and those
        of the elements its `itemref` names, but not what is inside nested items."""
        results: list[Element] = []
        seen: set[Element] = {item}
        referred = [self._by_id[name] for name in (item.get("itemref") or "").split() if name in self._by_id]
        pending = [*reversed([*item, *referred])]
        while pending:
            current = pending.pop()
            if current in seen or not tag_of(current):
                continue
            seen.add(current)
            if "itemscope" not in current.attrib:
                pending.extend(reversed(current))
            if (current.get("itemprop") or "").strip():
                results.append(current)
        return results

    def _value(self, element: Element, path: tuple[Element, ...]) -> Any:
        if "itemscope" in element.attrib:
            return self.item(element, path)
        tag = tag_of(element)
        # Wider than the standard, which knows `content` on `meta` alone; schema.org's own examples use it.
        if "content" in element.attrib:
            return (element.get("content") or "").strip()
        if tag in _ADDRESS_IN:
            return self._resolved(element.get(_ADDRESS_IN[tag]) or "")
        if tag in {"data", "meter"}:
            return (element.get("value") or "").strip()
        if tag == "time" and element.get("datetime"):
            return (element.get("datetime") or "").strip()
        return visible_text(element)

    def _resolved(self, address: str) -> str:
        address = address.strip()
        if not address or not self._base:
            return address
        try:
            return urljoin(self._base, address)
        except ValueError:
            return ""


def _one_or_list(values: list[Any]) -> Any:
    kept = [value for value in values if value not in ("", {})]
    return kept[0] if len(kept) == 1 else kept
