"""Questions at a running server: time to the first result, throughput, model calls, CPU, empty answers.

    python -m bench.ask --clients 1 --questions 20 --latency-ms 50

starts a stub model of fixed latency and a server over generated items, asks, prints a table (or `--json`),
and stops both. `--url` measures a server that runs already, on its site `--site` (without CPU figures).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import orjson

DISHES = ("soup", "stew", "salad", "tart", "pasta", "risotto", "curry", "bread", "omelette", "gratin")
THINGS = (
    "beans",
    "chard",
    "squid",
    "lemon",
    "walnuts",
    "basil",
    "potatoes",
    "anchovies",
    "artichokes",
    "rice",
)
WAYS = ("braised", "baked", "fried", "raw", "smoked", "roasted")
ITEMS = 300
TICKS = os.sysconf("SC_CLK_TCK")
Item = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """One question: milliseconds to the first provisional result (where asked for), to the first that is
    scored, and to the end."""

    provisional_ms: float | None
    first_ms: float | None
    total_ms: float
    results: int
    calls: int
    tokens: int


@dataclass(frozen=True)
class Target:
    url: str
    pid: int | None
    stub: str | None


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--url", help="a server that runs already")
    parser.add_argument("--site", default="bench")
    parser.add_argument("--clients", type=int, default=1)
    parser.add_argument("--questions", type=int, default=20)
    parser.add_argument("--latency-ms", type=float, default=50)
    parser.add_argument("--follow-up", action="store_true", help="send a previous question with each")
    parser.add_argument("--provisional", action="store_true", help="ask for results before they are scored")
    parser.add_argument("--no-llm", action="store_true", help="no model at all")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if args.url:
        figures = await measure(Target(args.url, None, None), args)
    else:
        async with started(args) as target:
            figures = await measure(target, args)
    if args.json:
        print(json.dumps(figures))
    else:
        for name, value in figures.items():
            print(f"{name:28} {value}")


async def measure(target: Target, args: argparse.Namespace) -> dict[str, Any]:
    """Warm up, then ask; figures by name."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        for n in range(3):
            await ask(session, target.url, args, question(1000 + n))
        busy = cpu_s(target.pid)
        began = time.monotonic()
        numbers = iter(range(args.questions))

        async def client() -> list[Answer]:
            return [await ask(session, target.url, args, question(n)) for n in numbers]

        answers = [a for some in await asyncio.gather(*(client() for _ in range(args.clients))) for a in some]
        wall = time.monotonic() - began
        spent = cpu_s(target.pid) - busy
    early = [a.provisional_ms for a in answers if a.provisional_ms is not None]
    firsts = [a.first_ms for a in answers if a.first_ms is not None]
    totals = [a.total_ms for a in answers]
    return {
        "clients": args.clients,
        "questions": len(answers),
        "questions_per_s": round(len(answers) / wall, 2),
        "provisional_ms_p50": percentile(early, 50),
        "provisional_ms_p95": percentile(early, 95),
        "first_result_ms_p50": percentile(firsts, 50),
        "first_result_ms_p95": percentile(firsts, 95),
        "total_ms_p50": percentile(totals, 50),
        "total_ms_p95": percentile(totals, 95),
        "results_sent_mean": round(statistics.mean(a.results for a in answers), 1),
        "empty_answers": sum(not a.results for a in answers),
        "model_calls_per_question": round(statistics.mean(a.calls for a in answers), 2),
        "model_calls_most": max(a.calls for a in answers),
        "prompt_tokens_per_question": round(statistics.mean(a.tokens for a in answers)),
        "cpu_ms_per_question": round(1000 * spent / len(answers), 1) if target.pid else None,
    }


async def ask(session: aiohttp.ClientSession, url: str, args: argparse.Namespace, text: str) -> Answer:
    """One streamed question."""
    body: dict[str, Any] = {"query": text, "site": args.site}
    if args.follow_up:
        body["prev"] = ["something with beans"]
    if args.provisional:
        body["provisional"] = True
    began = time.monotonic()
    early: float | None = None
    first: float | None = None
    seen: set[str] = set()
    usage: dict[str, int] = {}
    rest = b""
    async with session.post(f"{url}/ask", json=body) as response:
        response.raise_for_status()
        async for block in response.content.iter_any():
            *lines, rest = (rest + block).split(b"\n")
            for line in lines:
                if not line.startswith(b"data: "):
                    continue
                frame = orjson.loads(line[6:])
                if frame["message_type"] == "result_batch":
                    now = 1000 * (time.monotonic() - began)
                    if frame["results"][0]["ranking_type"] == "PROVISIONAL":
                        early = early or now
                    else:
                        first = first or now
                    seen |= {item["document_id"] for item in frame["results"]}
                elif frame["message_type"] == "complete":
                    usage = frame["usage"]
    total = 1000 * (time.monotonic() - began)
    return Answer(early, first, total, len(seen), usage.get("model_calls", 0), usage.get("prompt_tokens", 0))


def question(n: int) -> str:
    """A question that no other number has: caches must not answer it."""
    return f"{WAYS[n % 6]} {DISHES[n % 10]} with {THINGS[n // 10 % 10]} for {2 + n} people"


@asynccontextmanager
async def started(args: argparse.Namespace) -> AsyncIterator[Target]:
    """A stub model and a server over generated items, both processes of their own."""
    with tempfile.TemporaryDirectory(prefix="askable-bench-") as folder:
        stub = await process("-m", "bench.stub_model", "--port", "0", "--latency-ms", str(args.latency_ms))
        model = orjson.loads(await stub.stdout.readline())["url"]  # type: ignore[union-attr]
        environ = {"ASKABLE_DATA_DIR": folder, "ASKABLE_SERVER__PORT": "0"}
        if not args.no_llm:
            environ["ASKABLE_LLM__BASE_URL"] = model
        server = await process("-m", "server", "serve", "--json", environ=environ)
        try:
            url = orjson.loads(await server.stdout.readline())["url"]  # type: ignore[union-attr]
            await load(url, Path(folder), items())
            yield Target(url, server.pid, model)
        finally:
            for one in (server, stub):
                one.terminate()
                await one.wait()


async def process(*argv: str, environ: dict[str, str] | None = None) -> asyncio.subprocess.Process:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("ASKABLE_", "OPENAI_", "DATABASE_URL"))}
    return await asyncio.create_subprocess_exec(
        sys.executable, *argv, stdout=asyncio.subprocess.PIPE, env={**clean, **(environ or {})}
    )


def items() -> list[Item]:
    """The generated items: no two have the same name."""
    return [
        {
            "@type": "Recipe",
            "url": f"https://bench.example/{n}",
            "name": f"{WAYS[n % 6]} {THINGS[n // 3 % 10]} {DISHES[n % 10]} {n}",
            "description": f"A {DISHES[n % 10]} of {THINGS[n // 3 % 10]} and {THINGS[n // 7 % 10]}. "
            f"It takes {10 + n % 50} minutes and serves {2 + n % 6} people.",
            "recipeIngredient": [f"{50 * (1 + n % 5)} g {THINGS[(n + k) % 10]}" for k in range(6)],
        }
        for n in range(ITEMS)
    ]


async def load(url: str, folder: Path, items: Sequence[Item]) -> None:
    """Load items into the site `bench`."""
    token = json.loads((folder / "server.json").read_text())["token"]
    async with (
        aiohttp.ClientSession() as session,
        session.post(
            f"{url}/documents",
            json={"site": "bench", "items": items},
            headers={"Authorization": f"Bearer {token}"},
        ) as response,
    ):
        report = await response.json()
        if report.get("added") != len(items):
            raise SystemExit(f"loading failed: {report}")


def cpu_s(pid: int | None) -> float:
    """CPU seconds of a process and its living children, from /proc (0 where there is none)."""
    if pid is None:
        return 0.0
    spent = 0.0
    for one in (pid, *children(pid)):
        fields = Path(f"/proc/{one}/stat").read_text().rsplit(")", 1)[1].split()
        spent += (int(fields[11]) + int(fields[12])) / TICKS
    return spent


def children(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in listed]


def percentile(values: Sequence[float], q: int) -> float | None:
    """The q-th percentile (nearest rank), rounded; None of nothing."""
    if not values:
        return None
    ordered = sorted(values)
    return round(ordered[min(len(ordered) - 1, int(len(ordered) * q / 100))], 1)


if __name__ == "__main__":
    asyncio.run(main())
