"""What a tool is: a name, what it takes and gives as pydantic models, and what it does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from aiohttp import web
from pydantic import BaseModel, ConfigDict

Progress = Callable[[float, str], Awaitable[None]]


class Arguments(BaseModel):
    """Base of what tools take: an argument that is not known is an error, not passed over."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Result(BaseModel):
    """Base of what tools give."""

    model_config = ConfigDict(frozen=True)


@dataclass(frozen=True, slots=True)
class Call:
    """One call: the HTTP request that carries it, whose caller is the tool's, and a way to tell its progress.

    `progress` takes a number that grows and a text; it does nothing for a client that did not ask for it.
    """

    request: web.Request
    progress: Progress


@dataclass(frozen=True, slots=True)
class Told:
    """What a tool says: the same as text, for models, and as data. `failed`: it could not do as asked."""

    text: str
    data: Result
    failed: bool = False


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
