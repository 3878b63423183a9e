"""Find out that a site has nothing at all for a question, so that its items need not be gone through."""

from __future__ import annotations

from typing import ClassVar

from core.prompting.ask import Prompter, only_site
from core.providers.base import Usage
from core.query import Query
from core.steps.base import Outcome


class Relevance:
    """`DetectIrrelevantQueryPrompt`; only for one named site that says what it holds."""

    limit_s: ClassVar[float] = 4.0

    def prompt(self, _query: Query) -> str:
        return "DetectIrrelevantQueryPrompt"

    def applies(self, query: Query, prompter: Prompter) -> bool:
        site = only_site(query)
        return bool(site and not query.all_sites and prompter.library.site(site).description)

    async def run(self, query: Query, prompter: Prompter, usage: Usage) -> Outcome:
        reply = await prompter.ask(self.prompt(query), query, usage)
        if reply is None or not reply["site_is_irrelevant_to_query"]:
            return Outcome()
        why = " ".join(str(reply.get("explanation_for_irrelevance") or "").split())
        return Outcome(irrelevant=why or f"The question is about something that {only_site(query)} has not.")
