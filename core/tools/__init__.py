"""The tools: other ways to answer than a ranked list."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from core.documents import Candidate
from core.query import Query
from core.tools.base import Choice, Kit, Tool, ToolAnswer, chosen, own_prompt
from core.tools.compare import Compare
from core.tools.details import Details
from core.tools.ensemble import Ensemble
from core.tools.own import installed_tools

SEARCH = "search"

__all__ = ["SEARCH", "Choice", "Kit", "Tool", "ToolAnswer", "all_tools", "chosen", "described", "tool_for"]


@cache
def all_tools() -> Sequence[Tool]:
    """Ours and those of installed packages, in the order in which they are looked at: a package's own first,
    so that it can take what ours would. Raises ConfigError."""
    installed: list[Tool] = list(installed_tools())
    taken = {tool.name for tool in installed}
    ours: list[Tool] = [Compare(), Ensemble(), Details()]
    return [*installed, *(tool for tool in ours if tool.name not in taken)]


def described() -> dict[str, str]:
    """What each tool does, for prompts."""
    ranked = {SEARCH: "finds the items that answer a question, best first"}
    return ranked | {tool.name: tool.description for tool in all_tools()}


def tool_for(query: Query, found: Sequence[Candidate], kit: Kit) -> Tool | None:
    """The one tool to ask the model about: the forced one, else the first whose rule says so. None: a search.

    Questions for a written answer or a summary, and later pages of a list, are searches unless forced.
    """
    if query.tool == SEARCH:
        return None
    if query.tool is None and (query.mode != "list" or query.start_num):
        return None
    for tool in all_tools():
        if query.tool is not None:
            if tool.name == query.tool:
                return tool
        elif _on(tool, query, kit) and tool.looks_like(query, found, model=kit.prompter is not None):
            return tool
    return None


def _on(tool: Tool, query: Query, kit: Kit) -> bool:
    return kit.prompter is None or own_prompt(tool.name, query, kit.prompter)[1]
