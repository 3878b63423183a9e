"""`/ask`: a question in, the answer as a stream of events or as one JSON object."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress

from aiohttp import web

from core.messages import Complete, Failure
from core.query import Query
from server import wire
from server.auth import same_origin, visitor
from server.keys import DOCUMENTS, PIPELINE, RUNS, SETTINGS
from server.middleware import json_response
from server.params import asked_from, read_params
from server.runs import Frame, Run
from server.sse import COMMENT, HEARTBEAT_S, event, open_stream

routes = web.RouteTableDef()


@routes.get("/ask")
@routes.post("/ask")
async def ask(request: web.Request) -> web.StreamResponse:
    """Contract section 4."""
    identity = visitor(request)
    caller = identity.key if identity else ""
    if last_event_id := request.headers.get("Last-Event-ID"):
        found = request.app[RUNS].find(last_event_id, caller)
        # A run that is forgotten is not run again: 204 also tells an EventSource to stop asking.
        return await _send(request, *found) if found else web.Response(status=204)
    asked = asked_from(
        await read_params(request),
        settings=request.app[SETTINGS],
        readable=await request.app[DOCUMENTS].site_names(),
        identity=identity,
        remember=same_origin(request),
        accept=request.headers.get("Accept", ""),
    )
    frames = _frames(request, asked.query)
    if asked.streaming:
        run = request.app[RUNS].start(caller, frames, lambda had: _closing(asked.query, had))
        return await _send(request, run, -1)
    async with aclosing(frames):
        collected = [frame async for frame in frames]
    return json_response(wire.whole(collected, asked.query.query_id, asked.query.conversation_id))


async def _frames(request: web.Request, query: Query) -> AsyncGenerator[Frame, None]:
    async with aclosing(request.app[PIPELINE].run(query)) as messages:
        async for message in messages:
            yield wire.frame(message, query.query_id, query.conversation_id)


async def _send(request: web.Request, run: Run, after: int) -> web.StreamResponse:
    response = await open_stream(request)
    # A client that left shows at the next write: no error, and the run knows that it lost a reader.
    with suppress(ConnectionResetError):
        async with aclosing(run.read(after, every_s=HEARTBEAT_S)) as frames:
            async for numbered in frames:
                if numbered is None:
                    await response.write(COMMENT)
                else:
                    number, frame = numbered
                    await response.write(event(frame, event_id=f"{run.id}.{number}"))
        await response.write_eof()
    return response


def _closing(query: Query, had: list[Frame]) -> list[Frame]:
    """The end of an answer that was stopped because nobody was there any more."""
    scored = {
        (item["site"], item["document_id"]): item
        for frame in had
        if frame["message_type"] == "result_batch"
        for item in frame["results"]
    }
    best = sorted(scored.values(), key=lambda item: -(item.get("score") or 0))[: query.max_results]
    messages = (
        Failure("stopped", "the connection was lost and the answer was stopped", retryable=True),
        Complete(order=tuple(item["document_id"] for item in best), degraded=True),
    )
    return [wire.frame(message, query.query_id, query.conversation_id) for message in messages]
