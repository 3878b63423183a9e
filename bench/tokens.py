"""Prompt tokens of one question: ours, as a model receives them, beside NLWeb's, by its own prompt files.

    python -m bench.tokens --nlweb DIR

DIR holds NLWeb's `prompts-2025-08.xml` and `tools-2025-08.xml`. A stub model behind a real server keeps every
request of a question (messages and the schema of the reply). For the same question and the items that were
ranked in it, NLWeb's prompts are filled as its program of August 2025 fills them: one call an item, one for
each step before, one for each tool. A token is four characters, white space in a row counts as one, and what
NLWeb's providers add around is left out. Exit code 1 if ours are more than half of NLWeb's.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import orjson
from aiohttp import web
from lxml import etree

from bench.ask import Item, items, load, process, question
from bench.stub_model import StubModel

CHARS_PER_TOKEN = 4
PER_CALL = 11  # tokens: 4 around each message, 3 before the reply
MOST = 0.5
CHECKED = "short"
FORM_CHARS = 51  # what NLWeb's provider says before the form of a reply
# NLWeb's steps before ranking that ask a model: of a first question, and of one that follows another.
STEPS = (
    "DetectItemTypePrompt",
    "DetectMultiItemTypeQueryPrompt",
    "DetectQueryTypePrompt",
    "DetectMemoryRequestPrompt",
)
FOLLOW_UP = "PrevQueryDecontextualizer"
RANKING = "RankingPrompt"
# Left out by NLWeb of what it shows a model of a recipe.
UNSEEN = frozenset({"image", "publisher", "datePublished", "dateModified", "author"})
BATCH = re.compile(r'\[\s*\{\s*"tag"')
VARIABLE = re.compile(r"\{[\w.]+\}")
WAY = "Wash, cut and weigh everything first, then cook it slowly in the order of the list, stirring often. "


@dataclass(frozen=True)
class Call:
    """One request to a model, in characters."""

    step: str
    chars: int

    @property
    def tokens(self) -> float:
        return self.chars / CHARS_PER_TOKEN + PER_CALL


class Keeping(StubModel):
    """A stub that keeps what it was asked."""

    def __init__(self) -> None:
        super().__init__(latency_s=0.0, stream_s=0.0)
        self.bodies: list[dict[str, Any]] = []

    async def chat(self, request: web.Request) -> web.StreamResponse:
        self.bodies.append(orjson.loads(await request.read()))
        return await super().chat(request)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--nlweb", type=Path, required=True, metavar="DIR", help="NLWeb's prompt files")
    parser.add_argument("--steps", action="store_true", help="our calls one by one too")
    args = parser.parse_args()
    theirs = Nlweb(args.nlweb)
    print("items          question   ours: calls  tokens   NLWeb: calls  tokens   ratio")
    worst = 0.0
    for size in ("short", "page", "long"):
        sized = [lengthened(one, size) for one in items()]
        async with served(sized) as (url, stub):
            for follow_up in (False, True):
                ours, ranked = await asked(url, stub, sized, follow_up=follow_up)
                other = list(theirs.calls(question(7), ranked, follow_up=follow_up))
                ratio = total(ours) / total(other)
                if size == CHECKED:
                    worst = max(worst, ratio)
                chars = sum(len(json.dumps(one)) for one in ranked) // len(ranked)
                print(
                    f"{size:5} {chars:5} ch  {'follow-up' if follow_up else 'first':9}  {len(ours):11}"
                    f"  {total(ours):6}   {len(other):12}  {total(other):6}   {ratio:5.2f}"
                )
                if args.steps:
                    for one in ours:
                        print(f"      {one.step:34} {one.tokens:7.0f}")
    print(f"ours are at most {worst:.1%} of NLWeb's with {CHECKED} items; {MOST:.0%} is the limit")
    sys.exit(worst > MOST)


# ---------------------------------------------------------------- ours


@asynccontextmanager
async def served(loaded: Sequence[Item]) -> Any:
    """A server over these items whose model keeps what it is asked: its address and the stub."""
    stub = Keeping()
    runner = web.AppRunner(stub.app(), access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        model = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        with tempfile.TemporaryDirectory(prefix="askable-bench-") as folder:
            environ = {
                "ASKABLE_DATA_DIR": folder,
                "ASKABLE_SERVER__PORT": "0",
                "ASKABLE_LLM__BASE_URL": model,
            }
            server = await process("-m", "server", "serve", "--json", environ=environ)
            try:
                url = orjson.loads(await server.stdout.readline())["url"]  # type: ignore[union-attr]
                await load(url, Path(folder), loaded)
                yield url, stub
            finally:
                server.terminate()
                await server.wait()
    finally:
        await runner.cleanup()


async def asked(
    url: str, stub: Keeping, loaded: Sequence[Item], *, follow_up: bool
) -> tuple[list[Call], list[Item]]:
    """Our calls for one question, and the items that were ranked in it."""
    stub.bodies.clear()
    body: dict[str, Any] = {"query": question(7), "site": "bench"}
    if follow_up:
        body["prev"] = [question(3)]
    async with aiohttp.ClientSession() as session, session.post(f"{url}/ask", json=body) as response:
        response.raise_for_status()
        await response.read()
    named = {one["name"]: one for one in loaded}
    seen = [entry["item"]["name"] for body in stub.bodies for entry in batch_in(body)]
    return [our_call(body) for body in stub.bodies], [named[name] for name in dict.fromkeys(seen)]


def our_call(body: Mapping[str, Any]) -> Call:
    schema = (body.get("response_format") or {}).get("json_schema") or {}
    said = sum(len(message["content"]) for message in body["messages"])
    told = orjson.dumps(schema["schema"]) if "schema" in schema else b""
    return Call(schema.get("name", "text"), said + len(told))


def batch_in(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The items of a ranking call; of any other none."""
    prompt = body["messages"][-1]["content"]
    found = BATCH.search(prompt)
    if found is None:
        return []
    listed: list[dict[str, Any]] = json.JSONDecoder().raw_decode(prompt, found.start())[0]
    return listed


def lengthened(item: Item, size: str) -> Item:
    """The item as it is, as long as a usual page's (about what a prompt shows), or three times that."""
    times = {"short": 0, "page": 8, "long": 30}[size]
    if not times:
        return item
    step = {"@type": "HowToStep", "text": WAY.strip()}
    return {**item, "articleBody": WAY * (times // 2), "recipeInstructions": [step] * (times // 2)}


# ---------------------------------------------------------------- NLWeb's


class Nlweb:
    """The calls of NLWeb's program of August 2025 for one question about recipes."""

    def __init__(self, folder: Path) -> None:
        prompts = parsed(folder / "prompts-2025-08.xml")
        tools = parsed(folder / "tools-2025-08.xml")
        # The first of a name: those for every type. (After its step for the type of item has run, NLWeb finds
        # no others.) A tool of the type goes over one for every type.
        self._prompts: dict[str, tuple[str, str]] = {}
        for one in prompts.iter("Prompt"):
            self._prompts.setdefault(
                one.get("ref", ""), (inside(one, "promptString"), inside(one, "returnStruc"))
            )
        self._tools: dict[str, tuple[str, str]] = {}
        for kind in ("Item", "Recipe"):
            for group in tools.iterchildren(kind):
                for one in group.iterchildren("Tool"):
                    if one.get("enabled", "true").lower() == "true":
                        self._tools[one.get("name", "")] = (inside(one, "prompt"), inside(one, "returnStruc"))

    def calls(self, query: str, ranked: Iterable[Item], *, follow_up: bool) -> Iterator[Call]:
        """In no order; each is a prompt and the form of its reply."""
        values = {"request.query": query, "request.rawQuery": query, "request.site": "bench"}
        if follow_up:
            values["request.previousQueries"] = str([question(3)])
        for ref in (*STEPS, *((FOLLOW_UP,) if follow_up else ())):
            yield call(ref, self._prompts[ref], values)
        for name, tool in self._tools.items():
            yield call(name, tool, values)
        for item in ranked:
            shown = {name: value for name, value in item.items() if name not in UNSEEN}
            yield call(RANKING, self._prompts[RANKING], {**values, "item.description": str(shown)})


def parsed(path: Path) -> etree._Element:
    parser = etree.XMLParser(resolve_entities=False, no_network=True, remove_comments=True)
    root = etree.parse(str(path), parser).getroot()
    for one in root.iter():
        one.tag = etree.QName(one).localname
    return root


def inside(parent: etree._Element, name: str) -> str:
    return " ".join((parent.findtext(name) or "").split())


def call(step: str, prompt: tuple[str, str], values: Mapping[str, str]) -> Call:
    text, form = prompt
    filled = VARIABLE.sub(lambda found: values.get(found.group()[1:-1], ""), text)
    return Call(step, len(filled) + len(form) + FORM_CHARS)


def total(calls: Iterable[Call]) -> int:
    return round(sum(one.tokens for one in calls))


if __name__ == "__main__":
    asyncio.run(main())
