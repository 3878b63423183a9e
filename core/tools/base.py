"""What a tool is: a way to answer other than a ranked list, chosen by rule and model, that gives messages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import orjson

from core.documents import Candidate
from core.messages import Item, Message
from core.prompting.ask import Prompter
from core.prompting.library import Prompt
from core.prompting.refs import TOOL_PREFIX
from core.prompting.variables import Value, write_json
from core.providers.base import Usage
from core.query import Query
from core.ranking import Ranker

# NLWeb's number: a tool that the model finds less fitting is not taken.
CHOSEN_SCORE = 70


@dataclass(frozen=True, slots=True)
class Kit:
    """What a tool works with. `search` sees what the question may see and nothing else; `item` makes of a
    candidate what clients are shown (a description "" stands for the passage that answers best)."""

    usage: Usage
    search: Callable[[str], Awaitable[Sequence[Candidate]]]
    item: Callable[[Candidate, float | None, str], Item]
    found: Sequence[Candidate] = ()  # for the question as a whole, best first
    min_score: int = 0
    prompter: Prompter | None = None
    ranker: Ranker | None = None

    async def ask(self, ref: str, query: Query, **more: Value) -> dict[str, Any] | None:
        """The model's reply to a prompt; None without a model or such a prompt. Raises ModelError."""
        return None if self.prompter is None else await self.prompter.ask(ref, query, self.usage, **more)


@dataclass(frozen=True, slots=True)
class Choice:
    """That a tool suits a question, how well (0..100), and what it was made out to be given."""

    score: int = 100
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What a tool says, and the stored items it rests on, best first: they are shown as results, too, each
    once and no more than `max_results` of the query."""

    messages: tuple[Message, ...]
    items: tuple[Item, ...] = ()


class Tool(Protocol):
    """Frozen and shared by all questions. One of an installed package has `name`, `looks_like` and `run`."""

    name: str
    description: str

    def looks_like(self, query: Query, found: Sequence[Candidate], *, model: bool) -> bool:
        """Whether the question could be for it, by rule: cheap, no model. `model` says whether there is one
        to make sure; without one only what is plain may be taken."""
        ...

    async def choose(self, query: Query, kit: Kit) -> Choice | None:
        """Whether the question is for it, and its parameters: at most one model call. Raises ModelError."""
        ...

    async def run(self, query: Query, parameters: Mapping[str, Any], kit: Kit) -> ToolAnswer | None:
        """The answer; None where there is nothing to answer with, so that the question is a search after all.
        Raises AskError and its kinds."""
        ...


def asked_of(query: Query) -> str:
    """The question as it is to be understood."""
    return query.decontextualized_query or query.text


def own_prompt(name: str, query: Query, prompter: Prompter) -> tuple[Prompt | None, bool]:
    """The prompt that a site or type has for choosing the tool, and whether the tool is switched on."""
    site = query.sites[0] if len(query.sites) == 1 else ""
    kind = query.item_type or prompter.item_type(site)
    first = next(iter(prompter.library.chain(TOOL_PREFIX + name, site, kind)), None)
    if first is None:
        return None, True
    return (first if first.enabled and first.text else None), first.enabled


async def chosen(tool: Tool, query: Query, kit: Kit, described: Mapping[str, str]) -> Choice | None:
    """Whether the question is for this tool: as the site's own `<Tool>` decides, else as the tool does."""
    if kit.prompter is not None:
        prompt, _ = own_prompt(tool.name, query, kit.prompter)
        if prompt is not None and prompt.reply is not None:
            told: dict[str, Value] = {
                "tool.description": described.get(tool.name, ""),
                "tools.description": dict(described),
            }
            reply = await kit.ask(prompt.ref, query, **told)
            if reply is None:
                return None
            score = int(reply["score"])
            rest = {key: value for key, value in reply.items() if key != "score"}
            return Choice(score, rest)
    return await tool.choose(query, kit)


def said_of(value: Any) -> str | dict[str, Any]:
    """What a model said where a text was asked for: a text, or the object that it gave instead. An empty
    object or list is no text."""
    text = str(value).strip()
    if text[:1] not in ("{", "["):
        return text
    try:
        read = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    if isinstance(read, list):
        return "\n".join(one if isinstance(one, str) else write_json(one) for one in read)
    return read if isinstance(read, dict) and read else ""


def text_in(parameters: Mapping[str, Any], *names: str) -> str:
    """The first of these parameters that is a text, on one line."""
    for name in names:
        value = parameters.get(name)
        if isinstance(value, str) and value.strip():
            return " ".join(value.split())
    return ""
