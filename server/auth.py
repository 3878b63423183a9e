"""Who is asking and what they may do: an operator, a key, a person with a token, a visitor, or nobody known.

The `identify` middleware settles it once a request, before any handler; handlers ask `require`, `owner`,
`readable_sites`. A name that a client writes into a body or an address is never an identity: see
`speaking_for`.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Literal

from aiohttp import web

from core.access import Scope
from core.errors import AskError, BadQuery, Forbidden, Unauthorized
from core.identity import COOKIE_REALM
from core.query import Identity
from core.settings import Role
from server.credentials import digest
from server.keys import ADMIN_TOKEN, DOCUMENTS, KEYRING, SETTINGS, SIGNER, TOKENS

Via = Literal["anonymous", "cookie", "key", "jwt", "operator"]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

COOKIE = "askable_visitor"
COOKIE_PURPOSE = "visitor-cookie"
COOKIE_MAX_AGE_S = 365 * 86400
USER_HEADER = "X-User-Id"
MAX_USER_CHARS = 256
MCP = "/mcp"
METADATA = "/.well-known/oauth-protected-resource"
# What is told to anybody, whatever `auth.anonymous` says: probes, the page's own files, where to sign in.
OPEN = frozenset({"/health", "/ready", "/", "/static/{path}", METADATA, METADATA + MCP})


@dataclass(frozen=True, slots=True)
class Caller:
    """Who a request comes from. `identity` owns conversations and memory; None: an anonymous person without
    a cookie, or a key that named no user. `sites` None: not limited by its credential."""

    identity: Identity | None
    roles: frozenset[Role]
    sites: frozenset[str] | None
    via: Via
    realm: str = ""  # `key:NAME`, `jwt:ISSUER`, `operator`, `cookie`: whose ids `identity.user` is one of
    named: bool = False  # the request said for whom it speaks: that one's things, and nobody else's

    def may(self, role: Role) -> bool:
        """Whether the caller has this role; an admin has all."""
        return role in self.roles or "admin" in self.roles

    @property
    def scope(self) -> Scope:
        """What it may see of the sites: private ones need a credential."""
        return Scope(self.sites, private=self.via in ("key", "jwt", "operator"))

    @property
    def label(self) -> str:
        """One string for the same caller at its next request, e.g. to find its runs; injective."""
        return f"{self.via}:{len(self.realm)}:{self.realm}:{self.identity.key if self.identity else ''}"


CALLER = web.RequestKey("caller", Caller)


@web.middleware
async def identify(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Settle who asks. Raises Unauthorized for a credential that is none, or where one is needed, and what
    `speaking_for` raises; what is open to all is answered whatever the request says of who it is."""
    resource = request.match_info.route.resource
    open_to_all = resource is not None and resource.canonical in OPEN
    try:
        caller = await _identified(request)
    except AskError:
        if not open_to_all:
            raise
        caller = Caller(None, frozenset(), None, "anonymous")
    if not caller.roles and not open_to_all:
        raise Unauthorized("this server answers to a credential only: `Authorization: Bearer ...`")
    request[CALLER] = caller
    return await handler(request)


def caller_of(request: web.Request) -> Caller:
    """Who asks, as `identify` found."""
    return request[CALLER]


def require(request: web.Request, role: Role) -> Caller:
    """The caller, if it has this role.

    Raises Unauthorized without a credential, Forbidden with a lesser one.
    """
    caller = request[CALLER]
    if caller.may(role):
        return caller
    if caller.via in ("anonymous", "cookie"):
        raise Unauthorized(f"this needs a key with the role `{role}`: `Authorization: Bearer ...`")
    raise Forbidden(f"this credential has not the role `{role}`")


def owner(request: web.Request, *, changes: bool) -> Identity:
    """Whose conversations and memory this request is about.

    Raises Unauthorized where nobody is known, Forbidden for a key that names no user, and, if it `changes`
    something, for a cookie's request that does not come from our own page.
    """
    caller = require(request, "read")
    if caller.identity is None:
        if caller.via in ("anonymous", "cookie"):
            raise Unauthorized("nobody is known here: sign in, or let the page remember you first")
        raise Forbidden(f"this credential speaks for nobody: name a user with `{USER_HEADER}`")
    if changes and not may_store(request):
        raise Forbidden("this is changed on this server's own page")
    return caller.identity


def may_store(request: web.Request) -> bool:
    """Whether what this request says may be kept: not if a cookie, or nothing, speaks from another site."""
    return request[CALLER].via in ("key", "jwt", "operator") or same_origin(request)


def speaking_for(caller: Caller, user: str) -> Caller:
    """The caller speaking for `user`, an id of its own realm (a header's, or one on a compatibility wire).

    Raises Forbidden without the role `act-as`, and where the request speaks for another user already,
    BadQuery for an id that is none.
    """
    if caller.via in ("anonymous", "cookie") or not caller.may("act-as"):
        raise Forbidden("naming the user one speaks for needs a key with the role `act-as`")
    identity = Identity(caller.realm, check_user(user))
    if caller.named and caller.identity != identity:
        raise Forbidden(f"this request speaks for the user of its `{USER_HEADER}`, and for nobody else")
    return replace(caller, identity=identity, named=True)


def check_user(user: str) -> str:
    """The id, trimmed. Raises BadQuery for one that is empty, `*`, too long, or holds control characters."""
    user = user.strip()
    if not user or user == "*" or len(user) > MAX_USER_CHARS or not user.isprintable():
        raise BadQuery(f"a user's id is 1-{MAX_USER_CHARS} printable characters and not `*`", field="user_id")
    return user


async def readable_sites(request: web.Request) -> list[str]:
    """The names of the sites that the caller may ask, sorted. Raises as `require(request, "read")`."""
    return await request.app[DOCUMENTS].site_names(require(request, "read").scope)


async def writable_sites(request: web.Request) -> list[str]:
    """The names of the sites there are that the caller may change. Raises as `require(request, "write")`."""
    return await request.app[DOCUMENTS].site_names(require(request, "write").scope)


async def check_writable(request: web.Request, site: str) -> None:
    """Whether the caller may put something into `site`, which need not be there yet.

    Raises Unauthorized, or Forbidden, the same whether the site exists or not.
    """
    if not require(request, "write").scope.allows(site):
        raise Forbidden(f"this credential is not for the site `{site}`", field="site")


# ---------------------------------------------------------------- who it is


async def _identified(request: web.Request) -> Caller:
    credential = _credential(request)
    caller = _visitor(request) if credential is None else await _known(request, credential)
    named = request.headers.get(USER_HEADER)
    return caller if named is None else speaking_for(caller, named)


def _credential(request: web.Request) -> str | None:
    """`X-API-Key`, else `Authorization` with the scheme Bearer or Token, or the credential alone."""
    key = request.headers.get("X-API-Key", "").strip()
    if key:
        return key
    header = request.headers.get("Authorization", "").strip()
    scheme, _, rest = header.partition(" ")
    return (rest.strip() if scheme.lower() in ("bearer", "token") else header) or None


async def _known(request: web.Request, credential: str) -> Caller:
    if hmac.compare_digest(digest(credential), digest(request.app[ADMIN_TOKEN])):
        return Caller(None, frozenset({"admin"}), None, "operator", "operator")
    found = request.app[KEYRING].find(credential)
    if found is not None:
        realm = f"key:{found.name}"
        return Caller(None, found.roles, found.sites, "key", realm)
    if TOKENS in request.app:
        return await _person(request, credential)
    raise Unauthorized("this credential is not known here")


async def _person(request: web.Request, token: str) -> Caller:
    told = await request.app[TOKENS].verify(token)
    realm = f"jwt:{told.issuer}"
    return Caller(Identity(realm, told.subject), told.roles, told.sites, "jwt", realm)


def _visitor(request: web.Request) -> Caller:
    """An anonymous person, known by the cookie if there is one that we signed."""
    roles: frozenset[Role] = frozenset({"read"} if request.app[SETTINGS].auth.anonymous == "ask" else ())
    cookie = request.cookies.get(COOKIE)
    value = request.app[SIGNER].verify(COOKIE_PURPOSE, cookie) if cookie else None
    if value is None:
        return Caller(None, roles, None, "anonymous")
    return Caller(Identity(COOKIE_REALM, str(value["id"])), roles, None, "cookie", COOKIE_REALM)


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


def challenge(request: web.Request) -> str:
    """What `WWW-Authenticate` says on a 401 (RFC 6750, 3; RFC 9728, 5.1)."""
    parts = ['realm="askable"']
    if request.app[SETTINGS].auth.jwt is not None:
        path = MCP if request.path == MCP else ""
        parts.append(f'resource_metadata="{resource_url(request)}{METADATA}{path}"')
    if _credential(request) is not None:
        parts.append('error="invalid_token"')
    return "Bearer " + ", ".join(parts)


def resource_url(request: web.Request) -> str:
    """This server's own address as its clients know it, without a path."""
    jwt = request.app[SETTINGS].auth.jwt
    if jwt is not None and jwt.resource:
        return jwt.resource.rstrip("/")
    return f"{request.scheme}://{request.host}"
