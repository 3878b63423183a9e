"""Which applications a caller's facts may be bound to: sites it may read, and names of a program's own."""

from __future__ import annotations

from aiohttp import web

from core.errors import UnknownSite
from server.auth import readable_sites, require


async def check_application(request: web.Request, name: str, *, field: str) -> None:
    """Whether the caller may keep and look for facts of the application `name`: of a site that it may read.

    A credential without a limit may also name an app of its own that is no site here; that keeps no site's
    secret, as it may read them all. For everybody else a site that may not be read is told like one that is
    not there. Raises UnknownSite naming `field`.
    """
    caller = require(request, "read")
    unlimited = caller.scope.sites is None and caller.scope.private
    if not name or unlimited:
        return
    readable = await readable_sites(request)
    if name not in readable:
        there = ", ".join(readable) or "none yet"
        raise UnknownSite(f"there is no site `{name[:80]}`; sites: {there}", field=field)
