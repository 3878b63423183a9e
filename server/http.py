"""The HTTP server under the application: requests that never reach it are refused as JSON like all others."""

from __future__ import annotations

import logging

from aiohttp import web
from aiohttp.http_exceptions import LineTooLong
from aiohttp.web_protocol import RequestHandler

from server.middleware import error_response, refused_response

log = logging.getLogger(__name__)

# RFC 9110, 15.5.1 and RFC 6585, 5.
BAD = (400, "bad_request", "this is no HTTP request that this server can read")
TOO_LONG = (431, "too_large", "the request line, or a header, is too long: send long questions by POST")


class Runner(web.AppRunner):
    """An AppRunner whose errors are JSON also where no middleware sees them."""

    async def _make_server(self) -> web.Server:
        made = await super()._make_server()

        async def handle(request: web.BaseRequest) -> web.StreamResponse:
            try:
                return await made.request_handler(request)
            except web.HTTPException as refused:  # an `Expect` that is none of ours
                return refused_response(refused)

        return _Server(
            handle,
            request_factory=made.request_factory,
            handler_cancellation=made.handler_cancellation,
            loop=made._loop,
            **made._kwargs,
        )


class _Server(web.Server):
    def __call__(self) -> RequestHandler:
        return _Protocol(self, loop=self._loop, **self._kwargs)


class _Protocol(RequestHandler):
    __slots__ = ()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """`{error: {code, message}}`, and the connection's end. What the client sent is in neither it nor the
        log. Raises ConnectionError where an answer has begun already."""
        if status >= 500:
            super().handle_error(request, status, exc, message)
            response = error_response("internal", "the server failed on this request", 500)
        else:
            if request.writer.output_size > 0:
                raise ConnectionError("an answer has begun already")
            status, code, text = TOO_LONG if isinstance(exc, LineTooLong) else BAD
            log.debug("request.unreadable", extra={"reason": type(exc).__name__})
            response = error_response(code, text, status)
        response.force_close()
        return response
