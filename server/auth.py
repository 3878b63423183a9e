"""Who is asking: the operator by a token, an anonymous visitor by a signed cookie, or nobody known."""

from __future__ import annotations

import hmac

from aiohttp import web

from core.errors import Forbidden, Unauthorized
from core.memory import COOKIE_REALM
from core.query import Identity
from server.keys import ADMIN_TOKEN, SIGNER

COOKIE = "askable_visitor"
COOKIE_PURPOSE = "visitor-cookie"
COOKIE_MAX_AGE_S = 365 * 86400


def visitor(request: web.Request) -> Identity | None:
    """The visitor that the cookie names, if we signed it."""
    cookie = request.cookies.get(COOKIE)
    value = request.app[SIGNER].verify(COOKIE_PURPOSE, cookie) if cookie else None
    return Identity(COOKIE_REALM, str(value["id"])) if value else None


def set_visitor(request: web.Request, response: web.StreamResponse, identity: Identity) -> None:
    """Give the caller its cookie: not readable by scripts, not sent by other sites' requests."""
    response.set_cookie(
        COOKIE,
        request.app[SIGNER].sign(COOKIE_PURPOSE, {"id": identity.user}),
        max_age=COOKIE_MAX_AGE_S,
        httponly=True,
        samesite="Lax",
        secure=request.secure,
        path="/",
    )


def same_origin(request: web.Request) -> bool:
    """Whether a request that carries a cookie was made by our own page (or by no browser at all).

    Fetch Metadata (W3C) where the browser sends it, else the Origin header.
    """
    fetch_site = request.headers.get("Sec-Fetch-Site")
    if fetch_site is not None:
        return fetch_site == "same-origin"
    origin = request.headers.get("Origin")
    if origin is not None:
        return origin == f"{request.scheme}://{request.host}"
    # Neither header: a program, or a browser following a link, which is a GET that brings the cookie along.
    return request.method != "GET" or COOKIE not in request.cookies


def require_admin(request: web.Request) -> None:
    """Raises Unauthorized without a credential, Forbidden with a wrong one."""
    header = request.headers.get("Authorization", "")
    scheme, _, token = header.partition(" ")
    if scheme.lower() not in ("bearer", "token"):
        token = header
    if not token:
        raise Unauthorized(
            "this needs the admin token: `Authorization: Bearer ...` (see data_dir/server.json)"
        )
    if not hmac.compare_digest(token.encode(), request.app[ADMIN_TOKEN].encode()):
        raise Forbidden("this token may not do that")
