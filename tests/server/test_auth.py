"""Who may do what: every route for every kind of caller; keys, cookies, ids that are named, and secrets."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from core.errors import BadQuery, Forbidden
from core.identity import COOKIE_REALM
from core.query import Identity
from core.settings import ApiKeySettings, AuthSettings
from server.auth import COOKIE, COOKIE_PURPOSE, Caller, check_user, speaking_for
from server.credentials import Keyring
from server.keys import SIGNER
from tests.conftest import ADMIN, KITCHEN, Serve, Served

READER, WRITER, ACTOR, CHIEF = "key-that-reads-1", "key-that-writes-1", "key-that-acts-1", "key-of-the-chief"
LIMITED = "key-of-the-kitchen"
KEYS = [
    {"key": READER, "roles": ["read"], "name": "reader"},
    {"key": WRITER, "roles": ["write"], "name": "writer"},
    {"key": ACTOR, "roles": ["read", "act-as"], "name": "actor"},
    {"key": CHIEF, "roles": ["admin"], "name": "chief"},
    {"key": LIMITED, "roles": ["read", "write", "act-as"], "sites": ["kitchen"], "name": "kitchen"},
]

# What a route needs: nothing, or a role. All but the roles need `read`, and beside it: `own` somebody whose
# things they are, `begin` somebody or a visitor who may become one, `acts` the role `act-as`, `held` one of
# these two.
Need = Literal["open", "read", "write", "admin", "own", "begin", "acts", "held"]


@dataclass(frozen=True)
class Call:
    """A request to a route that could succeed, and what it needs. `{site}` stands for a site's name."""

    need: Need
    path: str = ""
    body: Mapping[str, Any] | None = None
    query: Mapping[str, str] = field(default_factory=dict)


MESSAGE = {"role": "user", "content": "Remember that my oven is small"}
LISTING = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "list_sites", "arguments": {}},
}
MCP_HEADERS = {"Accept": "application/json, text/event-stream"}
ITEM = {"@type": "Recipe", "url": "https://kitchen.example/new", "name": "New", "description": "New."}
ROUTES: dict[tuple[str, str], Call] = {
    ("GET", "/"): Call("open"),
    ("GET", "/static/{path}"): Call("open", "/static/app.js"),
    ("GET", "/health"): Call("open"),
    ("GET", "/ready"): Call("open"),
    ("GET", "/.well-known/oauth-protected-resource"): Call("open"),
    ("GET", "/.well-known/oauth-protected-resource/mcp"): Call("open"),
    ("GET", "/ask"): Call("read", query={"query": "curry vault", "streaming": "false"}),
    ("POST", "/ask"): Call("read", body={"query": "curry vault", "streaming": False}),
    ("POST", "/search"): Call("read", body={"query": "curry vault", "limit": 50}),
    ("GET", "/sites"): Call("read"),
    ("GET", "/who"): Call("read", query={"query": "curry vault"}),
    ("POST", "/who"): Call("read", body={"query": "curry vault"}),
    ("GET", "/suggest"): Call("read", query={"q": "zanz"}),
    ("POST", "/await"): Call("read", body={"promise_token": "x", "action": "checkin"}),
    ("POST", "/mcp"): Call("read", body=LISTING),
    ("DELETE", "/mcp"): Call("read"),
    ("POST", "/feedback"): Call("read", body={"query_id": "q", "rating": "up"}),
    ("GET", "/feedback"): Call("admin"),
    ("POST", "/conversations"): Call("begin", body={}),
    ("GET", "/conversations"): Call("own"),
    ("GET", "/conversations/{id}"): Call("own", "/conversations/c1"),
    ("PATCH", "/conversations/{id}"): Call("own", "/conversations/c1", {"title": "t"}),
    ("DELETE", "/conversations/{id}"): Call("own", "/conversations/c1"),
    ("GET", "/conversations/{id}/export"): Call("own", "/conversations/c1/export"),
    ("GET", "/conversations/{id}/whiteboard"): Call("own", "/conversations/c1/whiteboard"),
    ("POST", "/memory/confirm"): Call("begin", body={"token": "x"}),
    ("GET", "/memory"): Call("own"),
    ("POST", "/memory"): Call("own", body={"text": "My oven is small"}),
    ("GET", "/memory/export"): Call("own"),
    ("GET", "/memory/{memory_id}"): Call("own", "/memory/m1"),
    ("PATCH", "/memory/{memory_id}"): Call("own", "/memory/m1", {"text": "t"}),
    ("DELETE", "/memory/{memory_id}"): Call("own", "/memory/m1"),
    ("GET", "/memory/{memory_id}/history"): Call("own", "/memory/m1/history"),
    ("POST", "/memory/{memory_id}/restore"): Call("own", "/memory/m1/restore", {}),
    ("DELETE", "/memory"): Call("own", query={"all": "true"}),
    ("GET", "/admin/memory"): Call("admin", query={"user": "ada"}),
    ("GET", "/admin/memory/export"): Call("admin", query={"user": "ada"}),
    ("DELETE", "/admin/memory"): Call("admin", query={"user": "ada"}),
    ("POST", "/admin/memory/replay-erasures"): Call("admin", body={}),
    ("POST", "/context"): Call("own", body={"messages": [MESSAGE]}),
    ("GET", "/v1/ping/"): Call("read"),
    ("POST", "/v1/memories/"): Call("acts", body={"messages": [MESSAGE], "user_id": "ada"}),
    ("POST", "/v3/memories/add/"): Call("acts", body={"messages": [MESSAGE], "user_id": "ada"}),
    ("POST", "/v1/memories/search/"): Call("acts", body={"query": "oven", "user_id": "ada"}),
    ("POST", "/v2/memories/search/"): Call("acts", body={"query": "oven", "filters": {"user_id": "ada"}}),
    ("POST", "/v3/memories/search/"): Call("acts", body={"query": "oven", "filters": {"user_id": "ada"}}),
    ("POST", "/v2/memories/"): Call("acts", body={"filters": {"user_id": "ada"}}),
    ("POST", "/v3/memories/"): Call("acts", body={"filters": {"user_id": "ada"}}),
    ("GET", "/v1/memories/"): Call("acts", query={"user_id": "ada"}),
    ("DELETE", "/v1/memories/"): Call("acts", query={"user_id": "ada"}),
    ("GET", "/v1/entities/"): Call("acts"),
    ("DELETE", "/v2/entities/{type}/{id}/"): Call("acts", "/v2/entities/user/ada/"),
    ("GET", "/v1/memories/{memory_id}/"): Call("held", "/v1/memories/m1/"),
    ("GET", "/v1/memories/{memory_id}/history/"): Call("held", "/v1/memories/m1/history/"),
    ("PUT", "/v1/memories/{memory_id}/"): Call("held", "/v1/memories/m1/", {"text": "t"}),
    ("DELETE", "/v1/memories/{memory_id}/"): Call("held", "/v1/memories/m1/"),
    ("PUT", "/v1/batch/"): Call("held", body={"memories": [{"memory_id": "m1", "text": "t"}]}),
    ("DELETE", "/v1/batch/"): Call("held", body={"memories": [{"memory_id": "m1"}]}),
    ("POST", "/documents"): Call("write", body={"site": "{site}", "items": [ITEM]}),
    ("GET", "/documents"): Call("write"),
    ("DELETE", "/documents"): Call("write", query={"url": "https://vault.example/plan"}),
    ("DELETE", "/documents/{document_id}"): Call("write", "/documents/abc", query={"site": "{site}"}),
    ("PATCH", "/documents/{document_id}/tags"): Call(
        "write", "/documents/abc/tags", {"tags": {"course": "main"}}, {"site": "{site}"}
    ),
    ("PUT", "/sites/{site}"): Call("write", body={"access": "private"}),
    ("DELETE", "/sites/{site}"): Call("write"),
}


def routes_of(app: web.Application) -> set[tuple[str, str]]:
    found = set()
    for route in app.router.routes():
        assert route.resource is not None
        if route.method not in ("HEAD", "OPTIONS"):
            found.add((route.method, route.resource.canonical))
    return found


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def filled(value: Any, site: str) -> Any:
    if isinstance(value, Mapping):
        return {name: filled(inner, site) for name, inner in value.items()}
    return value.replace("{site}", site) if isinstance(value, str) else value


async def send(
    server: Served,
    route: tuple[str, str],
    headers: Mapping[str, str],
    *,
    site: str = "kitchen",
) -> tuple[int, str]:
    """The status, and everything that the answer says: headers and body."""
    method, canonical = route
    call = ROUTES[route]
    async with server.session.request(
        method,
        server.url + filled(call.path or canonical, site),
        json=None if call.body is None else filled(call.body, site),
        params=filled(call.query, site),
        headers={**(MCP_HEADERS if canonical == "/mcp" else {}), **headers},
    ) as response:
        said = "\n".join(f"{name}: {value}" for name, value in response.headers.items())
        server.session.cookie_jar.clear()
        return response.status, said + "\n" + await response.text()


def expected(need: Need, roles: set[str], *, known: bool, user: bool) -> int | None:
    """401, 403, or None for an answer that is neither."""
    if need == "open":
        return None
    may = roles | ({"read", "act-as"} if "admin" in roles else set())
    role = need if need in ("read", "write", "admin") else "read"
    if role not in may and "admin" not in may:
        return 403 if known else 401
    if need in ("acts", "held") and "act-as" in may:
        return None
    if need == "acts":
        return 403
    if need in ("own", "held") and not user:
        return 403 if known else 401
    return 403 if need == "begin" and known and not user else None


VISITOR = "the cookie of this server"
CALLERS: dict[str, tuple[dict[str, str], set[str], bool, bool]] = {
    "nobody": ({}, {"read"}, False, False),
    "visitor": ({"Cookie": VISITOR}, {"read"}, False, True),
    "reader": (bearer(READER), {"read"}, True, False),
    "writer": (bearer(WRITER), {"write"}, True, False),
    "actor": (bearer(ACTOR), {"read", "act-as"}, True, False),
    "actor for ada": ({**bearer(ACTOR), "X-User-Id": "ada"}, {"read", "act-as"}, True, True),
    "limited": (bearer(LIMITED), {"read", "write", "act-as"}, True, False),
    "chief": (bearer(CHIEF), {"admin"}, True, False),
    "chief for ada": ({**bearer(CHIEF), "X-User-Id": "ada"}, {"admin"}, True, True),
    "operator": (bearer(ADMIN), {"admin"}, True, False),
}


async def furnished(serve: Serve, **auth: Any) -> Served:
    """A public site, and a private one whose words are in nothing else."""
    server = await serve(auth={"api_keys": KEYS, **auth})
    await server.load("kitchen", KITCHEN)
    await server.load("vault", [SECRET_ITEM])
    status, _ = await server.json("PUT", "/sites/kitchen", json={"access": "public"}, headers=bearer(ADMIN))
    assert status == 200
    return server


SECRET_ITEM = {
    "@type": "Thing",
    "url": "https://vault.example/plan",
    "name": "Zanzibarium plan",
    "description": "The curry vault holds a zanzibarium.",
}


def calls(server: Served) -> dict[tuple[str, str], Call]:
    """The table's rows of the routes there are, in its order."""
    there = routes_of(server.app)
    return {route: call for route, call in ROUTES.items() if route in there}


async def test_every_route_is_in_the_table(serve: Serve) -> None:
    assert routes_of((await serve()).app) - set(ROUTES) == set()


@pytest.mark.parametrize("name", CALLERS)
async def test_every_route_answers_a_caller_by_its_roles(serve: Serve, name: str) -> None:
    server = await furnished(serve)
    headers, roles, known, user = CALLERS[name]
    if headers.get("Cookie") == VISITOR:
        headers = {"Cookie": f"{COOKIE}={visitor_cookie(server)}"}
    wrong = {}
    for route, call in calls(server).items():
        status, _ = await send(server, route, headers)
        due = expected(call.need, roles, known=known, user=user)
        if (status if status in (401, 403) else None) != due or status >= 500:
            wrong[route] = (status, due)
    assert wrong == {}


async def test_unknown_credential_is_refused_everywhere_and_never_taken_for_nobody(serve: Serve) -> None:
    server = await furnished(serve)
    for headers in (bearer("not-a-key-at-all"), {"X-API-Key": "no"}, {"Authorization": "Basic YTpi"}):
        for route, call in calls(server).items():
            status, said = await send(server, route, headers)
            assert (status == 401) == (call.need != "open"), route
            assert ("WWW-Authenticate: Bearer" in said) == (call.need != "open"), route


@pytest.mark.parametrize(
    "headers",
    [{"X-User-Id": "ada"}, {**bearer(READER), "X-User-Id": "ada"}, {**bearer(ACTOR), "X-User-Id": "*"}],
)
async def test_what_is_open_to_all_is_open_whoever_a_request_says_it_is(
    serve: Serve, headers: dict[str, str]
) -> None:
    server = await furnished(serve)
    for route, call in calls(server).items():
        if call.need == "open":
            status, _ = await send(server, route, headers)
            assert status == (await send(server, route, {}))[0], route
    assert (await server.json("GET", "/health", headers=headers))[0] == 200


async def test_with_anonymous_none_only_the_open_routes_answer_nobody(serve: Serve) -> None:
    server = await furnished(serve, anonymous="none")
    cookie = {"Cookie": f"{COOKIE}={visitor_cookie(server)}"}
    for headers in ({}, cookie):
        for route, call in calls(server).items():
            status, said = await send(server, route, headers)
            assert (status == 401) == (call.need != "open"), route
            assert "vault.example" not in said
            assert "kitchen.example" not in said
    assert (await server.json("GET", "/nowhere"))[0] == 401
    assert (await server.ask("curry", headers=bearer(READER))).final


def visitor_cookie(server: Served) -> str:
    return server.app[SIGNER].sign(COOKIE_PURPOSE, {"id": "visitor-1"})


# ---------------------------------------------------------------- tenancy


@pytest.mark.parametrize(
    ("who", "headers"),
    [
        ("nobody", {}),
        ("limited", bearer(LIMITED)),
        ("limited for ada", {**bearer(LIMITED), "X-User-Id": "ada"}),
    ],
)
async def test_no_route_tells_of_a_site_that_the_caller_may_not_see(
    serve: Serve, who: str, headers: dict[str, str]
) -> None:
    server = await furnished(serve)
    for route in calls(server):
        for site in ("kitchen", "vault"):
            status, said = await send(server, route, headers, site=site)
            assert "zanzibarium" not in said.lower(), (who, route)
            # What the request itself named may be said again.
            echoed = "nothing was loaded from https://vault.example/plan"
            assert "vault.example" not in said.replace(echoed, ""), (who, route)
            if site == "vault" and "{site}" in repr((route, calls(server)[route])):
                other_status, other = await send(server, route, headers, site="nothere")
                assert other_status == status, (who, route)
                assert same_but_for_names(said) == same_but_for_names(other), (who, route)
    _, told = await server.json("GET", "/sites", headers=bearer(ADMIN))
    assert {(d["name"], d["documents"]) for d in told["details"] if d["name"] == "vault"} == {("vault", 1)}


def same_but_for_names(said: str) -> list[str]:
    """An answer's lines without what differs between two of the same question."""
    said = re.sub(r"vault|nothere", "SITE", said)
    said = re.sub(r'"(query_id|conversation_id|timings|kept_until)":("[^"]*"|\{[^}]*\})', "", said)
    return [line for line in said.splitlines() if not line.lower().startswith(("date:", "content-length:"))]


async def test_all_sites_are_those_that_may_be_read(serve: Serve) -> None:
    server = await furnished(serve)
    for headers, names in (
        ({}, ["kitchen"]),
        (bearer(LIMITED), ["kitchen"]),
        (bearer(READER), ["kitchen", "vault"]),
        (bearer(CHIEF), ["kitchen", "vault"]),
    ):
        assert (await server.json("GET", "/sites", headers=headers))[1]["sites"] == names
        frames = await server.ask("curry vault", headers=headers)
        assert frames.one("asking_sites")["sites"] == names
        assert {item["site"] for item in frames.final} == set(names)
        status, error = (
            await server.json("POST", "/ask", json={"query": "curry", "site": "vault"}, headers=headers)
            if "vault" not in names
            else (404, {"error": {"message": "sites: kitchen"}})
        )
        assert status == 404
        assert "sites: kitchen" in error["error"]["message"]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("list_sites", {}),
        ("search", {"query": "curry vault"}),
        ("search", {"query": "curry vault", "site": "vault"}),
        ("ask", {"query": "curry vault"}),
        ("ask", {"query": "curry vault", "site": "vault"}),
        ("who", {"query": "curry vault"}),
        ("fetch", {"id": "vault/{id}"}),
    ],
)
async def test_no_tool_tells_of_a_site_that_the_caller_may_not_see(
    serve: Serve, tool: str, arguments: dict[str, str]
) -> None:
    server = await furnished(serve)
    _, listed = await server.json("GET", "/documents?site=vault", headers=bearer(WRITER))
    document_id = listed["documents"][0]["document_id"]
    given = {name: value.replace("{id}", document_id) for name, value in arguments.items()}
    body = {**LISTING, "params": {"name": tool, "arguments": given}}

    async def told(headers: dict[str, str]) -> str:
        async with server.session.post(
            f"{server.url}/mcp", json=body, headers={**MCP_HEADERS, **headers}
        ) as response:
            assert response.status == 200
            return (await response.text()).lower()

    for headers in ({}, bearer(LIMITED), {**bearer(LIMITED), "X-User-Id": "ada"}):
        said = await told(headers)
        assert "zanzibarium" not in said
        assert "vault.example" not in said
    assert "vault" in await told(bearer(READER))


async def test_limited_key_writes_in_its_site_alone(serve: Serve) -> None:
    server = await furnished(serve)
    own = {"site": "kitchen", "items": [ITEM]}
    assert (await server.json("POST", "/documents", json=own, headers=bearer(LIMITED)))[0] == 200
    for site in ("vault", "fresh"):
        body = {"site": site, "items": [ITEM]}
        assert (await server.json("POST", "/documents", json=body, headers=bearer(LIMITED)))[0] == 403
        access = {"access": "public"}
        put = await server.json("PUT", f"/sites/{site}", json=access, headers=bearer(LIMITED))
        assert put[0] == 403
        assert (await server.json("DELETE", f"/sites/{site}", headers=bearer(LIMITED)))[0] == 404
    _, listed = await server.json("GET", "/documents", headers=bearer(LIMITED))
    assert {row["site"] for row in listed["documents"]} == {"kitchen"}
    assert (await server.json("GET", "/sites", headers=bearer(ADMIN)))[1]["sites"] == ["kitchen", "vault"]


async def test_new_sites_are_private_once_there_are_keys(serve: Serve) -> None:
    open_server = await serve(folder="open")
    await open_server.load("kitchen", KITCHEN)
    assert (await open_server.json("GET", "/sites"))[1]["details"][0]["access"] == "public"
    server = await serve(auth={"api_keys": KEYS})
    await server.load("kitchen", KITCHEN)
    assert (await server.json("GET", "/sites"))[1]["sites"] == []
    for access, names in (("public", ["kitchen"]), ("private", [])):
        await server.json("PUT", "/sites/kitchen", json={"access": access}, headers=bearer(WRITER))
        assert (await server.json("GET", "/sites"))[1]["sites"] == names
    refused, error = await server.json(
        "PUT", "/sites/kitchen", json={"access": "secret"}, headers=bearer(WRITER)
    )
    assert (refused, error["error"]["field"]) == (400, "access")


async def test_page_names_no_hosts_of_private_sites(serve: Serve) -> None:
    server = await furnished(serve)
    async with server.session.get(f"{server.url}/") as page:
        policy = page.headers["Content-Security-Policy"]
    assert "kitchen.example" in policy
    assert "vault.example" not in policy


# ---------------------------------------------------------------- credentials


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": f"Bearer {READER}"},
        {"Authorization": f"bearer  {READER} "},
        {"Authorization": f"Token {READER}"},
        {"Authorization": READER},
        {"X-API-Key": READER},
        {"X-API-Key": READER, "Authorization": "Basic YTpi"},
    ],
)
async def test_key_may_come_in_any_of_the_usual_ways(serve: Serve, headers: dict[str, str]) -> None:
    server = await serve(auth={"api_keys": KEYS, "anonymous": "none"})
    assert (await server.json("GET", "/sites", headers=headers))[0] == 200


async def test_key_in_the_address_is_none(serve: Serve) -> None:
    server = await serve(auth={"api_keys": KEYS, "anonymous": "none"})
    for name in ("key", "api_key", "token", "access_token"):
        assert (await server.json("GET", f"/sites?{name}={READER}"))[0] == 401


def test_old_and_new_secret_are_the_same_key_while_it_is_changed() -> None:
    ring = Keyring([ApiKeySettings.model_validate({"key": ["new-secret", "old-secret"], "roles": ["read"]})])
    new, old = ring.find("new-secret"), ring.find("old-secret")
    assert new is not None
    assert new == old
    assert ring.find("new-secret ") is ring.find("") is ring.find("neu-sécret") is None


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ([{"key": "same-secret", "roles": ["read"]}] * 2, "given twice"),
        (
            [{"key": f"secret-{n}", "roles": ["read"], "name": "one"} for n in range(2)],
            "one name",
        ),
        ([{"key": "short", "roles": ["read"]}], "at least"),
        ([{"key": "with a space", "roles": ["read"]}], "no spaces"),
        ([{"key": "long-enough", "roles": []}], "at least 1"),
        ([{"key": "long-enough", "roles": ["root"]}], "Input should be"),
        ([{"key": "long-enough", "roles": ["read"], "sites": ["../x"]}], "site name"),
        ([{"key": "long-enough", "roles": ["admin"], "sites": ["x"]}], "all sites"),
        ([{"key": "long-enough", "roles": ["read"], "name": "a:b"}], "pattern"),
    ],
)
def test_keys_that_would_not_be_safe_are_refused(keys: list[dict[str, Any]], said: str) -> None:
    with pytest.raises(ValidationError, match=said) as refused:
        AuthSettings.model_validate({"api_keys": keys})
    told = refused.value.errors(include_input=False, include_url=False, include_context=False)
    assert not [key["key"] for key in keys if key["key"] in str(told)]


async def test_no_secret_is_in_a_log_or_an_answer(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    server = await furnished(serve)
    secrets = [READER, WRITER, ACTOR, CHIEF, LIMITED, ADMIN, "planted-credential"]
    said = [(await send(server, route, bearer(secret)))[1] for secret in secrets for route in calls(server)]
    logged = "\n".join(f"{record.getMessage()} {vars(record)}" for record in caplog.records)
    for secret in secrets:
        assert secret not in logged
        assert not [answer for answer in said if secret in answer]
    assert READER not in repr(AuthSettings.model_validate({"api_keys": KEYS}))


# ---------------------------------------------------------------- identity


@pytest.mark.parametrize("headers", [{}, bearer(READER), bearer(WRITER)])
async def test_naming_a_user_needs_act_as(serve: Serve, headers: dict[str, str]) -> None:
    server = await furnished(serve)
    body = {"query": "curry"}
    status, _ = await server.json("POST", "/ask", json=body, headers={**headers, "X-User-Id": "ada"})
    assert status == 403


@pytest.mark.parametrize("user", ["", " ", "*", "x" * 257])
async def test_user_that_is_none_is_refused(serve: Serve, user: str) -> None:
    server = await furnished(serve)
    status, error = await server.json(
        "POST", "/ask", json={"query": "curry"}, headers={**bearer(ACTOR), "X-User-Id": user}
    )
    assert (status, error["error"]["field"]) == (400, "user_id")


async def test_user_id_in_body_or_address_is_no_identity(serve: Serve) -> None:
    server = await furnished(serve)
    ada = {**bearer(ACTOR), "X-User-Id": "ada"}
    kept = (await server.ask("Remember that my oven is small", headers=ada)).one("remember")
    assert kept["memory_id"]
    assert (await server.ask("a small oven", headers=ada)).of("used_memories")
    for headers in ({}, bearer(ACTOR), {**bearer(ACTOR), "X-User-Id": "bob"}, bearer(CHIEF)):
        frames = await server.ask("a small oven", headers=headers, user_id="ada", user="ada")
        assert frames.of("used_memories") == []
        async with server.session.get(
            f"{server.url}/ask?query=small+oven&user_id=ada&streaming=false", headers=headers
        ) as response:
            assert "used_memories" not in await response.json()


async def test_same_user_of_another_key_or_of_the_cookie_is_another_person(serve: Serve) -> None:
    server = await furnished(serve)
    ada = {**bearer(ACTOR), "X-User-Id": "visitor-1"}
    await server.ask("Remember that my oven is small", headers=ada)
    cookie = {"Cookie": f"{COOKIE}={visitor_cookie(server)}"}
    for headers in (
        cookie,
        {**bearer(LIMITED), "X-User-Id": "visitor-1"},
        {**bearer(CHIEF), "X-User-Id": "visitor-1"},
        {**bearer(ADMIN), "X-User-Id": "visitor-1"},
    ):
        assert (await server.ask("a small oven", headers=headers)).of("used_memories") == []
    assert (await server.ask("a small oven", headers={**ada, **cookie})).of("used_memories")


TEXT = st.text(max_size=12)
PREFIXED = st.builds(str.__add__, st.sampled_from(["", "key:", "jwt:", "cookie", "5:", "operator"]), TEXT)


@given(PREFIXED, PREFIXED, PREFIXED, PREFIXED)
def test_identities_of_two_realms_never_meet(realm: str, user: str, other: str, stranger: str) -> None:
    same = (realm, user) == (other, stranger)
    assert (Identity(realm, user).key == Identity(other, stranger).key) == same


NAMES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,10}", fullmatch=True) | st.sampled_from(
    ["cookie", "operator"]
)


@given(NAMES, TEXT, TEXT.filter(bool))
def test_no_name_of_a_key_or_issuer_makes_one_realm_of_two(name: str, issuer: str, user: str) -> None:
    label = ApiKeySettings.model_validate({"key": "long-enough", "roles": ["read"], "name": name}).label
    nameless = ApiKeySettings.model_validate({"key": name.ljust(8, "x"), "roles": ["read"]}).label
    realms = [COOKIE_REALM, "operator", f"key:{label}", f"key:{nameless}", f"jwt:{issuer}"]
    keys = {Identity(realm, user).key for realm in realms}
    labels = {
        Caller(Identity(realm, user), frozenset(), None, via, realm).label
        for realm in realms
        for via in ("key", "jwt")
    }
    assert len(keys) == len(realms)
    assert len(labels) == 2 * len(realms)


@given(st.text())
def test_id_is_taken_as_it_is_or_refused(user: str) -> None:
    actor = Caller(None, frozenset({"act-as"}), None, "key", "key:shop")
    try:
        checked = check_user(user)
    except BadQuery:
        return
    assert checked == user.strip() != ""
    assert speaking_for(actor, user).identity == Identity("key:shop", checked)
    for via in ("anonymous", "cookie"):
        with pytest.raises(Forbidden):
            speaking_for(Caller(None, frozenset({"admin"}), None, via), user)  # type: ignore[arg-type]
