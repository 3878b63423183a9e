"""Runs a question's steps, each in its time: one that fails or is late is named, and gone on without."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping

from core.deadline import Deadline
from core.errors import AskError, ModelError, ModelTimeout
from core.messages import AskUser, Irrelevant
from core.prompting.ask import Prompter
from core.providers.base import Usage
from core.query import Query
from core.steps.base import Outcome, SideStep, Step
from core.timeline import spent_on

log = logging.getLogger(__name__)


class StepRunner:
    """The steps of one question. `mark` notes in `complete.timings` when something ended, `fail` tells the
    client of a failure."""

    def __init__(
        self,
        prompter: Prompter | None,
        usage: Usage,
        deadline: Deadline,
        *,
        mark: Callable[[str], None],
        fail: Callable[[AskError], None],
    ) -> None:
        self._prompter = prompter
        self._usage = usage
        self._deadline = deadline
        self._mark = mark
        self._fail = fail
        self._beside: Mapping[str, asyncio.Task[Outcome]] = {}

    async def run(self, name: str, step: Step, query: Query) -> Outcome:
        """What the step says; where the model fails or is late, which is told, what it can say without."""
        if self._prompter is None:
            with spent_on(name):
                return step.fallback(query)
        limit = self._limit(step, query)
        try:
            with spent_on(name):
                async with asyncio.timeout(limit):
                    return await step.run(query, self._prompter, self._usage)
        except TimeoutError as late:
            self.skipped(name, late, query)
            self._fail(ModelTimeout(f"the model gave no answer within {limit:.3g} s ({name})"))
        except ModelError as failed:
            self.skipped(name, failed, query)
            self._fail(failed)
        return step.fallback(query)

    def start_beside(self, steps: Mapping[str, SideStep], query: Query, tasks: asyncio.TaskGroup) -> None:
        """Run the side steps beside what follows."""
        self._beside = {
            name: tasks.create_task(self._run_beside(name, step, query)) for name, step in steps.items()
        }

    async def _run_beside(self, name: str, step: SideStep, query: Query) -> Outcome:
        """What the step found in its time; where it fails or is late the answer goes on without it."""
        assert self._prompter is not None
        try:
            with spent_on(name, cancelled="late"):
                async with asyncio.timeout(self._limit(step, query)):
                    outcome = await step.run(query, self._prompter, self._usage)
        except (TimeoutError, AskError) as failed:
            self.skipped(name, failed, query)
            return Outcome()
        self._mark(name)
        return outcome

    async def verdict(self) -> AskUser | Irrelevant | None:
        """The first reason not to answer."""
        deciding = [self._beside[name] for name in ("required_info", "relevance") if name in self._beside]
        for outcome in asyncio.as_completed(deciding):
            found = await outcome
            if found.ask is not None:
                return found.ask
            if found.irrelevant is not None:
                return Irrelevant(found.irrelevant)
        return None

    async def may_show(self) -> bool:
        """Whether nothing has to be asked back first. Only that is waited for: a site's answer to a question
        that is not for it does no harm."""
        if "required_info" not in self._beside:
            return True
        return (await asyncio.shield(self._beside["required_info"])).ask is None

    async def kind(self) -> str | None:
        """The kind of item that is meant, if that is sure."""
        task = self._beside.get("item_type")
        return None if task is None else (await asyncio.shield(task)).item_type

    def kind_so_far(self) -> str | None:
        """The kind of item that is meant, if that is known by now: nothing waits for it but the last word."""
        task = self._beside.get("item_type")
        return task.result().item_type if task is not None and task.done() else None

    def drop_late(self) -> None:
        """The answer stands: what a step has not said by now has no use. Nothing failed: `NAME_late`."""
        for name, task in self._beside.items():
            if not task.done():
                task.cancel()
                self._mark(f"{name}_late")

    def skipped(self, name: str, why: BaseException, query: Query) -> None:
        """Go on without a step: `complete.timings` names it, the log says why."""
        self._mark(f"{name}_skipped")
        reason = why.message if isinstance(why, AskError) else "late"
        log.warning("step.skipped", extra={"step": name, "reason": reason, "query_id": query.query_id})

    def _limit(self, step: Step | SideStep, query: Query) -> float:
        """Seconds that the step may take: its prompt's own `timeout`, else the step's, if so much is left."""
        prompt = self._prompter and self._prompter.find(step.prompt(query), query)
        return self._deadline.within((prompt and prompt.timeout_s) or step.limit_s)
