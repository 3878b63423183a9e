"""`/conversations`: a person's own conversations, to list, read, rename, export and delete."""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import Any

from aiohttp import web

from core.conversation_rows import Conversation, for_owner
from core.errors import BadQuery, Forbidden
from core.identity import COOKIE_REALM, new_visitor
from core.query import Identity
from server.auth import USER_HEADER, may_store, owner, require, set_visitor
from server.keys import CONVERSATIONS, WHITEBOARDS
from server.middleware import json_response
from server.params import json_body, read_params

routes = web.RouteTableDef()

PAGE = 100
MOST = 1000
FORMATS = {"json": "json", "markdown": "markdown", "md": "markdown"}
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+\-.!|~&])")


@routes.post("/conversations")
async def start(request: web.Request) -> web.Response:
    """`{id?, title?}` -> the conversation, which is kept from now on: 201, or 200 if it was there.

    A visitor without a cookie gets one; from our own page only.
    """
    caller = require(request, "read")
    if caller.identity is None and caller.via != "anonymous":
        raise Forbidden(f"this credential speaks for nobody: name a user with `{USER_HEADER}`")
    if not may_store(request):
        raise Forbidden("a conversation is started on this server's own page")
    body = _only(await json_body(request), "id", "title")
    wanted, title = _text(body, "id"), _text(body, "title")
    person = caller.identity or Identity(COOKIE_REALM, new_visitor())
    overview, new = await request.app[CONVERSATIONS].start(person, wanted or None, title)
    response = json_response(asdict(overview), status=201 if new else 200)
    if caller.identity is None:
        set_visitor(request, response, person)
    return response


@routes.get("/conversations")
async def listed(request: web.Request) -> web.Response:
    """Last used first; `limit` (100), and `cursor` of the answer for the next page."""
    person = owner(request, changes=False)
    params = await read_params(request)
    limit = params.number("limit", 1, MOST) or PAGE
    found, further = await request.app[CONVERSATIONS].listed(
        person, limit=limit, before=_place(params.text("cursor", limit=100))
    )
    cursor = f"{further[0]!r}:{further[1]}" if further else None
    return json_response({"conversations": [asdict(one) for one in found], "cursor": cursor})


@routes.get("/conversations/{id}")
async def show(request: web.Request) -> web.Response:
    """The conversation with its turns, oldest first."""
    person = owner(request, changes=False)
    found = await request.app[CONVERSATIONS].get(person, request.match_info["id"])
    return json_response(_whole(found))


@routes.patch("/conversations/{id}")
async def rename(request: web.Request) -> web.Response:
    """`{title}` -> the conversation's overview."""
    person = owner(request, changes=True)
    title = _text(_only(await json_body(request), "title"), "title")
    found = await request.app[CONVERSATIONS].rename(person, request.match_info["id"], title)
    return json_response(asdict(found.overview))


@routes.delete("/conversations/{id}")
async def delete(request: web.Request) -> web.Response:
    """Delete it with its whiteboard: `{deleted: {conversations, turns, messages, whiteboard_entries}}`."""
    person = owner(request, changes=True)
    gone = await request.app[CONVERSATIONS].delete(person, request.match_info["id"])
    return json_response({"deleted": gone})


@routes.get("/conversations/{id}/whiteboard")
async def whiteboard(request: web.Request) -> web.Response:
    """Its entries; `pending`: the last turns are not worked in yet."""
    person = owner(request, changes=False)
    found = await request.app[CONVERSATIONS].get(person, request.match_info["id"])
    return json_response(
        {
            "id": found.overview.id,
            "entries": [for_owner(entry) for entry in found.board],
            "max": request.app[WHITEBOARDS].max_entries,
            "pending": found.pending,
        }
    )


@routes.get("/conversations/{id}/export")
async def export(request: web.Request) -> web.Response:
    """All that is kept of it, as a file: `format=json` or `markdown`, else by `Accept`, else JSON."""
    person = owner(request, changes=False)
    params = await read_params(request)
    named = params.text("format", limit=20).lower()
    if named and named not in FORMATS:
        raise BadQuery("`format` must be json or markdown", field="format")
    accepted = "markdown" if "text/markdown" in request.headers.get("Accept", "") else "json"
    found = await request.app[CONVERSATIONS].get(person, request.match_info["id"])
    if FORMATS.get(named, accepted) == "json":
        whole = _whole(found) | {"whiteboard": [for_owner(entry) for entry in found.board]}
        response = json_response(whole)
        name = "conversation.json"
    else:
        response = web.Response(text=markdown(found), content_type="text/markdown", charset="utf-8")
        name = "conversation.md"
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    response.headers["Vary"] = "Accept"
    return response


def markdown(found: Conversation) -> str:
    """The conversation to read. What people, sites and models wrote is text in it, never markup."""
    parts = [f"# {_plain(found.overview.title) or 'Conversation'}"]
    for turn in found.turns:
        parts.append(f"## {_plain(turn.asked)}")
        if turn.searched != turn.asked:
            parts.append(f"Searched for: {_plain(turn.searched)}")
        if turn.answer:
            parts.append(_quoted(turn.answer))
        if turn.shown:
            parts.append("\n".join(f"{n}. {_link(i.title, i.url)}" for n, i in enumerate(turn.shown, 1)))
    if found.messages:
        parts.append("## Messages")
        parts += [
            f"**{_plain(said.name or said.role)}**\n\n{_quoted(said.content)}" for said in found.messages
        ]
    if found.board:
        parts.append("## Whiteboard")
        parts.append("\n".join(f"- {entry.kind}: {_plain(entry.text)}" for entry in found.board))
    return "\n\n".join(parts) + "\n"


def _whole(found: Conversation) -> dict[str, Any]:
    return {
        **asdict(found.overview),
        "turns": [for_owner(turn) for turn in found.turns],
        "messages": [asdict(said) for said in found.messages],
    }


def _plain(text: str) -> str:
    """One line without markup."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def _quoted(text: str) -> str:
    return "\n".join(f"> {_plain(line)}".rstrip() for line in text.splitlines())


def _link(title: str, url: str) -> str:
    """A link where the address is one of the web and cannot end it early."""
    usable = re.fullmatch(r"https?://[^\s<>\\]+", url)
    return f"[{_plain(title)}](<{url}>)" if usable else _plain(title)


def _place(cursor: str) -> tuple[float, int] | None:
    if not cursor:
        return None
    place = re.fullmatch(r"(\d{1,15}(?:\.\d{1,20})?):(\d{1,15})", cursor)
    if place is None:
        raise BadQuery("`cursor` is not one of this list", field="cursor")
    return float(place[1]), int(place[2])


def _only(body: dict[str, Any], *fields: str) -> dict[str, Any]:
    """Raises BadQuery naming a field that is none: what is misspelt would only seem to count."""
    for name in sorted(set(body) - set(fields)):
        raise BadQuery(f"`{name[:80]}` is none of {', '.join(fields)}", field=name[:80])
    return body


def _text(body: dict[str, Any], name: str) -> str:
    value = body.get(name) or ""
    if not isinstance(value, str):
        raise BadQuery(f"`{name}` must be text", field=name)
    return value
