"""The chat client against an endpoint that does what endpoints do."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import orjson
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from openai import AsyncOpenAI, DefaultAioHttpClient

from core.deadline import Deadline
from core.errors import BadModelReply, ModelBusy, ModelError, ModelRefused, ModelTimeout
from core.providers.base import ModelCall, Usage
from core.providers.openai import OpenAIChat, make_client
from core.providers.openai_reply import Events, ReplyText, retry_after
from core.providers.openai_request import strict_schema
from tests.fakes.openai_server import Cut, Fail, Hang, Say, ScriptedModel, Split, event, scripted_model

KEY = "sk-very-secret-0123456789"
ANSWER = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}, "score": {"type": "integer", "minimum": 0, "maximum": 100}},
    "required": ["ok", "score"],
}
CALL = ModelCall(prompt="Is it so?", schema=ANSWER, schema_name="Check", site="shop")
BATCH = ModelCall(prompt="Rank them.", schema={"type": "array", "items": ANSWER}, schema_name="RankingPrompt")
PLAIN = ModelCall(prompt="Say something.")
WORLD = "北京 🌍 così"


@pytest.fixture
async def model() -> AsyncIterator[ScriptedModel]:
    async with scripted_model() as running:
        yield running


def chat_for(model: ScriptedModel, **changes: Any) -> OpenAIChat:
    settings: dict[str, Any] = {"timeout_s": 10.0, "max_concurrency": 8, "max_retries": 2, "backoff_s": 0.001}
    settings.update(changes)
    client = make_client(model.url, settings.pop("api_key", KEY), max_concurrency=settings["max_concurrency"])
    return OpenAIChat(client, models={"high": "big", "low": "small"}, **settings)


@pytest.fixture
async def chat(model: ScriptedModel) -> AsyncIterator[OpenAIChat]:
    chat = chat_for(model)
    yield chat
    await chat.close()


async def streamed(chat: OpenAIChat, call: ModelCall, usage: Usage | None = None) -> list[str]:
    return [piece async for piece in chat.stream(call, usage if usage is not None else Usage())]


async def collect(chat: OpenAIChat, got: list[str], call: ModelCall = PLAIN) -> None:
    """Stream into a list that keeps what came before a failure."""
    async for piece in chat.stream(call, Usage()):
        got += [piece]


def delta(text: str) -> bytes:
    return event({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]})


END = event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}) + b"data: [DONE]\n\n"

both_ways = pytest.mark.parametrize("way", ["complete", "stream"])


async def text_of(chat: OpenAIChat, way: str, call: ModelCall, usage: Usage | None = None) -> str:
    if way == "complete":
        return await chat.complete(call, usage if usage is not None else Usage())
    return "".join(await streamed(chat, call, usage))


# ---------------------------------------------------------------- asking


async def test_the_tier_chooses_the_model_and_the_key_goes_along(
    model: ScriptedModel, chat: OpenAIChat
) -> None:
    model.replies = ["one", "two"]
    await chat.complete(PLAIN, Usage())
    await chat.complete(ModelCall(prompt="hard", system="Be exact.", tier="high"), Usage())
    assert [asked.raw["model"] for asked in model.requests] == ["small", "big"]
    assert model.requests[0].headers["Authorization"] == f"Bearer {KEY}"
    assert (model.requests[1].system, model.requests[1].prompt) == ("Be exact.", "hard")
    assert chat.name == "big"


async def test_requests_are_the_sdks_own_and_differ_in_what_they_ask_alone(
    model: ScriptedModel, chat: OpenAIChat
) -> None:
    model.answer = lambda _: "fine"
    for prompt in ("short", "longer " * 2000, "così 🌍"):
        assert await chat.complete(ModelCall(prompt=prompt), Usage()) == "fine"
        assert await text_of(chat, "stream", ModelCall(prompt=prompt)) == "fine"
    assert len(model.connections) == 1
    assert [asked.prompt for asked in model.requests[::2]] == ["short", "longer " * 2000, "così 🌍"]
    http = DefaultAioHttpClient(timeout=None)
    async with AsyncOpenAI(base_url=model.url, api_key=KEY, timeout=None, http_client=http) as plain:
        await plain.chat.completions.create(model="big", messages=[{"role": "user", "content": "x"}])
    *headers, of_the_sdk = [dict(asked.headers) for asked in model.requests]
    lengths = [int(one.pop("Content-Length")) for one in headers]
    assert lengths == [len(orjson.dumps(asked.raw)) for asked in model.requests[:-1]]
    del of_the_sdk["Content-Length"]
    assert all(one == of_the_sdk for one in headers)


async def test_cookies_of_the_endpoint_come_back_to_it_as_they_are_now() -> None:
    came: list[str] = []

    async def chats(request: web.Request) -> web.Response:
        came.append(request.headers.get("Cookie", ""))
        said = {"choices": [{"message": {"content": "fine"}, "finish_reason": "stop"}]}
        response = web.json_response(said)
        response.set_cookie("route", f"r{len(came)}")
        return response

    app = web.Application()
    app.router.add_post("/v1/chat/completions", chats)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "localhost", 0)
    await site.start()
    client = make_client(f"http://localhost:{runner.addresses[0][1]}/v1", KEY)
    chat = OpenAIChat(
        client, models={"high": "big", "low": "small"}, timeout_s=10, max_concurrency=1, max_retries=0
    )
    for _ in range(3):
        await chat.complete(PLAIN, Usage())
    await chat.close()
    await runner.cleanup()
    assert came == ["", "route=r1", "route=r2"]


async def test_pieces_that_arrive_together_are_one_but_for_a_reader(
    model: ScriptedModel, chat: OpenAIChat
) -> None:
    together = delta("one ") + delta("two ") + delta("three")
    model.answer = lambda _: Split([together, delta(" four"), END])
    (first, *rest) = await streamed(chat, PLAIN)
    assert first.startswith("one two three")  # and what else came with it
    assert "".join([first, *rest]) == "one two three four"
    assert await streamed(chat, replace(PLAIN, written=True)) == ["one ", "two ", "three", " four"]


@pytest.mark.parametrize("written", [False, True])
async def test_what_came_before_an_error_in_the_same_piece_is_told_first(
    model: ScriptedModel, chat: OpenAIChat, written: bool
) -> None:
    broken = event({"error": {"code": 503, "message": "overloaded"}})
    model.answer = lambda _: Split([delta("one ") + delta("two") + broken + delta("never")])
    got: list[str] = []
    with pytest.raises(ModelBusy):
        await collect(chat, got, replace(PLAIN, written=written))
    assert "".join(got) == "one two"
    assert len(model.requests) == 1


async def test_without_a_key_a_placeholder_is_sent_and_the_environment_is_not_asked(
    model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_ADMIN_KEY"):
        monkeypatch.setenv(name, KEY)
    chat = chat_for(model, api_key=None)
    model.replies = ["fine"]
    assert await chat.complete(PLAIN, Usage()) == "fine"
    assert KEY not in str(model.requests[0].headers)
    await chat.close()


async def test_a_schema_is_asked_for_strictly_where_strict_mode_can_hold_it(
    model: ScriptedModel, chat: OpenAIChat
) -> None:
    model.replies = [{"ok": True, "score": 1}, {"ok": True}]
    await chat.complete(CALL, Usage())
    optional = {**ANSWER, "required": ["ok"]}
    await chat.complete(ModelCall(prompt="x", schema=optional, schema_name="Bad name!"), Usage())
    first, second = (asked.raw["response_format"]["json_schema"] for asked in model.requests)
    assert first == {"name": "Check", "strict": True, "schema": {**ANSWER, "additionalProperties": False}}
    assert second == {"name": "Bad_name_", "schema": optional}


async def test_a_list_is_asked_for_inside_an_object(model: ScriptedModel, chat: OpenAIChat) -> None:
    model.replies = [[{"ok": True, "score": 3}]]
    reply = await chat.complete(BATCH, Usage())
    assert orjson.loads(reply) == {"items": [{"ok": True, "score": 3}]}
    assert model.requests[0].schema["type"] == "object"


@both_ways
async def test_an_endpoint_without_json_schema_is_found_out_once(
    model: ScriptedModel, chat: OpenAIChat, way: str
) -> None:
    model.refuses = {"json_schema"}
    model.replies = [{"ok": True, "score": 1}, {"ok": True, "score": 2}]
    usage = Usage()
    await text_of(chat, way, CALL, usage)
    await text_of(chat, way, CALL, usage)
    kinds = [asked.raw["response_format"]["type"] for asked in model.requests]
    assert kinds == ["json_schema", "json_object", "json_object"]
    assert model.requests[1].schema["properties"] == ANSWER["properties"]
    assert usage.calls == 3


async def test_an_endpoint_without_any_json_mode_is_told_the_schema(model: ScriptedModel) -> None:
    model.refuses = {"response_format", "temperature", "max_tokens"}
    model.replies = [{"ok": True, "score": 1}] * 2
    chat = chat_for(model, max_retries=0)  # finding out is no retry
    call = ModelCall(prompt="x", system="Be exact.", schema=ANSWER, schema_name="Check", max_tokens=90)
    await chat.complete(call, Usage())
    before = len(model.requests)
    await chat.complete(call, Usage())
    last = model.requests[-1]
    assert len(model.requests) == before + 1
    assert not {"response_format", "temperature", "max_tokens"} & last.raw.keys()
    assert last.raw["max_completion_tokens"] == 90
    assert last.system.startswith("Be exact.")
    assert last.schema_name == "Check"
    await chat.close()


async def test_a_schema_that_strict_mode_dislikes_is_sent_loosely(
    model: ScriptedModel, chat: OpenAIChat
) -> None:
    model.refuses = {"strict"}
    model.replies = [{"ok": True, "score": 1}]
    await chat.complete(CALL, Usage())
    assert "strict" not in model.requests[-1].raw["response_format"]["json_schema"]


async def test_calls_side_by_side_find_the_same_thing_out_without_harm(
    model: ScriptedModel, chat: OpenAIChat
) -> None:
    model.refuses = {"json_schema"}
    model.answer = lambda asked: {"ok": True, "score": 1}
    await asyncio.gather(*(chat.complete(CALL, Usage()) for _ in range(6)))
    assert {asked.raw["response_format"]["type"] for asked in model.requests} == {
        "json_schema",
        "json_object",
    }
    assert len(model.requests) <= 12


async def test_a_prompt_too_long_is_no_missing_ability(model: ScriptedModel, chat: OpenAIChat) -> None:
    said = "'max_tokens' is too large: the maximum context length is 8192 tokens. See response_format."
    model.replies = [Fail(400, body={"error": {"message": said, "code": "context_length_exceeded"}})]
    with pytest.raises(ModelRefused, match="too long for `small`"):
        await chat.complete(ModelCall(prompt="x", schema=ANSWER, max_tokens=10), Usage())
    assert len(model.requests) == 1


# ---------------------------------------------------------------- replies


async def test_a_streamed_reply_comes_in_pieces_and_counts_what_the_endpoint_reports(
    model: ScriptedModel, chat: OpenAIChat
) -> None:
    text = "A reply that is long enough to need several pieces on its way."
    model.replies = [text, Say(text, usage=False)]
    reported, estimated = Usage(), Usage()
    pieces = await streamed(chat, PLAIN, reported)
    assert "".join(pieces) == text
    assert len(pieces) > 3
    assert reported == Usage(calls=1, prompt_tokens=2, completion_tokens=13, model="small")
    await streamed(chat, PLAIN, estimated)
    assert estimated == Usage(
        calls=1,
        prompt_tokens=len("Say something.") // 4,
        completion_tokens=len(text) // 4,
        model="small",
    )


@both_ways
async def test_what_the_endpoint_had_cached_is_counted_and_the_model_named(
    model: ScriptedModel, chat: OpenAIChat, way: str
) -> None:
    model.replies = [Say("one", cached=40), Say("two", cached=2), Say("three")]
    usage, silent = Usage(), Usage()
    await text_of(chat, way, PLAIN, usage)
    await text_of(chat, way, replace(PLAIN, tier="high"), usage)
    assert (usage.cached_tokens, usage.model) == (42, "big")
    await text_of(chat, way, PLAIN, silent)
    assert (silent.cached_tokens, silent.model) == (None, "small")


async def test_an_endpoint_without_stream_options_still_streams(
    model: ScriptedModel, chat: OpenAIChat
) -> None:
    model.refuses = {"stream_options"}
    model.replies = ["first", "second"]
    assert await streamed(chat, PLAIN) == ["first"]
    assert await streamed(chat, PLAIN) == ["second"]
    assert ["stream_options" in asked.raw for asked in model.requests] == [True, False, False]


async def test_an_endpoint_that_does_not_stream_is_read_whole(model: ScriptedModel, chat: OpenAIChat) -> None:
    body = {"choices": [{"index": 0, "message": {"content": WORLD}, "finish_reason": "stop"}]}
    model.replies = [Fail(200, body=body)]
    assert await streamed(chat, PLAIN) == [WORLD]


@both_ways
async def test_thinking_is_not_part_of_the_reply(model: ScriptedModel, chat: OpenAIChat, way: str) -> None:
    model.piece_chars = 3
    model.replies = [
        '<think>maybe {"score": 5}?</think>\n{"score": 90}',
        Say('{"score": 90}', thinking='{"score": 5}'),
        '{"d": "what <think> is"}',
    ]
    assert await text_of(chat, way, PLAIN) == '{"score": 90}'
    assert await text_of(chat, way, PLAIN) == '{"score": 90}'
    assert await text_of(chat, way, PLAIN) == '{"d": "what <think> is"}'


async def test_thinking_whose_opening_tag_is_missing_is_cut_off(
    model: ScriptedModel, chat: OpenAIChat
) -> None:
    model.replies = ["well, let me see</think>\n\nNo.", '{"d": "a </think> b"}']
    assert await chat.complete(PLAIN, Usage()) == "No."
    assert await chat.complete(PLAIN, Usage()) == '{"d": "a </think> b"}'


@both_ways
async def test_a_reply_that_ran_out_of_tokens_is_kept(
    model: ScriptedModel, chat: OpenAIChat, way: str
) -> None:
    model.replies = [Say('[{"tag": "a"}, {"ta', finish="length")]
    assert await text_of(chat, way, PLAIN) == '[{"tag": "a"}, {"ta'


@both_ways
@pytest.mark.parametrize(
    "reply",
    [
        "",
        "<think>endless",
        Say("", finish="content_filter"),
        Fail(200, body={"choices": []}),
        Fail(200, body={"something": "else"}),
        Fail(200, body=[]),
    ],
)
async def test_a_reply_without_text_is_a_bad_one(
    model: ScriptedModel, chat: OpenAIChat, reply: Any, way: str
) -> None:
    model.replies = [reply]
    with pytest.raises(BadModelReply):
        await text_of(chat, way, PLAIN)
    assert len(model.requests) == 1


@pytest.mark.parametrize("failure", [500, Fail(429), Cut(0)])
async def test_a_call_may_want_more_retries_than_the_setting_has(model: ScriptedModel, failure: Any) -> None:
    chat = chat_for(model, max_retries=0)
    model.replies = [failure, "well"]
    assert "".join(await streamed(chat, replace(PLAIN, retries=1))) == "well"
    model.replies = [failure, failure, "too late"]
    with pytest.raises(ModelError) as caught:
        await streamed(chat, replace(PLAIN, retries=1))
    assert not caught.value.broke_off
    assert len(model.requests) == 4
    await chat.close()


@pytest.mark.parametrize(
    ("replies", "retries", "timeout_s", "left"),
    [
        ([Cut(5)], 1, 10, True),
        ([Cut(5)], 0, 10, False),
        ([500, Cut(5)], 1, 10, False),  # the one retry is spent
        ([Cut(5)], 1, 1, False),  # by then the time is up
    ],
)
async def test_a_reply_that_broke_off_says_whether_there_is_a_retry_left_for_it(
    model: ScriptedModel, replies: list[Any], retries: int, timeout_s: float, left: bool
) -> None:
    chat = chat_for(model, max_retries=0, timeout_s=timeout_s, backoff_s=0.001 if timeout_s == 10 else 1000)
    model.replies = [*replies, "nobody asks for it"]
    with pytest.raises(ModelError) as caught:
        await streamed(chat, replace(PLAIN, retries=retries))
    assert caught.value.broke_off == left
    assert len(model.requests) == len(replies)
    await chat.close()


@pytest.mark.parametrize("bytes_a_chunk", [1, 2, 3, 7, 1000])
async def test_characters_and_events_may_be_cut_anywhere(
    model: ScriptedModel, chat: OpenAIChat, bytes_a_chunk: int
) -> None:
    body = delta(WORLD[:4]) + b": a comment\r\n\r\n" + delta(WORLD[4:]).replace(b"\n", b"\r\n") + END
    model.replies = [
        Split([body[start : start + bytes_a_chunk] for start in range(0, len(body), bytes_a_chunk)]),
    ]
    assert "".join(await streamed(chat, PLAIN)) == WORLD


async def test_a_character_escaped_in_two_deltas_is_one_character(
    model: ScriptedModel, chat: OpenAIChat
) -> None:
    halves = [delta("@").replace(b"@", half) for half in (b"a \\ud83c", b"\\udf0d b")]
    model.replies = [Split([*halves, END])]
    assert "".join(await streamed(chat, PLAIN)) == "a 🌍 b"


@given(st.lists(st.text(min_size=1, max_size=8), max_size=6), st.lists(st.integers(0, 300)))
def test_every_event_is_read_once_however_the_bytes_arrive(texts: list[str], cuts: list[int]) -> None:
    body = b"".join(b"data: " + orjson.dumps(text) + b"\n\n" for text in texts)
    places = [0, *sorted({min(cut, len(body)) for cut in cuts}), len(body)]
    events = Events()
    found = [
        event
        for a, b in zip(places, [*places[1:], len(body)], strict=True)
        for event in events.feed(body[a:b])
    ]
    assert [orjson.loads(event) for event in found + events.close()] == texts


@given(
    st.lists(st.integers(0, 60)),
    st.sampled_from(["", " <think>a</think>\n", "<think>x</think><think>y</think>"]),
)
def test_thinking_is_found_however_it_is_cut(cuts: list[int], thinking: str) -> None:
    text = thinking + "<b>the answer</b>"
    places = [0, *sorted({min(cut, len(text)) for cut in cuts}), len(text)]
    reader = ReplyText()
    found = [reader.feed(text[a:b]) for a, b in zip(places, [*places[1:], len(text)], strict=True)]
    assert "".join(found) + reader.close() == "<b>the answer</b>"


# ---------------------------------------------------------------- failures


@both_ways
@pytest.mark.parametrize(
    "failure",
    [
        Fail(429, retry_after=0),
        Fail(503, retry_after="Wed, 21 Oct 2015 07:28:00 GMT"),
        500,
        Fail(502, body="<html>bad gateway</html>"),
        Fail(200, body={"error": {"code": 429, "message": "slow down"}}),
        Fail(200, body={"error": {"type": "rate_limit_error", "code": None}}),
        Fail(200, body={"error": "overloaded"}),
        Cut(0),
    ],
)
async def test_a_passing_failure_is_tried_again(
    model: ScriptedModel, chat: OpenAIChat, failure: Any, way: str
) -> None:
    model.replies = [failure, failure, "well"]
    usage = Usage()
    assert await text_of(chat, way, PLAIN, usage) == "well"
    assert len(model.requests) == usage.calls == 3


@both_ways
@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (Fail(429, retry_after=0), ModelBusy),
        (Fail(200, body={"error": {"code": 429}}), ModelBusy),
        (Fail(503, retry_after=0), ModelBusy),
        (500, ModelError),
        (Cut(0), ModelError),
    ],
)
async def test_a_lasting_failure_ends_when_the_retries_are_used_up(
    model: ScriptedModel, chat: OpenAIChat, failure: Any, error: type[ModelError], way: str
) -> None:
    model.answer = lambda asked: failure
    with pytest.raises(error) as caught:
        await text_of(chat, way, PLAIN)
    assert len(model.requests) == 3
    assert type(caught.value) is error
    assert caught.value.retryable


@both_ways
@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (Fail(401, body={"error": {"message": f"Incorrect API key: {KEY}"}}), "llm.api_key"),
        (403, "llm.api_key"),
        (404, "no model `small`"),
        (Fail(400, body={"error": {"code": "model_not_found", "message": "no"}}), "no model `small`"),
        (Fail(429, body={"error": {"code": "insufficient_quota"}}), "quota"),
        (Fail(200, body={"error": {"code": "invalid_api_key"}}), "llm.api_key"),
        (400, "refused the request"),
    ],
)
async def test_what_trying_again_cannot_help_is_not_tried_again(
    model: ScriptedModel,
    chat: OpenAIChat,
    caplog: pytest.LogCaptureFixture,
    failure: Any,
    said: str,
    way: str,
) -> None:
    model.replies = [failure]
    with caplog.at_level(logging.DEBUG, "core"), pytest.raises(ModelRefused, match=said) as caught:
        await text_of(chat, way, CALL)
    assert len(model.requests) == 1
    assert not caught.value.retryable
    assert KEY not in caplog.text + str(caught.value) + repr(caught.value.__cause__)
    assert "model_failure" in caplog.text


async def test_a_wait_longer_than_the_budget_is_not_begun(model: ScriptedModel, chat: OpenAIChat) -> None:
    model.replies = [Fail(429, retry_after=3600)]
    with pytest.raises(ModelBusy):
        await asyncio.wait_for(chat.complete(PLAIN, Usage()), 60)
    assert len(model.requests) == 1


@both_ways
async def test_no_answer_in_time_is_a_timeout_and_hangs_up(model: ScriptedModel, way: str) -> None:
    chat = chat_for(model, timeout_s=0.2)
    model.replies = [Hang()]
    with pytest.raises(ModelTimeout, match=r"0\.2 s"):
        await text_of(chat, way, PLAIN)
    await model.left(1)
    await chat.close()


async def test_the_budget_covers_the_wait_for_a_slot_and_the_call_can_name_its_own(
    model: ScriptedModel,
) -> None:
    chat = chat_for(model, max_concurrency=1)
    model.replies = [Hang()]
    holder = asyncio.create_task(chat.complete(PLAIN, Usage()))
    await model.seen(1)
    waiting = Usage()
    with pytest.raises(ModelTimeout):
        await chat.complete(ModelCall(prompt="x", timeout_s=0.05), waiting)
    assert waiting.calls == 0
    holder.cancel()
    await asyncio.gather(holder, return_exceptions=True)
    await chat.close()


async def test_a_stream_that_stops_in_the_middle_times_out_with_what_it_had(model: ScriptedModel) -> None:
    chat = chat_for(model, timeout_s=0.3)
    model.piece_delay = 60
    model.replies = [Split([delta("one"), delta("two"), END])]
    got: list[str] = []
    with pytest.raises(ModelTimeout):
        await collect(chat, got)
    assert got == ["one"]
    await model.left(1)
    await chat.close()


@both_ways
async def test_a_call_ends_at_the_deadline_of_its_answer(model: ScriptedModel, way: str) -> None:
    chat = chat_for(model)
    model.replies = [Hang()]
    call = replace(PLAIN, deadline=Deadline.after(0.2))
    with pytest.raises(ModelTimeout, match=r"0\.2 s"):
        await text_of(chat, way, call)
    await model.left(1)
    await chat.close()


@both_ways
async def test_no_call_is_begun_after_the_deadline(model: ScriptedModel, chat: OpenAIChat, way: str) -> None:
    call, usage = replace(PLAIN, deadline=Deadline.after(-1)), Usage()
    with pytest.raises(ModelTimeout):
        await (chat.complete(call, usage) if way == "complete" else streamed(chat, call, usage))
    assert (model.requests, usage.calls) == ([], 0)


async def test_a_reply_that_is_read_while_it_is_written_may_take_longer_as_long_as_it_comes(
    model: ScriptedModel,
) -> None:
    chat = chat_for(model, timeout_s=0.3)
    model.piece_chars, model.piece_delay = 12, 0.05
    text = "twelve chars" * 15
    model.answer = lambda _: text
    written = replace(PLAIN, written=True)
    assert "".join(await streamed(chat, written)) == text
    with pytest.raises(ModelTimeout):
        await streamed(chat, PLAIN)
    with pytest.raises(ModelTimeout):
        await streamed(chat, replace(written, deadline=Deadline.after(0.3)))
    await chat.close()


async def test_a_reply_that_drips_earns_next_to_no_time(model: ScriptedModel) -> None:
    chat = chat_for(model, timeout_s=0.2)
    model.piece_chars, model.piece_delay = 1, 0.15
    model.answer = lambda _: "a reply of some forty letters, by and by"
    got: list[str] = []
    with pytest.raises(ModelTimeout):
        await collect(chat, got, replace(PLAIN, written=True))
    assert len(got) < 10
    await chat.close()


async def test_a_stream_cut_after_its_first_piece_is_an_error_and_no_second_call(
    model: ScriptedModel, chat: OpenAIChat
) -> None:
    model.replies = [Cut(24), "never asked for"]
    got: list[str] = []
    with pytest.raises(ModelError, match="cut the connection"):
        await collect(chat, got)
    assert "".join(got) == "a reply that nobody will"
    assert len(model.requests) == 1


async def test_a_reply_cut_in_the_middle_is_asked_for_again(model: ScriptedModel, chat: OpenAIChat) -> None:
    model.replies = [Cut(10), "whole"]
    assert await chat.complete(PLAIN, Usage()) == "whole"


async def test_an_error_inside_a_stream_is_what_it_says(model: ScriptedModel, chat: OpenAIChat) -> None:
    failed = event({"error": {"code": 429, "message": "slow down"}})
    model.replies = [Split([failed]), Split([delta("one"), failed])]
    got: list[str] = []
    with pytest.raises(ModelBusy):
        await collect(chat, got)
    assert got == ["one"]
    assert len(model.requests) == 2


async def test_an_endpoint_that_is_not_there_is_an_error() -> None:
    async with scripted_model() as gone:
        pass
    chat = chat_for(gone)
    with pytest.raises(ModelError, match="cannot be reached"):
        await chat.complete(PLAIN, Usage())
    await chat.close()


# ---------------------------------------------------------------- leaving, slots, connections


async def test_closing_a_stream_hangs_up_counts_and_frees_the_slot(model: ScriptedModel) -> None:
    chat = chat_for(model, max_concurrency=1)
    model.piece_delay = 60
    model.replies = [Split([delta("one of several"), END])]
    usage = Usage()
    async with aclosing(chat.stream(PLAIN, usage)) as pieces:
        assert await anext(pieces) == "one of several"
    await model.left(1)
    assert usage == Usage(calls=1, prompt_tokens=3, completion_tokens=3, model="small")
    model.piece_delay = 0
    model.replies = ["next"]
    assert await chat.complete(PLAIN, Usage()) == "next"
    await chat.close()


@both_ways
async def test_a_cancelled_call_hangs_up_and_frees_the_slot(model: ScriptedModel, way: str) -> None:
    chat = chat_for(model, max_concurrency=1)
    model.replies = [Hang(), "next"]
    call = asyncio.create_task(text_of(chat, way, PLAIN))
    await model.seen(1)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await model.left(1)
    assert await text_of(chat, way, PLAIN) == "next"
    await chat.close()


async def test_calls_stay_within_the_limit_and_share_connections(model: ScriptedModel) -> None:
    chat = chat_for(model, max_concurrency=3)
    model.answer = lambda asked: "an answer in more than one piece"
    calls = [text_of(chat, ("complete", "stream")[n % 2], PLAIN) for n in range(24)]
    assert set(await asyncio.gather(*calls)) == {"an answer in more than one piece"}
    assert model.max_in_flight <= 3
    assert len(model.connections) <= 3
    assert model.cancelled == 0
    await chat.close()


async def test_a_site_with_many_calls_lets_another_in(model: ScriptedModel) -> None:
    chat = chat_for(model, max_concurrency=1)
    model.answer = lambda asked: "yes"
    busy = [chat.complete(ModelCall(prompt=f"busy {n}", site="busy"), Usage()) for n in range(6)]
    await asyncio.gather(*busy, chat.complete(ModelCall(prompt="quiet", site="quiet"), Usage()))
    assert "quiet" in [asked.prompt for asked in model.requests[:3]]
    await chat.close()


# ---------------------------------------------------------------- small parts


def test_when_to_come_back_is_read_in_every_form() -> None:
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    assert retry_after({"retry-after": "1.5"}) == 1.5
    assert retry_after({"retry-after-ms": "250", "retry-after": "9"}) == 0.25
    assert 20 < (retry_after({"retry-after": soon}) or 0) <= 30
    assert retry_after({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0
    assert retry_after({"retry-after": "-3"}) == 0
    assert retry_after({"retry-after": "soon"}) is None
    assert retry_after({"retry-after": "nan"}) is None
    assert retry_after({}) is None


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        {"type": "object", "properties": {}},
        {"type": "object", "properties": {"a": {"type": "string", "format": "uri"}}, "required": ["a"]},
        {"type": "object", "properties": {"a": {}}, "required": ["a"]},
        {"type": "object", "properties": {"a": {"type": "array"}}, "required": ["a"]},
        {
            "type": "object",
            "properties": {"a": {"type": "string"}},
            "required": ["a"],
            "additionalProperties": True,
        },
        {"$ref": "#/x"},
        {"type": ["string", "null"]},
    ],
)
def test_schemas_that_strict_mode_would_change_or_refuse_are_not_strict(schema: dict[str, Any]) -> None:
    assert strict_schema(schema) is None
