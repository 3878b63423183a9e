"""Server-sent events (WHATWG HTML, 9.2): a response that streams JSON frames."""

from __future__ import annotations

from typing import Any

import orjson
from aiohttp import web

from server.middleware import CORS, OPENED

# A browser that lost the connection comes back this soon: within the grace of `server.runs`.
RETRY_MS = 250
HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-cache",
    "X-Accel-Buffering": "no",
}
COMMENT = b": keep-alive\n\n"


def event(body: Any, *, event_id: str | None = None, name: str | None = None) -> bytes:
    """One event. JSON has no raw line breaks, so one `data:` line always holds it."""
    lines = []
    if name is not None:
        lines.append(b"event: " + name.encode())
    if event_id is not None:
        lines.append(b"id: " + event_id.encode())
    lines.append(b"data: " + orjson.dumps(body))
    return b"\n".join(lines) + b"\n\n"


async def open_stream(request: web.Request, *, resumable: bool = False) -> web.StreamResponse:
    """The response with its headers sent, so that proxies and clients see it at once. A `resumable` stream's
    events have ids, and a client that lost it is to come back soon; another it would get all again."""
    response = web.StreamResponse(headers={**HEADERS, **request.get(CORS, {})})
    await response.prepare(request)
    request[OPENED] = response
    if resumable:
        await response.write(b"retry: %d\n\n" % RETRY_MS)
    return response
