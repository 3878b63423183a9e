"""Detect that the person asks to remember something, by the site's and type's own prompt."""

from __future__ import annotations

from core.memory import Request
from core.phrases import is_sensitive, memory_request
from core.prompting.ask import Prompter
from core.providers.base import Usage
from core.query import Query
from core.steps.base import Outcome


class DetectMemory:
    """`DetectMemoryRequestPrompt`: only what is explicitly asked for, about the person who asks."""

    async def run(self, query: Query, prompter: Prompter, usage: Usage) -> Outcome:
        reply = await prompter.ask("DetectMemoryRequestPrompt", query, usage)
        if reply is None or not reply["is_memory_request"]:
            return Outcome()
        fact = " ".join(str(reply["memory_request"]).split())
        if not fact or reply.get("action", "remember") not in ("remember", ""):
            return Outcome()
        sensitive = bool(reply.get("sensitive", False)) or is_sensitive(f"{fact} {query.text}")
        return Outcome(
            remember=Request(text=fact, kind=str(reply.get("kind") or "fact"), sensitive=sensitive)
        )

    def fallback(self, query: Query) -> Outcome:
        return Outcome(remember=memory_request(query.text))
