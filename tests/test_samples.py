"""The sample sites, by the whole of the product and both legs: what a newcomer sees first."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bench.judged import judge, load_samples, read_judged
from core import resources
from core.settings import Settings
from server.cli.client import Api, connect


@pytest.fixture
async def demo(tmp_path: Path) -> AsyncIterator[Api]:
    async with connect(Settings(data_dir=tmp_path), create=True) as api:
        await load_samples(api)
        yield api


async def test_judged_questions_and_the_first_conversation(demo: Api) -> None:
    lines = read_judged(resources.samples_dir() / "judged.jsonl")
    assert len(lines) >= 30
    judged = await judge(demo, lines)
    assert sum(one.recall(5) for one in judged) / len(judged) >= 0.95

    asked = {"query": "How many people live in Taggia?", "streaming": False}
    taggia = (await demo.json("POST", "/ask", body=asked))["results"][0]
    assert taggia["url"].endswith("/taggia")
    assert "14,032" in taggia["description"]
    follow_up = {"query": "And in Sanremo?", "prev": [asked["query"]], "streaming": False}
    sanremo = (await demo.json("POST", "/ask", body=follow_up))["results"][0]
    assert sanremo["url"].endswith("/sanremo")
    assert "54,137" in sanremo["description"] or "54137" in sanremo["description"]


def test_every_judged_address_is_a_page() -> None:
    pages = "".join(path.read_text() for path in resources.samples_dir().rglob("*.html"))
    for name in ("judged.jsonl", "judged-reasoning.jsonl"):
        for line in read_judged(resources.samples_dir() / name):
            assert all(url.split("#")[0] in pages for url in line["relevant"])
