"""A chat model whose calls all end when one answer's time does, whoever makes them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace

from core.deadline import Deadline
from core.providers.base import ChatModel, ModelCall, Usage


class Timed:
    """Passes every call on to `model` with the question's deadline on it."""

    def __init__(self, model: ChatModel, deadline: Deadline) -> None:
        self._model = model
        self._deadline = deadline

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def trouble(self) -> str:
        return self._model.trouble

    async def complete(self, call: ModelCall, usage: Usage) -> str:
        """As the model's own; ModelTimeout at the deadline at the latest."""
        return await self._model.complete(replace(call, deadline=self._deadline), usage)

    def stream(self, call: ModelCall, usage: Usage) -> AsyncGenerator[str, None]:
        """As the model's own; ModelTimeout at the deadline at the latest."""
        return self._model.stream(replace(call, deadline=self._deadline), usage)

    async def close(self) -> None:
        """Nothing: the model is closed by whoever opened it."""
