"""Puts long-term memory together: the store of facts, the hook, what erases, and what is done behind."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack

from aiohttp import web

from core.database import Database
from core.errors import AskError, ConfigError
from core.identity import Signer
from core.memory import (
    COLLECTION,
    KEYWORDS,
    LEDGER,
    Confirmations,
    Erases,
    Erasure,
    Extractor,
    Facts,
    Ledger,
    Memory,
    MemoryHook,
    PromptJudge,
    Sensitivity,
    StoreMemory,
    erased_since,
    erasers,
    load_hook,
)
from core.prompting.ask import Prompter
from core.providers.base import VectorStore
from core.providers.webhook import WebhookMemory
from core.query import Identity
from core.retrieval import Leg, Retriever
from core.settings import MemorySettings, seconds_of
from server import keys

log = logging.getLogger(__name__)

PURGE_EVERY_S = 3600.0
# How long after something was taken out the vector store's files are written anew: a rest first, so that
# several in a row cost one rewriting, and time between two.
COMPACT_AFTER_S = 5.0
COMPACT_EVERY_S = 60.0


async def set_up(
    app: web.Application,
    *,
    database: Database,
    store: VectorStore,
    legs: Sequence[Leg],
    signer: Signer,
    prompter: Prompter | None,
    stack: AsyncExitStack,
) -> Memory | None:
    """The memory that questions use (None: switched off). The store of facts is there in any case: what was
    kept can be seen and taken out, and Mem0's wire is not subject to `memory.mode`."""
    settings = app[keys.SETTINGS]
    clock = app[keys.CLOCK]
    await store.ensure(COLLECTION, [leg.embedder.spec for leg in legs], KEYWORDS)
    facts = Facts(
        database,
        store,
        Retriever(store, legs, COLLECTION),
        judge=PromptJudge(prompter) if prompter is not None else None,
        erased_since=erased_since(signer),
        clock=clock,
    )
    app[keys.FACTS] = app[keys.CONVERSATIONS].facts = facts
    app[keys.EXTRACTOR] = extractor = Extractor(prompter) if prompter is not None else None
    hook = load_hook(settings.memory.hook, _shipped(settings.memory, facts))

    memory = Memory(
        hook,
        Confirmations(signer, database, clock=clock),
        facts,
        expiration_s=seconds_of(settings.memory.expiration),
        store_scope=settings.memory.store_scope,
        extractor=extractor if settings.memory.mode == "automatic" else None,
        sensitivity=Sensitivity(prompter) if prompter is not None else None,
        clock=clock,
    )
    parts: list[Erases] = [*erasers(memory)]
    parts.append(_Part("conversations", app[keys.CONVERSATIONS].erase))
    parts.append(_Part("feedback", lambda identity: app[keys.FEEDBACK].erase(identity)))
    ledger = Ledger(settings.memory.erasure_ledger or settings.data_dir / LEDGER, signer)
    app[keys.ERASURE] = erasure = Erasure(parts, ledger, database, signer, clock=clock)
    memory.erase_all = erasure.erase
    for task in (_keep_up(app, facts), _keep_compact(facts)):
        stack.push_async_callback(_stopped, asyncio.create_task(task))
    stack.push_async_callback(memory.settled)
    return memory if settings.memory.mode != "off" else None


def _shipped(settings: MemorySettings, facts: Facts) -> dict[str, MemoryHook]:
    """The hooks that come with askable; the webhook only where it is asked for: it needs an address."""
    hooks: dict[str, MemoryHook] = {"default": StoreMemory(facts, scopes=settings.search_scopes)}
    if settings.hook == "webhook":
        told = settings.webhook
        if told.url is None or told.secret is None:
            raise ConfigError(
                '`memory.hook = "webhook"` needs `memory.webhook.url` and `memory.webhook.secret`'
            )
        secret = told.secret.get_secret_value()
        hooks["webhook"] = WebhookMemory(told.url, secret, timeout_s=told.timeout_s, retries=told.retries)
    return hooks


class _Part:
    """A part of the product that erases, under the name it has in the counts."""

    def __init__(self, name: str, erase: Callable[[Identity], Awaitable[Mapping[str, int] | int]]) -> None:
        self.name = name
        self._erase = erase

    async def erase(self, identity: Identity) -> Mapping[str, int]:
        gone = await self._erase(identity)
        return {self.name: gone} if isinstance(gone, int) else gone


async def _keep_up(app: web.Application, facts: Facts) -> None:
    """What a stop left undone, then what expires, for as long as the server runs."""
    while True:
        try:
            if swept := await facts.sweep():
                log.info("memory.swept", extra={"facts": swept})
            if purged := await facts.purge():
                log.info("memory.purged", extra={"facts": purged})
            await app[keys.ERASURE].resume()
            await facts.tidy()
        except AskError as failed:
            log.warning("memory.upkeep_failed", extra={"reason": failed.message})
        await asyncio.sleep(PURGE_EVERY_S)


async def _keep_compact(facts: Facts) -> None:
    """What was taken out also leaves the vector store's files: at the start what a stop left undone, then
    soon after something was deleted."""
    while True:
        try:
            if await facts.compact():
                log.info("memory.compacted")
                await asyncio.sleep(COMPACT_EVERY_S)
            await facts.dropped.wait()
            await asyncio.sleep(COMPACT_AFTER_S)
            facts.dropped.clear()
        except AskError as failed:
            log.warning("memory.not_compacted", extra={"reason": failed.message})
            await asyncio.sleep(COMPACT_EVERY_S)


async def _stopped(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
