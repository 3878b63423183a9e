"""Recall of long-term memory: `python -m bench.memory [--facts 10000] [--users 1000]`.

First 10,000 facts of 1,000 users are kept and recalled without the time of the question's embedding (words
alone are searched, by a vector made beforehand), p95 under LIMIT_MS; then the same question is asked of a
server with memory on and off in turn, and the ratio of the median times to the first result is at most RATIO.
Exit code 1 where one is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import aiohttp
import orjson
from aiohttp import web

from bench.ask import process
from core.database import Database
from core.memory import COLLECTION, KEYWORDS, Asking, Detected, Facts
from core.providers.base import LegSpec, Vector
from core.providers.bm25 import Bm25Embedder
from core.providers.edge import EdgeStore
from core.query import Identity
from core.retrieval import Leg, Retriever
from core.settings import Settings
from server.app import create_app

LIMIT_MS = 20.0
RATIO = 1.10
KEY = "a-key-for-the-bench"
THINGS = ("coriander", "basil", "sailing", "opera", "chess", "hiking", "old maps", "pottery", "jazz", "figs")
PLACES = ("Genoa", "Turin", "Seoul", "Quebec", "Lima", "Oslo", "Bilbao", "Shanghai", "Naples", "Graz")


class Ready:
    """An embedder whose question vectors are there already: their time is not memory's."""

    def __init__(self) -> None:
        self._inner = Bm25Embedder()
        self._made: dict[tuple[str, str], Vector] = {}
        self.spec: LegSpec = self._inner.spec
        self.max_tokens = self._inner.max_tokens

    async def documents(self, texts: Sequence[str], languages: Sequence[str]) -> list[Vector]:
        return await self._inner.documents(texts, languages)

    async def query(self, text: str, language: str) -> Vector:
        key = (text, language)
        if key not in self._made:
            self._made[key] = await self._inner.query(text, language)
        return self._made[key]

    async def close(self) -> None:
        """Nothing to let go of."""


def detected(user: int, n: int) -> Detected:
    thing, place = THINGS[n % len(THINGS)], PLACES[(user + n) % len(PLACES)]
    texts = (f"I love {thing} in summer {user}", f"My cousin {n} lives in {place}", f"My {thing} is new {n}")
    return Detected(
        text=texts[n % 3],
        kind="",
        scope="user",
        identity=Identity("key:bench", f"user{user}"),
        site="",
        conversation_id="",
        query_id="",
        source_turn="",
        expires_at=None,
        nonce=f"{user}-{n}",
    )


async def recall(facts: int, users: int) -> float:
    """The p95 of a recall in milliseconds, and that nobody saw what is another's."""
    with tempfile.TemporaryDirectory() as folder:
        database = await Database.open(None, Path(folder))
        store = await EdgeStore.open(Path(folder) / "vectors")
        embedder = Ready()
        await store.ensure(COLLECTION, [embedder.spec], KEYWORDS)
        memory = Facts(database, store, Retriever(store, [Leg(embedder, 1.0)], COLLECTION))
        began = time.perf_counter()
        for n in range(facts // users):
            for user in range(users):
                await memory.remember(detected(user, n))
        kept_s = time.perf_counter() - began
        spent = []
        chosen = random.Random(1)
        for _ in range(500):
            user = chosen.randrange(users)
            asking = Asking(
                Identity("key:bench", f"user{user}"), "a cousin who loves jazz in Oslo", ("user",)
            )
            began = time.perf_counter()
            found = await memory.recall(asking)
            spent.append((time.perf_counter() - began) * 1000)
            assert found
            assert all(fact.identity == asking.identity for fact in found)
        await store.close()
        await database.close()
    p50, p95 = statistics.median(spent), statistics.quantiles(spent, n=20)[18]
    print(f"kept {facts} facts of {users} users in {kept_s:.0f} s ({1000 * kept_s / facts:.1f} ms each)")
    print(f"recall p50 {p50:.1f} ms, p95 {p95:.1f} ms (limit {LIMIT_MS:.0f})")
    return p95


async def answers(rounds: int) -> float:
    """Memory on against memory off: the ratio of the medians of the time to the first result."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        stub = await process("-m", "bench.stub_model", "--latency-ms", "50")
        stack.callback(stub.terminate)
        assert stub.stdout is not None
        model = str(orjson.loads(await stub.stdout.readline())["url"])
        servers = {mode: await _served(stack, folder / mode, mode, model) for mode in ("explicit", "off")}
        session = await stack.enter_async_context(aiohttp.ClientSession())
        spent: dict[str, list[float]] = {mode: [] for mode in servers}
        for n in range(rounds + 3):
            for mode in sorted(servers, reverse=bool(n % 2)):
                took = await _first_result(session, servers[mode], n)
                if n >= 3:
                    spent[mode].append(took)
    on, off = (statistics.median(spent[mode]) for mode in ("explicit", "off"))
    print(f"first result, memory on {on:.1f} ms, off {off:.1f} ms: ratio {on / off:.3f} (limit {RATIO})")
    return on / off


async def _served(stack: AsyncExitStack, folder: Path, mode: str, model: str) -> str:
    settings = Settings.model_validate(
        {
            "data_dir": folder,
            "memory": {"mode": mode},
            "llm": {"base_url": model},
            "auth": {"api_keys": [{"key": KEY, "name": "bench", "roles": ["admin"]}]},
        }
    )
    runner = web.AppRunner(create_app(settings), handler_cancellation=True, access_log=None)
    await runner.setup()
    stack.push_async_callback(runner.cleanup)
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    items = [
        {
            "@type": "Recipe",
            "url": f"https://bench.example/{n}",
            "name": f"{THINGS[n % 10]} dish {n}",
            "description": f"A dish of {THINGS[n % 10]} as in {PLACES[n % 7]}.",
        }
        for n in range(200)
    ]
    async with aiohttp.ClientSession(headers=_headers()) as session:
        async with session.post(f"{url}/documents", json={"site": "bench", "items": items}) as answer:
            assert answer.status == 200
        for text in ("I love basil", "I am allergic to walnuts", "I live in Genoa") if mode != "off" else ():
            async with session.post(f"{url}/memory", json={"text": text}) as answer:
                assert answer.status == 201
    return url


async def _first_result(session: aiohttp.ClientSession, url: str, n: int) -> float:
    began = time.perf_counter()
    body: dict[str, Any] = {"query": f"a {THINGS[n % 10]} dish for evening {n}", "site": "bench"}
    first = 0.0
    async with session.post(f"{url}/ask", json=body, headers=_headers()) as answer:
        async for line in answer.content:
            if not first and b'"message_type":"result_batch"' in line:
                first = (time.perf_counter() - began) * 1000
    return first


def _headers() -> dict[str, str]:
    return {"Authorization": f"Bearer {KEY}", "X-User-Id": "anna"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--facts", type=int, default=10_000)
    parser.add_argument("--users", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=30)
    told = parser.parse_args()
    p95 = asyncio.run(recall(told.facts, told.users))
    ratio = asyncio.run(answers(told.rounds))
    sys.exit(int(p95 > LIMIT_MS or ratio > RATIO))


if __name__ == "__main__":
    main()
