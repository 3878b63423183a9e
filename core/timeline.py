"""When each step of one question began and ended and what it asked of the model, for an operator's `debug`.

Each step says so itself, wherever it is (`with spent_on(NAME)`); it is noted only for a question that has a
`Timeline`. A step inside another has a row of its own, and a model call belongs to the innermost.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, ParamSpec, TypeAlias, TypeVar

from core.messages import StepOutcome, StepTime

P = ParamSpec("P")
T = TypeVar("T")
Async: TypeAlias = Callable[P, Coroutine[Any, Any, T]]


@dataclass(slots=True, eq=False)
class Span:
    """A step under way; `end` is None until it is over."""

    timeline: Timeline
    step: str
    start: float
    end: float | None = None
    outcome: StepOutcome = "stopped"
    calls: list[StepTime] = field(default_factory=list)


_INSIDE: ContextVar[Span | None] = ContextVar("askable_step", default=None)


class Timeline:
    """The steps of one question; times count from `began`, a moment of `time.monotonic`."""

    def __init__(self, began: float) -> None:
        self.began = began
        # What belongs to no step belongs to the question.
        self._whole = Span(self, "", began)
        self._spans: list[Span] = []

    def follow(self) -> None:
        """Note the steps of this task and of those that it starts."""
        _INSIDE.set(self._whole)

    def begin(self, step: str) -> Span:
        """A step that begins now."""
        span = Span(self, step, time.monotonic())
        self._spans.append(span)
        return span

    def called(self, span: Span | None, call: StepTime) -> None:
        """Note a model call that ended, of this step."""
        (span or self._whole).calls.append(call)

    def ms(self, moment: float) -> float:
        """Milliseconds from the question to then."""
        return in_ms(moment - self.began)

    def rows(self) -> tuple[StepTime, ...]:
        """The steps by their start. One that made a single call of the model has it in its row; several calls
        have rows of their own, of the same name, and the step's then says how long it took in all."""
        rows = list(self._whole.calls)
        for span in self._spans:
            rows += self._rows_of(span)
        return tuple(sorted(rows, key=lambda row: row.start_ms))

    def _rows_of(self, span: Span) -> Sequence[StepTime]:
        end = time.monotonic() if span.end is None else span.end
        step = StepTime(span.step, self.ms(span.start), in_ms(end - span.start), span.outcome)
        if len(span.calls) != 1:
            return [step, *span.calls]
        (call,) = span.calls
        return [
            StepTime(
                step=step.step,
                start_ms=step.start_ms,
                ms=step.ms,
                # A step whose call failed may have ended well without it.
                outcome=call.outcome if step.outcome == "done" else step.outcome,
                model=call.model,
                tokens_in=call.tokens_in,
                tokens_out=call.tokens_out,
                cache=call.cache,
                prompt=call.prompt,
            )
        ]


@contextmanager
def spent_on(step: str, *, cancelled: StepOutcome = "stopped") -> Iterator[None]:
    """The block is a step of the question; `cancelled` is what it then is if it is stopped. Not for a block
    that yields: what reads it would be inside the step, too."""
    outer = _INSIDE.get()
    if outer is None:
        yield
        return
    span = outer.timeline.begin(step)
    token = _INSIDE.set(span)
    try:
        yield
        span.outcome = "done"
    except asyncio.CancelledError:
        span.outcome = cancelled
        raise
    except BaseException:
        span.outcome = "failed"
        raise
    finally:
        span.end = time.monotonic()
        _INSIDE.reset(token)


def as_step(step: str) -> Callable[[Async[P, T]], Async[P, T]]:
    """`spent_on` for the whole of a coroutine function."""

    def decorate(function: Async[P, T]) -> Async[P, T]:
        @wraps(function)
        async def run(*args: P.args, **kwargs: P.kwargs) -> T:
            with spent_on(step):
                return await function(*args, **kwargs)

        return run

    return decorate


def under_way() -> Span | None:
    """The step that this is done for, where anybody follows."""
    return _INSIDE.get()


def in_ms(seconds: float) -> float:
    """Seconds as milliseconds, to a tenth."""
    return round(1000 * seconds, 1)
