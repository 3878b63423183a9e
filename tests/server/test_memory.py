"""What a person asks to remember: asked about, kept, used later, and never seen by another."""

from __future__ import annotations

from typing import Any

import pytest

from server.auth import COOKIE
from tests.conftest import KITCHEN, Serve, Served
from tests.fakes.openai_server import ScriptedModel
from tests.fakes.sensible_model import SensibleModel, values_of

SAID = "Please remember that I am vegetarian"


async def confirmed(server: Served, said: str = SAID) -> dict[str, Any]:
    """Say it and agree, as the page's button does."""
    told = (await server.ask(said)).one("remember")
    status, kept = await server.json("POST", "/memory/confirm", json={"token": told["confirm"]})
    assert status == 200
    assert isinstance(kept, dict)
    return kept


async def test_caller_without_identity_is_asked_first(serve: Serve) -> None:
    server = await serve()
    await server.load("kitchen", KITCHEN)
    told = (await server.ask(SAID)).one("remember")
    assert told["item_to_remember"] == "I am vegetarian"
    assert told["memory_id"] is None
    assert told["scope"] == "user"
    assert told["confirm"]
    assert not server.session.cookie_jar


async def test_confirming_keeps_the_fact_and_gives_a_private_cookie(serve: Serve) -> None:
    server = await serve()
    await server.load("kitchen", KITCHEN)
    told = (await server.ask(SAID)).one("remember")
    async with server.session.post(
        f"{server.url}/memory/confirm", json={"token": told["confirm"]}
    ) as response:
        kept = await response.json()
        cookie = response.cookies[COOKIE]
    assert kept["memory_id"]
    assert kept["text"] == "I am vegetarian"
    assert cookie["httponly"]
    assert cookie["samesite"] == "Lax"


async def test_next_conversation_uses_the_fact_in_rewriting_and_ranking(
    serve: Serve, model: ScriptedModel
) -> None:
    server = await serve(model=model)
    await server.load("kitchen", KITCHEN)
    model.answer = SensibleModel(rewrites={"and with rice?": "a dinner with rice"})
    await confirmed(server)
    model.requests.clear()
    frames = await server.ask("and with rice?", prev=["dinner"], conversation_id="another")
    assert [fact["text"] for fact in frames.one("used_memories")["items"]] == ["I am vegetarian"]
    prompts = {r.schema_name: r.prompt for r in model.requests}
    assert "I am vegetarian" in prompts["PrevQueryDecontextualizer"]
    assert "I am vegetarian" in prompts["RankingPrompt"]


async def test_a_summary_and_a_comparison_are_written_with_what_is_known(
    serve: Serve, model: ScriptedModel
) -> None:
    server = await serve(model=model)
    await server.load("kitchen", KITCHEN)
    await confirmed(server)
    compared = {"comparison_query": True, "item1_name": "Tofu curry", "item2_name": "Lemon tart"}
    model.answer = SensibleModel(
        replies={
            "SummarizeResultsPrompt": {"summary": "Stews."},
            "DetectComparisonPrompt": lambda asked: compared if "compare" in asked.prompt else {},
            "CompareItemsPrompt": {"comparison": "One is sweet."},
        }
    )
    await server.ask("tofu curry", site="kitchen", mode="summarize")
    await server.ask("compare the tofu curry and the lemon tart", site="kitchen")
    prompts = {r.schema_name: r.prompt for r in model.requests}
    for written in ("SummarizeResultsPrompt", "CompareItemsPrompt"):
        (known,) = values_of(prompts[written], "request.memory")
        assert "I am vegetarian" in known, written


async def test_another_browser_never_sees_the_fact(serve: Serve, model: ScriptedModel) -> None:
    server = await serve(model=model)
    await server.load("kitchen", KITCHEN)
    model.answer = SensibleModel()
    await confirmed(server)
    model.requests.clear()
    async with await server.browser() as other:
        stranger = Served(server.url, other, server.app, server.runner)
        frames = await stranger.ask("what do you know about me? dinner")
        forged = await stranger.ask("dinner", headers={"Cookie": f"{COOKIE}=eyJ2Ijp7ImlkIjoiYSJ9fQ.AAAA"})
    assert frames.of("used_memories") == forged.of("used_memories") == []
    assert not [r for r in model.requests if "vegetarian" in r.prompt]


async def test_without_a_model_a_mere_wish_to_remember_is_not_searched_for(serve: Serve) -> None:
    server = await serve()
    await server.load("kitchen", KITCHEN)
    for said in ("Remember that I love chickpea stew", "Ricorda che amo lo stufato di ceci"):
        alone = await server.ask(said)
        assert alone.one("remember")["confirm"]
        assert alone.final == alone.of("no_results") == []
        assert alone.one("complete")["order"] == []
    both = await server.ask("Remember that I love chickpeas. Which stew is vegan?")
    assert both.one("remember")["confirm"]
    assert "Chickpea stew" in [item["name"] for item in both.final]


async def test_known_visitor_is_kept_at_once_but_asked_about_sensitive_facts(serve: Serve) -> None:
    server = await serve()
    await server.load("kitchen", KITCHEN)
    await confirmed(server)
    plain = (await server.ask("Remember that my oven is small")).one("remember")
    assert plain["memory_id"]
    assert "confirm" not in plain
    sensitive = (await server.ask("Remember that I have diabetes")).one("remember")
    assert sensitive["memory_id"] is None
    assert sensitive["confirm"]


async def test_confirming_twice_and_saying_twice_keep_one_fact(serve: Serve) -> None:
    server = await serve()
    await server.load("kitchen", KITCHEN)
    told = (await server.ask(SAID)).one("remember")
    ids = set()
    for _ in range(2):
        _, kept = await server.json("POST", "/memory/confirm", json={"token": told["confirm"]})
        ids.add(kept["memory_id"])
    again = (await server.ask("remember that I am  Vegetarian.")).one("remember")
    assert (again["memory_id"], "confirm" in again) == (None, False)  # it is known: nothing to agree to
    assert len(ids) == 1
    assert len((await server.ask("dinner")).one("used_memories")["items"]) == 1


async def test_fact_survives_a_restart(serve: Serve) -> None:
    server = await serve()
    await server.load("kitchen", KITCHEN)
    await confirmed(server)
    cookies = {c.key: c.value for c in server.session.cookie_jar}
    await server.runner.cleanup()
    again = await serve()
    header = "; ".join(f"{key}={value}" for key, value in cookies.items())
    frames = await again.ask("dinner", headers={"Cookie": header})
    assert [fact["text"] for fact in frames.one("used_memories")["items"]] == ["I am vegetarian"]


@pytest.mark.parametrize("token", ["", "x", "a.b", None, 5, "x" * 30_000])
async def test_token_that_is_none_is_refused(serve: Serve, token: Any) -> None:
    server = await serve()
    status, answer = await server.json("POST", "/memory/confirm", json={"token": token})
    assert (status, answer["error"]["field"]) == (400, "token")


async def test_identitys_token_is_good_for_that_identity_alone(serve: Serve) -> None:
    server = await serve()
    await server.load("kitchen", KITCHEN)
    await confirmed(server)
    told = (await server.ask("Remember that I have diabetes")).one("remember")
    async with await server.browser() as other:
        stranger = Served(server.url, other, server.app, server.runner)
        status, _ = await stranger.json("POST", "/memory/confirm", json={"token": told["confirm"]})
    assert status == 403


async def test_a_used_token_tells_its_fact_to_nobody_else(serve: Serve) -> None:
    server = await serve()
    await server.load("kitchen", KITCHEN)
    visitors = {"token": (await server.ask(SAID)).one("remember")["confirm"]}
    status, kept = await server.json("POST", "/memory/confirm", json=visitors)
    # With its cookie the same visitor is told again; so is whoever has the visitor's token, which shows it.
    assert await server.json("POST", "/memory/confirm", json=visitors) == (status, kept) == (200, kept)
    persons = {"token": (await server.ask("Remember that I have diabetes")).one("remember")["confirm"]}
    assert (await server.json("POST", "/memory/confirm", json=persons))[0] == 200
    async with await server.browser() as other:
        stranger = Served(server.url, other, server.app, server.runner)
        # A token of a visitor that somebody known has used: what became of it is theirs.
        taken = {"token": (await stranger.ask("Remember that I hate rice")).one("remember")["confirm"]}
        assert (await server.json("POST", "/memory/confirm", json=taken))[0] == 200
        for token in (persons, taken):
            status, answer = await stranger.json("POST", "/memory/confirm", json=token)
            assert (status, answer["error"]["code"]) == (403, "forbidden")
            assert "memory_id" not in str(answer)
        assert await stranger.json("POST", "/memory/confirm", json=visitors) == (200, kept)
        assert not stranger.session.cookie_jar


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        # Another port, another scheme, a name that begins alike: the same site perhaps, another origin.
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "https://127.0.0.1"},
        {"Origin": "http://127.0.0.1.evil.example"},
        {"Sec-Fetch-Site": "cross-site", "Origin": "null"},
    ],
)
async def test_request_from_elsewhere_stores_nothing(serve: Serve, headers: dict[str, str]) -> None:
    server = await serve()
    await server.load("kitchen", KITCHEN)
    await confirmed(server)
    frames = await server.ask("Remember that my oven is small", headers=headers)
    assert frames.of("remember") == []
    status, _ = await server.json("POST", "/memory/confirm", json={"token": "x"}, headers=headers)
    assert status == 403
    _, told = await server.json("GET", "/memory")
    path = f"/memory/{told['memories'][0]['memory_id']}"
    for method, where, body in [
        ("POST", "/memory", {"text": "my oven is small"}),
        ("PATCH", path, {"text": "my oven is small"}),
        ("DELETE", path, None),
        ("DELETE", "/memory?all=true", None),
        ("POST", "/context", {"messages": [{"role": "user", "content": "remember that my oven is small"}]}),
    ]:
        status, _ = await server.json(method, where, json=body, headers=headers)
        assert status == 403, (method, where)
    _, after = await server.json("GET", "/memory")
    assert [fact["text"] for fact in after["memories"]] == ["I am vegetarian"]


@pytest.mark.parametrize("headers", ["neither", "Sec-Fetch-Site", "Origin"])
async def test_our_own_page_and_a_program_with_the_cookie_may_change(serve: Serve, headers: str) -> None:
    server = await serve()
    await server.load("kitchen", KITCHEN)
    await confirmed(server)
    sent = {"neither": {}, "Sec-Fetch-Site": {headers: "same-origin"}, "Origin": {headers: server.url}}[
        headers
    ]
    status, _ = await server.json("POST", "/memory", json={"text": "my oven is small"}, headers=sent)
    assert status == 201


async def test_link_that_is_followed_with_a_cookie_stores_nothing(serve: Serve) -> None:
    server = await serve()
    await server.load("kitchen", KITCHEN)
    await confirmed(server)
    _, answer = await server.json(
        "GET", "/ask", params={"query": "remember that my oven is small", "streaming": "false"}
    )
    assert "remember" not in answer


async def test_remember_false_and_mode_off_store_nothing(serve: Serve) -> None:
    server = await serve()
    await server.load("kitchen", KITCHEN)
    assert (await server.ask(SAID, remember=False)).of("remember") == []
    off = await serve(folder="off", memory={"mode": "off"})
    await off.load("kitchen", KITCHEN)
    assert (await off.ask(SAID)).of("remember") == []
    status, _ = await off.json("POST", "/memory/confirm", json={"token": "x"})
    assert status == 404


async def test_memory_of_a_request_is_used_and_not_stored(serve: Serve, model: ScriptedModel) -> None:
    server = await serve(model=model)
    await server.load("kitchen", KITCHEN)
    model.answer = SensibleModel()
    await server.ask("stew", memory=["cooks for two"])
    assert [r for r in model.requests if r.schema_name == "RankingPrompt" and "cooks for two" in r.prompt]
    model.requests.clear()
    await server.ask("stew")
    assert model.requests
    assert not [r for r in model.requests if "cooks for two" in r.prompt]


async def test_model_detects_and_the_sites_own_prompt_asks(serve: Serve, model: ScriptedModel) -> None:
    server = await serve(model=model)
    await server.load("trattoria", KITCHEN)
    await server.load("kitchen", KITCHEN)
    model.answer = SensibleModel()
    for site in ("trattoria", "kitchen"):
        assert (await server.ask(SAID, site=site)).one("remember")["confirm"]
    prompts = [r.prompt for r in model.requests if r.schema_name == "DetectMemoryRequestPrompt"]
    assert len(prompts) == 2
    assert prompts[0].split("<data", 1)[0] != prompts[1].split("<data", 1)[0]


async def test_only_remembering_is_no_failed_search(serve: Serve, model: ScriptedModel) -> None:
    server = await serve(model=model)
    await server.load("kitchen", KITCHEN)
    model.answer = SensibleModel(scores={"https": 0, "Tofu": 0, "stew": 0, "soup": 0, "tart": 0, "Beef": 0})
    frames = await server.ask(SAID)
    assert frames.of("remember")
    assert frames.of("no_results") == []
