"""How requests reach the server of the protocol: each on its own, or within a session of an older client.

Newer clients need no session. Older ones are given one when they begin, so that their calls can be stopped by
a message of its own and their person asked back. Nothing rests on it: whoever names none, or one that another
process gave, that idled away, or that is another caller's, is answered all the same, as if alone. Only one
that its client ended is gone, as the protocol has it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
import orjson
from aiohttp import web
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from core.errors import Unauthorized
from server.auth import caller_of
from server.keys import MEMORY, SETTINGS
from server.mcp.adapter import run
from server.mcp.table import is_of_memory
from server.middleware import error_response

SESSION: Final = "Mcp-Session-Id"
VERSION: Final = "MCP-Protocol-Version"
IDLE_S: Final = 600.0
# Arguments may hold a long question with its history; anything larger is no call of these tools.
MAX_BODY: Final = 4 * 1024 * 1024
# What the transport of sessions answers to a session it does not know, and where it has no room for another.
NO_SESSION: Final = frozenset({404, 503})
# What stops the call that a request carries; set before the protocol sees it.
CALL = web.RequestKey("mcp_call", anyio.CancelScope)

# They name sessions in their logs, whose ids are for their clients alone.
logging.getLogger("mcp.server.streamable_http_manager").setLevel(logging.ERROR)
logging.getLogger("mcp.server.streamable_http").setLevel(logging.WARNING)


class Transports:
    """Two transports of the SDK before one server. Host and Origin are checked before them."""

    def __init__(self, server: Server[Any], max_sessions: int) -> None:
        self._alone = StreamableHTTPSessionManager(server, stateless=True, max_request_body_size=MAX_BODY)
        self._sessions = StreamableHTTPSessionManager(
            server,
            max_request_body_size=MAX_BODY,
            session_idle_timeout=IDLE_S,
            max_sessions=max_sessions,
        )
        self._ended: deque[str] = deque(maxlen=max_sessions)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """While requests can be answered."""
        async with self._alone.run(), self._sessions.run():
            yield

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """The answer to one HTTP request. A client that leaves before it ends the call."""
        body = await _body(request)
        if body is None:
            return error_response("too_large", f"a message may have {MAX_BODY:,} bytes", 413)
        _check_known(request, body)
        request[CALL] = anyio.CancelScope()
        try:
            if _may_have_session(request, body):
                response = await self._in_session(request, body)
                session = request.headers.get(SESSION)
                if request.method == "DELETE" and response.status < 400 and session is not None:
                    self._ended.append(session)
                if response.prepared or response.status not in NO_SESSION or session in self._ended:
                    return response
            if request.method != "POST":
                return error_response("not_found", "there is no such session", 404)
            return await run(self._alone.handle_request, request, body)
        finally:
            # Within a session a call outlives the request that carried it, unless it is told.
            request[CALL].cancel()

    async def _in_session(self, request: web.Request, body: bytes) -> web.StreamResponse:
        answering = run(self._sessions.handle_request, request, body, user=_user(request))
        if SESSION in request.headers:
            return await answering
        # A client has its session's id with the first byte, and may hang up at the last: that is no reason
        # for the SDK to take the session back.
        return await asyncio.shield(asyncio.ensure_future(answering))


def _may_have_session(request: web.Request, body: bytes) -> bool:
    if request.headers.get(VERSION, HANDSHAKE_PROTOCOL_VERSIONS[0]) not in HANDSHAKE_PROTOCOL_VERSIONS:
        return False
    return SESSION in request.headers or _begins(body)


def _begins(body: bytes) -> bool:
    try:
        message = orjson.loads(body)
    except orjson.JSONDecodeError:
        return False
    return isinstance(message, dict) and message.get("method") == "initialize"


def _check_known(request: web.Request, body: bytes) -> None:
    """Raises Unauthorized where nobody is known and a tool of memory is called that needs somebody, if people
    can sign in: its 401 says where, and clients begin with that (MCP, Authorization). Within a result it
    would only be a failure of the tool."""
    caller, app = caller_of(request), request.app
    if caller.identity is not None or caller.via not in ("anonymous", "cookie"):
        return
    if app[SETTINGS].auth.jwt is None or MEMORY not in app:
        return
    try:
        said = orjson.loads(body)
    except orjson.JSONDecodeError:
        return
    if any(_calls_memory(one) for one in (said if isinstance(said, list) else [said])):
        raise Unauthorized("nobody is known here: sign in, and what is remembered is yours")


def _calls_memory(message: object) -> bool:
    if not isinstance(message, dict) or message.get("method") != "tools/call":
        return False
    params = message.get("params")
    return isinstance(params, dict) and is_of_memory(params.get("name"))


def _user(request: web.Request) -> AuthenticatedUser:
    """Whose a session is, as the SDK compares it."""
    return AuthenticatedUser(AccessToken(token="", client_id=caller_of(request).label, scopes=[]))


async def _body(request: web.Request) -> bytes | None:
    """None for one that is too large, of which no more is read."""
    parts: list[bytes] = []
    size = 0
    async for block in request.content.iter_any():
        parts.append(block)
        size += len(block)
        if size > MAX_BODY:
            return None
    return b"".join(parts)
