"""Ask the model what a prompt says: find it for site and type, fill it, call, read the reply."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from core.deadline import Deadline
from core.errors import ConfigError
from core.prompting.fill import DEFAULT_BUDGET, Filled, fill, name_of
from core.prompting.library import Prompt, PromptLibrary
from core.prompting.own import OwnStep, OwnValues
from core.prompting.replies import ReplySchema
from core.prompting.schema_types import BASE
from core.prompting.variables import Value
from core.providers.base import ChatModel, ModelCall, Tier, Usage
from core.providers.timed import Timed
from core.query import Query, Shown

LONG_REPLY = 20_000  # characters; a broken one of more takes longer to read than others should wait


class Prompter:
    """The prompts of the moment and the model that answers them.

    `library` gives the one that is in force now; a question takes one `for_question` and keeps its library to
    the end, whatever is reloaded meanwhile. `steps` are those in Python that packages offer.
    """

    def __init__(
        self, library: Callable[[], PromptLibrary], model: ChatModel, *, steps: Sequence[OwnStep] = ()
    ) -> None:
        self._library = library
        self.model = model
        self._steps = steps
        self._own: OwnValues | None = None

    @property
    def library(self) -> PromptLibrary:
        """The prompts in force: for a question's own prompter always the same."""
        return self._library()

    def for_question(
        self,
        usage: Usage,
        done: Callable[[str], None] = lambda _: None,
        *,
        model: ChatModel | None = None,
        deadline: Deadline | None = None,
    ) -> Prompter:
        """This prompter as it is now, with the own steps of one question; `close` it. `done` hears the name
        of each step that has ended; `model` is asked instead of the usual one; no call and no step of it
        lasts beyond the `deadline`."""
        library = self._library()
        model = model or self.model
        if deadline is not None:
            model = Timed(model, deadline)
        one = Prompter(lambda: library, model, steps=self._steps)
        one._own = OwnValues(one, usage, done, self._steps, deadline)
        return one

    def start_steps(self, query: Query) -> None:
        """Start the own steps of the site that is asked (of several sites: those that hold for all)."""
        if self._own is not None:
            site = only_site(query)
            self._own.start(query, site, query.item_type or self.item_type(site))

    async def close(self) -> None:
        """Stop the question's own steps that are still running."""
        if self._own is not None:
            await self._own.close()

    def find(self, ref: str, query: Query, *, site: str = "", item_type: str = "") -> Prompt | None:
        """The prompt of this site (else the query's only one) and type (else the site's first), or None."""
        site = site or only_site(query)
        return self._library().find(ref, site, item_type or query.item_type or self.item_type(site))

    def item_type(self, site: str) -> str:
        """The site's kind of items."""
        return first_type(self._library(), site)

    def values(self, query: Query, *, site: str = "", item_type: str = "") -> dict[str, Value]:
        """What the variables that every prompt has stand for."""
        return values_of(self._library(), query, site=site, item_type=item_type)

    async def values_for(
        self, prompt: Prompt, query: Query, *, site: str = "", item_type: str = ""
    ) -> dict[str, Value]:
        """`values`, and those of the own steps that `prompt` uses, once they are done."""
        values = self.values(query, site=site, item_type=item_type)
        if self._own is None:
            return values
        site = site or only_site(query)
        item_type = item_type or query.item_type or self.item_type(site)
        return {**values, **await self._own.values(prompt, query, site, item_type)}

    async def ask(
        self, ref: str, query: Query, usage: Usage, budget: int = DEFAULT_BUDGET, /, **more: Value
    ) -> dict[str, Any] | None:
        """The reply's keys, coerced; None where the site has no such prompt or has switched it off. `budget`
        is the prompt's length in characters (`fill`).

        Raises ModelError and its kinds (BadModelReply where a needed key cannot be had).
        """
        prompt = self.find(ref, query)
        if prompt is None:
            return None
        if prompt.reply is None:
            raise ConfigError(f"{prompt.file}:{prompt.line}: `{ref}` has no returnStruc")
        values = await self.values_for(prompt, query)
        call = call_of(prompt, fill(prompt, {**values, **more}, budget=budget), query, tier="high")
        return await parsed(prompt.reply, await self.model.complete(call, usage), named(more))

    async def ask_apart(
        self, ref: str, query: Query, usage: Usage, budget: int = DEFAULT_BUDGET, /, **more: Value
    ) -> dict[str, Any] | None:
        """`ask` of what is done behind the answers, where no question has a prompter of its own: the site's
        own steps that the prompt uses are run for this call."""
        one = self.for_question(usage)
        try:
            return await one.ask(ref, query, usage, budget, **more)
        finally:
            await one.close()


async def parsed(schema: ReplySchema, text: str, about: Sequence[str] = ()) -> dict[str, Any]:
    """`ReplySchema.parse`, beside the event loop where a reply is so long that it takes a while. Raises
    BadModelReply."""
    if len(text) <= LONG_REPLY:
        return schema.parse(text, about)
    return await asyncio.to_thread(schema.parse, text, about)


def call_of(
    prompt: Prompt, filled: Filled, query: Query, *, tier: Tier, schema: Mapping[str, Any] | None = None
) -> ModelCall:
    """The model call of a filled prompt; what the prompt's attributes say wins over `tier`."""
    return ModelCall(
        prompt=filled.text,
        system=filled.system,
        schema=filled.schema if schema is None else schema,
        schema_name=prompt.ref,
        tier=prompt.tier or tier,
        site=",".join(query.sites[:1]),
        temperature=prompt.temperature if prompt.temperature is not None else 0.0,
        max_tokens=prompt.max_tokens,
        timeout_s=prompt.timeout_s,
        source=f"{prompt.file}:{prompt.line}",
    )


def named(values: Mapping[str, Value]) -> list[str]:
    """The names of the items that a prompt was given to write about."""
    answers = values.get("request.answers")
    return [name_of(one) for one in answers] if isinstance(answers, list | tuple) else []


def earlier(query: Query) -> list[Value]:
    """The questions before, as typed; beside one that was rewritten stands what was searched for, beside one
    that was asked back what."""
    searched = query.searched or query.prev
    asked_back = query.asked_back or [""] * len(query.prev)
    return [_earlier(*one) for one in zip(query.prev, searched, asked_back, strict=True)]


def _earlier(asked: str, searched: str, asked_back: str) -> Value:
    told = {"asked": asked}
    if searched != asked:
        told["searched"] = searched
    if asked_back:
        told["asked_back"] = asked_back
    return told if len(told) > 1 else asked


def shown_before(shown: Shown) -> Value:
    told = {"title": shown.title, "url": shown.url}
    return {**told, "question": shown.question} if shown.question else told


def only_site(query: Query) -> str:
    """The site's name where just one is searched: prompts of a site hold for it alone."""
    return query.sites[0] if len(query.sites) == 1 else ""


def first_type(library: PromptLibrary, site: str) -> str:
    """The site's kind of items: the first that it names."""
    types = library.site(site).types
    return types[0] if types else BASE


def values_of(
    library: PromptLibrary, query: Query, *, site: str = "", item_type: str = ""
) -> dict[str, Value]:
    """What the variables that every prompt has stand for, for a question to `site` (else to its only one)."""
    site = site or only_site(query)
    kind = first_type(library, site)
    return {
        "request.site": site or ", ".join(query.sites),
        "request.query": query.decontextualized_query or query.text,
        "request.rawQuery": query.text,
        "request.previousQueries": earlier(query),
        "request.prevAnswers": [shown_before(shown) for shown in query.last_answers],
        "request.contextUrl": query.context_url,
        "request.contextDescription": query.context_text,
        "request.itemType": item_type or query.item_type or kind,
        "request.language": query.language,
        "request.memory": [*query.facts, *query.memory],
        "request.whiteboard": list(query.whiteboard),
        "request.top_k": query.max_results,
        "site.itemType": item_type or kind,
        "site.description": library.site(site).description,
    }
