"""Kept conversations over HTTP: what a question sees of those before, and what their owner can do."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from typing import Any

import aiohttp
import pytest

from core.database import READERS
from core.messages import Complete, Failure
from core.query import Identity, Query
from server.auth import COOKIE
from server.keys import CONVERSATIONS, PIPELINE, WHITEBOARDS
from tests.conftest import KITCHEN, Serve, Served, read_frames
from tests.core.memory.support import Clock
from tests.fakes.openai_server import Hang, ModelRequest, ScriptedModel
from tests.fakes.sensible_model import SensibleModel, values_of

KEYS = {
    "api_keys": [{"key": "key-of-the-shop-000", "name": "shop", "roles": ["read", "act-as"]}],
    "anonymous": "ask",
}


async def begun(server: Served, **body: Any) -> str:
    """A kept conversation of a new visitor."""
    status, made = await server.json("POST", "/conversations", json=body)
    assert status == 201, made
    return str(made["id"])


async def turns(server: Served, conversation_id: str) -> list[dict[str, Any]]:
    status, found = await server.json("GET", f"/conversations/{conversation_id}")
    assert status == 200, found
    return list(found["turns"])


def prompts(model: ScriptedModel, ref: str) -> list[str]:
    return [r.prompt for r in model.requests if r.schema_name == ref]


class Remembering(SensibleModel):
    """Puts what a person agrees to on the whiteboard, as our maintenance prompt asks."""

    def __call__(self, request: ModelRequest) -> Any:
        if request.schema_name != "WhiteboardMaintenancePrompt":
            return super().__call__(request)
        (messages,) = values_of(request.prompt, "whiteboard.messages")
        (now,) = values_of(request.prompt, "whiteboard.current")
        entries = [] if now == "(none)" else json.loads(now)
        for said in json.loads(messages):
            if said["role"] == "user" and said["content"].startswith("agreed: "):
                text = said["content"].removeprefix("agreed: ")
                entries.append({"id": "", "kind": "decision", "text": text, "turn": said["turn"]})
        return {"entries": entries}


# ---------------------------------------------------------------- what a question sees of those before


async def test_starting_a_conversation_gives_a_private_cookie(serve: Serve) -> None:
    server = await serve()
    async with server.session.post(f"{server.url}/conversations", json={"id": "mine"}) as response:
        assert response.status == 201
        assert (await response.json())["id"] == "mine"
        cookie = response.cookies[COOKIE]
    assert cookie["httponly"]
    assert cookie["samesite"] == "Lax"
    async with server.session.post(f"{server.url}/conversations", json={"id": "mine"}) as response:
        assert response.status == 200
        assert COOKIE not in response.cookies


async def test_follow_up_is_rewritten_from_stored_turns_and_what_they_showed(
    serve: Serve, model: ScriptedModel
) -> None:
    server = await serve(model=model)
    await server.load("kitchen", KITCHEN)
    model.answer = SensibleModel(rewrites={"a vegan one": "vegan stew", "and the first?": "chickpea stew"})
    conversation = await begun(server)
    await server.ask("stew", conversation_id=conversation)
    assert prompts(model, "PrevQueryDecontextualizer") == []
    second = await server.ask("a vegan one", conversation_id=conversation)
    assert second.one("decontextualized_query")["decontextualized_query"] == "vegan stew"
    await server.ask("and the first?", conversation_id=conversation)
    _, asked = prompts(model, "PrevQueryDecontextualizer")
    (previous,) = values_of(asked, "request.previousQueries")
    assert json.loads(previous) == ["stew", {"asked": "a vegan one", "searched": "vegan stew"}]
    (shown,) = values_of(asked, "request.prevAnswers")
    assert json.loads(shown)[0] == {
        "title": second.final[0]["name"],
        "url": second.final[0]["url"],
        "question": "vegan stew",
    }
    kept = await turns(server, conversation)
    assert [(t["asked"], t["searched"]) for t in kept] == [
        ("stew", "stew"),
        ("a vegan one", "vegan stew"),
        ("and the first?", "chickpea stew"),
    ]
    assert [i["document_id"] for i in kept[1]["shown"]] == second.one("complete")["order"]


async def test_clients_own_history_wins_also_an_empty_one(serve: Serve, model: ScriptedModel) -> None:
    server = await serve(model=model)
    await server.load("kitchen", KITCHEN)
    model.answer = SensibleModel()
    conversation = await begun(server)
    await server.ask("stew", conversation_id=conversation)
    await server.ask("with rice", conversation_id=conversation, prev=["curry"])
    (asked,) = prompts(model, "PrevQueryDecontextualizer")
    assert values_of(asked, "request.previousQueries") == ['["curry"]']
    model.requests.clear()
    await server.ask("tart", conversation_id=conversation, prev=[])
    assert prompts(model, "PrevQueryDecontextualizer") == []
    assert len(await turns(server, conversation)) == 3


async def test_without_a_model_a_stored_question_is_searched_along(serve: Serve) -> None:
    server = await serve()
    await server.load("kitchen", KITCHEN)
    conversation = await begun(server)
    await server.ask("lemon tart", conversation_id=conversation)
    second = await server.ask("and with beans?", conversation_id=conversation)
    assert {"Lemon tart", "Minestrone"} <= {item["name"] for item in second.final}


async def test_visitor_without_a_cookie_leaves_nothing(serve: Serve, model: ScriptedModel) -> None:
    server = await serve(model=model)
    await server.load("kitchen", KITCHEN)
    model.answer = SensibleModel()
    await server.ask("stew", conversation_id="c")
    await server.ask("a vegan one", conversation_id="c")
    assert prompts(model, "PrevQueryDecontextualizer") == []
    assert await server.app[CONVERSATIONS].purge() == 0
    status, _ = await server.json("GET", "/conversations/c")
    assert status == 401


async def test_cross_site_question_and_one_that_asks_for_it_store_nothing(serve: Serve) -> None:
    server = await serve()
    await server.load("kitchen", KITCHEN)
    conversation = await begun(server)
    await server.ask("stew", conversation_id=conversation, headers={"Sec-Fetch-Site": "cross-site"})
    await server.ask("stew", conversation_id=conversation, remember=False)
    assert await turns(server, conversation) == []


@pytest.mark.both_databases
async def test_questions_at_once_lose_no_turn(serve: Serve) -> None:
    server = await serve()
    await server.load("kitchen", KITCHEN)
    conversation = await begun(server)
    asked = [f"stew number {n}" for n in range(12)]
    await asyncio.gather(*(server.ask(one, conversation_id=conversation) for one in asked))
    kept = await turns(server, conversation)
    assert sorted(t["asked"] for t in kept) == sorted(asked)
    assert [t["n"] for t in kept] == list(range(1, 13))


async def test_stopped_answer_is_kept_as_far_as_it_came(serve: Serve, model: ScriptedModel) -> None:
    server = await serve(model=model)
    await server.load("kitchen", KITCHEN)
    model.answer = lambda r: Hang() if r.schema_name == "RankingPrompt" else {"is_memory_request": False}
    conversation = await begun(server)
    body = {"query": "stew", "conversation_id": conversation, "provisional": True}
    async with server.session.post(f"{server.url}/ask", json=body) as response:
        frames = await read_frames(response, most=3)
        assert frames.of("result_batch")
    await model.until(lambda: model.cancelled > 0, "the model call is cancelled")
    await server.app[CONVERSATIONS].stored()
    (kept,) = await turns(server, conversation)
    assert kept["asked"] == "stew"
    assert kept["shown"]


async def test_next_question_finds_the_turn_as_soon_as_the_answer_is_complete(serve: Serve) -> None:
    server = await serve()
    await server.load("kitchen", KITCHEN)
    conversation = await begun(server)
    for number in range(1, 6):
        await server.ask("stew", conversation_id=conversation)
        assert len(await turns(server, conversation)) == number


async def test_store_that_fails_stops_no_answer(serve: Serve) -> None:
    server = await serve()
    await server.load("kitchen", KITCHEN)
    conversation = await begun(server)
    await server.app[CONVERSATIONS]._database.write(lambda c: c.exec_driver_sql("DROP TABLE turns"))
    frames = await server.ask("stew", conversation_id=conversation)
    assert frames.final
    # Whether it was a follow-up is not known any more.
    assert frames.one("error")["code"] == "store_failed"
    complete = frames.one("complete")
    assert complete["degraded"]
    assert "history_skipped" in complete["timings"]
    first = await server.ask("stew", conversation_id=conversation, prev=[])
    assert not first.one("complete")["degraded"]


async def test_follow_up_sees_the_turn_that_a_slow_database_is_still_storing(
    serve: Serve, model: ScriptedModel
) -> None:
    server = await serve(model=model)
    await server.load("kitchen", KITCHEN)
    model.answer = SensibleModel(rewrites={"a vegan one": "a vegan stew"})
    conversation, other = await begun(server), await begun(server)
    kept = server.app[CONVERSATIONS]
    async with kept._database._writing:  # somebody writes, and writes
        await server.ask("stew", conversation_id=conversation)
        second = await server.ask("a vegan one", conversation_id=conversation)
        elsewhere = await server.ask("a vegan one", conversation_id=other)
    assert second.one("decontextualized_query")["decontextualized_query"] == "a vegan stew"
    (asked,) = prompts(model, "PrevQueryDecontextualizer")
    assert values_of(asked, "request.previousQueries") == ['["stew"]']
    assert values_of(asked, "request.prevAnswers") != ["(none)"]
    assert not second.one("complete")["degraded"]
    assert elsewhere.of("decontextualized_query") == []
    await kept.stored()
    assert [turn["asked"] for turn in await turns(server, conversation)] == ["stew", "a vegan one"]


class Release(logging.Handler):
    """Lets go of what is held once so many steps were gone on without."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self.left = after
        self.held = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.left -= record.getMessage() == "step.skipped"
        if self.left == 0:
            self.held.set()


async def test_what_a_database_that_hangs_is_not_waited_for_is_named(serve: Serve) -> None:
    server = await serve()
    await server.load("kitchen", KITCHEN)
    asked = Query(
        "with chickpeas",
        "q",
        "c",
        sites=("kitchen",),
        identity=Identity("cookie", "anna"),
        context_url="https://kitchen.example/tofu-curry",
    )
    release = Release(after=3)
    steps = logging.getLogger("core.steps.running")
    steps.addHandler(release)
    try:
        for _ in range(READERS):
            server.app[CONVERSATIONS]._database._threads.submit(release.held.wait, 30)
        answer = [message async for message in server.app[PIPELINE].run(asked)]
    finally:
        release.held.set()
        steps.removeHandler(release)
    complete = answer[-1]
    assert isinstance(complete, Complete)
    assert {"history_skipped", "context_skipped", "recall_skipped"} <= set(complete.timings)
    assert [message.code for message in answer if isinstance(message, Failure)] == ["store_failed"]
    assert complete.degraded
    assert complete.order


async def test_that_nothing_is_found_is_not_blamed_on_a_history_that_is_not_read(serve: Serve) -> None:
    server = await serve()
    await server.load("kitchen", KITCHEN)
    conversation = await begun(server)
    await server.app[CONVERSATIONS]._database.write(lambda c: c.exec_driver_sql("DROP TABLE turns"))
    frames = await server.ask("xyzzy", conversation_id=conversation)
    assert frames.one("error")["code"] == "store_failed"
    assert frames.one("no_results")["reason"] == "below_min_score"


# ---------------------------------------------------------------- the whiteboard carries it on


async def test_options_agreed_on_outlive_the_history_they_were_said_in(
    serve: Serve, model: ScriptedModel
) -> None:
    server = await serve(model=model, conversation={"message_limit": 3})
    await server.load("kitchen", KITCHEN)
    model.answer = Remembering(rewrites={"another one": "machine with 4 cores, 16 GB, region south"})
    conversation = await begun(server)
    await server.ask("agreed: a machine with 4 cores, 16 GB, region north", conversation_id=conversation)
    for filler in ("curry", "tart", "soup", "stew"):
        await server.ask(filler, conversation_id=conversation)
    await server.app[WHITEBOARDS].settled()
    assert "cores" not in json.dumps(await turns(server, conversation))
    model.requests.clear()
    told = await server.ask(
        "another one, same options except the region: south", conversation_id=conversation
    )
    (asked,) = prompts(model, "PrevQueryDecontextualizer")
    (board,) = values_of(asked, "request.whiteboard")
    assert json.loads(board) == ["decision: a machine with 4 cores, 16 GB, region north"]
    assert "4 cores" in told.one("decontextualized_query")["decontextualized_query"]


async def test_what_an_agent_said_before_counts_for_the_first_question(
    serve: Serve, model: ScriptedModel
) -> None:
    server = await serve(model=model, auth=KEYS)
    await server.load("kitchen", KITCHEN)
    model.answer = Remembering(rewrites={"one more": "vegan dinner"})
    said = [{"id": "m1", "role": "user", "content": "agreed: everything vegan"}]
    boards = server.app[WHITEBOARDS]
    await boards.see(Identity("key:shop", "anna"), "c", said)
    await boards.settled()
    key = {"Authorization": "Bearer key-of-the-shop-000", "X-User-Id": "anna"}
    told = await server.ask("one more", conversation_id="c", headers=key)
    assert told.one("decontextualized_query")["decontextualized_query"] == "vegan dinner"
    (asked,) = prompts(model, "PrevQueryDecontextualizer")
    assert values_of(asked, "request.whiteboard") == ['["decision: everything vegan"]']
    other = await server.ask("one more", conversation_id="c", headers={**key, "X-User-Id": "ben"})
    assert other.of("decontextualized_query") == []


async def test_fifty_questions_at_once_cost_few_maintenance_calls(serve: Serve, model: ScriptedModel) -> None:
    server = await serve(model=model, conversation={"message_limit": 3}, whiteboard={"max_messages": 30})
    await server.load("kitchen", KITCHEN)
    model.answer = Remembering()
    conversation = await begun(server)
    await asyncio.gather(
        *(server.ask(f"agreed: option {n}", conversation_id=conversation) for n in range(50))
    )
    await server.app[WHITEBOARDS].settled()
    maintained = prompts(model, "WhiteboardMaintenancePrompt")
    assert len(maintained) <= 10
    told = "".join("".join(values_of(prompt, "whiteboard.messages")) for prompt in maintained)
    assert [f'"agreed: option {n}"' in told for n in range(50)] == [True] * 50
    status, board = await server.json("GET", f"/conversations/{conversation}/whiteboard")
    assert status == 200
    assert len(board["entries"]) == board["max"] == 30
    assert board["pending"] is False


async def test_model_that_fails_at_maintenance_leaves_answer_and_board(
    serve: Serve, model: ScriptedModel
) -> None:
    server = await serve(model=model)
    await server.load("kitchen", KITCHEN)
    model.answer = Remembering()
    conversation = await begun(server)
    await server.ask("agreed: north", conversation_id=conversation)
    await server.app[WHITEBOARDS].settled()
    sensible = Remembering()
    model.answer = lambda r: 500 if r.schema_name == "WhiteboardMaintenancePrompt" else sensible(r)
    frames = await server.ask("stew", conversation_id=conversation)
    await server.app[WHITEBOARDS].settled()
    assert frames.final
    assert frames.of("error") == []
    _, board = await server.json("GET", f"/conversations/{conversation}/whiteboard")
    assert [e["text"] for e in board["entries"]] == ["north"]
    assert board["pending"] is True


@pytest.mark.both_databases
async def test_whiteboard_survives_a_restart(serve: Serve, model: ScriptedModel) -> None:
    server = await serve(model=model)
    await server.load("kitchen", KITCHEN)
    model.answer = Remembering()
    conversation = await begun(server)
    await server.ask("agreed: north", conversation_id=conversation)
    await server.runner.cleanup()
    again = await serve(model=model)
    await again.app[WHITEBOARDS].settled()
    again.session.cookie_jar.update_cookies(
        {cookie.key: cookie.value for cookie in server.session.cookie_jar}, aiohttp.client.URL(again.url)
    )
    _, board = await again.json("GET", f"/conversations/{conversation}/whiteboard")
    assert [e["text"] for e in board["entries"]] == ["north"]
    assert len(await turns(again, conversation)) == 1


# ---------------------------------------------------------------- their owner's


@pytest.mark.both_databases
async def test_list_rename_delete(serve: Serve) -> None:
    server = await serve()
    await server.load("kitchen", KITCHEN)
    first, second = await begun(server, title="Sunday"), await begun(server)
    await server.ask("a stew for six", conversation_id=second)
    _, listing = await server.json("GET", "/conversations")
    assert [(c["id"], c["title"], c["turns"]) for c in listing["conversations"]] == [
        (second, "a stew for six", 1),
        (first, "Sunday", 0),
    ]
    _, page = await server.json("GET", "/conversations?limit=1")
    _, rest = await server.json("GET", "/conversations", params={"limit": 1, "cursor": page["cursor"]})
    assert [c["id"] for c in page["conversations"] + rest["conversations"]] == [second, first]
    status, renamed = await server.json("PATCH", f"/conversations/{first}", json={"title": "Monday"})
    assert (status, renamed["title"]) == (200, "Monday")
    status, gone = await server.json("DELETE", f"/conversations/{second}")
    assert status == 200
    assert gone["deleted"] == {"conversations": 1, "turns": 1, "messages": 0, "whiteboard_entries": 0}
    assert (await server.json("GET", f"/conversations/{second}"))[0] == 404
    assert (await server.json("DELETE", f"/conversations/{second}"))[0] == 404


async def test_time_is_the_servers_own_clocks(serve: Serve) -> None:
    clock = Clock()
    server = await serve(clock=clock, conversation={"message_expiration": "1h"})
    conversation = await begun(server)
    _, whole = await server.json("GET", f"/conversations/{conversation}")
    assert abs(whole["created_at"] - clock.now) < 1
    clock.now += 3601
    assert (await server.json("GET", f"/conversations/{conversation}"))[0] == 404


async def test_another_visitor_sees_and_changes_nothing(serve: Serve) -> None:
    server = await serve()
    await server.load("kitchen", KITCHEN)
    conversation = await begun(server, title="mine")
    await server.ask("stew", conversation_id=conversation)
    async with await server.browser() as other:
        async with other.post(f"{server.url}/conversations", json={"id": conversation}) as response:
            assert response.status == 201
            assert (await response.json())["turns"] == 0
        async with other.delete(f"{server.url}/conversations/{conversation}") as response:
            assert response.status == 200
        for method, path in (
            ("GET", ""),
            ("PATCH", ""),
            ("DELETE", ""),
            ("GET", "/export"),
            ("GET", "/whiteboard"),
        ):
            url = f"{server.url}/conversations/{conversation}{path}"
            async with other.request(method, url, json={"title": "yours"}) as response:
                assert response.status == 404
    _, listing = await server.json("GET", "/conversations")
    assert [(c["title"], c["turns"]) for c in listing["conversations"]] == [("mine", 1)]


@pytest.mark.both_databases
async def test_users_of_a_key_keep_their_own(serve: Serve) -> None:
    server = await serve(auth=KEYS)
    await server.load("kitchen", KITCHEN)
    key = {"Authorization": "Bearer key-of-the-shop-000"}
    for user in ("anna", "ben"):
        await server.ask(f"stew for {user}", conversation_id="c", headers={**key, "X-User-Id": user})
    for user in ("anna", "ben"):
        status, found = await server.json("GET", "/conversations/c", headers={**key, "X-User-Id": user})
        assert status == 200
        assert [t["asked"] for t in found["turns"]] == [f"stew for {user}"]
    assert (await server.json("GET", "/conversations/c", headers=key))[0] == 403
    assert (await server.json("POST", "/conversations", json={}, headers=key))[0] == 403


async def test_another_site_changes_nothing(serve: Serve) -> None:
    server = await serve()
    conversation = await begun(server, title="mine")
    foreign = {"Sec-Fetch-Site": "cross-site"}
    for method, path in (
        ("PATCH", f"/conversations/{conversation}"),
        ("DELETE", f"/conversations/{conversation}"),
        ("POST", "/conversations"),
    ):
        status, _ = await server.json(method, path, json={"title": "theirs"}, headers=foreign)
        assert status == 403
    assert (await server.json("GET", f"/conversations/{conversation}"))[1]["title"] == "mine"


async def test_export_is_json_or_markdown_in_which_text_is_never_markup(serve: Serve) -> None:
    server = await serve()
    hostile = {**KITCHEN[1], "name": "Stew](https://evil.example) *x*"}
    await server.load("kitchen", [hostile])
    conversation = await begun(server)
    await server.ask("# stew <img src=x>\n[a](javascript:1)", conversation_id=conversation)
    path = f"/conversations/{conversation}/export"
    status, whole = await server.json("GET", path)
    assert status == 200
    assert whole["turns"][0]["shown"][0]["title"] == hostile["name"]
    assert whole["whiteboard"] == []
    for asked in ({"params": {"format": "markdown"}}, {"headers": {"Accept": "text/markdown"}}):
        async with server.session.get(server.url + path, **asked) as response:
            assert response.content_type == "text/markdown"
            assert "attachment" in response.headers["Content-Disposition"]
            text = await response.text()
        assert r"## \# stew \<img src=x\> \[a\]\(javascript:1\)" in text
        assert r"1. [Stew\]\(https://evil\.example\) \*x\*](<https://kitchen.example/beef-stew>)" in text
    assert (await server.json("GET", path, params={"format": "pdf"}))[0] == 400


@pytest.mark.both_databases
async def test_bad_input_is_named(serve: Serve) -> None:
    server = await serve()
    conversation = await begun(server)
    for method, path, body, field in (
        ("POST", "/conversations", {"id": "no spaces"}, "id"),
        ("POST", "/conversations", {"title": 7}, "title"),
        ("PATCH", f"/conversations/{conversation}", {"title": " "}, "title"),
        ("PATCH", f"/conversations/{conversation}", {}, "title"),
        ("PATCH", f"/conversations/{conversation}", {"title": "x", "tilte": "y"}, "tilte"),
        ("POST", "/conversations", {"name": "x"}, "name"),
        ("GET", "/conversations?limit=0", None, "limit"),
        ("GET", "/conversations?cursor=x", None, "cursor"),
        ("GET", "/conversations?cursor=1:99999999999999999999", None, "cursor"),
    ):
        status, told = await server.json(method, path, json=body)
        assert (status, told["error"]["field"]) == (400, field)


class Noting(SensibleModel):
    """Puts everything a person says on the whiteboard."""

    def __call__(self, request: ModelRequest) -> Any:
        if request.schema_name != "WhiteboardMaintenancePrompt":
            return super().__call__(request)
        (messages,) = values_of(request.prompt, "whiteboard.messages")
        said = [one for one in json.loads(messages) if one["role"] == "user"]
        noted = [{"id": "", "kind": "requirement", "text": m["content"], "turn": m["turn"]} for m in said]
        return {"entries": noted}


async def test_undo_takes_a_fact_off_the_whiteboard_and_out_of_the_title(
    serve: Serve, model: ScriptedModel
) -> None:
    server = await serve(model=model)
    await server.load("kitchen", KITCHEN)
    model.answer = Noting()
    conversation = await begun(server)
    frames = await server.ask("Remember that I love zqlovage in soup", conversation_id=conversation)
    memory_id = frames.one("remember")["memory_id"]
    await server.app[WHITEBOARDS].settled()
    _, before = await server.json("GET", f"/conversations/{conversation}/whiteboard")
    assert "zqlovage" in str(before)
    assert (await server.json("DELETE", f"/memory/{memory_id}?undo=true"))[0] == 200
    _, after = await server.json("GET", f"/conversations/{conversation}/whiteboard")
    _, whole = await server.json("GET", f"/conversations/{conversation}")
    assert "zqlovage" not in str(after) + str(whole)
    model.requests.clear()
    await server.ask("another tart", conversation_id=conversation)
    await server.app[WHITEBOARDS].settled()
    assert not [r.schema_name for r in model.requests if "zqlovage" in r.prompt]
