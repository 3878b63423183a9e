"""Puts the parts together: the one place that knows which implementation stands behind which protocol."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack

from aiohttp import web

from core.conversation import Conversations
from core.database import Database
from core.datadir import DataFolder
from core.documents import Documents
from core.errors import StoreError
from core.feedback import Feedback
from core.identity import Signer, load_secret
from core.ingestion.load import COLLECTION, Loader
from core.pipeline import Pipeline, PipelineSettings
from core.prompting.ask import Prompter
from core.prompting.library import PromptLibrary
from core.prompting.own import installed_steps
from core.prompting.watch import PromptFiles, places
from core.providers.base import Embedder, VectorStore
from core.providers.chat import chat_model
from core.providers.edge import EdgeStore
from core.providers.legs import leg_kind
from core.providers.once import EmbedOnce
from core.ranking import Ranker
from core.retrieval import Leg, Retriever
from core.settings import Settings, seconds_of
from core.suggest import Suggester
from core.tools import all_tools
from core.whiteboard import Whiteboards
from server import keys, remembering
from server.auth import Caller, identify
from server.credentials import Keyring, Tokens
from server.mcp.endpoint import ENDPOINT, McpEndpoint
from server.middleware import errors, guard
from server.routes import (
    ask,
    context,
    conversations,
    documents,
    feedback,
    health,
    mcp,
    mem0,
    memory,
    page,
    search,
    sites,
    suggest,
    wellknown,
    who,
)
from server.runs import Runs

log = logging.getLogger(__name__)

# The request line holds a GET question with its history (contract 3).
MAX_LINE = 32 * 1024
ROUTES = (
    ask,
    context,
    conversations,
    documents,
    feedback,
    health,
    mcp,
    mem0,
    memory,
    page,
    search,
    sites,
    suggest,
    wellknown,
    who,
)


def create_app(
    settings: Settings, *, admin_token: str | None = None, clock: Callable[[], float] = time.time
) -> web.Application:
    """The application; its services start with it and stop with it.

    Starting raises ConfigError, StoreError (the data folder is in use) or StoreMismatch.
    """
    app = web.Application(
        middlewares=[guard, errors, identify],
        client_max_size=int(settings.server.max_body_mb * 1024 * 1024),
        handler_args={"max_line_size": MAX_LINE, "max_field_size": MAX_LINE},
    )
    app[keys.SETTINGS] = settings
    app[keys.STATE] = keys.State()
    app[keys.CLOCK] = clock
    app[keys.ADMIN_TOKEN] = admin_token or secrets.token_urlsafe(32)
    app[keys.KEYRING] = Keyring(settings.auth.api_keys)
    if settings.auth.jwt is not None:
        app[keys.TOKENS] = Tokens(settings.auth.jwt)
    app[keys.RUNS] = Runs()
    app.cleanup_ctx.append(_services)
    # While the connections are still open: every reader gets an end of its answer.
    app.on_shutdown.append(_stop_runs)
    for module in ROUTES:
        app.add_routes(module.routes)
    return app


async def _services(app: web.Application) -> AsyncIterator[None]:
    settings = app[keys.SETTINGS]
    async with AsyncExitStack() as stack:
        folder = DataFolder(settings.data_dir)
        folder.take()
        stack.callback(folder.release)
        own_steps = installed_steps()
        all_tools()  # one that cannot be loaded is told now and not to the first who asks
        base, folders = places(settings.site_types, settings.prompts_dir)
        own_variables = {step.sets for step in own_steps}
        app[keys.LIBRARY] = prompts = await asyncio.to_thread(
            PromptFiles, base, folders, own_variables=own_variables
        )
        watching = asyncio.create_task(prompts.watch())
        stack.push_async_callback(_stopped, watching)
        app[keys.SIGNER] = signer = Signer(
            load_secret(_revealed(settings.auth.secret), settings.data_dir), clock=app[keys.CLOCK]
        )

        app[keys.DATABASE] = database = await Database.open(
            _revealed(settings.database.url), settings.data_dir
        )
        stack.push_async_callback(database.close)
        app[keys.DOCUMENTS] = docs = Documents(
            database, new_site_access="private" if settings.auth.api_keys else "public"
        )

        app[keys.STORE] = store = await _store(settings)
        stack.push_async_callback(store.close)
        legs = []
        for leg in settings.retrieval.legs:
            kind = leg_kind(leg.name)
            embedder = EmbedOnce(await kind.open())
            stack.push_async_callback(embedder.close)
            legs.append(Leg(embedder, kind.weight if leg.weight is None else leg.weight))
        app[keys.RETRIEVER] = retriever = Retriever(store, legs, COLLECTION)
        await retriever.prepare()

        app[keys.LOADER] = loader = _loader(settings, docs, store, retriever, [leg.embedder for leg in legs])
        if swept := await loader.sweep():
            log.info("load.swept", extra={"versions": swept})
        if missing := await loader.missing():
            log.warning("index.refilling", extra={"missing": missing})
            stack.push_async_callback(_stopped, asyncio.create_task(_refill(app, loader)))

        model = chat_model(settings.llm)
        if model is not None:
            stack.push_async_callback(model.close)
        prompter = Prompter(lambda: prompts.current, model, steps=own_steps) if model is not None else None
        talks = await _conversations(app, database, prompter, lambda: prompts.current, stack)
        memories = await remembering.set_up(
            app, database=database, store=store, legs=legs, signer=signer, prompter=prompter, stack=stack
        )
        if memories is not None:
            app[keys.MEMORY] = memories
        app[keys.PIPELINE] = Pipeline(
            documents=docs,
            retriever=retriever,
            conversations=talks,
            memory=memories,
            prompter=prompter,
            ranker=Ranker(prompter, batch_size=settings.ranking.batch_size) if prompter else None,
            settings=PipelineSettings(
                max_results=settings.ranking.max_results,
                min_score=settings.ranking.min_score,
                source_score=settings.ranking.source_score,
                headers=settings.server.headers,
                answer_s=settings.llm.answer_s,
            ),
            library=lambda: prompts.current,
            clock=app[keys.CLOCK],
        )
        anonymous = Caller(None, frozenset(), None, "anonymous").label
        app[keys.FEEDBACK] = Feedback(database, anonymous=anonymous, clock=app[keys.CLOCK])
        app[keys.SUGGESTER] = Suggester(database)
        app[ENDPOINT] = endpoint = McpEndpoint()
        stack.push_async_callback(endpoint.close)
        stack.push_async_callback(app[keys.RUNS].close)
        yield
        app[keys.STATE].busy.add("draining")


async def _refill(app: web.Application, loader: Loader) -> None:
    """Bring the vector store to what the database says is there; questions are answered from what it has."""
    doing = app[keys.STATE].doing
    doing.add("filling the search index again")
    try:
        await loader.refill()
        log.info("index.refilled")
    except StoreError as failed:
        log.error("index.refill_failed", extra={"reason": failed.message})
    finally:
        doing.discard("filling the search index again")


async def _stop_runs(app: web.Application) -> None:
    app[keys.STATE].busy.add("draining")
    await app[keys.RUNS].close()


async def _stopped(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def _store(settings: Settings) -> VectorStore:
    if settings.qdrant.url:
        # The client takes a second to import, and most servers have none.
        from core.providers.qdrant import QdrantStore

        return QdrantStore(settings.qdrant.url, _revealed(settings.qdrant.api_key))
    return await EdgeStore.open(settings.data_dir / "vectors")


def _loader(
    settings: Settings,
    docs: Documents,
    store: VectorStore,
    retriever: Retriever,
    embedders: list[Embedder],
) -> Loader:
    """One cutting for all legs, by the smallest limit; a tenth of it overlaps (contract 3)."""
    words = settings.ingestion.max_tokens_per_paragraph or min(e.max_tokens for e in embedders)
    overlap = settings.ingestion.overlapping_tokens
    return Loader(
        docs,
        store,
        retriever,
        max_words=words,
        overlap_words=words // 10 if overlap is None else min(overlap, words // 2),
    )


async def _conversations(
    app: web.Application,
    database: Database,
    prompter: Prompter | None,
    library: Callable[[], PromptLibrary],
    stack: AsyncExitStack,
) -> Conversations:
    """Conversations and their whiteboards, which take up what a stop left over."""
    settings = app[keys.SETTINGS]
    board = settings.whiteboard
    app[keys.CONVERSATIONS] = talks = Conversations(
        database,
        message_limit=settings.conversation.message_limit,
        expiration_s=seconds_of(settings.conversation.message_expiration),
        whiteboard=board.enabled,
        maintained=board.enabled and prompter is not None,
        clock=app[keys.CLOCK],
    )
    app[keys.WHITEBOARDS] = boards = Whiteboards(
        talks, prompter, library, enabled=board.enabled, max_entries=board.max_messages
    )
    stack.push_async_callback(boards.close)
    stack.push_async_callback(talks.close)
    await boards.resume()
    talks.start_purging()
    return talks


def _revealed(secret: object) -> str | None:
    reveal: Callable[[], str] | None = getattr(secret, "get_secret_value", None)
    return reveal() if reveal is not None else None
