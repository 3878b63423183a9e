"""Typed keys of what the application holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from aiohttp import web

from core.conversation import Conversations
from core.database import Database
from core.documents import Documents
from core.feedback import Feedback
from core.identity import Signer
from core.ingestion.load import Loader
from core.memory import Erasure, Extractor, Facts, Memory
from core.pipeline import Pipeline
from core.prompting.watch import PromptFiles
from core.providers.base import VectorStore
from core.retrieval import Retriever
from core.settings import Settings
from core.suggest import Suggester
from core.whiteboard import Whiteboards
from server.credentials import Keyring, Tokens
from server.runs import Runs


@dataclass
class State:
    """What keeps the process from being ready (`busy`), or only from being at its best (`doing`)."""

    busy: set[str] = field(default_factory=set)
    doing: set[str] = field(default_factory=set)


SETTINGS = web.AppKey("settings", Settings)
STATE = web.AppKey("state", State)
ADMIN_TOKEN = web.AppKey("admin_token", str)
KEYRING = web.AppKey("keyring", Keyring)
TOKENS = web.AppKey("tokens", Tokens)
SIGNER = web.AppKey("signer", Signer)
DATABASE = web.AppKey("database", Database)
CONVERSATIONS = web.AppKey("conversations", Conversations)
WHITEBOARDS = web.AppKey("whiteboards", Whiteboards)
DOCUMENTS = web.AppKey("documents", Documents)
STORE = web.AppKey("store", VectorStore)
RETRIEVER = web.AppKey("retriever", Retriever)
LOADER = web.AppKey("loader", Loader)
LIBRARY = web.AppKey("library", PromptFiles)
MEMORY = web.AppKey("memory", Memory)
# The store of facts and what erases are there also where memory is switched off.
FACTS = web.AppKey("facts", Facts)
ERASURE = web.AppKey("erasure", Erasure)
EXTRACTOR: web.AppKey[Extractor | None] = web.AppKey("extractor")
# Unix seconds now; tests have their own.
CLOCK: web.AppKey[Callable[[], float]] = web.AppKey("clock")
PIPELINE = web.AppKey("pipeline", Pipeline)
RUNS = web.AppKey("runs", Runs)
FEEDBACK = web.AppKey("feedback", Feedback)
SUGGESTER = web.AppKey("suggester", Suggester)
