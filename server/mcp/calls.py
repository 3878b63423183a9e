"""The calls that run, for clients of the older protocol eras, who stop one by a message of its own.

There the message comes in a request of its own, and ids of calls are only unique within a client. So a client
is given a session id, which means nothing else: it names whose call is meant, and nobody can guess another's.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from secrets import token_urlsafe

import anyio
from aiohttp import web

from server.auth import caller_of

SESSION: str = "Mcp-Session-Id"
VERSION: str = "MCP-Protocol-Version"

Key = tuple[str, str, str | int]


class Calls:
    """Who called what, as long as it runs."""

    def __init__(self) -> None:
        self._running: dict[Key, anyio.CancelScope] = {}

    @contextmanager
    def running(self, request: web.Request, call_id: str | int | None) -> Iterator[anyio.CancelScope]:
        """While the call runs; `cancelled_caught` of the scope tells afterwards whether it was stopped."""
        key = _key(request, call_id)
        with anyio.CancelScope() as scope:
            if key is not None:
                self._running[key] = scope
            try:
                yield scope
            finally:
                if key is not None and self._running.get(key) is scope:
                    del self._running[key]

    def stop(self, request: web.Request, call_id: str | int | None) -> None:
        """Stop the call that the sender of `request` means, if it still runs."""
        key = _key(request, call_id)
        if key is not None and key in self._running:
            self._running[key].cancel()


def session_header(request: web.Request) -> dict[str, str]:
    """A session id for who begins: a request that names neither a session nor a protocol version."""
    if SESSION in request.headers or VERSION in request.headers:
        return {}
    return {SESSION: token_urlsafe(24)}


def _key(request: web.Request, call_id: str | int | None) -> Key | None:
    session = request.headers.get(SESSION)
    return None if session is None or call_id is None else (session, caller_of(request).label, call_id)
