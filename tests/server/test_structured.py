"""`/ask` in the structured dialects over HTTP: what is asked, the four envelopes, promises."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import aiohttp
import pytest

from core.errors import BadQuery
from core.settings import Settings
from server.keys import RUNS, STORE
from server.params import Asked, Params, asked_from
from server.runs import MAX_PROMISED
from server.wire.request import dialect_of, flattened
from tests.conftest import ADMIN, KITCHEN, Serve, Served
from tests.events import check
from tests.fakes.openai_server import Hang, ScriptedModel
from tests.fakes.sensible_model import SensibleModel

SITES = ["liguria", "trattoria"]


def read(body: dict[str, Any], **query_string: str) -> tuple[str, Asked]:
    """The dialect and the question of a POST."""
    values: dict[str, list[Any]] = {name: [value] for name, value in query_string.items()}
    params = Params({**values, **{name: [value] for name, value in body.items()}})
    structured = isinstance(body.get("query"), dict)
    params = flattened(params)
    with params.told():
        name = dialect_of(params, structured=structured)
        asked = asked_from(
            params,
            settings=Settings(),
            readable=SITES,
            identity=None,
            remember=True,
            accept="",
            operator=True,
        )
    return name, asked


def test_every_place_of_a_structured_request_is_read() -> None:
    name, asked = read(
        {
            "query": {
                "text": " soup ",
                "site": ["liguria"],
                "decontextualized_query": "vegan soup",
                "num_results": 30,
                "max_results": 5,
                "min_score": 20,
            },
            "context": {
                "@type": "ConversationalContext",
                "prev": ["salt, pepper", "and?"],
                "last_answers": [{"title": "T", "url": "u"}],
                "url": "https://e.example",
                "text": "a page",
                "memory": ["is vegan"],
            },
            "prefer": {
                "streaming": False,
                "response_format": "chatgpt_app",
                "mode": "list",
                "accept-language": "it-IT,it;q=0.9",
                "provisional": True,
                "respond_async": True,
                "user-agent": "x",
            },
            "meta": {
                "api_version": "0.54",
                "query_id": "q-7",
                "session_context": {"conversation_id": "c-7", "state_token": "s"},
                "user": {"id": "somebody"},
                "remember": False,
                "start_num": 10,
            },
        }
    )
    query = asked.query
    assert name == "structured-0.54"
    assert (query.text, query.sites, query.decontextualized_query) == ("soup", ("liguria",), "vegan soup")
    assert (query.num_results, query.max_results, query.min_score, query.start_num) == (30, 5, 20, 10)
    assert query.prev == ("salt, pepper", "and?")
    assert (query.last_answers[0].title, query.context_url, query.context_text) == (
        "T",
        "https://e.example",
        "a page",
    )
    assert (query.memory, query.language, query.provisional) == (("is vegan",), "it", True)
    assert (query.query_id, query.conversation_id, query.remember) == ("q-7", "c-7", False)
    assert query.identity is None
    assert (asked.streaming, asked.response_format, asked.respond_async) == (False, "chatgpt_app", True)


@pytest.mark.parametrize(
    ("body", "query_string", "dialect"),
    [
        ({"query": "a"}, {}, "legacy"),
        ({"query": {"text": "a"}}, {}, "structured-0.55"),
        ({"query": {"text": "a"}, "meta": {"version": "0.54"}}, {}, "structured-0.54"),
        ({"query": {"text": "a"}, "meta": {"version": "0.55"}}, {}, "structured-0.55"),
        ({"query": {"text": "a"}, "meta": {"api_version": "0.1"}}, {}, "structured-0.55"),
        ({"query": "a", "meta": {"version": "0.54"}}, {}, "structured-0.54"),
        ({"query": "a", "meta": {"api_version": "0.54"}}, {}, "legacy"),
        ({"query": "a", "protocol": "legacy-2026"}, {}, "legacy-2026"),
        ({"query": {"text": "a"}, "protocol": "legacy"}, {}, "legacy"),
        ({"query": {"text": "a"}, "protocol": "legacy", "meta": {"version": "0.54"}}, {}, "legacy"),
        ({"query": {"text": "a"}}, {"protocol": "legacy-2026"}, "legacy-2026"),
        ({}, {"query": "a", "protocol": "structured"}, "structured-0.55"),
        ({}, {"query": "a", "protocol": "structured", "version": "0.54"}, "structured-0.54"),
        ({}, {"query": "a", "version": "0.54"}, "structured-0.54"),
        ({}, {"query": "a", "protocol": "legacy"}, "legacy"),
    ],
)
def test_dialect_follows_the_body_unless_it_is_named(
    body: dict[str, Any], query_string: dict[str, str], dialect: str
) -> None:
    name, asked = read(body, **query_string)
    assert name == dialect
    assert asked.query.text == "a"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"query": {}}, "query.text"),
        ({"query": {"text": " "}}, "query.text"),
        ({"query": {"text": 5}}, "query.text"),
        ({"query": {"text": "a", "colour": "red"}}, "query.colour"),
        ({"query": {"text": "a", "site": "lombardia"}}, "query.site"),
        ({"query": {"text": "a", "max_results": 0}}, "query.max_results"),
        ({"query": {"text": "a", "num_results": 5, "max_results": 6}}, "query.max_results"),
        ({"query": {"text": "a", "num_results": 5}, "meta": {"start_num": 5}}, "meta.start_num"),
        ({"query": {"text": "a", "min_score": "high"}}, "query.min_score"),
        ({"query": {"text": "a", "tags": [{}]}}, "query.tags"),
        ({"query": {"text": "a", "site": {"a": 1}}}, "query.site"),
        ({"query": {"text": "a", "item_type": "no type"}}, "query.item_type"),
        ({"query": {"text": "a", "required_item_type": "no type"}}, "query.required_item_type"),
        ({"query": {"text": "a"}, "generate_mode": "poem"}, "generate_mode"),
        ({"query": {"text": "a"}, "context": []}, "context"),
        ({"query": {"text": "a"}, "context": {"prev": [5]}}, "context.prev"),
        ({"query": {"text": "a"}, "meta": {"session_context": "c"}}, "meta.session_context"),
        ({"query": {"text": "a"}, "meta": {"version": "9"}}, "meta.version"),
        ({"query": {"text": "a"}, "protocol": "smoke"}, "protocol"),
        ({"query": {"text": "a"}, "prefer": {"mode": "poem"}}, "prefer.mode"),
        ({"query": {"text": "a"}, "prefer": {"response_format": "poem"}}, "prefer.response_format"),
        ({"query": {"text": "a"}, "prefer": {"provisional": "perhaps"}}, "prefer.provisional"),
    ],
)
def test_wrong_values_are_named_by_their_place(body: dict[str, Any], field: str) -> None:
    with pytest.raises(BadQuery) as caught:
        read(body)
    assert caught.value.field == field


def test_history_of_whole_query_objects_is_read() -> None:
    prev = [{"query": {"query": "salt, pepper"}}, {"text": "soup"}, "stew"]
    _, asked = read({"query": {"text": "a"}, "context": {"prev": prev}})
    assert asked.query.prev == ("salt, pepper", "soup", "stew")


def test_flat_parameters_hold_beside_a_structured_query_where_it_is_silent() -> None:
    _, asked = read({"query": {"text": "a", "max_results": 3}, "streaming": False, "max_results": 7})
    assert not asked.streaming
    assert asked.query.max_results == 3


# ---------------------------------------------------------------- over HTTP


async def kitchen(serve: Serve, **settings: Any) -> Served:
    server = await serve(**settings)
    await server.load("kitchen", KITCHEN)
    return server


async def post(server: Served, text: str = "beef stew", /, **parts: Any) -> tuple[int, Any]:
    body = {"query": {"text": text, **parts.pop("query", {})}, **parts}
    return await server.json("POST", "/ask", json=body)


@pytest.mark.parametrize("version", ["0.54", "0.55"])
async def test_answer_envelope(serve: Serve, version: str) -> None:
    server = await kitchen(serve)
    status, body = await post(server, prefer={"streaming": False}, meta={"version": version})
    assert status == 200
    check(f"structured-{version}", body, "Answer")
    assert body["_meta"]["response_type"] == "Answer"
    assert body["_meta"]["llm"] == "none"
    assert body["results"][0]["name"] == "Beef stew"


async def test_chatgpt_app_envelope(serve: Serve) -> None:
    server = await kitchen(serve)
    _, body = await post(server, prefer={"streaming": False, "response_format": "chatgpt_app"})
    check("structured-0.55", body, "Answer")
    assert body["content"][0]["text"].startswith("1. Beef stew: ")
    assert body["structuredData"][0]["url"] == "https://kitchen.example/beef-stew"


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("What do you know about me?", "Nothing is kept about you here."),
        ("Forget that I am vegan", "Nothing is kept about you here."),
        ("Remember that I am vegan", "I am vegan"),
        ("compare the beef stew with the chickpea stew", "red wine"),
        ("tell me more about the minestrone", "beans and pasta"),
    ],
)
async def test_chatgpt_app_has_the_answer_in_its_text(serve: Serve, question: str, said: str) -> None:
    server = await kitchen(serve)
    prefer = {"streaming": False, "response_format": "chatgpt_app"}
    status, body = await server.json("POST", "/ask", json={"query": {"text": question}, "prefer": prefer})
    assert status == 200
    check("structured-0.55", body, "Answer")
    assert said in body["content"][0]["text"]


@pytest.mark.parametrize(
    ("parts", "status", "code", "field"),
    [
        ({"query": {"colour": "red"}}, 400, "bad_request", "query.colour"),
        ({"query": {"site": "nowhere"}}, 404, "site_unknown", "query.site"),
        ({"query": {"max_results": 1000}}, 400, "bad_request", "query.max_results"),
        ({"meta": {"debug": True}}, 403, "forbidden", "meta.debug"),
        (
            {"prefer": {"respond_async": True}, "protocol": "legacy"},
            400,
            "bad_request",
            "prefer.respond_async",
        ),
    ],
)
async def test_errors_before_the_answer_are_failures(
    serve: Serve, parts: dict[str, Any], status: int, code: str, field: str
) -> None:
    server = await kitchen(serve)
    got, body = await post(server, **parts)
    assert (got, body["error"]["code"], body["error"]["field"]) == (status, code, field)
    if "protocol" not in parts:
        check("structured-0.55", body, "Failure")


async def test_debug_is_for_operators(serve: Serve) -> None:
    server = await kitchen(serve)
    asked = {"query": "stew", "debug": True, "streaming": False}
    as_admin = {"Authorization": f"Bearer {ADMIN}"}
    assert (await server.json("POST", "/ask", json=asked))[0] == 403
    assert (await server.json("POST", "/ask", json=asked, headers=as_admin))[0] != 403


async def test_failure_that_left_nothing_has_the_status_of_its_error(serve: Serve) -> None:
    server = await kitchen(serve)
    await server.app[STORE].close()
    status, body = await post(server, prefer={"streaming": False})
    check("structured-0.55", body, "Failure")
    assert (status, body["error"]["code"]) == (503, "store_failed")


# ---------------------------------------------------------------- promises

ASYNC = {"respond_async": True}


async def wait_for(server: Served, token: str, action: str = "checkin", **more: Any) -> tuple[int, Any]:
    return await server.json("POST", "/await", json={"promise_token": token, "action": action}, **more)


async def kept(server: Served, token: str) -> dict[str, Any]:
    """Check in until it is no promise any more."""
    while True:
        status, body = await wait_for(server, token)
        assert status == 200
        if body["_meta"]["response_type"] != "Promise":
            assert isinstance(body, dict)
            return body
        await asyncio.sleep(0)


async def test_promise_is_kept(serve: Serve, model: ScriptedModel) -> None:
    server = await kitchen(serve, model=model)
    model.answer = SensibleModel()
    status, promise = await post(server, prefer=ASYNC)
    assert status == 200
    check("structured-0.55", promise, "Promise")
    assert len(promise["promise"]["token"]) >= 32
    assert promise["_meta"]["llm"] == "gpt-4.1"
    answer = await kept(server, promise["promise"]["token"])
    check("structured-0.55", answer, "Answer")
    assert answer["results"][0]["name"] == "Beef stew"
    assert answer["_meta"]["query_id"] == promise["_meta"]["query_id"]
    assert await kept(server, promise["promise"]["token"]) == answer
    assert len([r for r in model.requests if r.schema_name == "RankingPrompt"]) == 1


@pytest.mark.parametrize("version", ["0.54", "0.55"])
async def test_a_streamed_promise_names_the_model_as_every_answer_does(serve: Serve, version: str) -> None:
    server = await kitchen(serve)
    body = {
        "query": {"text": "stew"},
        "prefer": {**ASYNC, "streaming": True},
        "meta": {"version": version},
    }
    async with server.session.post(f"{server.url}/ask", json=body) as response:
        data = [json.loads(line[6:]) for line in (await response.text()).split("\n") if line[:6] == "data: "]
    assert data[0]["_meta"]["llm"] == "none"
    assert data[0]["_meta"]["response_type"].lower() == "promise"


async def test_promise_outlives_its_connection_and_says_promise_until_then(
    serve: Serve, model: ScriptedModel
) -> None:
    server = await kitchen(serve, model=model)
    model.answer = lambda _: Hang()
    async with aiohttp.ClientSession() as leaving:
        body = {"query": {"text": "stew"}, "prefer": ASYNC}
        async with leaving.post(f"{server.url}/ask", json=body) as response:
            token = (await response.json())["promise"]["token"]
    await model.seen(2)
    status, again = await wait_for(server, token)
    check("structured-0.55", again, "Promise")
    assert (status, again["promise"]["token"]) == (200, token)
    assert model.in_flight == 2


async def test_cancelled_promise_stops_its_model_calls_and_is_forgotten(
    serve: Serve, model: ScriptedModel
) -> None:
    server = await kitchen(serve, model=model)
    model.answer = lambda _: Hang()
    _, promise = await post(server, prefer=ASYNC)
    token = promise["promise"]["token"]
    await model.seen(2)
    status, body = await wait_for(server, token, "cancel")
    check("structured-0.55", body, "Failure")
    assert (status, body["error"]["code"]) == (200, "cancelled")
    await model.left(2)
    assert model.cancelled == 2
    assert (await wait_for(server, token))[0] == 404


async def test_promise_is_its_callers(serve: Serve) -> None:
    server = await kitchen(serve)
    told = (await server.ask("Please remember that I am vegetarian")).one("remember")
    await server.json("POST", "/memory/confirm", json={"token": told["confirm"]})
    _, promise = await post(server, prefer=ASYNC)
    token = promise["promise"]["token"]
    async with await server.browser() as other:
        for action in ("checkin", "cancel"):
            asked = {"promise_token": token, "action": action}
            async with other.post(f"{server.url}/await", json=asked) as response:
                assert response.status == 404
                check("structured-0.55", await response.json(), "Failure")
    assert (await kept(server, token))["results"]


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({}, 400, "promise_token"),
        ({"promise_token": 5}, 400, "promise_token"),
        ({"promise_token": "x" * 201}, 400, "promise_token"),
        ({"promise_token": "unknown"}, 404, "promise_token"),
        ({"promise_token": "unknown", "action": "wait"}, 400, "action"),
    ],
)
async def test_wrong_await_is_refused(serve: Serve, body: dict[str, Any], status: int, field: str) -> None:
    server = await serve()
    got, answer = await server.json("POST", "/await", json=body)
    assert (got, answer["error"]["field"]) == (status, field)
    check("structured-0.55", answer, "Failure")


async def test_promise_expires(serve: Serve) -> None:
    server = await kitchen(serve)
    server.app[RUNS].keep_promised_s = 0.0
    _, promise = await post(server, prefer=ASYNC)
    status = 200
    while status == 200:
        status, _ = await wait_for(server, promise["promise"]["token"])
    assert status == 404


async def test_where_too_many_wait_the_answer_comes_at_once(serve: Serve, model: ScriptedModel) -> None:
    server = await kitchen(serve, model=model)
    model.answer = lambda _: Hang()
    for _ in range(MAX_PROMISED):
        _, promise = await post(server, prefer=ASYNC)
        assert promise["_meta"]["response_type"] == "Promise"
    model.answer = SensibleModel()
    _, answer = await post(server, prefer=ASYNC)
    assert answer["_meta"]["response_type"] == "Answer"
