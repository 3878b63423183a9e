"""Puts the parts together: the one place that knows which implementation stands behind which protocol."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack

from aiohttp import web

from core import resources
from core.database import Database
from core.datadir import DataFolder
from core.documents import Documents
from core.errors import ConfigError
from core.identity import Signer, load_secret
from core.ingestion.load import COLLECTION, Loader
from core.memory import COLLECTION as MEMORIES
from core.memory import KEYWORDS, Memory, StoreMemory, load_hook
from core.pipeline import Pipeline, PipelineSettings
from core.prompting.ask import Prompter
from core.prompting.library import PromptLibrary
from core.providers.base import ChatModel, Embedder, VectorStore
from core.providers.edge import EdgeStore
from core.providers.legs import leg_kind
from core.ranking import Ranker
from core.retrieval import Leg, Retriever
from core.settings import LlmSettings, Settings, seconds_of
from server import keys
from server.middleware import errors, guard
from server.routes import ask, documents, health, memory, page, search, sites
from server.runs import Runs

log = logging.getLogger(__name__)

# The request line holds a GET question with its history (contract 3).
MAX_LINE = 32 * 1024
ROUTES = (ask, documents, health, memory, page, search, sites)


def create_app(settings: Settings, *, admin_token: str | None = None) -> web.Application:
    """The application; its services start with it and stop with it.

    Starting raises ConfigError, StoreError (the data folder is in use) or StoreMismatch.
    """
    app = web.Application(
        middlewares=[guard, errors],
        client_max_size=int(settings.server.max_body_mb * 1024 * 1024),
        handler_args={"max_line_size": MAX_LINE, "max_field_size": MAX_LINE},
    )
    app[keys.SETTINGS] = settings
    app[keys.STATE] = keys.State()
    app[keys.ADMIN_TOKEN] = admin_token or secrets.token_urlsafe(32)
    app[keys.RUNS] = Runs()
    app.cleanup_ctx.append(_services)
    for module in ROUTES:
        app.add_routes(module.routes)
    return app


async def _services(app: web.Application) -> AsyncIterator[None]:
    settings = app[keys.SETTINGS]
    async with AsyncExitStack() as stack:
        folder = DataFolder(settings.data_dir)
        folder.take()
        stack.callback(folder.release)
        library = await asyncio.to_thread(_library, settings)
        app[keys.LIBRARY] = library
        app[keys.STATE].problems += [str(problem) for problem in library.problems]
        app[keys.SIGNER] = signer = Signer(load_secret(_revealed(settings.auth.secret), settings.data_dir))

        app[keys.DATABASE] = database = await Database.open(settings.database.url, settings.data_dir)
        stack.push_async_callback(database.close)
        app[keys.DOCUMENTS] = docs = Documents(database)

        app[keys.STORE] = store = await _store(settings)
        stack.push_async_callback(store.close)
        legs = []
        for leg in settings.retrieval.legs:
            kind = leg_kind(leg.name)
            embedder = await kind.open()
            stack.push_async_callback(embedder.close)
            legs.append(Leg(embedder, kind.weight if leg.weight is None else leg.weight))
        app[keys.RETRIEVER] = retriever = Retriever(store, legs, COLLECTION)
        await retriever.prepare()

        app[keys.LOADER] = loader = _loader(settings, docs, store, retriever, [leg.embedder for leg in legs])
        if swept := await loader.sweep():
            log.info("load.swept", extra={"versions": swept})

        remembering = await _memory(settings, store, retriever, legs, signer)
        if remembering is not None:
            app[keys.MEMORY] = remembering
        model = _model(settings.llm)
        if model is not None:
            stack.push_async_callback(model.close)
        prompter = Prompter(lambda: app[keys.LIBRARY], model) if model is not None else None
        app[keys.PIPELINE] = Pipeline(
            documents=docs,
            retriever=retriever,
            memory=remembering,
            prompter=prompter,
            ranker=Ranker(prompter, batch_size=settings.ranking.batch_size) if prompter else None,
            settings=PipelineSettings(
                max_results=settings.ranking.max_results,
                min_score=settings.ranking.min_score,
                headers=settings.server.headers,
            ),
        )
        stack.push_async_callback(app[keys.RUNS].close)
        yield
        app[keys.STATE].busy.add("draining")


def _library(settings: Settings) -> PromptLibrary:
    """The shipped prompts, with the operator's own layered over them."""
    base = [resources.site_types(), *([settings.site_types] if settings.site_types else [])]
    folders = [resources.prompts_dir(), *([settings.prompts_dir] if settings.prompts_dir else [])]
    for path in (*base, *folders):
        if not path.exists():
            raise ConfigError(f"`site_types`, `prompts_dir`: there is no {path}")
    return PromptLibrary.load(base, folders)


async def _store(settings: Settings) -> VectorStore:
    if settings.qdrant.url:
        # The client takes a second to import, and most servers have none: so does the model's below.
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


async def _memory(
    settings: Settings, store: VectorStore, retriever: Retriever, legs: list[Leg], signer: Signer
) -> Memory | None:
    if settings.memory.mode == "off":
        return None
    await store.ensure(MEMORIES, [leg.embedder.spec for leg in legs], KEYWORDS)
    hook = load_hook(settings.memory.hook, StoreMemory(store, retriever))
    return Memory(hook, signer, expiration_s=seconds_of(settings.memory.expiration))


def _model(llm: LlmSettings) -> ChatModel | None:
    if not llm.configured:
        return None
    from core.providers.openai import OpenAIChat, make_client

    client = make_client(llm.base_url, _revealed(llm.api_key), max_concurrency=llm.max_concurrency)
    return OpenAIChat(
        client,
        models={"high": llm.model_high, "low": llm.model_low},
        timeout_s=llm.timeout_s,
        max_concurrency=llm.max_concurrency,
        max_retries=llm.max_retries,
    )


def _revealed(secret: object) -> str | None:
    reveal: Callable[[], str] | None = getattr(secret, "get_secret_value", None)
    return reveal() if reveal is not None else None
