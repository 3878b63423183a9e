"""The one MCP server of the process: started by the first request, as the SDK takes a second to import."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib import import_module
from typing import Any

from aiohttp import web

# Of older clients at a time; those beyond are answered without one.
MAX_SESSIONS = 1000


class McpEndpoint:
    """Answers MCP requests over HTTP. Every request is its caller's own."""

    def __init__(self) -> None:
        self._starting = asyncio.Lock()
        self._transports: Any = None
        self._task: asyncio.Task[None] | None = None
        self._stop = asyncio.Event()
        self._more: list[Callable[[Any], None]] = []
        self.max_sessions = MAX_SESSIONS

    def extend(self, more: Callable[[Any], None]) -> None:
        """Have what is offered extended: `more` is given the SDK's server before it takes its first request.

        Raises RuntimeError once it has.
        """
        if self._transports is not None:
            raise RuntimeError("the MCP server runs already")
        self._more.append(more)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """The answer to one HTTP request, which has passed the middlewares."""
        async with self._starting:
            if self._transports is None:
                self._transports = await self._start()
        response: web.StreamResponse = await self._transports.answer(request)
        return response

    async def close(self) -> None:
        """End what still runs."""
        self._stop.set()
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    async def _start(self) -> object:
        protocol = await asyncio.to_thread(import_module, "server.mcp.protocol")
        server = protocol.protocol_server()
        for more in self._more:
            more(server)
        transports = protocol.Transports(server, self.max_sessions)
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # The SDK's task groups must be left by the task that entered them, so they have one of their own.
        self._task = asyncio.create_task(self._serve(transports, ready))
        await ready
        return transports

    async def _serve(self, transports: Any, ready: asyncio.Future[None]) -> None:
        async with transports.running():
            ready.set_result(None)
            await self._stop.wait()


ENDPOINT = web.AppKey("mcp_endpoint", McpEndpoint)
