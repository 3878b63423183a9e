"""Put several kinds of item together: the courses of a menu, the stops of a day."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import Any

from core.documents import Candidate
from core.errors import BadModelReply, ModelError
from core.messages import EnsembleResult, Item
from core.query import Query
from core.ranking import BatchFailed
from core.tools import rules
from core.tools.base import Choice, Kit, ToolAnswer, asked_of
from core.tools.rules import folded

CHOOSING = "DetectMultiItemTypeQueryPrompt"
COMBINING = "EnsemblePrompt"
MAX_PARTS = 4  # each is a model call of its own
OFFERED = 4  # items of each part that the model may choose from
# What replies call a part's question, where they say more of it than that.
QUESTION_KEYS = ("query", "item_query", "search_query", "question", "text")


class Ensemble:
    """`ensemble`: a search and a ranking for each kind, then one choice that suits as a whole."""

    name = "ensemble"
    description = "puts items of several kinds together: a menu, a day trip, an outfit"

    def looks_like(self, query: Query, found: Sequence[Candidate], *, model: bool) -> bool:  # noqa: ARG002
        return model and query.max_results > 1 and rules.combines(asked_of(query))

    async def choose(self, query: Query, kit: Kit) -> Choice | None:
        reply = await kit.ask(CHOOSING, query)
        if reply is None:
            return None
        parts = _parts(reply.get("item_queries"))
        several = not reply["single_item_type_query"] and len(parts) > 1
        has_room = min(len(parts), MAX_PARTS) <= query.max_results
        return Choice(100 if several and has_room else 0, {"queries": parts})

    async def run(self, query: Query, parameters: Mapping[str, Any], kit: Kit) -> ToolAnswer | None:
        parts = _parts(parameters.get("queries"))[:MAX_PARTS]
        if len(parts) < 2 or kit.prompter is None:
            return None
        searches = [asyncio.create_task(_best(part, query, kit)) for part in parts]
        try:
            offers = await asyncio.gather(*searches)
        finally:
            # Where one fails the question is a search: the others' calls are for nothing.
            for search in searches:
                search.cancel()
        offered = [(part, item) for part, items in zip(parts, offers, strict=True) for item in items]
        if not offered:
            return None
        reply = await kit.ask(COMBINING, query, **{"request.answers": [_told(*one) for one in offered]})
        if reply is None:
            return None
        chosen = _stored(reply["items"], [item for _, item in offered])
        if not chosen:
            raise BadModelReply("the model chose none of the stored items")
        chosen = _fewer(chosen, offered, query.max_results)
        result = {
            "theme": str(reply.get("theme") or ""),
            "items": [_shown(said, item) for said, item in chosen],
            "overall_tips": [str(tip) for tip in _list(reply.get("overall_tips"))][:3],
        }
        return ToolAnswer((EnsembleResult({"recommendations": result}),), tuple(item for _, item in chosen))


async def _best(part: str, query: Query, kit: Kit) -> list[Item]:
    """The best items of one part. Raises ModelError if its one batch got no score at all."""
    candidates = await kit.search(part)
    if not candidates or kit.ranker is None:
        return []
    asked = query.with_(decontextualized_query=part)
    # One batch a part: the likeliest items, which are of one site and one prompt.
    batch = kit.ranker.likeliest(asked, candidates)
    scored: list[tuple[int, Candidate, str]] = []
    failed: ModelError | None = None
    async with aclosing(kit.ranker.rank(asked, batch, kit.usage)) as ranked:
        async for one in ranked:
            if isinstance(one, BatchFailed):
                failed = one.error
            elif one.score is not None and one.score >= kit.min_score:
                scored.append((one.score, one.candidate, one.description))
    if failed is not None and not scored:
        raise failed
    place = {candidate.document.key: at for at, candidate in enumerate(batch)}
    scored.sort(key=lambda one: (-one[0], place[one[1].document.key]))
    return [kit.item(candidate, float(score), said) for score, candidate, said in scored[:OFFERED]]


def _parts(value: Any) -> list[str]:
    """Each kind's question, from a list of texts or of objects that hold one."""
    parts = []
    for one in _list(value):
        if isinstance(one, Mapping):
            one = next((one[key] for key in QUESTION_KEYS if one.get(key)), "")
        if text := " ".join(str(one).split()):
            parts.append(text)
    return list(dict.fromkeys(parts))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _told(part: str, item: Item) -> dict[str, Any]:
    return {"category": part, "name": item.name, "url": item.url, "description": item.description}


def _stored(said: Sequence[Any], offered: Sequence[Item]) -> list[tuple[Mapping[str, Any], Item]]:
    """What the model chose, each with the stored item it is: by address, else by name; each item once."""
    by_url = {item.url: item for item in reversed(offered)}
    by_name = {folded(item.name): item for item in reversed(offered)}
    chosen: dict[tuple[str, str], tuple[Mapping[str, Any], Item]] = {}
    for one in said:
        if not isinstance(one, Mapping):
            continue
        item = by_url.get(str(one.get("url") or "")) or by_name.get(folded(str(one.get("name") or "")))
        if item is not None:
            chosen.setdefault((item.site, item.document_id), (one, item))
    return list(chosen.values())


def _fewer(
    chosen: Sequence[tuple[Mapping[str, Any], Item]], offered: Sequence[tuple[str, Item]], most: int
) -> list[tuple[Mapping[str, Any], Item]]:
    """At most so many, in their order: of each part the first, then of each the second, and so on."""
    part_of = {(item.site, item.document_id): part for part, item in reversed(offered)}
    had: Counter[str] = Counter()
    turns: list[tuple[int, int]] = []
    for at, (_, item) in enumerate(chosen):
        part = part_of[item.site, item.document_id]
        turns.append((had[part], at))
        had[part] += 1
    return [chosen[at] for at in sorted(at for _, at in sorted(turns)[:most])]


def _shown(said: Mapping[str, Any], item: Item) -> dict[str, Any]:
    """NLWeb's keys, and which stored item it is; what names the item is the item's own."""
    return {
        "category": str(said.get("category") or ""),
        "name": item.name,
        "url": item.url,
        "description": str(said.get("description") or item.description),
        "why_recommended": str(said.get("why_recommended") or ""),
        "site": item.site,
        "document_id": item.document_id,
        "schema_object": item.schema_object,
    }
