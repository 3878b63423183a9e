"""Tools of installed packages: classes without arguments in the entry point group `askable.tools`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points
from typing import Any, Protocol

from core.documents import Candidate
from core.errors import ConfigError
from core.query import Query
from core.tools.base import Choice, Kit, ToolAnswer

ENTRY_POINTS = "askable.tools"


class PythonTool(Protocol):
    """A tool in Python. It may also have `description`."""

    name: str

    def looks_like(self, query: Query) -> bool:
        """Whether the question could be for it: cheap, no model."""
        ...

    async def run(self, query: Query, parameters: Mapping[str, Any], kit: Kit) -> ToolAnswer | None:
        """The answer; None: the question is a search after all. `parameters` are what a prompt
        `<Tool name="…">` gave, {} where there is none."""
        ...


class Installed:
    """One of them, as the pipeline takes it."""

    def __init__(self, code: PythonTool) -> None:
        self._code = code
        self.name = code.name
        self.description = str(getattr(code, "description", ""))

    def looks_like(self, query: Query, found: Sequence[Candidate], *, model: bool) -> bool:  # noqa: ARG002
        return bool(self._code.looks_like(query))

    async def choose(self, query: Query, kit: Kit) -> Choice | None:  # noqa: ARG002
        return Choice()

    async def run(self, query: Query, parameters: Mapping[str, Any], kit: Kit) -> ToolAnswer | None:
        return await self._code.run(query, parameters, kit)


def installed_tools() -> list[Installed]:
    """The tools that installed packages offer. Raises ConfigError naming the one that cannot be had."""
    tools = []
    for entry in sorted(entry_points(group=ENTRY_POINTS), key=lambda one: one.name):
        try:
            tools.append(Installed(entry.load()()))
        except Exception as broken:
            raise ConfigError(f"tool `{entry.name}` ({entry.value}) cannot be loaded: {broken}") from broken
    return tools
