"""Around every handler: foreign hosts turned away, errors as JSON, headers for allowed other origins."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import orjson
from aiohttp import web

from core.errors import AskError, Unauthorized
from server.auth import challenge
from server.keys import SETTINGS

log = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})
CORS = web.RequestKey("cors", dict[str, str])
OPENED = web.RequestKey("opened", web.StreamResponse)
CORS_METHODS = "GET, POST, PUT, PATCH, DELETE, OPTIONS"
CORS_HEADERS = (
    "authorization, x-api-key, x-user-id, content-type, last-event-id, accept, "
    "mcp-protocol-version, mcp-method, mcp-name, mcp-session-id"
)


def json_response(body: object, *, status: int = 200) -> web.Response:
    """A JSON answer by orjson."""
    return web.Response(
        body=orjson.dumps(body),
        status=status,
        content_type="application/json",
        # Answers may hold what a person asked, or asked to remember.
        headers={"Cache-Control": "no-store"},
    )


def error_response(code: str, message: str, status: int, field: str | None = None) -> web.Response:
    """`{error:{code,message,field}}`, the one shape of errors before a stream starts."""
    return json_response({"error": {"code": code, "message": message, "field": field}}, status=status)


def refused_response(refused: web.HTTPException) -> web.Response:
    """What aiohttp itself refuses: no such path (404), no such method (405), an unknown `Expect` (417)."""
    response = error_response(refused.reason.lower().replace(" ", "_"), refused.reason, refused.status)
    if "Allow" in refused.headers:
        response.headers["Allow"] = refused.headers["Allow"]
    return response


@web.middleware
async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer foreign hosts with 421, preflights at once, and put the CORS headers on every reply."""
    if not _host_allowed(request):
        return error_response("misdirected", "this server does not answer for that host name", 421)
    headers = _cors(request)
    request[CORS] = headers
    if request.method == "OPTIONS" and "Access-Control-Request-Method" in request.headers:
        response: web.StreamResponse = web.Response(status=204)
    else:
        response = await handler(request)
    if not response.prepared:
        response.headers.update(headers)
        response.headers.setdefault("X-Content-Type-Options", "nosniff")
    return response


@web.middleware
async def errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Every error as JSON; the cause of an unexpected one goes to the log alone."""
    try:
        return await handler(request)
    except AskError as failed:
        response = error_response(failed.code, failed.message, failed.status, failed.field)
        if isinstance(failed, Unauthorized):
            response.headers["WWW-Authenticate"] = challenge(request)
        return response
    except web.RequestPayloadError:
        message = "the body cannot be read: it is not encoded as it says"
        return error_response("bad_request", message, 400, "body")
    except web.HTTPRequestEntityTooLarge:
        most = request.app[SETTINGS].server.max_body_mb
        return error_response("too_large", f"the body may have {most:g} MB", 413)
    except web.HTTPException as refused:
        if refused.status < 400:
            raise
        return refused_response(refused)
    except Exception:
        log.exception("request.failed", extra={"path": request.path})
        opened: web.StreamResponse | None = request.get(OPENED)
        if opened is not None:
            # Half an answer is out: a second response in the same stream would be worse than none.
            if request.transport is not None:
                request.transport.abort()
            return opened
        return error_response("internal", "the server failed on this request", 500)


def _host_allowed(request: web.Request) -> bool:
    server = request.app[SETTINGS].server
    host = request.host.lower()
    name = host.rsplit(":", 1)[0] if not host.endswith("]") and host.count(":") != 2 else host
    name = name.strip("[]")
    return (
        name in LOCAL_HOSTS
        or name == server.host
        or name in server.allowed_hosts
        or host in server.allowed_hosts
    )


def _cors(request: web.Request) -> dict[str, str]:
    allowed = request.app[SETTINGS].server.cors_origins
    origin = request.headers.get("Origin")
    if origin is None or not allowed:
        return {}
    headers = {"Vary": "Origin"}
    if origin in allowed or "*" in allowed:
        # Never with credentials: a widget on another site is an anonymous caller.
        headers |= {
            "Access-Control-Allow-Origin": origin,
            "Access-Control-Allow-Methods": CORS_METHODS,
            "Access-Control-Allow-Headers": CORS_HEADERS,
            "Access-Control-Expose-Headers": "WWW-Authenticate, Mcp-Session-Id",
            "Access-Control-Max-Age": "600",
        }
    return headers
