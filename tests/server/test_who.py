"""`/who`: which sites can answer."""

from __future__ import annotations

import json

from tests.conftest import KITCHEN, Serve, recipe
from tests.fakes.openai_server import ScriptedModel

GARAGE = [
    recipe("tyre", "Changing a tyre", "Loosen the wheel nuts, lift the car, change the wheel."),
    recipe("oil", "Changing the oil", "Let the old oil of the car run out while it is warm."),
]


async def test_the_site_that_can_answer_comes_first_and_no_model_is_asked(
    serve: Serve, model: ScriptedModel
) -> None:
    server = await serve(model=model)
    await server.load("kitchen", [*KITCHEN, recipe("oil", "Olive oil", "Oil from pressed olives.")])
    await server.load("garage", GARAGE)
    status, body = await server.json("GET", "/who", params={"query": "changing the oil of a car"})
    assert status == 200
    first = body["sites"][0]
    assert (first["name"], first["documents"]) == ("garage", 2)
    assert set(first) == {"name", "score", "description", "documents"}
    scores = [site["score"] for site in body["sites"]]
    assert scores == sorted(scores, reverse=True)
    assert 0 < scores[-1] <= scores[0] <= 100
    assert not model.requests


async def test_a_site_with_nothing_on_it_is_not_named(serve: Serve) -> None:
    server = await serve()
    await server.load("kitchen", KITCHEN)
    await server.load("garage", GARAGE)
    _, lemon = await server.json("POST", "/who", json={"query": "lemon tart"})
    _, nothing = await server.json("POST", "/who", json={"query": "xylophone"})
    assert [site["name"] for site in lemon["sites"]] == ["kitchen"]
    assert nothing["sites"] == []


async def test_a_site_is_described_as_its_prompts_say(serve: Serve) -> None:
    server = await serve()
    await server.load("trattoria", KITCHEN)
    _, body = await server.json("GET", "/who", params={"query": "lemon tart"})
    assert body["sites"][0]["description"].startswith("Ligurian home cooking")


async def test_several_good_documents_count_more_than_one(serve: Serve) -> None:
    server = await serve()
    pasta = [recipe(f"pasta-{n}", f"Pasta {n}", "Fresh pasta with basil.") for n in range(3)]
    await server.load("one", pasta[:1])
    await server.load("several", pasta)
    _, body = await server.json("GET", "/who", params={"query": "fresh pasta with basil"})
    assert [site["name"] for site in body["sites"]] == ["several", "one"]


async def test_limit_and_streaming(serve: Serve) -> None:
    server = await serve()
    for name in ("a", "b", "c"):
        await server.load(name, [recipe("soup", "Soup", "A soup of beans.")])
    _, body = await server.json("GET", "/who", params={"query": "bean soup", "limit": "2"})
    assert [site["name"] for site in body["sites"]] == ["a", "b"]
    asked = {"query": "bean soup", "limit": "2", "streaming": "true"}
    async with server.session.get(f"{server.url}/who", params=asked) as response:
        assert response.headers["Content-Type"].startswith("text/event-stream")
        lines = [line[6:] for line in (await response.text()).split("\n") if line.startswith("data: ")]
    events = [json.loads(line) for line in lines]
    assert [event.get("name") for event in events] == ["a", "b", None]
    assert events[-1] == {"message_type": "complete"}


async def test_private_sites_are_not_named_to_others(serve: Serve) -> None:
    keys = [{"key": "a-reading-key", "roles": ["read"], "sites": ["vault"]}]
    server = await serve(auth={"api_keys": keys})
    await server.load("vault", [recipe("gold", "Gold", "A stew of gold.")])
    _, anonymous = await server.json("GET", "/who", params={"query": "gold"})
    sent = {"Authorization": "Bearer a-reading-key"}
    _, known = await server.json("GET", "/who", params={"query": "gold"}, headers=sent)
    assert anonymous["sites"] == []
    assert [site["name"] for site in known["sites"]] == ["vault"]


async def test_a_question_is_needed(serve: Serve) -> None:
    server = await serve()
    for params in ({}, {"query": "  "}, {"query": "x" * 8001}, {"query": "x", "limit": "0"}):
        status, body = await server.json("GET", "/who", params=params)
        assert status == 400
        assert body["error"]["field"] in ("query", "limit")
