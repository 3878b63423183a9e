"""`/suggest`: what a question box could offer while somebody types; names of items alone."""

from __future__ import annotations

from aiohttp import web

from core.suggest import MAX_CHARS
from server.auth import readable_sites
from server.keys import SUGGESTER
from server.middleware import json_response
from server.params import read_params, sites_from

routes = web.RouteTableDef()

MAX_LIMIT = 20


@routes.get("/suggest", allow_head=False)
async def suggest(request: web.Request) -> web.Response:
    """`{"q": ..., "suggestions": [names]}`; for nothing typed, none."""
    params = await read_params(request)
    typed = params.text("q", limit=MAX_CHARS)
    sites, _ = sites_from(params.all("site"), await readable_sites(request))
    limit = params.number("limit", 1, MAX_LIMIT) or 8
    names = await request.app[SUGGESTER].names(typed, among=sites, limit=limit)
    return json_response({"q": typed, "suggestions": names})
