"""`/.well-known/oauth-protected-resource`: where people's clients sign in (RFC 9728)."""

from __future__ import annotations

from aiohttp import web

from core.errors import NotFound
from server.auth import MCP, METADATA, resource_url
from server.keys import SETTINGS
from server.middleware import json_response

routes = web.RouteTableDef()


@routes.get(METADATA)
@routes.get(METADATA + MCP)
async def metadata(request: web.Request) -> web.Response:
    """The metadata of this server, or of its MCP endpoint, which is a resource of its own (RFC 9728, 3.1)."""
    jwt = request.app[SETTINGS].auth.jwt
    if jwt is None:
        raise NotFound("nobody signs in here by token (`auth.jwt`)")
    return json_response(
        {
            "resource": resource_url(request) + request.path.removeprefix(METADATA),
            "authorization_servers": [jwt.issuer],
            "bearer_methods_supported": ["header"],
            "resource_name": "askable",
        }
    )
