"""The pre-retrieval steps: what each does to a question, as a value."""

from __future__ import annotations

from collections.abc import Mapping

from core.steps.base import Outcome, Step
from core.steps.decontextualize import Decontextualize
from core.steps.memory import DetectMemory

STEPS: Mapping[str, type[Step]] = {
    "decontextualize": Decontextualize,
    "memory": DetectMemory,
}

__all__ = ["STEPS", "Decontextualize", "DetectMemory", "Outcome", "Step"]
