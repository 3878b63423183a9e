"""A chat model that notes what it was asked: for the operator's `debug` of one question."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from core.errors import ModelError
from core.providers.base import ChatModel, ModelCall, Usage


class Traced:
    """Passes every call on to `model`; `calls` has them in the order in which they ended."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model
        self._began = time.monotonic()
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
        start = time.monotonic()
        said: list[str] = []
        error = "stopped"
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
            self.calls.append(
                {
                    "step": call.schema_name,
                    "prompt": call.source,
                    "tier": call.tier,
                    "start_ms": _ms(start - self._began),
                    "ms": _ms(time.monotonic() - start),
                    "calls": own.calls,
                    "tokens_in": own.prompt_tokens,
                    "tokens_out": own.completion_tokens,
                    "system": call.system,
                    "text": call.prompt,
                    "reply": "".join(said),
                    "error": error,
                }
            )


def _ms(seconds: float) -> float:
    return round(1000 * seconds, 1)
