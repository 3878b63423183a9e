"""The one MCP server of the process: started by the first request, as the SDK takes a second to import."""

from __future__ import annotations

import asyncio
from importlib import import_module

from aiohttp import web

from server.mcp.adapter import App, run
from server.mcp.calls import session_header


class McpEndpoint:
    """Answers MCP requests over HTTP, without sessions. Every request is its caller's own."""

    def __init__(self) -> None:
        self._starting = asyncio.Lock()
        self._app: App | None = None
        self._task: asyncio.Task[None] | None = None
        self._stop = asyncio.Event()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """The answer to one HTTP request, which has passed the middlewares."""
        async with self._starting:
            if self._app is None:
                self._app = await self._start()
        return await run(self._app, request, session_header(request))

    async def close(self) -> None:
        """End what still runs."""
        self._stop.set()
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    async def _start(self) -> App:
        module = await asyncio.to_thread(import_module, "server.mcp.protocol")
        ready: asyncio.Future[App] = asyncio.get_running_loop().create_future()
        # The SDK's task group must be left by the task that entered it, so it has one of its own.
        self._task = asyncio.create_task(self._serve(module.manager(), ready))
        return await ready

    async def _serve(self, manager: object, ready: asyncio.Future[App]) -> None:
        async with manager.run():  # type: ignore[attr-defined]
            ready.set_result(manager.handle_request)  # type: ignore[attr-defined]
            await self._stop.wait()


ENDPOINT = web.AppKey("mcp_endpoint", McpEndpoint)
