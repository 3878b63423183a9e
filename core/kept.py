"""A cache that is bounded by the bytes of what is in it, not by how many things that are."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

OVERHEAD = 200  # bytes of an entry beside its content, about


class Kept(Generic[K, V]):
    """The values used last, of one event loop: at most `max_bytes` by the sizes they are put in with. A key
    has to say all that its value is made from: nothing is ever told that it is out of date."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._bytes = 0

    @property
    def bytes(self) -> int:
        """What is in it now."""
        return self._bytes

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: K) -> V | None:
        """The value of this key, if it is there still."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        self._entries.move_to_end(key)
        return entry[0]

    def put(self, key: K, value: V, size: int) -> V:
        """Keep the value, `size` bytes with its key; the ones used longest ago go. One that would be more
        than all the room is not kept. Returns the value."""
        size += OVERHEAD
        if (before := self._entries.pop(key, None)) is not None:
            self._bytes -= before[1]
        if size > self._max_bytes:
            return value
        self._entries[key] = value, size
        self._bytes += size
        while self._bytes > self._max_bytes:
            _, (_, gone) = self._entries.popitem(last=False)
            self._bytes -= gone
        return value
