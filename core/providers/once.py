"""A question is embedded once: whoever needs the same vector at the same time, or soon after, shares it."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence

from core.providers.base import Embedder, LegSpec, Vector

KEPT = 64  # questions; a search and a look into memory come within milliseconds of each other


class EmbedOnce:
    """An `Embedder` that remembers its last questions' vectors and joins calls that are on their way."""

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner
        self.spec: LegSpec = inner.spec
        self.max_tokens = inner.max_tokens
        self._asked: OrderedDict[tuple[str, str], asyncio.Task[Vector]] = OrderedDict()

    async def documents(self, texts: Sequence[str], languages: Sequence[str]) -> list[Vector]:
        return await self._inner.documents(texts, languages)

    async def query(self, text: str, language: str) -> Vector:
        # Only words are stemmed by language; sentence vectors are the same whatever it is taken for.
        key = (text, language if self.spec.sparse else "")
        task = self._asked.get(key)
        if task is None:
            task = asyncio.create_task(self._inner.query(text, language))
            self._asked[key] = task
            task.add_done_callback(lambda done: self._forget_failed(key, done))
            if len(self._asked) > KEPT:
                self._asked.popitem(last=False)
        # Who gives up waiting does not take the vector from the others.
        return await asyncio.shield(task)

    async def close(self) -> None:
        await self._inner.close()

    def _forget_failed(self, key: tuple[str, str], done: asyncio.Task[Vector]) -> None:
        if done.cancelled() or done.exception() is not None:
            self._asked.pop(key, None)
