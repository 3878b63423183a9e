"""`ask` for agents: its modes, asking the person back, warnings on the way, tags."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import jsonschema_rs
import mcp_types as types
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.conftest import ADMIN, KITCHEN, Serve, Served, recipe
from tests.fakes.openai_server import Cut, Fail, Hang, ModelRequest, ScriptedModel
from tests.fakes.sensible_model import SensibleModel
from tests.server.test_ask import answering
from tests.server.test_mcp import ACCEPT, ERAS, NEWEST, begun, called, connected, data, said
from tests.server.test_steps import HOME_LIST, HOMES, asked, prompts, values_of

__all__ = ["prompts"]
QUESTION = {"query": "a flat with two rooms", "site": "homes"}
Answer = Callable[[types.ElicitRequestParams], types.ElicitResult]


@asynccontextmanager
async def with_person(server: Served, era: str, answer: Answer | None, **more: Any) -> AsyncIterator[Client]:
    """A client whose person can be asked; `answer` None: one who cannot."""

    async def asked_back(_ctx: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        assert answer is not None
        return answer(params)

    async with httpx2.AsyncClient(timeout=30) as http:
        transport = streamable_http_client(f"{server.url}/mcp", http_client=http)
        callback = asked_back if answer is not None else None
        async with Client(transport, mode=era, elicitation_callback=callback, **more) as client:  # type: ignore[arg-type]
            yield client


async def homes(serve: Serve, model: ScriptedModel, folder: Path, *needed: str) -> Served:
    """A site that has to know certain words before it searches."""
    server = await serve(model=model, prompts_dir=folder)
    await server.load("homes", HOME_LIST)

    def required(request: ModelRequest) -> dict[str, Any]:
        told = " ".join(values_of(request.prompt, "request.query", "request.previousQueries"))
        lacking = [word for word in needed if word not in told]
        return {
            "required_info_found": not lacking,
            "user_question": f"Is it {lacking[0]}?" if lacking else "",
        }

    model.answer = SensibleModel(
        rewrites={"Nervi": "a flat with two rooms in Nervi", "850": "a flat in Nervi for 850"},
        replies={"RequiredInfoPrompt": required},
    )
    return server


def saying(*words: str) -> tuple[Answer, list[types.ElicitRequestParams]]:
    left, heard = list(words), []

    def answer(params: types.ElicitRequestParams) -> types.ElicitResult:
        heard.append(params)
        return types.ElicitResult(action="accept", content={"required_info": left.pop(0)})

    return answer, heard


@ERAS
async def test_the_persons_answer_completes_the_question_in_the_same_call(
    serve: Serve, model: ScriptedModel, prompts: Callable[[str], Path], era: str
) -> None:
    server = await homes(serve, model, prompts(HOMES), "Nervi")
    answer, heard = saying("Nervi")
    async with with_person(server, era, answer) as client:
        found = data(await client.call_tool("ask", QUESTION))
    (params,) = heard
    assert isinstance(params, types.ElicitRequestFormParams)
    assert params.message == "Is it Nervi?"
    jsonschema_rs.validate(dict(params.requested_schema), {"required_info": "Nervi"})
    assert found["searched"] == "a flat with two rooms in Nervi"
    assert found["results"][0]["title"] == "Two rooms in Nervi"
    assert found["ask_user"] is None


@ERAS
async def test_a_second_question_back_remembers_the_first_answer(
    serve: Serve, model: ScriptedModel, prompts: Callable[[str], Path], era: str
) -> None:
    server = await homes(serve, model, prompts(HOMES), "Nervi", "850")
    answer, heard = saying("Nervi", "850")
    async with with_person(server, era, answer) as client:
        found = data(await client.call_tool("ask", QUESTION))
    assert [one.message for one in heard] == ["Is it Nervi?", "Is it 850?"]
    assert found["searched"] == "a flat in Nervi for 850"
    last = asked(model, "RequiredInfoPrompt")[-1].prompt
    assert "Nervi" in last
    assert "a flat with two rooms" in last


NO_ANSWERS: list[types.ElicitResult | None] = [
    types.ElicitResult(action="decline"),
    types.ElicitResult(action="cancel"),
    types.ElicitResult(action="accept", content={"required_info": "  "}),
    None,  # a client that cannot ask
]


@ERAS
async def test_where_nobody_answers_the_result_says_what_is_asked(
    serve: Serve, model: ScriptedModel, prompts: Callable[[str], Path], era: str
) -> None:
    server = await homes(serve, model, prompts(HOMES), "Nervi")

    def saying_that(told: types.ElicitResult) -> Answer:
        return lambda _: told

    for told in NO_ANSWERS:
        async with with_person(server, era, saying_that(told) if told else None) as client:
            result = await client.call_tool("ask", QUESTION)
            found = data(result)
            assert found["ask_user"]["text"] == "Is it Nervi?"
            assert [one["id"] for one in found["ask_user"]["questions"]] == ["required_info"]
            assert "Is it Nervi?" in said(result)
            assert found["results"] == []
            follow_up = {**QUESTION, "query": "Nervi", "prev": [QUESTION["query"]]}
            assert data(await client.call_tool("ask", follow_up))["results"]


async def test_a_client_that_leaves_while_the_person_thinks_ends_the_call(
    serve: Serve, model: ScriptedModel, prompts: Callable[[str], Path]
) -> None:
    server = await homes(serve, model, prompts(HOMES), "Nervi")
    thinking, gone = asyncio.Event(), asyncio.Event()

    async def think(_ctx: Any, _params: types.ElicitRequestParams) -> types.ElicitResult:
        thinking.set()
        try:
            await asyncio.Event().wait()
        finally:
            gone.set()
        raise AssertionError

    async with httpx2.AsyncClient(timeout=30) as http:
        transport = streamable_http_client(f"{server.url}/mcp", http_client=http)
        async with Client(transport, mode="legacy", elicitation_callback=think) as client:
            asking = asyncio.create_task(client.call_tool("ask", QUESTION))
            await thinking.wait()
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            await gone.wait()
            # The server is free for the next call of the same session.
            assert (await client.call_tool("list_sites", {})).is_error is False


FORGED = ["nonsense", "{}", "[1]", '[""]', '["a", "b", "c", "d"]']


@pytest.mark.parametrize("state", FORGED)
async def test_a_state_that_this_server_never_gave_is_refused(serve: Serve, state: str) -> None:
    server = await serve()
    params = {
        "name": "ask",
        "arguments": {"query": "stew"},
        "requestState": state,
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": NEWEST,
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    }
    headers = {**ACCEPT, "MCP-Protocol-Version": NEWEST, "Mcp-Method": "tools/call", "Mcp-Name": "ask"}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    status, told = await server.json("POST", "/mcp", json=body, headers=headers)
    assert (status, told["error"]["code"]) == (400, types.INVALID_PARAMS)


@ERAS
async def test_a_written_answer_comes_with_its_sources_by_id(
    serve: Serve, model: ScriptedModel, era: str
) -> None:
    server = await serve(model=model)
    await server.load("kitchen", KITCHEN)
    model.answer = SensibleModel()
    async with connected(server, era) as client:
        result = await client.call_tool("ask", {"query": "vegan stew with chickpeas", "mode": "generate"})
        found = data(result)
        (schema,) = [t.output_schema for t in (await client.list_tools()).tools if t.name == "ask"]
        assert schema is not None
        jsonschema_rs.validate(schema, found)
        source = found["answer"]["sources"][0]
        assert f"[{source['n']}]" in found["answer"]["text"]
        assert found["answer"]["text"] in said(result)
        assert data(await client.call_tool("fetch", {"id": source["id"]}))["title"] == source["title"]


async def test_a_summary_stands_beside_the_results(serve: Serve, model: ScriptedModel) -> None:
    server = await serve(model=model)
    await server.load("kitchen", KITCHEN)
    model.answer = SensibleModel(replies={"SummarizeResultsPrompt": {"summary": "Two stews without meat."}})
    async with connected(server) as client:
        found = data(await client.call_tool("ask", {"query": "a vegan stew", "mode": "summarize"}))
    assert found["summary"] == "Two stews without meat."
    assert found["results"]
    assert found["answer"] is None


@ERAS
async def test_a_failure_names_its_code(serve: Serve, model: ScriptedModel, era: str) -> None:
    server = await serve(model=model, llm={"max_retries": 0})
    await server.load("kitchen", KITCHEN)
    model.answer = lambda _: Fail(500)
    async with connected(server, era) as client:
        failed = await client.call_tool("ask", {"query": "beef stew"})
        unknown = await client.call_tool("ask", {"query": "stew", "site": "nowhere"})
        wrong = [
            await client.call_tool("ask", given)
            for given in ({"query": "stew", "max_results": 500}, {}, {"query": "stew", "modee": "list"})
        ]
    assert failed.is_error
    assert (failed.meta or {})["askable/error"]["code"] == "model_failed"
    assert failed.structured_content["errors"][0]["code"] == "model_failed"
    assert (unknown.meta or {})["askable/error"] == {"code": "site_unknown", "field": "site"}
    assert said(unknown).endswith("(site_unknown)")
    places = [(one.meta or {})["askable/error"] for one in wrong]
    assert places == [{"code": "bad_request", "field": name} for name in ("max_results", "query", "modee")]


FAILING: dict[str, Any] = {
    "model_failed": Fail(500),
    "model_busy": Fail(429),
    "model_timeout": Hang(),
    "cut": Cut(0),
    "cut in the middle": Cut(9),
    "garbage": "no such thing as JSON",
    "empty": {},
}


@pytest.mark.parametrize("failing", FAILING)
@pytest.mark.parametrize("mode", ["list", "summarize", "generate"])
async def test_a_model_that_fails_altogether_is_a_call_that_failed(
    serve: Serve, model: ScriptedModel, mode: str, failing: str
) -> None:
    server = await serve(model=model, llm={"max_retries": 0, "timeout_s": 0.4})
    await server.load("kitchen", KITCHEN)
    model.answer = lambda _: FAILING[failing]
    async with connected(server) as client:
        result = await client.call_tool("ask", {"query": "beef stew", "mode": mode})
    found = result.structured_content
    assert result.is_error
    assert (result.meta or {})["askable/error"]["code"] == found["errors"][0]["code"]
    assert found["degraded"]
    # What the search found may be used all the same, and says that no model wrote it.
    if mode == "generate":
        assert found["answer"]["extractive"]
        assert found["answer"]["sources"]
    else:
        assert found["results"]


@pytest.mark.parametrize("ref", ["RankingPrompt", "RankingPromptForGenerate"])
async def test_what_the_model_wrote_counts_though_its_ranking_failed(
    serve: Serve, model: ScriptedModel, ref: str
) -> None:
    mode = "summarize" if ref == "RankingPrompt" else "generate"
    server = await serve(model=model, llm={"max_retries": 0})
    await server.load("kitchen", KITCHEN)
    model.answer = answering(
        **{ref: Fail(500)},
        SummarizeResultsPrompt={"summary": "Stews."},
        SynthesizePromptForGenerate={"found": "all", "answer": "A stew [1].", "urls": []},
    )
    async with connected(server) as client:
        found = data(await client.call_tool("ask", {"query": "beef stew", "mode": mode}))
    assert found["errors"]
    if mode == "generate":
        assert (found["answer"]["text"], found["answer"]["extractive"]) == ("A stew [1].", False)
    else:
        assert found["summary"] == "Stews."


async def test_without_a_model_an_answer_is_no_failure(serve: Serve) -> None:
    server = await serve()
    await server.load("kitchen", KITCHEN)
    async with connected(server) as client:
        for mode in ("list", "summarize", "generate"):
            found = data(await client.call_tool("ask", {"query": "beef stew", "mode": mode}))
            assert found["errors"] == []
    assert found["answer"]["extractive"]


@ERAS
async def test_what_goes_wrong_on_the_way_is_told_to_a_log_that_wants_it(
    serve: Serve, model: ScriptedModel, era: str
) -> None:
    server = await serve(model=model, llm={"max_retries": 0})
    await server.load("kitchen", KITCHEN)
    model.answer = answering(RankingPrompt=Fail(500))
    heard: list[types.LoggingMessageNotificationParams] = []

    async def note(params: types.LoggingMessageNotificationParams) -> None:
        heard.append(params)

    async with with_person(server, era, None, logging_callback=note) as client:
        level = {"io.modelcontextprotocol/logLevel": "info"}
        wanted: Any = {"meta": level} if era != "legacy" else {}
        await client.call_tool("ask", {"query": "beef stew"}, **wanted)
        assert [(one.level, one.logger) for one in heard] == [("warning", "askable")]
        assert "model_failed" in str(heard[0].data)
        if era == "legacy":
            request = types.SetLevelRequest(params=types.SetLevelRequestParams(level="error"))
            await client.session.send_request(request, types.EmptyResult)
        await client.call_tool("ask", {"query": "beef stew"})
        assert len(heard) == 1


async def test_a_call_in_a_session_stops_when_its_connection_is_cut(
    serve: Serve, model: ScriptedModel
) -> None:
    server = await serve(model=model, llm={"timeout_s": 300}, ranking={"batch_size": 1})
    await server.load("kitchen", KITCHEN)
    model.answer = lambda _: Hang()
    session = {"Mcp-Session-Id": await begun(server)}
    leaving = asyncio.create_task(called(server, "2025-06-18", "c-1", session))
    await model.seen(3)
    leaving.cancel()
    await model.left(len(model.requests))
    await model.idle()
    assert model.cancelled == len(model.requests)


async def test_only_documents_with_the_tags_are_found(serve: Serve) -> None:
    server = await serve()
    await server.load("kitchen", KITCHEN)
    twin = recipe("twin", "Vegan stew twin", "A vegan stew of chickpeas, tomatoes and spinach.")
    body = {"site": "kitchen", "items": [twin], "tags": {"course": "main"}}
    status, _ = await server.json(
        "POST", "/documents", json=body, headers={"Authorization": f"Bearer {ADMIN}"}
    )
    assert status == 200
    async with connected(server) as client:
        both = data(await client.call_tool("ask", {"query": "vegan stew"}))
        arguments = {"query": "vegan stew", "tags": [{"course": ["main", "side"]}]}
        tagged = data(await client.call_tool("ask", arguments))
        searched = data(await client.call_tool("search", arguments))
    assert len(both["results"]) > 1
    assert [one["title"] for one in tagged["results"]] == ["Vegan stew twin"]
    assert [one["title"] for one in searched["results"]] == ["Vegan stew twin"]


async def test_tags_that_mean_nothing_are_refused(serve: Serve) -> None:
    server = await serve()
    await server.load("kitchen", KITCHEN)
    async with connected(server) as client:
        for tags in ([{}], [{"diet": []}], [{"__x": "y"}], "diet:vegan"):
            for tool in ("ask", "search"):
                result = await client.call_tool(tool, {"query": "stew", "tags": tags})
                assert result.is_error
                assert "tags" in said(result)
