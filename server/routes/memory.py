"""`/memory/confirm`: the person agrees that a fact is kept, and gets the cookie it is kept under."""

from __future__ import annotations

from aiohttp import web

from core.errors import BadQuery, Forbidden, NotFound
from server.auth import same_origin, set_visitor, visitor
from server.keys import MEMORY
from server.middleware import json_response
from server.params import json_body

routes = web.RouteTableDef()

MAX_TOKEN_CHARS = 20_000


@routes.post("/memory/confirm")
async def confirm(request: web.Request) -> web.Response:
    """`{token}` of a `remember` message -> `{memory_id, text}`; from our own page only."""
    if MEMORY not in request.app:
        raise NotFound("memory is switched off here (`memory.mode`)")
    if not same_origin(request):
        raise Forbidden("a fact is confirmed on this server's own page")
    token = (await json_body(request)).get("token")
    if not isinstance(token, str) or not 0 < len(token) <= MAX_TOKEN_CHARS:
        raise BadQuery("`token` is needed: the `confirm` of a remember message", field="token")
    caller = visitor(request)
    identity, detected, stored = await request.app[MEMORY].confirm(token, caller)
    response = json_response({"memory_id": stored.memory_id if stored else None, "text": detected.text})
    if caller is None:
        set_visitor(request, response, identity)
    return response
