"""The models that other tests and benches lean on answer by what is in the request."""

from __future__ import annotations

import json

from aiohttp.test_utils import TestServer

from bench.stub_model import StubModel
from core.jsonstream import ObjectReader
from core.providers.base import ModelCall, Tier, Usage
from core.providers.openai import OpenAIChat, make_client
from tests.fakes.openai_server import scripted_model
from tests.fakes.sensible_model import SensibleModel

RANKED = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "tag": {"type": "string"},
            "score": {"type": "integer"},
            "description": {"type": "string"},
        },
        "required": ["tag", "score", "description"],
    },
}
ITEMS = [
    {"tag": "x1", "item": {"name": "Vegan lasagna", "text": "with lentils"}},
    {"tag": "x2", "item": {"name": "Beef stew", "text": "slow-cooked"}},
]
FLAT = {
    "type": "object",
    "properties": {
        "requires_decontextualization": {"type": "boolean"},
        "decontextualized_query": {"type": "string"},
        "is_memory_request": {"type": "boolean"},
        "memory_request": {"type": "string"},
    },
}
RANKING = ModelCall(
    prompt='<data-1 name="request.query">a vegan lasagna</data-1> Beef and stew count for nothing.'
    f"\n```\n{json.dumps(ITEMS)}\n```",
    schema=RANKED,
    schema_name="RankingPrompt",
)


def chat_at(url: str) -> OpenAIChat:
    models: dict[Tier, str] = {"high": "m", "low": "m"}
    return OpenAIChat(make_client(url, None), models=models, timeout_s=10, max_concurrency=4, max_retries=0)


async def test_the_sensible_model_ranks_by_words_rewrites_by_table_and_finds_what_to_remember() -> None:
    answer = SensibleModel(rewrites={"a vegan one": "vegan lasagna recipe"})
    async with scripted_model(answer=answer) as model:
        chat = chat_at(model.url)

        async def ask(name: str, prompt: str) -> dict[str, object]:
            call = ModelCall(prompt=prompt, schema=FLAT, schema_name=name)
            return dict(json.loads(await chat.complete(call, Usage())))

        reader = ObjectReader("tag")
        found = [item async for piece in chat.stream(RANKING, Usage()) for item in reader.feed(piece)]
        scores = {item["tag"]: item["score"] for item in found}
        rewritten = await ask("PrevQueryDecontextualizer", "Earlier: lasagna. Now: a vegan one.")
        kept = await ask("PrevQueryDecontextualizer", "Earlier: lasagna. Now: bread.")
        memory = await ask("DetectMemoryRequestPrompt", "Said: Remember that I am allergic to nuts!")
        question = await ask(
            "DetectMemoryRequestPrompt",
            'Like "remember that I ...". <data-1 name="request.rawQuery">do you remember my name?</data-1>',
        )
        await chat.close()
    assert scores["x1"] > 51 > scores["x2"]
    assert rewritten["decontextualized_query"] == "vegan lasagna recipe"
    assert kept["requires_decontextualization"] is False
    assert (memory["is_memory_request"], memory["memory_request"]) == (True, "I am allergic to nuts")
    assert question["is_memory_request"] is False


async def test_the_stub_scores_every_tag_alike_each_time_and_counts() -> None:
    stub = StubModel(latency_s=0, stream_s=0)
    async with TestServer(stub.app()) as server:
        chat = chat_at(str(server.make_url("/v1")))
        usage, replies = Usage(), []
        for _ in range(2):
            reader = ObjectReader("tag")
            replies.append(
                [item async for piece in chat.stream(RANKING, usage) for item in reader.feed(piece)]
            )
        await chat.close()
    assert replies[0] == replies[1]
    assert [item["tag"] for item in replies[0]] == ["x1", "x2"]
    assert all(0 <= item["score"] <= 100 for item in replies[0])
    assert (stub.stats.calls, stub.stats.left, stub.stats.in_flight) == (2, 0, 0)
    assert stub.stats.prompt_tokens == usage.prompt_tokens > 0
