"""Detect what a message asks of the memory, by the site's and type's own prompt."""

from __future__ import annotations

from typing import Any, ClassVar

from core.memory import KINDS, Request
from core.memory.claims import grounded, is_sensitive, kind_of
from core.memory.judge import DETECTION, DETECTION_S
from core.phrases import asked_of_memory, may_ask_to_remember
from core.prompting.ask import Prompter
from core.providers.base import Usage
from core.query import Query
from core.steps.base import Outcome

MAX_FACTS = 10  # in one message; the prompt joins several with semicolons


class DetectMemory:
    """`DetectMemoryRequestPrompt`: only what is explicitly asked for, about the person who asks."""

    # Nobody waits for it but the last message, and what it finds was asked for.
    limit_s: ClassVar[float] = DETECTION_S

    def prompt(self, _query: Query) -> str:
        return DETECTION

    async def run(self, query: Query, prompter: Prompter, usage: Usage) -> Outcome:
        reply = await prompter.ask(DETECTION, query, usage)
        if reply is None:
            return Outcome()
        said = asked_of_memory(query.text).requests
        other = next((request for request in said if request.action != "remember"), None)
        if "action" not in reply and other is not None:
            # NLWeb's prompts know of remembering only: the rest is known by its phrase.
            return Outcome(memory=(other,))
        if not reply["is_memory_request"]:
            return Outcome()
        action = str(reply.get("action") or "remember").strip().casefold()
        if action == "list":
            return Outcome(memory=(Request(text="", action="list"),))
        if action == "forget":
            return Outcome(memory=(_forget(reply, other),))
        # A fact is kept where it was asked for, not where a model only takes it for something worth keeping.
        if not may_ask_to_remember(query.text):
            return Outcome()
        facts = [" ".join(fact.split()) for fact in str(reply["memory_request"]).split(";")]
        # A fact is made of what the person said: one that a model reads out of its prompt is not believed.
        kept = [fact for fact in facts if fact and grounded(fact, query.text)][:MAX_FACTS]
        return Outcome(memory=tuple(_remember(fact, reply, query) for fact in kept))

    def fallback(self, query: Query) -> Outcome:
        return Outcome(memory=asked_of_memory(query.text).requests[:MAX_FACTS])


def commands(query: Query, prompter: Prompter | None) -> bool:
    """Whether the message does nothing but ask the memory to forget or to tell, so that nothing is searched;
    without a model also where it does nothing but ask to remember (a model is asked whether it does).

    A site that has switched the memory prompt off has switched this off, too.
    """
    if prompter is not None and prompter.find(DETECTION, query) is None:
        return False
    asked = asked_of_memory(query.text)
    remembers = any(request.action == "remember" for request in asked.requests)
    return bool(asked.requests) and not asked.more and (prompter is None or not remembers)


def _remember(fact: str, reply: dict[str, Any], query: Query) -> Request:
    kind = str(reply.get("kind") or "")
    return Request(
        text=fact,
        kind=kind if kind in KINDS else kind_of(fact),
        sensitive=bool(reply.get("sensitive", False)) or is_sensitive(f"{fact} {query.text}"),
        subject=str(reply.get("subject") or ""),
        attribute=str(reply.get("attribute") or ""),
    )


def _forget(reply: dict[str, Any], said: Request | None) -> Request:
    if said is not None and said.action == "forget":
        return said
    fact = " ".join(str(reply["memory_request"]).split())
    # Nothing goes by the model's word alone: what it reads as "forget" is asked about.
    return Request(text=fact, action="forget", everything=not fact, certain=False)
