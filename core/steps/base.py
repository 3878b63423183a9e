"""What a step is: it takes a query, asks the model through prompts, and returns an outcome."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from core.memory import Request
from core.prompting.ask import Prompter
from core.providers.base import Usage
from core.query import Query


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a step found. Empty: the question stands as it is."""

    rewritten: str | None = None
    remember: Request | None = None


class Step(Protocol):
    """Sends nothing and sets nothing: the pipeline runs steps side by side and decides what follows."""

    async def run(self, query: Query, prompter: Prompter, usage: Usage) -> Outcome:
        """Raises ModelError and its kinds; the pipeline then goes on with `fallback`."""
        ...

    def fallback(self, query: Query, /) -> Outcome:
        """What can be said without a model."""
        ...
