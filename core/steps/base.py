"""What a step is: it takes a query, asks the model through prompts, and returns an outcome."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

from core.memory import Request
from core.messages import AskUser
from core.prompting.ask import Prompter
from core.providers.base import Usage
from core.query import Query


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a step found. Empty: the question stands as it is."""

    rewritten: str | None = None
    unsure: bool = False  # the question may mean more than it says, and nobody could say what
    memory: tuple[Request, ...] = ()
    irrelevant: str | None = None  # why the site has nothing for this question
    item_type: str | None = None  # the kind of item meant, where that is sure
    ask: AskUser | None = None  # what has to be known first


class Step(Protocol):
    """Sends nothing and sets nothing: the pipeline runs steps side by side and decides what follows."""

    limit_s: ClassVar[float]  # seconds it may take where its prompt's `timeout` says nothing

    def prompt(self, query: Query, /) -> str:
        """The ref of the prompt it asks for this question."""
        ...

    async def run(self, query: Query, prompter: Prompter, usage: Usage) -> Outcome:
        """Raises ModelError and its kinds; the pipeline then goes on with `fallback`."""
        ...

    def fallback(self, query: Query, /) -> Outcome:
        """What can be said without a model."""
        ...


class SideStep(Protocol):
    """A step beside the ranking, with nothing to say without a model: skipped where it fails or is late."""

    limit_s: ClassVar[float]

    def prompt(self, query: Query, /) -> str:
        """The ref of the prompt it asks for this question."""
        ...

    def applies(self, query: Query, prompter: Prompter) -> bool:
        """Whether what it could find would be used; else it is not called."""
        ...

    async def run(self, query: Query, prompter: Prompter, usage: Usage) -> Outcome:
        """Raises ModelError and its kinds."""
        ...
