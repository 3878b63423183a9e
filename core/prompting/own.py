"""Steps of a site's own: each asks for one value, which later prompts use as a variable.

A step in XML is a prompt with a variable to set (`<Step ref="Season" sets="request.season">`); a step in
Python is a class that an installed package offers in the entry point group `askable.steps`. They run side by
side with the steps before retrieval. A prompt waits for those whose variable it uses, and for nothing else;
what fails or comes late has no value.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Protocol

from core.deadline import Deadline
from core.errors import AskError, ConfigError
from core.prompting.fill import fill
from core.prompting.library import goes_before
from core.prompting.parse import OWN_VARIABLE, Prompt
from core.prompting.refs import STEP_PREFIX
from core.prompting.variables import OLDER_NAMES, VARIABLES, Value
from core.providers.base import Usage
from core.query import Query
from core.timeline import spent_on

if TYPE_CHECKING:
    from core.prompting.ask import Prompter

log = logging.getLogger(__name__)

ENTRY_POINTS = "askable.steps"
# How long a step may take where it doesn't say: longer than a quick model needs, shorter than people wait.
STEP_TIMEOUT_S = 2.0


class PythonStep(Protocol):
    """A step in Python: a class without arguments. It may also have `timeout_s` (default 2)."""

    name: str
    sets: str  # the variable, `request.NAME`

    async def run(self, query: Query, prompter: Prompter, usage: Usage) -> Value:
        """The variable's value for this question; None for none."""
        ...


@dataclass(frozen=True, slots=True)
class OwnStep:
    """A step of either kind, as it is run: `prompt` for one in XML, `code` for one in Python."""

    name: str
    sets: str
    timeout_s: float
    prompt: Prompt | None = None
    code: PythonStep | None = None

    @property
    def key(self) -> tuple[str, int]:
        """The same for the same step; a site's own `Season` is another than everybody's."""
        return self.name, id(self.prompt or self.code)

    def needed_by(self, prompt: Prompt) -> bool:
        """Whether `prompt` is filled only when this step is done."""
        if self.prompt is not None:
            return goes_before(self.prompt, prompt)
        return self.sets in prompt.variables


def of_prompt(prompt: Prompt) -> OwnStep:
    """A step in XML."""
    return OwnStep(
        prompt.ref.removeprefix(STEP_PREFIX), prompt.sets, prompt.timeout_s or STEP_TIMEOUT_S, prompt=prompt
    )


def of_code(code: PythonStep) -> OwnStep:
    """A step in Python. Raises ConfigError where it sets no variable of its own."""
    if not OWN_VARIABLE.fullmatch(code.sets) or code.sets in VARIABLES or code.sets in OLDER_NAMES:
        raise ConfigError(
            f"step `{code.name}`: sets `{code.sets}`; it has to be one of its own, such as `request.season`"
        )
    return OwnStep(code.name, code.sets, float(getattr(code, "timeout_s", STEP_TIMEOUT_S)), code=code)


def installed_steps() -> list[OwnStep]:
    """The steps that installed packages offer. Raises ConfigError naming the one that cannot be had."""
    steps = []
    for entry in sorted(entry_points(group=ENTRY_POINTS), key=lambda one: one.name):
        try:
            code: PythonStep = entry.load()()
        except Exception as broken:
            raise ConfigError(f"step `{entry.name}` ({entry.value}) cannot be loaded: {broken}") from broken
        steps.append(of_code(code))
    return steps


class OwnValues:
    """What the own steps of one question give. Each runs once: from `start` on, or when first waited for."""

    def __init__(
        self,
        prompter: Prompter,
        usage: Usage,
        done: Callable[[str], None],
        installed: Sequence[OwnStep] = (),
        deadline: Deadline | None = None,
    ) -> None:
        self._prompter = prompter
        self._usage = usage
        self._done = done
        self._installed = installed
        self._deadline = deadline
        self._running: dict[tuple[str, int], asyncio.Task[Value]] = {}

    def start(self, query: Query, site: str, item_type: str) -> None:
        """Run all that the site has for this type, side by side."""
        for step in self._steps(site, item_type):
            self._task(step, query, site, item_type)

    async def values(self, prompt: Prompt, query: Query, site: str, item_type: str) -> dict[str, Value]:
        """The variables that `prompt` waits for; None where the step failed, was late, or is none."""
        needed = [step for step in self._steps(site, item_type) if step.needed_by(prompt)]
        tasks = {step.sets: self._task(step, query, site, item_type) for step in needed}
        if tasks:
            await asyncio.wait(tasks.values())
        return {name: task.result() for name, task in tasks.items() if not task.cancelled()}

    async def close(self) -> None:
        """Stop what nobody waits for any more."""
        for task in self._running.values():
            task.cancel()
        await asyncio.gather(*self._running.values(), return_exceptions=True)

    def _steps(self, site: str, item_type: str) -> list[OwnStep]:
        in_xml = [of_prompt(prompt) for prompt in self._prompter.library.steps(site, item_type)]
        set_there = {step.sets for step in in_xml}
        return [*in_xml, *(step for step in self._installed if step.sets not in set_there)]

    def _task(self, step: OwnStep, query: Query, site: str, item_type: str) -> asyncio.Task[Value]:
        if step.key not in self._running:
            self._running[step.key] = asyncio.create_task(self._run(step, query, site, item_type))
        return self._running[step.key]

    async def _run(self, step: OwnStep, query: Query, site: str, item_type: str) -> Value:
        told = {"step": step.name, "query_id": query.query_id, "site": site}
        limit = step.timeout_s if self._deadline is None else self._deadline.within(step.timeout_s)
        try:
            with spent_on(f"step {step.name}", cancelled="late"):
                async with asyncio.timeout(limit):
                    if step.code is not None:
                        return await step.code.run(query, self._prompter, self._usage)
                    return await self._ask(step, query, site, item_type)
        except TimeoutError:
            log.warning("step.late", extra={**told, "timeout_s": limit})
        except AskError as failed:
            log.warning("step.failed", extra={**told, "reason": failed.message})
        except Exception:
            # Code of others: whatever it raises, the question goes on without its value.
            log.exception("step.failed", extra=told)
        finally:
            self._done(f"step {step.name}")
        return None

    async def _ask(self, step: OwnStep, query: Query, site: str, item_type: str) -> Value:
        from core.prompting.ask import call_of

        prompt = step.prompt
        if prompt is None or prompt.reply is None:
            return None
        values = await self._prompter.values_for(prompt, query, site=site, item_type=item_type)
        call = call_of(prompt, fill(prompt, values), query, tier="low")
        text = await self._prompter.model.complete(replace(call, timeout_s=step.timeout_s), self._usage)
        value: Value = prompt.reply.parse(text)[prompt.key_set]
        return value
