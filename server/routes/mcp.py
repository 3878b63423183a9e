"""`/mcp`: the Model Context Protocol over streamable HTTP, for agents."""

from __future__ import annotations

from urllib.parse import urlsplit

from aiohttp import web

from core.errors import Forbidden
from server.auth import MCP, require
from server.keys import SETTINGS
from server.mcp.endpoint import ENDPOINT

routes = web.RouteTableDef()


@routes.post(MCP)
async def call(request: web.Request) -> web.StreamResponse:
    """One message in, its answer out, as JSON or as a stream. Nothing is said outside of an answer, so there
    is nothing to GET: that is 405, as the protocol has it for such a server."""
    require(request, "read")
    _check_origin(request)
    return await request.app[ENDPOINT].handle(request)


@routes.delete(MCP)
async def end(request: web.Request) -> web.StreamResponse:
    """A client of the older revisions is done with its session."""
    require(request, "read")
    _check_origin(request)
    return await request.app[ENDPOINT].handle(request)


def _check_origin(request: web.Request) -> None:
    """Pages of other sites may not speak for who looks at them, unless they may by `cors_origins`."""
    origin = request.headers.get("Origin")
    allowed = request.app[SETTINGS].server.cors_origins
    if origin is None or origin in allowed or "*" in allowed:
        return
    # Not the scheme: before a proxy that ends TLS it is another one.
    if urlsplit(origin).netloc.lower() != request.host.lower():
        raise Forbidden("pages of this origin may not use this server (`server.cors_origins`)")
