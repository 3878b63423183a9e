"""Typed keys of what the application holds."""

from __future__ import annotations

from dataclasses import dataclass, field

from aiohttp import web

from core.database import Database
from core.documents import Documents
from core.identity import Signer
from core.ingestion.load import Loader
from core.memory import Memory
from core.pipeline import Pipeline
from core.prompting.library import PromptLibrary
from core.providers.base import VectorStore
from core.retrieval import Retriever
from core.settings import Settings
from server.runs import Runs


@dataclass
class State:
    """What the process is busy with; `busy` names what keeps it from being ready."""

    busy: set[str] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)


SETTINGS = web.AppKey("settings", Settings)
STATE = web.AppKey("state", State)
ADMIN_TOKEN = web.AppKey("admin_token", str)
SIGNER = web.AppKey("signer", Signer)
DATABASE = web.AppKey("database", Database)
DOCUMENTS = web.AppKey("documents", Documents)
STORE = web.AppKey("store", VectorStore)
RETRIEVER = web.AppKey("retriever", Retriever)
LOADER = web.AppKey("loader", Loader)
LIBRARY = web.AppKey("library", PromptLibrary)
MEMORY = web.AppKey("memory", Memory)
PIPELINE = web.AppKey("pipeline", Pipeline)
RUNS = web.AppKey("runs", Runs)
