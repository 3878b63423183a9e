"""The hook: where facts go. One method is needed; what else a hook can do shows by the methods it has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points
from typing import Any, Protocol, runtime_checkable

from core.errors import ConfigError
from core.memory.facts import Asking, Detected, Fact, Reach, Stored
from core.memory.store import Facts
from core.query import Identity, Query

ENTRY_POINTS = "askable.memory_hooks"


class MemoryHook(Protocol):
    """Where detected facts go. Own ones: a class without arguments, in `askable.memory_hooks`."""

    name: str

    async def persist(self, detected: Detected) -> Stored | None:
        """Keep the fact; None if it keeps no id (then there is nothing to undo). The same `nonce` twice is
        one fact. Raises AskError and its kinds."""
        ...


@runtime_checkable
class Recalls(Protocol):
    """A hook that gives facts back."""

    async def recall(self, query: Query) -> Sequence[Fact]:
        """What is known of `query.identity` (never None here)."""
        ...


@runtime_checkable
class Forgets(Protocol):
    """A hook that can forget one fact."""

    async def forget(self, identity: Identity, memory_id: str) -> bool:
        """Forget it; False if this person has no such fact. Afterwards it is in no recall and no export."""
        ...


@runtime_checkable
class Exports(Protocol):
    """A hook that can say all it has of a person."""

    async def export(self, identity: Identity) -> Sequence[Mapping[str, Any]]:
        """One JSON object a fact, with `memory_id` and `text` at least."""
        ...


@runtime_checkable
class Erases(Protocol):
    """A part that holds something of a person and can take all of it out."""

    name: str

    async def erase(self, identity: Identity) -> Mapping[str, int]:
        """Take out everything of this person; how much of what went. Doing it twice is no error."""
        ...


class StoreMemory:
    """The default hook: askable's own store of facts."""

    name = "askable"

    def __init__(self, facts: Facts, *, scopes: Sequence[str] = ("user", "application", "thread")) -> None:
        """`scopes` are those that questions look in."""
        self.facts = facts
        self._scopes = tuple(scopes)

    async def persist(self, detected: Detected) -> Stored | None:
        return await self.facts.remember(detected)

    async def recall(self, query: Query) -> Sequence[Fact]:
        if query.identity is None:
            return ()
        return await self.facts.recall(
            Asking(
                identity=query.identity,
                text=query.text,
                scopes=self._scopes,
                applications=query.sites,
                thread=query.conversation_id,
            )
        )

    async def forget(self, identity: Identity, memory_id: str) -> bool:
        return bool(await self.facts.forget(Reach.of(identity), [memory_id]))

    async def export(self, identity: Identity) -> Sequence[Mapping[str, Any]]:
        kept, changes = await self.facts.everything(Reach.of(identity))
        steps: dict[str, list[dict[str, Any]]] = {}
        for change in changes:
            steps.setdefault(change.memory_id, []).append(
                {
                    "event": change.event,
                    "old_text": change.old_text,
                    "new_text": change.new_text,
                    "at": change.at,
                }
            )
        return [fact.told() | {"history": steps.get(fact.memory_id, [])} for fact in kept]

    async def erase(self, identity: Identity) -> Mapping[str, int]:
        return await self.facts.erase(Reach.of(identity))


def load_hook(name: str, shipped: Mapping[str, MemoryHook]) -> MemoryHook:
    """The hook of this name: a shipped one, or one that an installed package offers. Raises ConfigError."""
    if name in shipped:
        return shipped[name]
    entries = entry_points(group=ENTRY_POINTS)
    for entry in entries:
        if entry.name == name:
            hook: MemoryHook = entry.load()()
            return hook
    offered = ", ".join([*shipped, *sorted(entry.name for entry in entries)])
    raise ConfigError(f"`memory.hook`: no installed package offers `{name}` (offered: {offered})")
