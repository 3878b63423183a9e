"""`/mcp` by the SDK's own client, in both eras of the protocol, against the real server."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import product
from typing import Any

import httpx2
import jsonschema_rs
import mcp_types as types
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from server.mcp import cards
from server.mcp.endpoint import ENDPOINT
from server.mcp.protocol import BY_NAME
from server.mcp.table import TOOLS
from tests.conftest import ADMIN, KITCHEN, Serve, Served, recipe
from tests.fakes.openai_server import Fail, Hang, ScriptedModel
from tests.server.test_ask import answering, scores

NEWEST = "2026-07-28"
ERAS = pytest.mark.parametrize("era", ["legacy", NEWEST, "auto"])
CALLS: dict[str, dict[str, Any]] = {
    "ask": {"query": "a vegan stew", "site": "kitchen", "prev": ["soup"], "max_results": 2},
    "search": {"query": "lemon"},
    "fetch": {},
    "list_sites": {},
    "who": {"query": "lemon tart"},
}

MEMORY_TOOLS = frozenset({"remember", "recall", "forget", "context"})


@asynccontextmanager
async def connected(server: Served, era: str = "auto", *, token: str | None = None) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
        transport = streamable_http_client(f"{server.url}/mcp", http_client=http)
        async with Client(transport, mode=era) as client:  # type: ignore[arg-type]
            yield client


def said(result: types.CallToolResult) -> str:
    (part,) = result.content
    assert isinstance(part, types.TextContent)
    return part.text


def data(result: types.CallToolResult) -> dict[str, Any]:
    assert not result.is_error, said(result)
    assert isinstance(result.structured_content, dict)
    return result.structured_content


async def first_id(client: Client) -> str:
    found = data(await client.call_tool("search", {"query": "tofu curry"}))
    return str(found["results"][0]["id"])


# ---------------------------------------------------------------- what there is


@ERAS
async def test_every_tool_is_listed_with_schemas_that_its_results_keep_to(serve: Serve, era: str) -> None:
    server = await serve()
    await server.load("kitchen", KITCHEN)
    async with connected(server, era) as client:
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == [tool.name for tool in TOOLS]
        for tool in tools:
            jsonschema_rs.meta.validate(tool.input_schema)
            assert tool.output_schema is not None
            if tool.name in MEMORY_TOOLS:
                continue  # nobody is known here: tests/server/test_mcp_memory.py
            arguments = {"id": await first_id(client)} if tool.name == "fetch" else CALLS[tool.name]
            jsonschema_rs.validate(tool.input_schema, arguments)
            jsonschema_rs.validate(tool.output_schema, data(await client.call_tool(tool.name, arguments)))
            assert tool.annotations is not None
            assert tool.annotations.read_only_hint == {one.name: one.reads for one in TOOLS}[tool.name]


@pytest.mark.parametrize(("era", "spoken"), [("legacy", "2025-11-25"), (NEWEST, NEWEST), ("auto", NEWEST)])
async def test_both_eras_of_the_protocol_are_spoken(serve: Serve, era: str, spoken: str) -> None:
    server = await serve()
    async with connected(server, era) as client:
        await client.list_tools()
        assert client.protocol_version == spoken


async def test_the_page_of_cards_is_a_resource_that_the_tools_name(serve: Serve) -> None:
    server = await serve()
    async with connected(server) as client:
        assert client.server_capabilities.extensions == {
            "io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}
        }
        (resource,) = (await client.list_resources()).resources
        (content,) = (await client.read_resource(cards.URI)).contents
        named = {t.name: (t.meta or {}).get("ui") for t in (await client.list_tools()).tools}
        assert (str(resource.uri), resource.mime_type) == (cards.URI, "text/html;profile=mcp-app")
        assert isinstance(content, types.TextResourceContents)
        assert content.mime_type == resource.mime_type
        assert content.text.startswith("<!doctype html>")
        assert named["ask"] == named["search"] == {"resourceUri": cards.URI}
        assert named["fetch"] is None
        with pytest.raises(MCPError, match="no such resource"):
            await client.read_resource("ui://askable/other.html")


def test_the_page_of_cards_is_whole_in_itself_and_makes_no_markup_of_texts() -> None:
    page = cards.page()
    for word in (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "src=",
        "@import",
    ):
        assert word not in page
    assert "http://" not in page
    assert "https://" not in page


# ---------------------------------------------------------------- the tools


@ERAS
async def test_ask_gives_the_same_results_as_ask_over_http(
    serve: Serve, model: ScriptedModel, era: str
) -> None:
    server = await serve(model=model)
    await server.load("kitchen", KITCHEN)
    model.answer = answering()
    _, plain = await server.json("GET", "/ask", params={"query": "vegan stew", "streaming": "false"})
    async with connected(server, era) as client:
        result = await client.call_tool("ask", {"query": "vegan stew"})
    found = data(result)
    assert [one["url"] for one in found["results"]] == [one["url"] for one in plain["results"]]
    told = plain["results"][0]["description"]
    assert told
    assert found["results"][0]["text"] == told
    assert found["results"][0]["score"] == 80
    assert (found["degraded"], found["notice"]) == (False, "")
    assert told in said(result)
    assert found["results"][0]["url"] in said(result)


async def test_a_follow_up_is_searched_as_it_is_understood(serve: Serve, model: ScriptedModel) -> None:
    server = await serve(model=model)
    await server.load("kitchen", KITCHEN)
    rewritten = {"requires_decontextualization": True, "decontextualized_query": "a stew with beef"}
    model.answer = answering(PrevQueryDecontextualizer=rewritten)
    async with connected(server) as client:
        found = data(await client.call_tool("ask", {"query": "with beef", "prev": ["a stew, please"]}))
    assert found["searched"] == "a stew with beef"
    assert found["results"][0]["title"] == "Beef stew"


async def test_max_results_holds(serve: Serve) -> None:
    server = await serve()
    await server.load("kitchen", KITCHEN)
    async with connected(server) as client:
        found = data(await client.call_tool("ask", {"query": "stew vegan beef", "max_results": 1}))
    assert len(found["results"]) == 1


async def test_what_is_not_there_is_said_and_is_no_failure(serve: Serve) -> None:
    server = await serve()
    await server.load("kitchen", KITCHEN)
    async with connected(server) as client:
        result = await client.call_tool("ask", {"query": "xylophone"})
    assert data(result)["results"] == []
    assert data(result)["notice"]
    assert said(result) == data(result)["notice"]


@ERAS
async def test_search_and_fetch_are_as_connectors_expect_them(serve: Serve, era: str) -> None:
    server = await serve(ingestion={"max_tokens_per_paragraph": 20})
    words = " ".join(f"Step {n}: stir the tofu {n} times." for n in range(60))
    await server.load("kitchen", [recipe("long", "Long curry", words), *KITCHEN])
    async with connected(server, era) as client:
        found = await client.call_tool("search", {"query": "long curry tofu"})
        assert json.loads(said(found)) == data(found)
        first = data(found)["results"][0]
        assert set(first) == {"id", "title", "url", "text"}
        assert (first["title"], first["url"]) == ("Long curry", "https://kitchen.example/long")
        fetched = await client.call_tool("fetch", {"id": first["id"]})
    assert json.loads(said(fetched)) == data(fetched)
    document = data(fetched)
    assert set(document) == {"id", "title", "text", "url", "metadata"}
    assert words in " ".join(document["text"].split())
    assert document["metadata"]["site"] == "kitchen"
    assert document["metadata"]["item"]["@type"] == "Recipe"


async def test_ids_stay_the_same_when_a_document_is_loaded_again(serve: Serve) -> None:
    server = await serve()
    await server.load("kitchen", KITCHEN)
    async with connected(server) as client:
        before = await first_id(client)
        await server.load("kitchen", [recipe("tofu-curry", "Tofu curry", "Now a hot tofu curry.")])
        assert await first_id(client) == before
        assert "Now a hot" in data(await client.call_tool("fetch", {"id": before}))["text"]


async def test_sites_are_listed_and_the_one_for_a_question_found(serve: Serve) -> None:
    server = await serve()
    await server.load("kitchen", KITCHEN)
    await server.load("garage", [recipe("tyre", "Changing a tyre", "Loosen the wheel nuts of the car.")])
    async with connected(server) as client:
        listed = data(await client.call_tool("list_sites", {}))
        found = data(await client.call_tool("who", {"query": "wheel nuts"}))
    assert [(one["name"], one["documents"]) for one in listed["sites"]] == [("garage", 1), ("kitchen", 5)]
    assert [one["name"] for one in found["sites"]] == ["garage"]


# ---------------------------------------------------------------- failures


@ERAS
async def test_a_model_that_fails_is_a_result_that_says_so(
    serve: Serve, model: ScriptedModel, era: str
) -> None:
    server = await serve(model=model, llm={"max_retries": 0})
    await server.load("kitchen", KITCHEN)
    model.answer = lambda _: Fail(500)
    async with connected(server, era) as client:
        result = await client.call_tool("ask", {"query": "beef stew"})
    assert result.is_error
    assert "model" in said(result)
    assert "Beef stew" in said(result)


async def test_a_batch_that_fails_beside_others_is_a_notice(serve: Serve, model: ScriptedModel) -> None:
    server = await serve(model=model, llm={"max_retries": 0}, ranking={"batch_size": 2})
    await server.load("kitchen", KITCHEN)
    model.answer = answering(RankingPrompt=lambda r: Fail(500) if "Beef stew" in r.prompt else scores(r))
    async with connected(server) as client:
        found = data(await client.call_tool("ask", {"query": "stew with vegan tofu, lemon, beans"}))
    assert found["degraded"]
    assert found["notice"]
    assert found["results"]


IMPOSSIBLE: list[tuple[str, dict[str, Any], str]] = [
    ("ask", {}, "query"),
    ("ask", {"query": ""}, "query"),
    ("ask", {"query": "   "}, "query"),
    ("ask", {"query": "x" * 8001}, "query"),
    ("ask", {"query": "stew", "max_results": 0}, "max_results"),
    ("ask", {"query": "stew", "prev": "soup"}, "prev"),
    ("ask", {"query": "stew", "colour": "red"}, "colour"),
    ("ask", {"query": "stew", "site": "nowhere"}, "kitchen"),
    ("search", {"query": "stew", "site": "nowhere"}, "kitchen"),
    ("fetch", {"id": "kitchen/nothing"}, "kitchen/nothing"),
    ("fetch", {"id": "nothing"}, "id"),
    ("fetch", {"id": "../../etc/passwd"}, "id"),
    ("fetch", {"id": "kitchen/../etc"}, "id"),
    ("fetch", {"id": "KITCHEN/x"}, "id"),
    ("ask", {"query": "stew", "tags": [{"__x": "y"}]}, "tags"),
    ("who", {"query": ""}, "query"),
    ("ask", {"query": " \n"}, "query"),
    ("search", {"query": " \n"}, "query"),
    ("who", {"query": " \n"}, "query"),
]


@ERAS
async def test_what_cannot_be_done_is_an_error_result_with_a_reason(serve: Serve, era: str) -> None:
    server = await serve()
    await server.load("kitchen", KITCHEN)
    async with connected(server, era) as client:
        for tool, arguments, told in IMPOSSIBLE:
            result = await client.call_tool(tool, arguments)
            assert result.is_error, (tool, arguments)
            assert told in said(result), (tool, arguments)
            # A field that is named is an argument of the tool, or one that it does not have.
            field = (result.meta or {})["askable/error"]["field"]
            named = {*BY_NAME[tool].arguments.model_fields, *arguments}
            assert field is None or re.split(r"[.\[]", field)[0] in named, (tool, arguments, field)
        assert data(await client.call_tool("list_sites", {}))["sites"]


@ERAS
async def test_a_tool_that_is_not_there_is_an_error_of_the_protocol(serve: Serve, era: str) -> None:
    server = await serve()
    async with connected(server, era) as client:
        with pytest.raises(MCPError, match="no tool `nothing`"):
            await client.session.send_request(
                types.CallToolRequest(params=types.CallToolRequestParams(name="nothing", arguments={})),
                types.CallToolResult,
            )


# ---------------------------------------------------------------- while it works


@ERAS
async def test_progress_is_told_while_results_come(serve: Serve, model: ScriptedModel, era: str) -> None:
    server = await serve(model=model, ranking={"batch_size": 1})
    await server.load("kitchen", KITCHEN)
    model.answer = answering()
    told: list[tuple[float, str | None]] = []

    async def note(progress: float, _total: float | None, message: str | None) -> None:
        told.append((progress, message))

    async with connected(server, era) as client:
        found = data(await client.call_tool("ask", {"query": "vegan stew"}, progress_callback=note))
    assert len(told) >= len(found["results"]) > 1
    assert [progress for progress, _ in told] == sorted({progress for progress, _ in told})
    assert "1 found so far" in str(told[0][1])


@ERAS
async def test_a_call_that_is_cancelled_stops_every_model_call(
    serve: Serve, model: ScriptedModel, era: str
) -> None:
    server = await serve(model=model, llm={"timeout_s": 300}, ranking={"batch_size": 1})
    await server.load("kitchen", KITCHEN)
    model.answer = lambda _: Hang()
    async with connected(server, era) as client:
        asking = asyncio.create_task(client.call_tool("ask", {"query": "vegan beef stew soup tart"}))
        await model.seen(3)
        asking.cancel()
        await model.left(len(model.requests))
        await asyncio.gather(asking, return_exceptions=True)
    await model.idle()
    assert model.cancelled == len(model.requests)


@pytest.mark.parametrize("version", ["2025-06-18", NEWEST])
async def test_a_client_that_goes_away_stops_every_model_call(
    serve: Serve, model: ScriptedModel, version: str
) -> None:
    server = await serve(model=model, llm={"timeout_s": 300}, ranking={"batch_size": 1})
    await server.load("kitchen", KITCHEN)
    model.answer = lambda _: Hang()
    leaving = asyncio.create_task(called(server, version, "c-1"))
    await model.seen(3)
    leaving.cancel()
    await model.left(len(model.requests))
    await model.idle()
    assert model.cancelled == len(model.requests)


async def test_a_call_is_stopped_by_its_own_client_alone(serve: Serve, model: ScriptedModel) -> None:
    server = await serve(model=model, llm={"timeout_s": 300}, auth={"api_keys": PRIVATE["api_keys"]})
    await server.load("kitchen", KITCHEN)
    model.answer = lambda _: Hang()
    key = {"Authorization": "Bearer all-read-key"}
    mine = {**key, "Mcp-Session-Id": await begun(server, key)}
    calling = asyncio.create_task(called(server, "2025-06-18", "c-1", mine))
    await model.seen(1)
    others = (
        {**mine, "Mcp-Session-Id": "other"},
        {**mine, "Mcp-Session-Id": await begun(server, key)},
        {**mine, "Authorization": "Bearer kitchen-key-1"},
    )
    for sent in (*others, key):
        assert await told_to_stop(server, "c-1", sent) == 202
    assert await told_to_stop(server, "c-2", mine) == 202
    assert model.cancelled == 0
    assert await told_to_stop(server, "c-1", mine) == 202
    await model.left(len(model.requests))
    assert "cancelled" in await calling


async def called(server: Served, version: str, call_id: str, headers: dict[str, str] | None = None) -> str:
    """The body of the answer to a call of `ask`, without the SDK."""
    params: dict[str, Any] = {"name": "ask", "arguments": {"query": "vegan beef stew soup tart"}}
    sent = {**ACCEPT, "MCP-Protocol-Version": version, **(headers or {})}
    if version == NEWEST:
        names = {"protocolVersion": version, "clientCapabilities": {}}
        params["_meta"] = {f"io.modelcontextprotocol/{name}": value for name, value in names.items()}
        sent |= {"Mcp-Method": "tools/call", "Mcp-Name": "ask"}
    body = {"jsonrpc": "2.0", "id": call_id, "method": "tools/call", "params": params}
    async with server.session.post(f"{server.url}/mcp", json=body, headers=sent) as response:
        return await response.text()


async def begun(server: Served, headers: dict[str, str] | None = None) -> str:
    """The id of a new session."""
    sent = {**ACCEPT, **(headers or {})}
    async with server.session.post(f"{server.url}/mcp", json=INITIALIZE, headers=sent) as response:
        assert response.status == 200
        return response.headers["Mcp-Session-Id"]


async def told_to_stop(server: Served, call_id: str, headers: dict[str, str]) -> int:
    body = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": call_id}}
    sent = {**ACCEPT, "MCP-Protocol-Version": "2025-06-18", **headers}
    async with server.session.post(f"{server.url}/mcp", json=body, headers=sent) as response:
        return response.status


async def test_calls_run_side_by_side(serve: Serve, model: ScriptedModel) -> None:
    server = await serve(model=model)
    await server.load("kitchen", KITCHEN)
    model.answer = answering()
    async with connected(server) as client:
        results = await asyncio.gather(
            *(client.call_tool("ask", {"query": query}) for query in ("beef", "lemon", "beans", "tofu"))
        )
    assert [data(one)["results"][0]["title"] for one in results] == [
        "Beef stew",
        "Lemon tart",
        "Minestrone",
        "Tofu curry",
    ]


# ---------------------------------------------------------------- who may


PRIVATE = {
    "api_keys": [
        {"key": "kitchen-key-1", "roles": ["read"], "sites": ["kitchen"], "name": "cook"},
        {"key": "all-read-key", "roles": ["read"], "name": "all"},
    ]
}


@ERAS
async def test_a_caller_sees_only_the_sites_it_may_read(serve: Serve, era: str) -> None:
    server = await serve(auth=PRIVATE)
    await server.load("kitchen", KITCHEN)
    await server.load("vault", [recipe("gold", "Gold stew", "A stew of gold that nobody may see.")])
    async with connected(server, era, token="all-read-key") as client:
        vault = data(await client.call_tool("search", {"query": "gold"}))["results"][0]["id"]
    async with connected(server, era, token="kitchen-key-1") as client:
        sites = data(await client.call_tool("list_sites", {}))["sites"]
        hits = data(await client.call_tool("search", {"query": "gold stew"}))["results"]
        asked = data(await client.call_tool("ask", {"query": "gold stew"}))["results"]
        named = data(await client.call_tool("who", {"query": "gold stew"}))["sites"]
        fetched = await client.call_tool("fetch", {"id": vault})
        forced = await client.call_tool("ask", {"query": "gold stew", "site": "vault"})
    assert [one["name"] for one in sites] == [one["name"] for one in named] == ["kitchen"]
    assert hits
    assert asked
    assert "Gold stew" not in str([hits, asked])
    assert fetched.is_error
    assert forced.is_error
    assert "nobody may see" not in str([fetched, forced])
    async with connected(server, era) as client:
        assert data(await client.call_tool("list_sites", {}))["sites"] == []


async def test_without_a_credential_where_one_is_needed_it_is_401(serve: Serve) -> None:
    server = await serve(auth={**PRIVATE, "anonymous": "none"})
    async with server.session.post(f"{server.url}/mcp", json=INITIALIZE, headers=ACCEPT) as response:
        assert response.status == 401
        assert response.headers["WWW-Authenticate"].startswith("Bearer")
    async with connected(server, token="all-read-key") as client:
        assert (await client.list_tools()).tools


# ---------------------------------------------------------------- the transport

ACCEPT = {"Accept": "application/json, text/event-stream"}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


TURNED_AWAY = [
    ({"Host": "evil.example"}, 421),
    ({"Origin": "https://evil.example"}, 403),
    ({"Origin": "null"}, 403),
    ({"Accept": "text/html"}, 406),
    ({"Content-Type": "text/plain"}, 400),
]


async def test_foreign_hosts_and_pages_are_turned_away(serve: Serve) -> None:
    server = await serve()
    body = json.dumps(INITIALIZE)
    for headers, status in TURNED_AWAY:
        sent = {**ACCEPT, "Content-Type": "application/json", **headers}
        async with server.session.post(f"{server.url}/mcp", data=body, headers=sent) as response:
            assert response.status == status, headers


async def test_hosts_and_origins_are_those_of_the_settings(serve: Serve) -> None:
    server = await serve(server={"allowed_hosts": ["ask.example"], "cors_origins": ["https://agent.example"]})
    sent = {**ACCEPT, "Host": "ask.example", "Origin": "https://agent.example"}
    async with server.session.post(f"{server.url}/mcp", json=INITIALIZE, headers=sent) as response:
        assert response.status == 200
        assert response.headers["Access-Control-Allow-Origin"] == "https://agent.example"
    sent["Origin"] = "https://ask.example"
    async with server.session.post(f"{server.url}/mcp", json=INITIALIZE, headers=sent) as response:
        assert response.status == 200


async def test_older_clients_get_their_version_and_may_go_on_at_any_process(serve: Serve) -> None:
    server = await serve()
    async with server.session.post(f"{server.url}/mcp", json=INITIALIZE, headers=ACCEPT) as response:
        body = await response.text()
        assert len(response.headers["Mcp-Session-Id"]) >= 32
    assert '"protocolVersion":"2025-06-18"' in body
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    for session in ({}, {"Mcp-Session-Id": "that-of-another-process"}):
        sent = {**ACCEPT, "MCP-Protocol-Version": "2025-06-18", **session}
        async with server.session.post(f"{server.url}/mcp", json=ping, headers=sent) as response:
            assert response.status == 200
            assert "Mcp-Session-Id" not in response.headers


async def test_there_is_nothing_to_get(serve: Serve) -> None:
    server = await serve()
    for method in ("GET", "PUT"):
        async with server.session.request(method, f"{server.url}/mcp", headers=ACCEPT) as response:
            assert response.status == 405
            assert response.headers["Allow"] == "DELETE,POST"


async def test_a_session_is_ended_by_its_own_client_alone(serve: Serve) -> None:
    server = await serve(auth={"api_keys": PRIVATE["api_keys"]})
    key = {"Authorization": "Bearer all-read-key"}
    mine = {**key, "Mcp-Session-Id": await begun(server, key)}
    tries = [
        (key, 404),
        ({**mine, "Mcp-Session-Id": "nobodys"}, 404),
        ({**mine, "Authorization": "Bearer kitchen-key-1"}, 404),
        (mine, 200),
        (mine, 404),
    ]
    for headers, status in tries:
        async with server.session.delete(f"{server.url}/mcp", headers={**ACCEPT, **headers}) as response:
            assert response.status == status, headers
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    async with server.session.post(f"{server.url}/mcp", json=ping, headers={**ACCEPT, **mine}) as response:
        assert response.status == 404


async def test_where_there_is_no_room_for_a_session_it_is_answered_without(serve: Serve) -> None:
    server = await serve()
    server.app[ENDPOINT].max_sessions = 1
    await begun(server)
    async with server.session.post(f"{server.url}/mcp", json=INITIALIZE, headers=ACCEPT) as response:
        assert response.status == 200
        assert "Mcp-Session-Id" not in response.headers


async def test_what_is_no_message_is_a_client_error(serve: Serve) -> None:
    server = await serve()
    bodies = (b"", b"{", b"[]", b"null", b'{"jsonrpc": "2.0"}', b"\xff", b"[" * 5000)
    for version, body in product(("2025-06-18", NEWEST), bodies):
        sent = {**ACCEPT, "Content-Type": "application/json", "MCP-Protocol-Version": version}
        async with server.session.post(f"{server.url}/mcp", data=body, headers=sent) as response:
            assert 400 <= response.status < 500


async def test_a_body_beyond_all_reason_is_refused_while_it_comes(serve: Serve) -> None:
    server = await serve()

    async def endless() -> AsyncIterator[bytes]:
        for _ in range(6):
            yield b" " * 1024 * 1024

    sent = {**ACCEPT, "Content-Type": "application/json"}
    async with server.session.post(f"{server.url}/mcp", data=endless(), headers=sent) as response:
        assert response.status == 413


async def test_notifications_are_accepted_without_an_answer(serve: Serve) -> None:
    server = await serve()
    told = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    async with server.session.post(f"{server.url}/mcp", json=told, headers=ACCEPT) as response:
        assert (response.status, await response.read()) == (202, b"")


async def test_the_operator_is_a_caller_like_others(serve: Serve) -> None:
    server = await serve(auth=PRIVATE)
    await server.load("kitchen", KITCHEN)
    async with connected(server, token=ADMIN) as client:
        assert [one["name"] for one in data(await client.call_tool("list_sites", {}))["sites"]] == ["kitchen"]
