"""Find out which of a site's several kinds of item a question is after."""

from __future__ import annotations

from typing import ClassVar

from core.prompting.ask import Prompter, only_site
from core.prompting.schema_types import ancestors, local_name
from core.providers.base import Usage
from core.query import Query
from core.steps.base import Outcome


class DetectItemType:
    """`DetectItemTypePrompt`; only where a site has several kinds and the client names none.

    The prompt answers with the site's first kind also where the question leaves it open, so only another of
    its kinds (or one below it) is a sure answer.
    """

    limit_s: ClassVar[float] = 4.0

    def prompt(self, _query: Query) -> str:
        return "DetectItemTypePrompt"

    def applies(self, query: Query, prompter: Prompter) -> bool:
        site = only_site(query)
        return bool(site and query.item_type is None and len(prompter.library.site(site).types) > 1)

    async def run(self, query: Query, prompter: Prompter, usage: Usage) -> Outcome:
        reply = await prompter.ask(self.prompt(query), query, usage)
        if reply is None:
            return Outcome()
        said = local_name(str(reply["item_type"])).casefold()
        _first, *others = prompter.library.site(only_site(query)).types
        for kind in others:
            if said == kind.casefold():
                return Outcome(item_type=kind)
        by_fold = {name.casefold(): name for name in prompter.library.types}
        kind = by_fold.get(said, "")
        return Outcome(item_type=kind) if set(ancestors(kind)) & set(others) else Outcome()
