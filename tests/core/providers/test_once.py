"""Questions are embedded once, however many need the vector."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from core.errors import ModelError
from core.providers.base import LegSpec, Vector
from core.providers.once import KEPT, EmbedOnce


class Counting:
    """A dense embedder that counts, and fails while it is told to."""

    spec = LegSpec("counting", "counting-1", 1)
    max_tokens = 100

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.fails = False

    async def documents(self, texts: Sequence[str], languages: Sequence[str]) -> list[Vector]:
        return [[float(len(text))] for text in texts]

    async def query(self, text: str, language: str) -> Vector:
        self.asked.append(text)
        await asyncio.sleep(0)
        if self.fails:
            raise ModelError("down")
        return [float(len(text))]

    async def close(self) -> None:
        self.asked.append("closed")


async def test_the_same_question_at_once_and_after_is_embedded_once() -> None:
    inner = Counting()
    once = EmbedOnce(inner)
    assert await asyncio.gather(once.query("stew", "en"), once.query("stew", "")) == [[4.0], [4.0]]
    assert await once.query("stew", "it") == [4.0]
    assert inner.asked == ["stew"]


async def test_a_failure_is_not_remembered() -> None:
    inner = Counting()
    once = EmbedOnce(inner)
    inner.fails = True
    with pytest.raises(ModelError):
        await once.query("stew", "en")
    inner.fails = False
    assert await once.query("stew", "en") == [4.0]


async def test_who_gives_up_does_not_take_the_vector_from_the_others() -> None:
    inner = Counting()
    once = EmbedOnce(inner)
    impatient, patient = (asyncio.create_task(once.query("stew", "en")) for _ in range(2))
    await asyncio.sleep(0)
    impatient.cancel()
    assert await patient == [4.0]
    assert inner.asked == ["stew"]


async def test_only_the_last_questions_are_kept() -> None:
    inner = Counting()
    once = EmbedOnce(inner)
    for n in range(KEPT + 1):
        await once.query(f"question {n}", "en")
    await once.query("question 0", "en")
    assert inner.asked.count("question 0") == 2
    await once.close()
    assert inner.asked[-1] == "closed"
