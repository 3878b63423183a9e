"""What the model says of facts: how new ones stand to older ones, what a message tells of its writer, and
what is kept by consent alone."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from core.errors import AskError
from core.memory.claims import grounded, is_sensitive, kind_of, only_in
from core.memory.facts import KINDS, Detected, Fact, Request
from core.memory.store import Verdict
from core.prompting.ask import Prompter
from core.providers.base import Usage
from core.query import Query
from core.sentences import stated

log = logging.getLogger(__name__)

MAX_LEARNED = 10  # facts from one message
DETECTION = "DetectMemoryRequestPrompt"
# Seconds it may take where the prompt's `timeout` says nothing: what it finds was asked for.
DETECTION_S = 10.0


class PromptJudge:
    """`MemoryConflictPrompt`. What it says is bounded by the store's own rules."""

    def __init__(self, prompter: Prompter) -> None:
        self._prompter = prompter

    async def compare(self, new: Detected, older: Sequence[Fact]) -> Verdict:
        """Raises ModelError and its kinds."""
        query = Query(
            text=new.text,
            query_id=new.query_id,
            conversation_id=new.conversation_id,
            sites=(new.site,) if new.site and "," not in new.site else (),
            identity=new.identity,
        )
        # Made-up ids fit nothing: the model sees short ones, which also cost less.
        listed = [_listed(f"m{n}", fact) for n, fact in enumerate(older, 1)]
        reply = await self._prompter.ask_apart(
            "MemoryConflictPrompt", query, Usage(), **{"request.memory": listed}
        )
        if reply is None:
            return Verdict("adds")
        named = {f"m{n}": fact.memory_id for n, fact in enumerate(older, 1)}
        memory_id = named.get(str(reply.get("memory_id", "")).strip().strip("\"'"), "")
        relation = str(reply["relation"]).strip().casefold()
        if not memory_id or relation not in ("repeats", "replaces"):
            return Verdict("adds")
        judged: Literal["repeats", "replaces"] = "repeats" if relation == "repeats" else "replaces"
        return Verdict(judged, memory_id, new=_about(reply), old=_about(reply, "older_"))


def _listed(name: str, fact: Fact) -> dict[str, str]:
    """A kept fact as the model sees it, with what it is about where that is known."""
    told = {"id": name, "text": fact.text, "subject": fact.subject, "attribute": fact.attribute}
    return {key: value for key, value in told.items() if value}


def _about(reply: Mapping[str, Any], of: str = "") -> tuple[str, str]:
    """Whom or what a fact is about, and which property of it, where a site's prompt asks for that."""
    return str(reply.get(f"{of}subject") or ""), str(reply.get(f"{of}attribute") or "")


@dataclass(frozen=True, slots=True)
class Extractor:
    """`MemoryExtractionPrompt`: what a person's own words tell of them that will matter later."""

    prompter: Prompter

    async def facts(self, query: Query, said: Sequence[str], known: Sequence[str]) -> list[Request]:
        """What is new in these messages of the person; each fact made of words that they state of themselves,
        not of those of a question, a quotation, a case that is supposed, or of what is said of others.

        Raises ModelError and its kinds.
        """
        messages = [{"role": "user", "content": text} for text in said]
        more: dict[str, Any] = {"whiteboard.messages": messages, "request.memory": list(known)}
        reply = await self.prompter.ask_apart("MemoryExtractionPrompt", query, Usage(), **more)
        if reply is None:
            return []
        found = []
        read = [stated(text) for text in said]
        own, rest = "\n".join(own for own, _ in read), "\n".join(rest for _, rest in read)
        for told in list(reply["facts"])[:MAX_LEARNED]:
            request = _request(told)
            if request is not None and grounded(request.text, own) and not only_in(request.text, rest, own):
                found.append(request)
        return found


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """What the memory step's own prompt says of messages that come without a question's steps."""

    prompter: Prompter

    async def weighed(self, query: Query, asked: Sequence[Request]) -> list[Request]:
        """The requests found in the message `query.text`: sensitive where they were already, and all where
        the model takes the message for that. As they are where it fails or is late; never raises."""
        if all(one.sensitive for one in asked):
            return list(asked)
        try:
            async with asyncio.timeout(self._limit_s(query)):
                reply = await self.prompter.ask_apart(DETECTION, query, Usage())
        except (TimeoutError, AskError) as failed:
            reason = failed.message if isinstance(failed, AskError) else "late"
            log.warning("memory.not_weighed", extra={"query_id": query.query_id, "reason": reason})
            return list(asked)
        told = bool(reply and reply.get("sensitive", False))
        return [replace(one, sensitive=one.sensitive or told) for one in asked]

    def _limit_s(self, query: Query) -> float:
        prompt = self.prompter.find(DETECTION, query)
        return (prompt and prompt.timeout_s) or DETECTION_S


def _request(told: Any) -> Request | None:
    if isinstance(told, str):
        told = {"text": told}
    if not isinstance(told, dict):
        return None
    text = " ".join(str(told.get("text") or "").split())
    if not text:
        return None
    kind = str(told.get("kind") or "")
    return Request(
        text=text,
        kind=kind if kind in KINDS else kind_of(text),
        sensitive=bool(told.get("sensitive")) or is_sensitive(text),
        subject=str(told.get("subject") or ""),
        attribute=str(told.get("attribute") or ""),
    )
