"""A model that does well on our prompts, by rules that read nothing but the request."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.openai_server import ModelRequest

FENCE = re.compile(r'<(data-\w+) name="([\w.]+)">(.*?)</\1>', re.DOTALL)
ITEMS = re.compile(r'\[\s*\{\s*"tag"\s*:')
REMEMBER = re.compile(r"(?<!do you )\bremember (?:that )?((?:i|my|we|our)\b[^\n\"<>`{}]*)", re.IGNORECASE)
WORD = re.compile(r"[^\W\d_]{3,}|\d+")
UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]+")

# Words of instructions say nothing about what is asked for.
INSTRUCTIONS = frozenset(
    re.findall(
        r"\w+",
        """
    the and for with that this you your are was not but from has have his her its can will would
    which who what when where how why all any one two out about into than then them they item items
    user users question query score scores scored relevance relevant rank ranking answer answers
    description describe describes site json list object array tag tags between number integer reply
    string text content data each every should must only asked asks ask searched search give given
    show find want like please true false name url type short sentence reason fact facts remember
    """,
    )
)


@dataclass
class SensibleModel:
    """Use an instance as `ScriptedModel.answer`. `rewrites` maps a follow-up question to the one that stands
    on its own; `scores` gives an item whose text holds the key this score, whatever the words say; `replies`
    by prompt go before all rules: the keys of a reply, a step of a script, or a callable that gives one."""

    rewrites: Mapping[str, str] = field(default_factory=dict)
    scores: Mapping[str, int] = field(default_factory=dict)
    replies: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, request: ModelRequest) -> Any:
        if request.schema_name in self.replies:
            reply = self.replies[request.schema_name]
            reply = reply(request) if callable(reply) else reply
            return fitting(request, reply) if isinstance(reply, dict) else reply
        name = request.schema_name.lower()
        if "decontextualiz" in name:
            return fitting(request, self._rewritten(asked_in(request.prompt)))
        if "memoryrequest" in name:
            return fitting(request, remembered(asked_in(request.prompt)))
        if "ranking" in name:
            return self._ranked(request)
        if not request.schema:
            return "A short answer [1]."
        return fitting(request, {"required_info_found": True, "answer": "A short answer [1]."})

    def _rewritten(self, question: str) -> dict[str, Any]:
        known = max((key for key in self.rewrites if key in question), key=len, default=None)
        rewritten = question if known is None else self.rewrites[known]
        return {"requires_decontextualization": known is not None, "decontextualized_query": rewritten}

    def _ranked(self, request: ModelRequest) -> Any:
        items, rest = tagged_items(request.prompt)
        asked = words(asked_in(rest)) - INSTRUCTIONS
        if not items:
            item = "".join(values_of(request.prompt, "item.description")) or request.prompt
            return fitting(request, self._scored(item, asked))
        return [
            fitting(request, {"tag": item["tag"], **self._scored(as_words(item), asked)}) for item in items
        ]

    def _scored(self, text: str, asked: set[str]) -> dict[str, Any]:
        fixed = next((score for key, score in self.scores.items() if key in text), None)
        matches = asked & words(text)
        score = fixed if fixed is not None else (0, 60, 75, 85, 90)[min(len(matches), 4)]
        why = "matches " + ", ".join(sorted(matches)[:4]) if matches else "matches nothing"
        return {"score": score, "description": f"It {why}."}


def sensible(request: ModelRequest) -> Any:
    """`SensibleModel` without a table of rewrites."""
    return SensibleModel()(request)


def values_of(prompt: str, *names: str) -> list[str]:
    """What stands in the fences of these names."""
    return [found.group(3) for found in FENCE.finditer(prompt) if found.group(2) in names]


def asked_in(prompt: str) -> str:
    """The question in a prompt; the whole prompt where none is fenced."""
    found = values_of(prompt, "request.rawQuery", "request.query")
    return found[0] if found else prompt


def remembered(question: str) -> dict[str, Any]:
    """A memory request is what says "remember (that) I ...": the last of them."""
    facts = REMEMBER.findall(question)
    fact = facts[-1].strip(" .!?") if facts else ""
    return {"is_memory_request": bool(fact), "memory_request": fact, "action": "remember"}


def tagged_items(prompt: str) -> tuple[list[dict[str, Any]], str]:
    """The items of a batch, and the prompt without them."""
    decoder = json.JSONDecoder()
    for found in ITEMS.finditer(prompt):
        try:
            items, end = decoder.raw_decode(prompt, found.start())
        except ValueError:
            continue
        return items, prompt[: found.start()] + prompt[end:]
    return [], prompt


def as_words(item: Mapping[str, Any]) -> str:
    return json.dumps({**item, "tag": ""}, ensure_ascii=False)


def words(text: str) -> set[str]:
    """Words without a plural's s, and pairs of characters where a script has no spaces."""
    spaced = {word.lower().rstrip("s") for word in WORD.findall(UNSPACED.sub(" ", text))}
    return spaced | set(pairs(text))


def pairs(text: str) -> Iterator[str]:
    for run in UNSPACED.findall(text):
        yield from (run[n : n + 2] for n in range(len(run) - 1))


def fitting(request: ModelRequest, reply: Mapping[str, Any]) -> dict[str, Any]:
    """The reply with the keys that the schema has and no others: what is missing is false, 0, empty or ""."""
    empty = {"boolean": False, "integer": 0, "number": 0, "array": [], "object": {}}
    properties = reply_properties(request.schema)
    if not properties:
        return dict(reply)
    return {name: reply.get(name, empty.get(str(sub.get("type")), "")) for name, sub in properties.items()}


def reply_properties(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The keys of one reply: of a list's items where the schema is a list in an object."""
    properties = schema.get("properties") or {}
    inner = properties.get("items") if len(properties) == 1 else None
    return (inner.get("items") or {}).get("properties") or {} if inner else properties
