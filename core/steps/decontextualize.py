"""Rewrite a follow-up question so that it can be searched for on its own."""

from __future__ import annotations

import re
from typing import ClassVar

from core.errors import BadModelReply
from core.prompting.ask import Prompter
from core.prompting.fill import DEFAULT_BUDGET
from core.providers.base import Usage
from core.query import MAX_QUERY_CHARS, Query
from core.retrieval import Part
from core.steps.base import Outcome

FROM_QUESTIONS = "PrevQueryDecontextualizer"
FROM_PAGE = "DecontextualizeContextPrompt"
FROM_BOTH = "FullDecontextualizePrompt"
# Characters of a prompt that rewrites. What a follow-up means may stand in any question before it, so twelve
# of the longest that are taken stay whole beside all else; of more the oldest go first.
REWRITING_BUDGET = DEFAULT_BUDGET + 12 * MAX_QUERY_CHARS
CONTEXT_CHARS = 200  # of a page's beginning: its name, mostly
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
    """Joins the question with the questions before, with the page it is asked on, or with both.

    Never runs for a first question without a page, nor where the client has rewritten it.
    """

    limit_s: ClassVar[float] = 6.0

    def prompt(self, query: Query) -> str:
        if not query.context_text:
            return FROM_QUESTIONS
        return FROM_BOTH if query.prev or query.whiteboard else FROM_PAGE

    async def run(self, query: Query, prompter: Prompter, usage: Usage) -> Outcome:
        if not leans_on_something(query):
            return Outcome()
        reply = await prompter.ask(self.prompt(query), query, usage, REWRITING_BUDGET)
        if reply is None:
            return Outcome()
        rewritten = " ".join(str(reply["decontextualized_query"]).split())
        if len(rewritten) > MAX_QUERY_CHARS:
            raise BadModelReply(f"the question was rewritten to {len(rewritten):,} characters")
        # The prompts for pages say by an unchanged question that it is complete.
        complete = not reply.get("requires_decontextualization", True)
        if complete or not rewritten or rewritten == " ".join(query.text.split()):
            # What answers a question back is no complete question, whatever the model says.
            return Outcome(unsure=any(query.asked_back[-1:]))
        return Outcome(rewritten=rewritten)

    def fallback(self, _query: Query) -> Outcome:
        """Nothing is rewritten: `parts_of` searches the question together with the one before."""
        return Outcome(unsure=True)


def leans_on_something(query: Query) -> bool:
    """Whether there is anything the question could mean without saying so, and nobody has said it yet."""
    if query.decontextualized_query is not None:
        return False
    return bool(query.prev or query.whiteboard or query.context_text)


def before_it(query: Query) -> str:
    """What was searched last; where that only answered a question back, what it was asked back for stands
    before it."""
    searched = query.searched or query.prev
    at = len(searched) - 1
    while at > 0 and searched[at] == query.prev[at] and any(query.asked_back[at - 1 : at]):
        at -= 1
    return " ".join(searched[at:])


def parts_of(query: Query) -> list[Part]:
    """The question and, at a lower weight, the previous one (else the beginning of the page it is asked on):
    how a follow-up is searched without a model."""
    if query.prev:
        before = before_it(query)
    elif query.context_text:
        before = query.context_text.splitlines()[0][:CONTEXT_CHARS]
    else:
        return [Part(query.text)]
    words = query.text.split()
    leans = len(words) <= SHORT_WORDS or _LEANS.match(query.text.strip()) is not None
    leans = leans or any(query.asked_back[-1:])
    return [Part(query.text), Part(before, FOLLOW_UP_WEIGHT if leans else COMPLETE_WEIGHT)]
