"""A chat model that notes what it was asked: for the operator's `debug` of one question."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from core.errors import ModelError
from core.messages import StepOutcome, StepTime
from core.providers.base import ChatModel, ModelCall, Usage
from core.timeline import Timeline, in_ms, under_way

STOPPED = "stopped"  # by whoever asked, who did not want the rest


class Traced:
    """Passes every call on to `model`; `calls` has them in the order in which they ended, and the `timeline`
    what each took."""

    def __init__(self, model: ChatModel, timeline: Timeline) -> None:
        self._model = model
        self._timeline = timeline
        self.calls: list[dict[str, Any]] = []

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def trouble(self) -> str:
        return self._model.trouble

    async def complete(self, call: ModelCall, usage: Usage) -> str:
        """As the model's own."""
        async with aclosing(self._noted(call, usage, streamed=False)) as pieces:
            return "".join([piece async for piece in pieces])

    async def stream(self, call: ModelCall, usage: Usage) -> AsyncGenerator[str, None]:
        """As the model's own."""
        async with aclosing(self._noted(call, usage, streamed=True)) as pieces:
            async for piece in pieces:
                yield piece

    async def close(self) -> None:
        """Nothing: the model is closed by whoever opened it."""

    async def _noted(self, call: ModelCall, usage: Usage, *, streamed: bool) -> AsyncGenerator[str, None]:
        own = Usage()
        span = under_way()
        start = time.monotonic()
        said: list[str] = []
        error = STOPPED
        try:
            if streamed:
                async with aclosing(self._model.stream(call, own)) as pieces:
                    async for piece in pieces:
                        said.append(piece)
                        yield piece
            else:
                said.append(await self._model.complete(call, own))
                yield said[0]
            error = ""
        except ModelError as failed:
            error = f"{failed.code}: {failed.message}"
            raise
        finally:
            usage.add(own)
            ms = in_ms(time.monotonic() - start)
            outcome: StepOutcome = "stopped" if error == STOPPED else "failed" if error else "done"
            self._timeline.called(
                span,
                StepTime(
                    step=(span and span.step) or call.schema_name,
                    start_ms=self._timeline.ms(start),
                    ms=ms,
                    outcome=outcome,
                    model=own.model or None,
                    tokens_in=own.prompt_tokens,
                    tokens_out=own.completion_tokens,
                    cache=own.cached_tokens,
                    prompt=call.source,
                ),
            )
            self.calls.append(
                {
                    "step": call.schema_name,
                    "prompt": call.source,
                    "tier": call.tier,
                    "model": own.model or None,
                    "start_ms": self._timeline.ms(start),
                    "ms": ms,
                    "calls": own.calls,
                    "tokens_in": own.prompt_tokens,
                    "tokens_out": own.completion_tokens,
                    "cache": own.cached_tokens,
                    "system": call.system,
                    "text": call.prompt,
                    "reply": "".join(said),
                    "error": error,
                }
            )
