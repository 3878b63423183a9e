"""Set two stored items side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from core.documents import Candidate
from core.errors import BadModelReply
from core.messages import Compared, CompareItems, Item
from core.query import Query
from core.ranking import as_prompted
from core.tools import rules
from core.tools.base import Choice, Kit, ToolAnswer, asked_of, said_of, text_in
from core.tools.digest import digest_of, side_by_side
from core.tools.find import find_item

CHOOSING = "DetectComparisonPrompt"
COMPARING = "CompareItemsPrompt"


class Compare:
    """`compare`: finds both items by their names (or those shown before that are meant) and compares them."""

    name = "compare"
    description = "compares two items that the question names or points at"

    def looks_like(self, query: Query, found: Sequence[Candidate], *, model: bool) -> bool:
        if query.max_results < 2:
            return False
        return rules.compares(asked_of(query)) and (model or len(_names(query, found)) > 1)

    async def choose(self, query: Query, kit: Kit) -> Choice | None:
        if kit.prompter is None:
            first, second, *_ = [*_names(query, kit.found), "", ""]
            return Choice(parameters={"item1_name": first, "item2_name": second})
        reply = await kit.ask(CHOOSING, query)
        if reply is None:
            return None
        return Choice(
            100 if reply["comparison_query"] else 0,
            {key: str(reply.get(key) or "") for key in ("item1_name", "item2_name", "details_requested")},
        )

    async def run(self, query: Query, parameters: Mapping[str, Any], kit: Kit) -> ToolAnswer | None:
        names = [text_in(parameters, "item1_name", "item1"), text_in(parameters, "item2_name", "item2")]
        if not all(names):
            names = _names(query, kit.found)[:2]
        wanted = text_in(parameters, "details_requested")
        found = [await find_item(name, wanted, query, kit) for name in names]
        sure = [one for one in found if one is not None]
        pair = [candidate for candidate, _ in sure]
        if len(pair) < 2 or pair[0].document.key == pair[1].document.key:
            return None
        asked = rules.beside_names(wanted or asked_of(query), [one.document.name for one in pair])
        one, other = [await digest_of(candidate, asked) for candidate in pair]
        digests = side_by_side(one, other)
        first, second = (
            kit.item(candidate, float(score), digest.sentences)
            for (candidate, score), digest in zip(sure, digests, strict=True)
        )
        told = {
            "request.answers": [as_prompted(candidate) for candidate in pair],
            "item.description": [as_prompted(candidate) for candidate in pair],
            "request.item_name": f"{first.name}, {second.name}",
            "request.details_requested": wanted,
        }
        reply = await kit.ask(COMPARING, query, **told)
        comparison: str | dict[str, Any] = "\n\n".join(
            f"{item.name}: {digest.text}" for item, digest in zip((first, second), digests, strict=True)
        )
        if reply is not None:
            comparison = said_of(reply["comparison"])
            if not comparison:
                raise BadModelReply("the model wrote no comparison")
        return ToolAnswer((CompareItems(comparison, _side(first), _side(second)),), (first, second))


def _side(item: Item) -> Compared:
    return Compared(item.name, item.url, item.schema_object, item.site, item.document_id)


def _names(query: Query, found: Sequence[Candidate]) -> list[str]:
    """Two names: of found or shown items that stand in the question, else of the shown ones it points at."""
    titles = [one.title for one in query.last_answers]
    known = [*(one.document.name for one in found[: rules.LOOKED_AT]), *titles]
    named = rules.named_in(asked_of(query), known)
    return named if len(named) > 1 else rules.meant_of_shown(query, query.last_answers)
