"""What a tool is: a name, what it takes and gives as pydantic models, and what it does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

from aiohttp import web
from pydantic import BaseModel, ConfigDict

from core.messages import AskUser

Progress = Callable[[float, str], Awaitable[None]]
Warn = Callable[[str], Awaitable[None]]


class Arguments(BaseModel):
    """Base of what tools take: an argument that is not known is an error, not passed over."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Result(BaseModel):
    """Base of what tools give."""

    model_config = ConfigDict(frozen=True)


class Person(Protocol):
    """Whoever sits before the client, to be asked back while a call runs."""

    @property
    def answers(self) -> tuple[str, ...]:
        """What they said already in this call, the first first."""
        ...

    async def ask(self, asked: AskUser) -> str | None:
        """Their answer; None where they cannot be asked, or don't want to say."""
        ...


@dataclass(frozen=True, slots=True)
class Call:
    """One call: the HTTP request that carries it, whose caller is the tool's, and ways to be heard meanwhile.

    `progress` takes a number that grows and a text; it does nothing for a client that did not ask for it.
    `warn` tells the client's log of something that went wrong on the way.
    """

    request: web.Request
    progress: Progress
    warn: Warn
    person: Person


@dataclass(frozen=True, slots=True)
class Told:
    """What a tool says: the same as text, for models, and as data. `failed`: the code of the error if it
    could not do as asked, else empty."""

    text: str
    data: Result
    failed: str = ""


@dataclass(frozen=True, slots=True)
class Tool:
    """`run` takes a Call and validated `arguments`; an AskError it raises is told to the client as a failure.

    `cards`: its result can be shown by the page at `server.mcp.cards.URI`. `reads`: it changes nothing.
    """

    name: str
    title: str
    description: str
    arguments: type[Arguments]
    result: type[Result]
    run: Callable[[Call, Any], Awaitable[Told]]
    cards: bool = False
    reads: bool = True
