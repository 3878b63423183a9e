"""The pre-retrieval steps: what each does to a question, as a value."""

from __future__ import annotations

from collections.abc import Mapping

from core.prompting.ask import Prompter
from core.query import Query
from core.steps.base import Outcome, SideStep, Step
from core.steps.decontextualize import Decontextualize
from core.steps.item_type import DetectItemType
from core.steps.memory import DetectMemory
from core.steps.relevance import Relevance
from core.steps.required_info import RequiredInfo

STEPS: Mapping[str, type[Step]] = {
    "decontextualize": Decontextualize,
    "memory": DetectMemory,
}
# Beside the ranking, the one that matters most first.
SIDE_STEPS: Mapping[str, type[SideStep]] = {
    "required_info": RequiredInfo,
    "item_type": DetectItemType,
    "relevance": Relevance,
}
# Beside the five calls that rank fifty items a question makes at most these: eight in all.
STEP_CALLS = 3

__all__ = [
    "SIDE_STEPS",
    "STEPS",
    "STEP_CALLS",
    "Decontextualize",
    "DetectMemory",
    "Outcome",
    "SideStep",
    "Step",
    "beside",
]


def beside(query: Query, prompter: Prompter, room: int) -> dict[str, SideStep]:
    """The side steps of this question by name, at most `room`: those whose answer would be used."""
    steps = {name: step() for name, step in SIDE_STEPS.items()}
    wanted = [
        (name, step)
        for name, step in steps.items()
        if step.applies(query, prompter) and prompter.find(step.prompt(query), query) is not None
    ]
    return dict(wanted[: max(0, room)])
