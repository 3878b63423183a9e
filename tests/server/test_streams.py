"""The stream itself: cut anywhere and taken up again, kept alive, never held back, in every dialect."""

from __future__ import annotations

import asyncio
import io
import json
from typing import Any

import aiohttp
import pytest

from server.keys import RUNS
from server.params import MAX_QUESTION_BYTES
from server.runs import HEARTBEAT_S, NOBODY
from server.sse import event
from server.wire import DIALECTS
from tests.conftest import ADMIN, KITCHEN, Serve, Served
from tests.events import Event, EventReader, check_event
from tests.fakes.openai_server import Hang, ModelRequest, ScriptedModel
from tests.fakes.sensible_model import SensibleModel

# The headers that the docs say a client may send, and that a browser asks leave for.
READ = {"authorization", "x-api-key", "x-user-id", "content-type", "last-event-id"}
REMEMBER = "Please remember that I am vegetarian"


def spoken(dialect: str) -> dict[str, str]:
    """The parameters that choose a dialect."""
    protocol, _, version = dialect.partition("structured-")
    return {"protocol": "structured", "version": version} if version else {"protocol": protocol}


async def kitchen(serve: Serve, **settings: Any) -> Served:
    server = await serve(**settings)
    await server.load("kitchen", KITCHEN)
    return server


async def events(
    server: Served, params: dict[str, str], *, last_id: str = "", most: int | None = None
) -> list[Event]:
    """The events of a GET, read as an EventSource reads; the connection is cut after `most`."""
    headers = {"Accept": "text/event-stream", **({"Last-Event-ID": last_id} if last_id else {})}
    reader, got = EventReader(), []
    response = await server.session.get(f"{server.url}/ask", params=params, headers=headers)
    try:
        if response.status == 204:
            return []
        assert response.status == 200, await response.text()
        async for piece in response.content.iter_any():
            for one in reader.feed(piece):
                got.append(one)
                if most is not None and len(got) >= most:
                    return got
        return got
    finally:
        response.close()


# ---------------------------------------------------------------- taken up again


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_cut_at_every_event_the_same_answer_comes_and_the_model_is_asked_once(
    serve: Serve, model: ScriptedModel, dialect: str
) -> None:
    server = await kitchen(serve, model=model)
    model.answer = SensibleModel(rewrites={"a vegan one": "vegan stew"})
    params = {"query": "a vegan one", "prev": '["beef stew"]', "provisional": "true", **spoken(dialect)}
    whole = await events(server, params)
    calls = len(model.requests)
    assert len(whole) >= 5
    assert len({one.last_id for one in whole}) == len(whole)
    for one in whole:
        check_event(dialect, one)
    for cut in range(len(whole)):
        rest = await events(server, params, last_id=whole[cut].last_id)
        assert rest == whole[cut + 1 :]
    assert len(model.requests) == calls


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_connection_cut_after_every_event_of_a_running_answer_loses_nothing(
    serve: Serve, model: ScriptedModel, dialect: str
) -> None:
    server = await kitchen(serve, model=model)
    model.answer = SensibleModel()
    model.piece_delay = 0.005
    server.app[RUNS].grace_s = 60.0  # a slow machine is not to decide what this shows
    params = {"query": "stew of vegetables", **spoken(dialect)}
    got: list[Event] = []
    while True:
        piece = await events(server, params, last_id=got[-1].last_id if got else "", most=1)
        if not piece:
            break
        got += piece
    for one in got:
        check_event(dialect, one)
    assert await events(server, params, last_id=got[0].last_id) == got[1:]
    assert "stopped" not in "".join(one.data for one in got)
    assert len([r for r in model.requests if r.schema_name == "RankingPrompt"]) == 1


async def test_end_of_an_answer_is_not_asked_for_again_by_an_event_source(serve: Serve) -> None:
    server = await kitchen(serve)
    whole = await events(server, {"query": "stew"})
    headers = {"Last-Event-ID": whole[-1].last_id}
    async with server.session.get(f"{server.url}/ask?query=stew", headers=headers) as response:
        assert response.status == 204  # an EventSource stops at that


@pytest.mark.parametrize(
    ("params", "accept"),
    [
        ({"streaming": "false"}, "*/*"),
        ({"streaming": "0", "protocol": "structured"}, "text/event-stream"),
        ({}, "application/json"),
    ],
)
@pytest.mark.parametrize("known", [True, False])
async def test_one_json_value_is_an_answer_of_its_own_whatever_was_read_last(
    serve: Serve, params: dict[str, str], accept: str, known: bool
) -> None:
    server = await kitchen(serve)
    begun = await events(server, {"query": "stew"})
    headers = {"Accept": accept, "Last-Event-ID": begun[0].last_id if known else "unknown.1"}
    asked = {"query": "lemon tart", **params}
    for method in ("GET", "POST"):
        given: dict[str, Any] = {"params": asked} if method == "GET" else {"json": asked}
        async with server.session.request(method, f"{server.url}/ask", headers=headers, **given) as response:
            assert (response.status, response.content_type) == (200, "application/json")
            assert "Lemon tart" in await response.text()


@pytest.mark.parametrize(
    "path", ["/who?query=stew&streaming=true", "/sites?streaming=true", "/ask?query=stew"]
)
async def test_only_a_stream_that_can_be_taken_up_again_asks_to_come_back_soon(
    serve: Serve, path: str
) -> None:
    server = await kitchen(serve)
    reader = EventReader()
    async with server.session.get(server.url + path) as response:
        assert response.content_type == "text/event-stream"
        got = list(reader.feed(await response.read()))
    assert got
    resumable = [bool(one.last_id) for one in got]
    assert resumable == [reader.retry is not None] * len(got)
    assert (reader.retry is not None) == path.startswith("/ask")


async def test_a_load_that_is_followed_is_never_sent_again(serve: Serve) -> None:
    server = await serve()
    headers = {"Authorization": f"Bearer {ADMIN}", "Accept": "text/event-stream"}
    body = {"site": "kitchen", "items": KITCHEN}
    reader = EventReader()
    async with server.session.post(f"{server.url}/documents", json=body, headers=headers) as response:
        assert len(list(reader.feed(await response.read()))) == len(KITCHEN) + 1
    assert reader.retry is None


@pytest.mark.parametrize("last_id", ["x", "x.1", ".", "{run}.", "{run}.-1", "{run}.x", "{run}.²", "{run}.٣"])
async def test_event_id_that_is_none_replays_nothing(serve: Serve, last_id: str) -> None:
    server = await kitchen(serve)
    run, _, _ = (await events(server, {"query": "stew"}))[0].last_id.rpartition(".")
    headers = {"Last-Event-ID": last_id.format(run=run)}
    async with server.session.get(f"{server.url}/ask?query=stew", headers=headers) as response:
        assert response.status == 204


async def test_answer_is_resumed_by_the_visitor_who_got_a_cookie_in_the_middle(serve: Serve) -> None:
    server = await kitchen(serve)
    before = await events(server, {"query": REMEMBER})
    (told,) = [one.json for one in before if one.json["message_type"] == "remember"]
    await server.json("POST", "/memory/confirm", json={"token": told["confirm"]})
    assert await events(server, {"query": REMEMBER}, last_id=before[0].last_id) == before[1:]


async def test_answer_of_a_known_visitor_is_nobody_elses(serve: Serve) -> None:
    server = await kitchen(serve)
    told = (await server.ask(REMEMBER)).one("remember")
    await server.json("POST", "/memory/confirm", json={"token": told["confirm"]})
    mine = await server.ask("stew")
    async with await server.browser() as other:
        url = f"{server.url}/ask?query=stew"
        async with other.get(url, headers={"Last-Event-ID": mine.ids[0]}) as response:
            assert response.status == 204
    assert (await server.ask("stew", headers={"Last-Event-ID": mine.ids[0]})).all == mine.all[1:]


# ---------------------------------------------------------------- bytes


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_stream_cut_at_every_byte_reads_the_same(serve: Serve, dialect: str) -> None:
    server = await serve()
    await server.load(
        "cucina", [{**KITCHEN[0], "name": "Crème 味噌 🍲 ragù", "description": "più 味 \u2028 e \u2029"}]
    )
    params = {"query": "味噌 ragù", **spoken(dialect)}
    async with server.session.get(f"{server.url}/ask", params=params) as response:
        raw = await response.read()
    whole = list(EventReader().feed(raw))
    assert "Crème 味噌 🍲 ragù" in json.dumps([one.json for one in whole], ensure_ascii=False)
    for cut in range(len(raw)):
        reader = EventReader()
        assert [*reader.feed(raw[:cut]), *reader.feed(raw[cut:])] == whole
    single = EventReader()
    assert [one for n in range(len(raw)) for one in single.feed(raw[n : n + 1])] == whole


def test_event_is_one_data_line_whatever_is_in_it() -> None:
    raw = event({"text": "a\nb\r\n\u2028data: c"}, event_id="r.1", name="result")
    assert raw.count(b"\n") == 4
    (read,) = EventReader().feed(raw)
    assert (read.name, read.last_id, read.json["text"]) == ("result", "r.1", "a\nb\r\n\u2028data: c")


# ---------------------------------------------------------------- kept alive


async def test_silence_is_filled_with_comments_and_the_answer_still_comes(
    serve: Serve, model: ScriptedModel
) -> None:
    assert HEARTBEAT_S == 15
    server = await kitchen(serve, model=model)
    server.app[RUNS].heartbeat_s = 0.01
    enough: list[bool] = []
    sensible = SensibleModel()
    # The script is asked again after each of these moments, until it has an answer.
    model.answer = lambda asked: sensible(asked) if enough else 0.005
    reader, got = EventReader(), []
    async with server.session.get(f"{server.url}/ask?query=stew") as response:
        async for piece in response.content.iter_any():
            got += reader.feed(piece)
            if reader.comments >= 4:  # a minute of silence, at the usual pace
                enough.append(True)
    assert reader.comments >= 4
    assert got[-1].json["message_type"] == "complete"
    assert not got[-1].json["degraded"]


@pytest.mark.slow
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_forty_seconds_of_silence_are_kept_alive_at_the_pace_of_use(
    serve: Serve, model: ScriptedModel, dialect: str
) -> None:
    silence = 40.0
    server = await kitchen(serve, model=model, llm={"timeout_s": 60})
    sensible = SensibleModel()
    began = asyncio.get_running_loop().time()
    model.answer = lambda asked: (
        sensible(asked) if asyncio.get_running_loop().time() - began > silence else 0.1
    )
    # A proxy or a browser that gives up a connection on which nothing came for 20 seconds.
    impatient = aiohttp.ClientTimeout(total=None, sock_read=20)
    reader, got = EventReader(), []
    params = {"query": "stew", **spoken(dialect)}
    async with server.session.get(f"{server.url}/ask", params=params, timeout=impatient) as response:
        async for piece in response.content.iter_any():
            got += reader.feed(piece)
    assert reader.comments >= 2
    assert "Beef stew" in "".join(one.data for one in got)


# ---------------------------------------------------------------- leaving


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_reader_who_leaves_stops_every_model_call(
    serve: Serve, model: ScriptedModel, dialect: str
) -> None:
    server = await kitchen(serve, model=model)
    model.answer = lambda _: Hang()
    async with aiohttp.ClientSession() as leaving:
        response = await leaving.get(f"{server.url}/ask", params={"query": "stew", **spoken(dialect)})
        await model.seen(2)
        response.close()
    await model.left(2)
    assert model.cancelled == 2


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_answer_that_was_stopped_has_an_end_in_its_dialect(
    serve: Serve, model: ScriptedModel, dialect: str
) -> None:
    server = await kitchen(serve, model=model)
    model.answer = lambda _: Hang()
    server.app[RUNS].grace_s = 0.0
    params = {"query": "stew", "provisional": "true", **spoken(dialect)}
    first = await events(server, params, most=1)
    found = server.app[RUNS].find(first[0].last_id, NOBODY)
    assert found is not None
    await found[0].ended()
    rest = await events(server, params, last_id=first[0].last_id)
    for one in rest:
        check_event(dialect, one)
    assert "stopped" in "".join(one.data for one in rest)


# ---------------------------------------------------------------- errors in the stream


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_error_after_the_stream_began_is_in_the_dialects_shape(serve: Serve, dialect: str) -> None:
    server = await kitchen(serve, llm={"base_url": "http://127.0.0.1:9/v1", "max_retries": 0})
    got = await events(server, {"query": "beef stew", **spoken(dialect)})
    for one in got:
        check_event(dialect, one)
    found = "".join(one.data for one in got)
    assert "model_failed" in found
    assert "Beef stew" in found


# ---------------------------------------------------------------- HTTP


async def test_long_history_comes_by_post(serve: Serve, model: ScriptedModel) -> None:
    server = await kitchen(serve, model=model)
    model.answer = SensibleModel()
    prev = [f'question {n}, "with" all, that is {"long " * 200}' for n in range(100)]
    frames = await server.ask("and with rice?", prev=prev)
    assert frames.kinds[-1] == "complete"
    too_many = await server.json("POST", "/ask", json={"query": "x", "prev": ["q"] * 201})
    assert (too_many[0], too_many[1]["error"]["field"]) == (400, "prev")


@pytest.mark.parametrize("path", ["/ask", "/await"])
async def test_preflight_from_an_allowed_origin(serve: Serve, path: str) -> None:
    origin = "https://shop.example"
    server = await serve(server={"cors_origins": [origin]})
    asked = {
        "Origin": origin,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": ", ".join(sorted(READ)),
    }
    async with server.session.options(server.url + path, headers=asked) as response:
        assert response.status == 204
        assert response.headers["Access-Control-Allow-Origin"] == origin
        assert "POST" in response.headers["Access-Control-Allow-Methods"]
        allowed = response.headers["Access-Control-Allow-Headers"].lower().split(",")
        assert {name.strip() for name in allowed} >= READ
        assert "Access-Control-Allow-Credentials" not in response.headers
    other = {**asked, "Origin": "https://elsewhere.example"}
    async with server.session.options(server.url + path, headers=other) as response:
        assert "Access-Control-Allow-Origin" not in response.headers


async def test_stream_and_refusal_have_the_origins_headers(serve: Serve) -> None:
    origin = "https://shop.example"
    server = await serve(server={"cors_origins": [origin]})
    for params in ({"query": "x"}, {"query": ""}):
        async with server.session.get(
            f"{server.url}/ask", params=params, headers={"Origin": origin}
        ) as response:
            assert response.headers["Access-Control-Allow-Origin"] == origin


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_stream_is_neither_compressed_nor_held_back(
    serve: Serve, model: ScriptedModel, dialect: str
) -> None:
    server = await kitchen(serve, model=model)
    model.answer = lambda _: Hang()
    headers = {"Accept-Encoding": "gzip, br, zstd"}
    params = {"query": "stew", "provisional": "true", **spoken(dialect)}
    response = await server.session.get(f"{server.url}/ask", params=params, headers=headers)
    assert "Content-Encoding" not in response.headers
    assert response.headers["X-Accel-Buffering"] == "no"
    # The first event is here while the model has said nothing yet.
    reader, got = EventReader(), []
    while not got:
        got += reader.feed(await response.content.readany())
    assert reader.retry is not None
    response.close()


@pytest.mark.parametrize(
    ("dialect", "accepted"),
    [
        *((dialect, "gzip, deflate, br, zstd") for dialect in DIALECTS),
        *(("legacy", accepted) for accepted in ("gzip", "br", "zstd", "identity;q=0, *")),
    ],
)
async def test_each_item_is_here_before_the_model_judges_the_next(
    serve: Serve, model: ScriptedModel, dialect: str, accepted: str
) -> None:
    server = await kitchen(serve, model=model, ranking={"batch_size": 1})
    sensible = SensibleModel(scores={str(item["name"]): 80 for item in KITCHEN})
    may, done = 0, 0

    def one_by_one(asked: ModelRequest) -> Any:
        nonlocal done
        if asked.schema_name == "RankingPrompt":
            if done >= may:
                return 0.002  # the script is asked again then
            done += 1
        return sensible(asked)

    model.answer = one_by_one
    params = {"query": "vegan stew, beef stew, tofu curry, tart, minestrone", **spoken(dialect)}
    headers = {"Accept-Encoding": accepted}
    read = b""
    async with server.session.get(f"{server.url}/ask", params=params, headers=headers) as response:
        assert response.status == 200
        assert "Content-Encoding" not in response.headers
        for may in range(1, len(KITCHEN) + 1):
            while sum(str(item["name"]).encode() in read for item in KITCHEN) < may:
                piece = await asyncio.wait_for(response.content.readany(), 10)
                assert piece, "the stream ended before all items were there"
                read += piece
        read += await response.read()
    for one in EventReader().feed(read):
        check_event(dialect, one)


async def test_head_says_what_a_get_would_be_and_asks_nothing(serve: Serve, model: ScriptedModel) -> None:
    server = await kitchen(serve, model=model)
    async with server.session.head(f"{server.url}/ask?query=stew") as response:
        assert response.status == 200
        assert response.content_type == "text/event-stream"
        assert await response.read() == b""
    assert model.requests == []


async def test_options_and_other_methods_say_what_is_allowed(serve: Serve) -> None:
    server = await serve()
    async with server.session.options(f"{server.url}/ask") as response:
        assert (response.status, response.headers["Allow"]) == (204, "GET, HEAD, POST, OPTIONS")
    for method, path in (("PUT", "/ask"), ("DELETE", "/ask"), ("GET", "/await")):
        async with server.session.request(method, server.url + path) as response:
            assert response.status == 405
            assert "POST" in response.headers["Allow"]


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("*/*", "text/event-stream"),
        ("text/html,application/xhtml+xml,*/*;q=0.8", "text/event-stream"),
        ("application/json", "application/json"),
        ("application/json, text/plain, */*", "application/json"),
        ("application/json;q=0.5, text/event-stream", "text/event-stream"),
        ("text/event-stream;q=0.1, application/json", "application/json"),
        ("application/json, text/event-stream", "text/event-stream"),
        ("APPLICATION/JSON; charset=utf-8", "application/json"),
        ("application/json;q=0", "text/event-stream"),
        ("application/json;q=nonsense", "text/event-stream"),
    ],
)
async def test_accept_chooses_between_stream_and_object(serve: Serve, accept: str, kind: str) -> None:
    server = await serve()
    async with server.session.get(f"{server.url}/ask?query=x", headers={"Accept": accept}) as response:
        assert response.content_type == kind
        await response.read()


async def test_streaming_parameter_goes_over_accept(serve: Serve) -> None:
    server = await serve()
    for streaming, accept, kind in (
        ("true", "application/json", "text/event-stream"),
        ("false", "text/event-stream", "application/json"),
        ("maybe", "application/json", "text/event-stream"),
    ):
        url = f"{server.url}/ask?query=x&streaming={streaming}"
        async with server.session.get(url, headers={"Accept": accept}) as response:
            assert response.content_type == kind
            await response.read()


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b'{"query": "a", "query": "b"}', "query"),
        (b'{"query": {"text": "a", "text": "a"}}', "text"),
        (b'{"query": "a", "memory": [{"k": 1, "k": 2}]}', "k"),
        (b'{"query": "a", "x": ' + b"[" * 1010 + b"]" * 1010 + b"}", "body"),
    ],
)
async def test_body_that_says_something_twice_is_refused(serve: Serve, body: bytes, field: str) -> None:
    server = await serve()
    headers = {"Content-Type": "application/json"}
    status, answer = await server.json("POST", "/ask", data=body, headers=headers)
    assert (status, answer["error"]["field"]) == (400, field)


async def test_parameter_given_twice_is_refused_unless_it_says_the_same(serve: Serve) -> None:
    server = await serve()
    status, answer = await server.json("GET", "/ask?query=a&query=b&streaming=0")
    assert (status, answer["error"]["field"]) == (400, "query")
    assert (await server.json("GET", "/ask?query=a&query=a&query=&streaming=0"))[0] == 200
    assert (await server.json("POST", "/ask?query=a&streaming=0", json={"query": "b"}))[0] == 200


async def test_question_longer_than_a_book_is_refused(serve: Serve) -> None:
    server = await serve()
    body = b'{"query": "a", "x": "' + b"x" * MAX_QUESTION_BYTES + b'"}'
    headers = {"Content-Type": "application/json"}
    status, answer = await server.json("POST", "/ask", data=io.BytesIO(body), headers=headers)
    assert (status, answer["error"]["field"]) == (400, "body")
