"""Answer what is asked about one named item from that item."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from core.documents import Candidate
from core.errors import BadModelReply
from core.messages import ItemDetails
from core.prompting.variables import Value
from core.query import Query
from core.ranking import as_prompted
from core.tools import rules
from core.tools.base import Choice, Kit, ToolAnswer, asked_of, said_of, text_in
from core.tools.digest import digest_of
from core.tools.find import find_item

CHOOSING = "DetectQueryTypePrompt"
EXTRACTING = "ExtractItemDetailsPrompt"


class Details:
    """`details`: finds the item by its name, and takes from it what was asked for."""

    name = "details"
    description = "answers what is asked about one item that the question names"

    def looks_like(self, query: Query, found: Sequence[Candidate], *, model: bool) -> bool:
        text = asked_of(query)
        if rules.wants_details(text):
            return model or bool(_names(text, found))
        # Without a model to tell, a question that names an item may want that item or others like it.
        return model and rules.asks(text) and bool(_names(text, found))

    async def choose(self, query: Query, kit: Kit) -> Choice | None:
        if kit.prompter is None:
            return Choice(parameters={"item_name": _name(query, kit), "details_requested": ""})
        reply = await kit.ask(CHOOSING, query)
        if reply is None:
            return None
        return Choice(
            100 if reply["item_details_query"] else 0,
            {
                "item_name": str(reply.get("item_title") or ""),
                "details_requested": str(reply.get("details_being_asked") or ""),
            },
        )

    async def run(self, query: Query, parameters: Mapping[str, Any], kit: Kit) -> ToolAnswer | None:
        name = text_in(parameters, "item_name", "item_title") or _name(query, kit)
        wanted = text_in(parameters, "details_requested", "details_being_asked") or asked_of(query)
        found = await find_item(name, wanted, query, kit)
        if found is None:
            return None
        candidate, score = found
        details, explanation = await _extracted(candidate, wanted, query, kit)
        text = details if isinstance(details, str) else ""
        if not details:
            digest = await digest_of(candidate, rules.beside_names(wanted, [candidate.document.name]))
            details, text = digest.text, digest.sentences
        item = kit.item(candidate, float(score), text)
        said = ItemDetails(
            name=item.name,
            details=details or item.description,
            score=score,
            explanation=explanation,
            url=item.url,
            site=item.site,
            schema_object=item.schema_object,
            document_id=item.document_id,
        )
        return ToolAnswer((said,), (item,))


async def _extracted(
    candidate: Candidate, wanted: str, query: Query, kit: Kit
) -> tuple[str | dict[str, Any], str]:
    """The details, and what has to be known beside them; "" where there is no model to say."""
    told: dict[str, Value] = {
        "item.description": as_prompted(candidate),
        "item.name": candidate.document.name,
        "request.item_name": candidate.document.name,
        "request.details_requested": wanted,
    }
    reply = await kit.ask(EXTRACTING, query, **told)
    if reply is None:
        return "", ""
    context = str(reply.get("additional_context") or "").strip()
    details = said_of(reply["requested_details"])
    if not details:
        raise BadModelReply("the model told no details")
    return details, context


def _name(query: Query, kit: Kit) -> str:
    """The name in the question: one in quotation marks, else a found item's, else the last item shown."""
    text = asked_of(query)
    if (said := rules.quoted(text)) is not None:
        return said
    return next(iter(_names(text, kit.found)), "")


def _names(text: str, found: Sequence[Candidate]) -> list[str]:
    return rules.named_in(text, [one.document.name for one in found[: rules.LOOKED_AT]])
