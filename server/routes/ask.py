"""`/ask` and `/await`: a question in; out the answer, streamed or whole, or a promise of it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, suppress
from functools import partial

from aiohttp import web

from core.errors import AskError, BadQuery, NotFound
from core.messages import Complete, Failure, Message
from server.auth import Caller, may_store, readable_sites, require
from server.keys import FEEDBACK, PIPELINE, RUNS, SETTINGS
from server.middleware import json_response
from server.params import Asked, Params, asked_from, json_body, read_params, wants_stream
from server.runs import NOBODY, Run
from server.sse import COMMENT, HEADERS, event, open_stream
from server.wire import DIALECTS, PROMISING, PROTOCOLS, Asking, Dialect, Promised, Sent, stopped
from server.wire.envelopes import status_of
from server.wire.request import dialect_of, flattened

routes = web.RouteTableDef()

# Told with a promise: by then most answers are there.
ESTIMATED_S = 10
MAX_TOKEN_CHARS = 200
ACTIONS = ("checkin", "cancel")


@routes.get("/ask", allow_head=False)
@routes.post("/ask")
async def ask(request: web.Request) -> web.StreamResponse:
    """Contract section 4."""
    caller = require(request, "read")
    params = await read_params(request)
    last_event_id = request.headers.get("Last-Event-ID")
    if last_event_id and _reads_events(request, params):
        found = request.app[RUNS].find(last_event_id, _bound_to(caller))
        # A run that is over or forgotten is not run again: 204 also tells an EventSource to stop asking.
        return await _send(request, *found) if found else web.Response(status=204)
    structured = isinstance(params.raw("query"), Mapping)
    # Until it is known what is spoken, the shape of the body tells in what words to refuse.
    name = PROTOCOLS["structured" if structured else "legacy"]
    readable = await readable_sites(request)
    try:
        params = flattened(params)
        with params.told():
            name = dialect_of(params, structured=structured)
            asked = asked_from(
                params,
                settings=request.app[SETTINGS],
                readable=readable,
                identity=caller.identity,
                remember=may_store(request),
                accept=request.headers.get("Accept", ""),
                operator=caller.may("admin"),
            )
            if asked.respond_async and name not in PROMISING:
                raise BadQuery("`respond_async` is for the structured protocol", field="respond_async")
    except AskError as failed:
        return json_response(DIALECTS[name].refusal(failed), status=failed.status)
    dialect = DIALECTS[name](Asking(asked.query, asked.response_format))
    return await _answer(request, caller, asked, dialect)


def _reads_events(request: web.Request, params: Params) -> bool:
    """Whether the client reads a stream, which alone can be taken up again; one JSON value is an answer by
    itself. What is wrong with the question does not matter to one that was begun."""
    try:
        return wants_stream(flattened(params), request.headers.get("Accept", ""))
    except AskError:
        return True


@routes.head("/ask")
async def headers_only(request: web.Request) -> web.Response:
    """What a GET would say of itself; nothing is asked."""
    require(request, "read")
    return web.Response(headers=HEADERS)


@routes.post("/await")
async def wait(request: web.Request) -> web.Response:
    """`{promise_token, action: checkin|cancel}` -> the Promise again, or the answer's envelope."""
    caller = require(request, "read")
    refusal = DIALECTS["structured-0.55"].refusal
    try:
        return json_response(await _awaited(request, _bound_to(caller)))
    except AskError as failed:
        return json_response(refusal(failed), status=failed.status)


@routes.options("/ask")
@routes.options("/await")
async def options(request: web.Request) -> web.Response:
    """What can be done here; a browser's preflight is answered before it comes to this."""
    methods = "GET, HEAD, POST, OPTIONS" if request.path == "/ask" else "POST, OPTIONS"
    return web.Response(status=204, headers={"Allow": methods})


async def _answer(request: web.Request, caller: Caller, asked: Asked, dialect: Dialect) -> web.StreamResponse:
    messages: AsyncGenerator[Sent, None] = _messages(request, caller, asked)
    if asked.respond_async:
        token = request.app[RUNS].promise(_bound_to(caller), dialect, messages, _unkept)
        # To wait is a preference (RFC 7240): where too many wait already, the answer comes at once.
        if token is not None:
            llm = request.app[PIPELINE].llm
            dialect = type(dialect)(Asking(asked.query, asked.response_format, llm))
            messages = _promise(token)
    if asked.streaming:
        run = request.app[RUNS].start(_bound_to(caller), dialect, messages, partial(stopped, asked.query))
        return await _send(request, run, -1)
    async with aclosing(messages):
        body = dialect.whole([message async for message in messages])
    return json_response(body, status=status_of(body))


async def _messages(request: web.Request, caller: Caller, asked: Asked) -> AsyncGenerator[Message, None]:
    answered = request.app[FEEDBACK].begin(caller.label, asked.query)
    async with aclosing(request.app[PIPELINE].run(asked.query)) as messages:
        async for message in messages:
            answered.see(message)
            yield message


def _unkept(_had: Sequence[Sent], why: Failure) -> list[Message]:
    return [why, Complete(order=(), degraded=True)]


async def _promise(token: str) -> AsyncGenerator[Sent, None]:
    yield Promised(token, ESTIMATED_S)


async def _awaited(request: web.Request, caller: str) -> object:
    body = await json_body(request)
    token, action = body.get("promise_token"), body.get("action", ACTIONS[0])
    if not isinstance(token, str) or not 0 < len(token) <= MAX_TOKEN_CHARS:
        raise BadQuery("`promise_token` is needed: the `token` of a Promise", field="promise_token")
    if action not in ACTIONS:
        raise BadQuery(f"`action` must be one of {', '.join(ACTIONS)}", field="action")
    run = request.app[RUNS].promised(token, caller)
    if run is None:
        raise NotFound("there is no such promise, or it has expired", field="promise_token")
    if action == "cancel":
        request.app[RUNS].cancel(token)
        await run.ended()
    elif not run.done:
        return run.dialect.whole([*run.messages, Promised(token, ESTIMATED_S)])
    return run.dialect.whole(run.messages)


async def _send(request: web.Request, run: Run, after: int) -> web.StreamResponse:
    response = await open_stream(request, resumable=True)
    # A client that left shows at the next write: no error, and the run knows that it lost a reader.
    with suppress(ConnectionResetError):
        async with aclosing(run.read(after, every_s=request.app[RUNS].heartbeat_s)) as frames:
            async for ready in frames:
                events = [
                    event(body, event_id=f"{run.id}.{number}", name=name) for number, (name, body) in ready
                ]
                await response.write(b"".join(events) or COMMENT)
        await response.write_eof()
    return response


def _bound_to(caller: Caller) -> str:
    """Who may read on what this caller began: itself; for one without any identity, who knows the id."""
    return NOBODY if caller.via == "anonymous" else caller.label
