"""The table of tools, in the order in which clients see them."""

from __future__ import annotations

from typing import Final

from server.mcp.asking import ASK
from server.mcp.base import Tool
from server.mcp.finding import FETCH, LIST_SITES, SEARCH, WHO
from server.mcp.memory import CONTEXT, FORGET, RECALL, REMEMBER

TOOLS: Final[tuple[Tool, ...]] = (
    ASK,
    SEARCH,
    FETCH,
    LIST_SITES,
    WHO,
    REMEMBER,
    RECALL,
    FORGET,
    CONTEXT,
)
