"""`/who`: the sites that can answer a question, the best first; no model is asked."""

from __future__ import annotations

from dataclasses import asdict

from aiohttp import web

from core.query import MAX_QUERY_CHARS
from core.who import who
from server.auth import readable_sites
from server.keys import DOCUMENTS, LIBRARY, RETRIEVER
from server.middleware import json_response
from server.params import question, read_params
from server.sse import event, open_stream

routes = web.RouteTableDef()

MAX_SITES = 100


@routes.get("/who", allow_head=False)
@routes.post("/who")
async def answer(request: web.Request) -> web.StreamResponse:
    """`{"sites": [{name, score, description, documents}]}`, or with `streaming` an event a site."""
    params = await read_params(request)
    text = question(params.text("query", limit=MAX_QUERY_CHARS))
    limit = params.number("limit", 1, MAX_SITES) or 10
    streaming = params.flag("streaming", default=False)
    library = request.app[LIBRARY].current
    matches = await who(
        text,
        sites=await readable_sites(request),
        documents=request.app[DOCUMENTS],
        retriever=request.app[RETRIEVER],
        describe=lambda site: library.site(site).description,
        limit=limit,
    )
    if not streaming:
        return json_response({"query": text, "sites": [asdict(match) for match in matches]})
    response = await open_stream(request)
    for match in matches:
        await response.write(event({"message_type": "site", **asdict(match)}))
    await response.write(event({"message_type": "complete"}))
    await response.write_eof()
    return response
