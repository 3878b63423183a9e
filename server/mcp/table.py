"""The table of tools, in the order in which clients see them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from aiohttp import web

from server.keys import MEMORY
from server.mcp.asking import ASK
from server.mcp.base import Tool
from server.mcp.finding import FETCH, LIST_SITES, SEARCH, WHO
from server.mcp.memory import CONTEXT, FORGET, RECALL, REMEMBER

# Only where there is a memory (`memory.mode`); each is about the person who calls, whom it has to know.
OF_MEMORY: Final[tuple[Tool, ...]] = (REMEMBER, RECALL, FORGET, CONTEXT)
TOOLS: Final[tuple[Tool, ...]] = (ASK, SEARCH, FETCH, LIST_SITES, WHO, *OF_MEMORY)
BY_NAME: Final[Mapping[str, Tool]] = {tool.name: tool for tool in TOOLS}


def tools_of(app: web.Application) -> tuple[Tool, ...]:
    """The tools that this server has."""
    return TOOLS if MEMORY in app else tuple(tool for tool in TOOLS if tool not in OF_MEMORY)


def is_of_memory(name: object) -> bool:
    """Whether a tool of this name is about the person who calls it."""
    return any(tool.name == name for tool in OF_MEMORY)
