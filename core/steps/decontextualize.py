"""Rewrite a follow-up question so that it can be searched for on its own."""

from __future__ import annotations

import re

from core.prompting.ask import Prompter
from core.providers.base import Usage
from core.query import Query
from core.retrieval import Part
from core.steps.base import Outcome

# How much the previous question counts beside the present one when no model can join them.
FOLLOW_UP_WEIGHT = 0.45
COMPLETE_WEIGHT = 0.1
# A question this short, or one that starts like this, leans on the one before.
SHORT_WORDS = 4
_LEANS = re.compile(
    r"(?:and|or|but|what about|how about|also|it|its|they|that|those|these|there|which of|any|with(?:out)?"
    r"|the (?:first|second|last)"
    r"|e|ed|o|ma|anche|invece|quell[oiae]|y|pero|también|tambien|und|aber|oder|et|mais|aussi)\b"
    r"|那|这|這|还有|還有|그럼|그리고|그건",
    re.IGNORECASE,
)


class Decontextualize:
    """`PrevQueryDecontextualizer`; never runs for a first question, nor where the client has rewritten it."""

    async def run(self, query: Query, prompter: Prompter, usage: Usage) -> Outcome:
        if not query.prev or query.decontextualized_query is not None:
            return Outcome()
        reply = await prompter.ask("PrevQueryDecontextualizer", query, usage)
        if reply is None or not reply["requires_decontextualization"]:
            return Outcome()
        rewritten = " ".join(str(reply["decontextualized_query"]).split())
        if not rewritten or rewritten == query.text:
            return Outcome()
        return Outcome(rewritten=rewritten)

    def fallback(self, _query: Query) -> Outcome:
        """Nothing is rewritten: `parts_of` searches the question together with the one before."""
        return Outcome()


def parts_of(query: Query) -> list[Part]:
    """The question and, at a lower weight, the previous one: how a follow-up is searched without a model."""
    if not query.prev:
        return [Part(query.text)]
    words = query.text.split()
    leans = len(words) <= SHORT_WORDS or _LEANS.match(query.text.strip()) is not None
    return [Part(query.text), Part(query.prev[-1], FOLLOW_UP_WEIGHT if leans else COMPLETE_WEIGHT)]
