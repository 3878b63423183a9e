"""A question that takes long to answer keeps nobody else waiting."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from core import items, pace
from core.documents import Candidate
from core.query import Query
from tests.conftest import Serve, recipe

LONG = ("soup " + "how long " * 900)[:8000]


@pytest.mark.parametrize("query", [LONG, "soup"])
async def test_health_is_answered_while_an_answer_is_being_made(
    serve: Serve, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the first passage and the last; every passage is taken for one that needs its time."""
    server = await serve()
    told = "It is ready in {n} minutes and {n} seconds, and it is served hot. "
    text = "".join(told.format(n=n) for n in range(80))
    await server.load("kitchen", [recipe(f"s{n}", f"Soup {n}", f"A soup. {text}") for n in range(60)])
    monkeypatch.setattr(pace, "TURN_S", 0.0)
    passage, made, seen = items.passage, 0, set[int]()

    def counted(query: Query, candidate: Candidate) -> str:
        nonlocal made
        made += 1
        return passage(query, candidate)

    monkeypatch.setattr(items, "passage", counted)

    async def looks() -> None:
        while True:
            async with server.session.get(f"{server.url}/health") as response:
                assert response.status == 200
            seen.add(made)

    looking = asyncio.create_task(looks())
    try:
        answer: Any = await server.ask(query, site="kitchen", num_results=50, max_results=50)
    finally:
        looking.cancel()
    assert len(answer.final) == made == 50
    assert any(0 < during < made for during in seen)
