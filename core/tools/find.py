"""Find the one stored item that a name means: by the name itself, else the model says which it is."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from core.documents import Candidate
from core.errors import BadModelReply
from core.jsonstream import ObjectReader
from core.prompting.ask import call_of
from core.prompting.fill import fill_batch
from core.query import Query
from core.ranking import TAG, as_prompted
from core.tools.base import Kit
from core.tools.rules import folded

MATCHING = "ItemMatchingPrompt"
MATCHED_SCORE = 75  # what the prompt calls "almost surely"
TRIED = 5


async def find_item(name: str, details: str, query: Query, kit: Kit) -> tuple[Candidate, int] | None:
    """The item and how sure it is (0..100), or None. Raises ModelError, StoreError."""
    if not name:
        return None
    if (found := _called(name, kit.found)) is not None:
        return found, 100
    candidates = await kit.search(name)
    if (found := _called(name, candidates)) is not None:
        return found, 100
    return await _matched(name, details, query, candidates, kit)


def _called(name: str, candidates: Sequence[Candidate]) -> Candidate | None:
    """The first that is called just so."""
    wanted = folded(name)
    return next((one for one in candidates if wanted and folded(one.document.name) == wanted), None)


async def _matched(
    name: str, details: str, query: Query, candidates: Sequence[Candidate], kit: Kit
) -> tuple[Candidate, int] | None:
    if not candidates or kit.prompter is None:
        return None
    document = candidates[0].document
    item_type = document.types[0] if document.types else ""
    prompt = kit.prompter.find(MATCHING, query, site=document.site, item_type=item_type)
    if prompt is None or prompt.reply is None:
        return None
    # Items of two sites never stand in one prompt: those of the likeliest one's site are tried.
    tried = [one for one in candidates if one.document.site == document.site][:TRIED]
    waiting = {secrets.token_hex(3): candidate for candidate in tried}
    values = await kit.prompter.values_for(prompt, query, site=document.site, item_type=item_type)
    values |= {"request.item_name": name, "request.details_requested": details}
    items = [(tag, as_prompted(one)) for tag, one in waiting.items()]
    filled = fill_batch(prompt, values, items)
    call = call_of(prompt, filled, query, tier="low", schema=prompt.reply.batch_schema(TAG))
    reader = ObjectReader(TAG)
    replies = [*reader.feed(await kit.prompter.model.complete(call, kit.usage)), *reader.close()]
    if not replies:
        # That none of the items is meant would be a low score for each.
        raise BadModelReply(f"`{MATCHING}`: the model judged none of the items")
    scores = [
        (waiting[str(one.get(TAG))], int(prompt.reply.coerce(one)["score"]))
        for one in replies
        if str(one.get(TAG)) in waiting
    ]
    best = max(scores, key=lambda one: one[1], default=None)
    return best if best is not None and best[1] >= MATCHED_SCORE else None
