"""Agents remember, recall and forget for the person they speak for, and for nobody else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import jsonschema_rs
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from tests.conftest import KITCHEN, Serve, Served
from tests.fakes.openai_server import Fail, ScriptedModel
from tests.fakes.sensible_model import SensibleModel
from tests.server.test_mcp import MEMORY_TOOLS, data, said
from tests.server.test_memory_rest import ANNA, AUTH, BO, ask, texts


@asynccontextmanager
async def speaking(server: Served, headers: dict[str, str]) -> AsyncIterator[Client]:
    async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
        transport = streamable_http_client(f"{server.url}/mcp", http_client=http)
        async with Client(transport) as client:
            yield client


@pytest.fixture
async def server(serve: Serve) -> Served:
    server = await serve(auth=AUTH)
    await server.load("kitchen", KITCHEN)
    return server


async def call(client: Client, name: str, **arguments: Any) -> dict[str, Any]:
    return data(await client.call_tool(name, arguments))


async def test_what_an_agent_is_told_is_used_on_the_page_and_can_be_forgotten(server: Served) -> None:
    async with speaking(server, ANNA) as anna, speaking(server, BO) as bo:
        kept = await call(anna, "remember", text="I love coriander")
        used = (await ask(server, "a curry")).one("used_memories")["items"]
        assert [fact["text"] for fact in used] == ["I love coriander"]
        assert [one["text"] for one in (await call(anna, "recall", query="coriander"))["memories"]] == [
            "I love coriander"
        ]
        assert (await call(bo, "recall"))["memories"] == []
        refused = await bo.call_tool("forget", {"memory_id": kept["memory_id"]})
        assert refused.is_error
        assert await call(anna, "forget", memory_id=kept["memory_id"]) == {"forgotten": [kept["memory_id"]]}
        assert await texts(server) == []


async def test_context_is_the_same_as_over_http_and_keeps_to_its_schema(server: Served) -> None:
    async with speaking(server, ANNA) as anna:
        await call(anna, "remember", text="I love coriander")
        tools = {tool.name: tool for tool in (await anna.list_tools()).tools}
        assert tools.keys() >= MEMORY_TOOLS
        told = await call(
            anna, "context", messages=[{"role": "user", "content": "a curry"}], conversation_id="c1"
        )
        jsonschema_rs.validate(tools["context"].output_schema or {}, told)
        assert "I love coriander" in told["text"]


async def test_an_answer_names_the_facts_it_takes_into_account(server: Served) -> None:
    async with speaking(server, ANNA) as anna:
        kept = await call(anna, "remember", text="I love coriander")
        tools = {tool.name: tool for tool in (await anna.list_tools()).tools}
        answer = await anna.call_tool("ask", {"query": "a curry"})
        jsonschema_rs.validate(tools["ask"].output_schema, data(answer))
        used = {"memory_id": kept["memory_id"], "text": "I love coriander"}
        assert data(answer)["used_memories"] == [used]
        assert "Remembered of the person:\n- I love coriander" in said(answer)
        await call(anna, "forget", memory_id=kept["memory_id"])
        forgotten = await anna.call_tool("ask", {"query": "a curry"})
        assert data(forgotten)["used_memories"] == []
        assert "Remembered" not in said(forgotten)


async def test_what_is_refused_names_an_argument_of_the_tool(server: Served) -> None:
    said_once = [{"role": "user", "content": "x"}]
    refused: list[tuple[str, dict[str, Any], str | None]] = [
        ("context", {"messages": []}, "messages"),
        ("context", {"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
        ("context", {"messages": said_once, "scopes": {"agent": "*"}}, "scopes.agent"),
        ("context", {"messages": said_once, "conversation_id": "a b"}, "conversation_id"),
        ("remember", {"text": "   "}, "text"),
        ("remember", {"text": "x" * 5000}, "text"),
    ]
    async with speaking(server, ANNA) as anna:
        for tool, arguments, field in refused:
            result = await anna.call_tool(tool, arguments)
            assert (result.meta or {})["askable/error"] == {"code": "bad_request", "field": field}, tool


async def test_a_sensitive_fact_waits_for_the_person(server: Served) -> None:
    async with speaking(server, ANNA) as anna:
        told = await call(anna, "remember", text="I have diabetes")
    assert told["memory_id"] is None
    assert await texts(server) == []
    status, _ = await server.json("POST", "/memory/confirm", json={"token": told["confirm"]}, headers=ANNA)
    assert (status, await texts(server)) == (200, ["I have diabetes"])


@pytest.mark.parametrize(
    ("reply", "kept"), [({"sensitive": True}, []), (Fail(400), ["My thing is on Monday"])]
)
async def test_a_fact_that_only_a_model_takes_for_sensitive_waits_too(
    serve: Serve, model: ScriptedModel, reply: Any, kept: list[str]
) -> None:
    server = await serve(auth=AUTH, model=model)
    model.answer = SensibleModel(replies={"DetectMemoryRequestPrompt": reply})
    async with speaking(server, ANNA) as anna:
        told = await call(anna, "remember", text="My thing is on Monday")
    assert (told["memory_id"] is None) == bool(told["confirm"]) == (kept == [])
    assert await texts(server) == kept
    (request,) = [one for one in model.requests if one.schema_name == "DetectMemoryRequestPrompt"]
    assert "My thing is on Monday" in request.prompt


@pytest.mark.parametrize("name", sorted(MEMORY_TOOLS))
async def test_nobody_known_has_no_memory(server: Served, name: str) -> None:
    arguments: dict[str, dict[str, Any]] = {
        "remember": {"text": "I love coriander"},
        "recall": {},
        "forget": {"memory_id": "x"},
        "context": {"messages": [{"role": "user", "content": "x"}]},
    }
    async with speaking(server, {}) as nobody:
        result = await nobody.call_tool(name, arguments[name])
    assert result.is_error
    assert "nobody is known" in said(result)


async def test_where_memory_is_off_there_are_no_tools_of_it(serve: Serve) -> None:
    server = await serve(auth=AUTH, memory={"mode": "off"})
    async with speaking(server, ANNA) as anna:
        names = {tool.name for tool in (await anna.list_tools()).tools}
        assert (names & MEMORY_TOOLS, "ask" in names) == (set(), True)
        for name in MEMORY_TOOLS:
            with pytest.raises(MCPError, match="there is no tool"):
                await anna.call_tool(name, {})


HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


def called(name: str, **arguments: Any) -> dict[str, Any]:
    params = {"name": name, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


async def test_nobody_known_is_told_where_to_sign_in_by_the_tools_that_need_it(serve: Serve) -> None:
    people = {"issuer": "https://login.example/", "audience": ["askable"], "key": "a-long-secret-" * 4}
    server = await serve(auth={**AUTH, "jwt": people})
    await server.load("kitchen", KITCHEN)
    async with httpx2.AsyncClient(headers=HEADERS, timeout=30) as http:
        for name in MEMORY_TOOLS:
            for body in (called(name), [called("ask", query="x"), called(name)]):
                answer = await http.post(f"{server.url}/mcp", json=body)
                assert answer.status_code == 401, name
                challenge = answer.headers["WWW-Authenticate"]
                where = challenge.split('resource_metadata="')[1].split('"')[0]
                assert (await http.get(where)).json()["resource"] == f"{server.url}/mcp"
        for body in (called("search", query="curry"), {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}):
            assert (await http.post(f"{server.url}/mcp", json=body)).status_code == 200
        # A program that names no user has no use for a place where people sign in.
        key = {"Authorization": ANNA["Authorization"]}
        answer = await http.post(f"{server.url}/mcp", json=called("recall"), headers=key)
        assert answer.status_code == 200
    async with speaking(server, ANNA) as anna:
        assert (await call(anna, "recall"))["memories"] == []
