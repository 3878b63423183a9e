"""Ask back what has to be known before a search makes sense: where a flat is to be, what it may cost."""

from __future__ import annotations

from typing import ClassVar

from core.messages import AskUser, Question
from core.prompting.ask import Prompter
from core.providers.base import Usage
from core.query import Query
from core.steps.base import Outcome

ID = "required_info"
# Who has answered this often in a row is shown what there is.
MOST_IN_A_ROW = 2


class RequiredInfo:
    """`RequiredInfoPrompt`, which only some types have. Earlier questions and what is remembered count; the
    answer is the next question, which is joined with this one."""

    limit_s: ClassVar[float] = 4.0

    def prompt(self, _query: Query) -> str:
        return "RequiredInfoPrompt"

    def applies(self, query: Query, _prompter: Prompter) -> bool:
        newest = query.asked_back[-MOST_IN_A_ROW:]
        return len(newest) < MOST_IN_A_ROW or not all(newest)

    async def run(self, query: Query, prompter: Prompter, usage: Usage) -> Outcome:
        reply = await prompter.ask(self.prompt(query), query, usage)
        if reply is None or reply["required_info_found"]:
            return Outcome()
        question = " ".join(str(reply.get("user_question") or "").split())
        # Nothing to ask back is nothing to wait for.
        return Outcome(ask=AskUser(question, (Question(ID, question),))) if question else Outcome()
