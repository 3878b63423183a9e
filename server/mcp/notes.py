"""What a client's log is told of a call that goes on (`notifications/message`)."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Final

import mcp_types as types
from mcp.server.connection import allowed_log_levels
from mcp.server.context import ServerRequestContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from server.mcp.base import Warn
from server.mcp.endpoint import MAX_SESSIONS
from server.mcp.transports import SESSION

LOGGER: Final = "askable"
# By RFC 5424, the mildest first; `warn` says `warning`.
WARNING_OR_MILDER: Final = frozenset({"debug", "info", "notice", "warning"})

Context = ServerRequestContext[Any, Any]


class Notes:
    """Older clients set a level for their session, newer ones for each request."""

    def __init__(self) -> None:
        self._levels: OrderedDict[str, str] = OrderedDict()

    def set_level(self, ctx: Context, level: str) -> None:
        """From now on the session is told of nothing milder. Without a session there is no `from now on`."""
        session = _session(ctx)
        if session:
            self._levels[session] = level
            self._levels.move_to_end(session)
            while len(self._levels) > MAX_SESSIONS:
                self._levels.popitem(last=False)

    def warner(self, ctx: Context) -> Warn:
        """Tells the client of this call of something that went wrong."""

        async def warn(text: str) -> None:
            if not self._wanted(ctx):
                return
            note = types.LoggingMessageNotificationParams(level="warning", logger=LOGGER, data=text)
            await ctx.session.send_notification(
                types.LoggingMessageNotification(params=note), related_request_id=ctx.request_id
            )

        return warn

    def _wanted(self, ctx: Context) -> bool:
        if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return "warning" in allowed_log_levels(ctx.protocol_version, ctx.meta)
        return self._levels.get(_session(ctx), "warning") in WARNING_OR_MILDER


def _session(ctx: Context) -> str:
    return ctx.request.headers.get(SESSION, "") if ctx.request is not None else ""
