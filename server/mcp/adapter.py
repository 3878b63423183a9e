"""Runs an ASGI application behind one aiohttp route (ASGI 3.0, HTTP 2.5): a body in, a stream out.

The client's leaving is not told through `receive`: the server cancels the handler (`handler_cancellation`),
and with it whatever the application is doing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any

from aiohttp import web
from multidict import CIMultiDict

from server.middleware import CORS

Message = MutableMapping[str, Any]
App = Callable[
    [MutableMapping[str, Any], Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]],
    Awaitable[None],
]

# Of one connection (RFC 9110, 7.6.1) or of one body's framing: aiohttp's own to say.
FRAMING = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length"})
REQUEST = "askable.request"  # where the application finds the aiohttp request in its scope


async def run(app: App, request: web.Request, body: bytes, *, user: object = None) -> web.StreamResponse:
    """The application's answer to the request with this body, for this `user` (of its scope). A whole one is
    handed back unsent, so that the middlewares see it."""
    exchange = _Exchange(request, body)
    scope = _scope(request) if user is None else {**_scope(request), "user": user}
    await app(scope, exchange.receive, exchange.send)
    return exchange.response


class _Exchange:
    """One request and its answer."""

    def __init__(self, request: web.Request, body: bytes) -> None:
        self.response: web.StreamResponse = web.Response(status=500)
        self._request = request
        self._body: bytes | None = body
        self._status = 500
        self._headers: CIMultiDict[str] = CIMultiDict()

    async def receive(self) -> Message:
        if self._body is None:
            await asyncio.Event().wait()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(self, message: Message) -> None:
        # A client that left while it was written to: there is nobody to tell.
        with suppress(ConnectionResetError):
            await self._send(message)

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            for name, value in message.get("headers", ()):
                if name.decode("latin-1").lower() not in FRAMING:
                    self._headers.add(name.decode("latin-1"), value.decode("latin-1"))
            return
        body, more = message.get("body", b""), message.get("more_body", False)
        if not self.response.prepared:
            if not more:
                self.response = web.Response(status=self._status, headers=self._headers, body=body)
                return
            self._headers.update(self._request.get(CORS, {}))
            self.response = web.StreamResponse(status=self._status, headers=self._headers)
            await self.response.prepare(self._request)
        if body:
            await self.response.write(body)
        if not more:
            await self.response.write_eof()


def _scope(request: web.Request) -> Message:
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.5"},
        "http_version": f"{request.version.major}.{request.version.minor}",
        "method": request.method,
        "scheme": request.scheme,
        "path": request.path,
        "raw_path": request.raw_path.partition("?")[0].encode(),
        "query_string": request.query_string.encode(),
        "root_path": "",
        "headers": [(name.lower(), value) for name, value in request.raw_headers],
        "client": None,
        "server": None,
        "state": {},
        REQUEST: request,
    }
