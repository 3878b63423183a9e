"""The hook: where facts go. One method is needed; what else a hook can do shows by the methods it has."""

from __future__ import annotations

import asyncio
import inspect
import logging
import math
import traceback
from collections.abc import Awaitable, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

from core.errors import AskError, ConfigError, MemoryFailed
from core.memory.facts import KINDS, Asking, Detected, Fact, Place, Reach, Stored
from core.memory.store import Facts
from core.query import Identity, Query

T = TypeVar("T")

log = logging.getLogger(__name__)

ENTRY_POINTS = "askable.memory_hooks"
# How long a method of a hook may take where its class says nothing (`timeout_s`; None: as long as it likes).
HOOK_TIMEOUT_S = 10.0
METHODS = ("persist", "recall", "forget", "export", "erase")


class MemoryHook(Protocol):
    """Where detected facts go. Own ones: a class without arguments, in `askable.memory_hooks`. It may also
    have `timeout_s`, the seconds that a method of it may take (10)."""

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
    timeout_s = None  # the database and the vector store have limits of their own

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
                agent=query.agent,
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


def fact_from(given: Fact | Mapping[str, Any]) -> Fact | None:
    """A fact of a hook as it can be used, shown and sent; None for what is none. Of an exported one the names
    are those of `Fact.told`."""
    told = given.told() if isinstance(given, Fact) else given
    text, memory_id = told.get("text"), told.get("memory_id")
    if not isinstance(text, str) or not text.strip() or not isinstance(memory_id, str | None):
        return None
    kind, at, site = told.get("kind"), told.get("created_at"), told.get("site")
    return Fact(
        memory_id or "",
        text,
        kind=kind if kind in KINDS else "fact",
        created_at=float(at) if isinstance(at, int | float) and math.isfinite(at) else 0.0,
        place=Place(application=site if isinstance(site, str) else ""),
    )


async def guarded(hook: MemoryHook | Erases, asked: Awaitable[T]) -> T:
    """What a hook answers. Raises AskError (MemoryFailed for whatever a foreign hook raises), in time."""
    limit = getattr(hook, "timeout_s", HOOK_TIMEOUT_S)
    try:
        async with asyncio.timeout(limit):
            return await asked
    except AskError:
        raise
    except TimeoutError as late:
        log.error("memory.hook_late", extra={"hook": hook.name, "timeout_s": limit})
        raise MemoryFailed(f"{hook.name} gave no answer in time") from late
    except Exception as failed:
        log.error("memory.hook_failed", extra={"hook": hook.name, "reason": place_of(failed)})
        raise MemoryFailed(f"{hook.name} failed") from failed


def place_of(failed: BaseException) -> str:
    """What was raised and where, for a log: its message may hold what a person told."""
    steps = traceback.extract_tb(failed.__traceback__)
    where = f" at {Path(steps[-1].filename).name}:{steps[-1].lineno}" if steps else ""
    return f"{type(failed).__name__}{where}"


def load_hook(name: str, shipped: Mapping[str, MemoryHook]) -> MemoryHook:
    """The hook of this name: a shipped one, or one that an installed package offers. Raises ConfigError."""
    if name in shipped:
        return shipped[name]
    entries = entry_points(group=ENTRY_POINTS)
    for entry in entries:
        if entry.name == name:
            try:
                hook: MemoryHook = entry.load()()
            except Exception as broken:
                raise ConfigError(
                    f"memory hook `{name}` ({entry.value}) cannot be loaded: {broken}"
                ) from broken
            _check(hook, f"memory hook `{name}` ({entry.value})")
            return hook
    offered = ", ".join([*shipped, *sorted(entry.name for entry in entries)])
    raise ConfigError(f"`memory.hook`: no installed package offers `{name}` (offered: {offered})")


def _check(hook: object, called: str) -> None:
    """Raises ConfigError for what cannot be a hook, now and not when a person tells something."""
    said = getattr(hook, "name", None)
    if not isinstance(said, str) or not said.strip():
        raise ConfigError(f"{called}: `name` has to be a text, what people are told")
    for method in METHODS:
        found = getattr(hook, method, None)
        if found is None and method != "persist":
            continue
        if not inspect.iscoroutinefunction(found):
            raise ConfigError(f"{called}: `{method}` has to be an `async def`")
    limit = getattr(hook, "timeout_s", HOOK_TIMEOUT_S)
    if limit is not None and (not isinstance(limit, int | float) or limit <= 0):
        raise ConfigError(f"{called}: `timeout_s` has to be a number of seconds")
