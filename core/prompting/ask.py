"""Ask the model what a prompt says: find it for site and type, fill it, call, read the reply."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from core.errors import ConfigError
from core.prompting.fill import Filled, fill
from core.prompting.library import Prompt, PromptLibrary
from core.prompting.variables import Value
from core.providers.base import ChatModel, ModelCall, Tier, Usage
from core.query import Query


class Prompter:
    """The prompts of the moment and the model that answers them.

    `library` is called once per question part: a library that was reloaded holds for what starts after it.
    """

    def __init__(self, library: Callable[[], PromptLibrary], model: ChatModel) -> None:
        self._library = library
        self.model = model

    def find(self, ref: str, query: Query, *, site: str = "", item_type: str = "") -> Prompt | None:
        """The prompt of this site (else the query's only one) and type (else the site's first), or None."""
        site = site or only_site(query)
        return self._library().find(ref, site, item_type or query.item_type or self.item_type(site))

    def item_type(self, site: str) -> str:
        """The site's kind of items."""
        types = self._library().site(site).types
        return types[0] if types else "Thing"

    def values(self, query: Query, *, site: str = "", item_type: str = "") -> dict[str, Value]:
        """What the variables that every prompt has stand for."""
        site = site or only_site(query)
        info = self._library().site(site)
        return {
            "request.site": site or ", ".join(query.sites),
            "request.query": query.decontextualized_query or query.text,
            "request.rawQuery": query.text,
            "request.previousQueries": list(query.prev),
            "request.prevAnswers": [{"title": s.title, "url": s.url} for s in query.last_answers],
            "request.contextUrl": query.context_url,
            "request.contextDescription": query.context_text,
            "request.itemType": item_type or query.item_type or self.item_type(site),
            "request.language": query.language,
            "request.memory": [*query.facts, *query.memory],
            "request.whiteboard": [],
            "request.top_k": query.max_results,
            "site.itemType": item_type or self.item_type(site),
            "site.description": info.description,
        }

    async def ask(self, ref: str, query: Query, usage: Usage, **more: Value) -> dict[str, Any] | None:
        """The reply's keys, coerced; None where the site has no such prompt or has switched it off.

        Raises ModelError and its kinds (BadModelReply where a needed key cannot be had).
        """
        prompt = self.find(ref, query)
        if prompt is None:
            return None
        if prompt.reply is None:
            raise ConfigError(f"{prompt.file}:{prompt.line}: `{ref}` has no returnStruc")
        call = call_of(prompt, fill(prompt, {**self.values(query), **more}), query, tier="high")
        return prompt.reply.parse(await self.model.complete(call, usage))


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
    )


def only_site(query: Query) -> str:
    """The site's name where just one is searched: prompts of a site hold for it alone."""
    return query.sites[0] if len(query.sites) == 1 else ""
