"""`/memory`: a person's own facts, to see, change, take back and take along; and the operator's view."""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from aiohttp import web

from core.errors import BadQuery, Forbidden, NotFound
from core.memory import KINDS, SCOPES, Detected, Reach, page_of
from core.memory.facts import checked_text
from core.query import Identity
from core.settings import seconds_of
from server.applications import check_application
from server.auth import USER_HEADER, may_store, owner, require, set_visitor
from server.keys import CLOCK, ERASURE, FACTS, MEMORY, SETTINGS
from server.middleware import json_response
from server.params import json_body

routes = web.RouteTableDef()

MAX_TOKEN_CHARS = 20_000
MAX_PAGE = 1000
MAX_ID_CHARS = 256
MAX_METADATA_CHARS = 4000
MAX_METADATA_DEPTH = 20
MAX_NAME_CHARS = 200
MAX_LASTING_S = 100 * 365 * 86_400.0
KEPT_FIELDS = (
    *("text", "kind", "scope", "site", "agent", "conversation_id", "expires_in", "metadata"),
    *("subject", "attribute"),
)
CHANGED_FIELDS = ("text", "kind", "metadata", "expires_in")


@routes.post("/memory/confirm")
async def confirm(request: web.Request) -> web.Response:
    """`{token}` of a `remember` or `forgotten` message -> what was done; from our own page only."""
    if MEMORY not in request.app:
        raise NotFound("memory is switched off here (`memory.mode`)")
    caller = require(request, "read")
    if caller.identity is None and caller.via != "anonymous":
        raise Forbidden(f"this credential speaks for nobody: name a user with `{USER_HEADER}`")
    if not may_store(request):
        raise Forbidden("a fact is confirmed on this server's own page")
    token = (await json_body(request)).get("token")
    if not isinstance(token, str) or not 0 < len(token) <= MAX_TOKEN_CHARS:
        raise BadQuery("`token` is needed: the `confirm` of a remember message", field="token")
    done = await request.app[MEMORY].confirm(token, caller.identity)
    if done.erased is not None:
        return json_response({"erased": done.erased})
    if done.action == "forget":
        return json_response({"forgotten": list(done.forgotten)})
    memory_id = done.stored.memory_id if done.stored else None
    response = json_response({"memory_id": memory_id, "text": done.text})
    # The cookie stands for a person: it goes to who agreed, not to whoever has the token as well.
    if caller.identity is None and not done.repeated:
        set_visitor(request, response, done.identity)
    return response


@routes.get("/memory")
async def listed(request: web.Request) -> web.Response:
    """The caller's facts: nearest to `query` first, else the newest; of one `site` where it is named."""
    return await _listed(request, owner(request, changes=False))


@routes.post("/memory")
async def keep(request: web.Request) -> web.Response:
    """`{text, kind?, scope?, site?, agent?, conversation_id?, expires_in?, metadata?}`: keep a fact."""
    if MEMORY not in request.app:
        raise NotFound("memory is switched off here (`memory.mode`)")
    identity = owner(request, changes=True)
    body = await json_body(request)
    _only(body, KEPT_FIELDS)
    detected = _detected(request, identity, body)
    await check_application(request, detected.site, field="site")
    stored = await request.app[MEMORY].persist(detected)
    if stored is None:
        return json_response({"memory_id": None, "sent_to": request.app[MEMORY].name}, status=202)
    told = {"memory_id": stored.memory_id, "text": stored.text, "superseded": list(stored.superseded)}
    return json_response(told, status=200 if stored.repeated else 201)


@routes.delete("/memory")
async def erase(request: web.Request) -> web.Response:
    """`?all=true`: everything of the caller goes: facts, history, vectors, conversations with their turns and
    whiteboards. Says how much of what."""
    identity = owner(request, changes=True)
    if request.query.get("all") != "true":
        raise BadQuery("this takes everything out: say `all=true`", field="all")
    return json_response({"erased": await request.app[ERASURE].erase(identity)})


@routes.get("/memory/export")
async def export(request: web.Request) -> web.Response:
    """All that memory has of the caller, as one JSON object to take along."""
    identity = owner(request, changes=False)
    return await _export(request, identity)


@routes.get("/memory/{memory_id}")
async def show(request: web.Request) -> web.Response:
    identity = owner(request, changes=False)
    memory_id = memory_id_of(request)
    if MEMORY in request.app:
        fact = await request.app[MEMORY].get(identity, memory_id)
    else:
        fact = await request.app[FACTS].get(Reach.of(identity), memory_id)
    return json_response(fact.told())


@routes.patch("/memory/{memory_id}")
async def change(request: web.Request) -> web.Response:
    """`{text?, kind?, metadata?, expires_in?}`."""
    reach = Reach.of(owner(request, changes=True))
    body = await json_body(request)
    _only(body, CHANGED_FIELDS)
    if not body:
        raise BadQuery(f"what can change is {', '.join(CHANGED_FIELDS)}", field="body")
    fact = await request.app[FACTS].update(
        reach,
        memory_id_of(request),
        text=checked_text(body["text"]) if "text" in body else None,
        kind=_text_id(body, "kind") if "kind" in body else None,
        metadata=metadata_from(body["metadata"]) if "metadata" in body else None,
        expires_at=_expires(request, body["expires_in"]) if "expires_in" in body else None,
    )
    return json_response(fact.told())


@routes.delete("/memory/{memory_id}")
async def forget(request: web.Request) -> web.Response:
    """Forget one fact; with `?undo=true` what it superseded holds again."""
    identity = owner(request, changes=True)
    undo = request.query.get("undo") == "true"
    return json_response({"forgotten": await _forget(request, identity, memory_id_of(request), undo=undo)})


@routes.get("/memory/{memory_id}/history")
async def history(request: web.Request) -> web.Response:
    """What happened to a fact, oldest first; of a forgotten one without its texts."""
    reach = Reach.of(owner(request, changes=False))
    steps = await request.app[FACTS].changes(reach, memory_id_of(request))
    told = [
        {"event": step.event, "old_text": step.old_text, "new_text": step.new_text, "at": step.at}
        for step in steps
    ]
    return json_response({"history": told})


@routes.post("/memory/{memory_id}/restore")
async def restore(request: web.Request) -> web.Response:
    """Make a superseded fact the one that holds again."""
    reach = Reach.of(owner(request, changes=True))
    fact = await request.app[FACTS].restore(reach, memory_id_of(request))
    return json_response(fact.told())


# ---------------------------------------------------------------- the operator's


@routes.get("/admin/memory")
async def operator_lists(request: web.Request) -> web.Response:
    """A user's facts, for the operator: `user` and, where the id is known in several, `realm`."""
    return await _listed(request, await _named(request))


@routes.get("/admin/memory/export")
async def operator_exports(request: web.Request) -> web.Response:
    return await _export(request, await _named(request))


@routes.delete("/admin/memory")
async def operator_forgets(request: web.Request) -> web.Response:
    """One fact of a user (`id`), or with `all=true` everything."""
    identity = await _named(request)
    if request.query.get("all") == "true":
        return json_response({"erased": await request.app[ERASURE].erase(identity)})
    memory_id = _said(request, "id")
    if not memory_id:
        raise BadQuery("say which: `id`, or `all=true`", field="id")
    return json_response({"forgotten": await _forget(request, identity, memory_id, undo=False)})


@routes.post("/admin/memory/replay-erasures")
async def operator_replays(request: web.Request) -> web.Response:
    """`{since?, ledger?}`: after a backup was put back, erase again who was erased since: those whose erasure
    the database does not know, or with `since` (Unix seconds) everybody from then on. `ledger`: the lines of
    another ledger than the server's own. -> `{erased, failed, unreadable}`: numbers of persons, of lines."""
    require(request, "admin")
    body = await json_body(request)
    if unknown := sorted(set(body) - {"since", "ledger"}):
        raise BadQuery("what can be given is `since` and `ledger`", field=unknown[0])
    since, lines = body.get("since"), body.get("ledger")
    if since is not None and (isinstance(since, bool) or not isinstance(since, int | float)):
        raise BadQuery("`since` is a time in Unix seconds", field="since")
    if lines is not None and not (isinstance(lines, list) and all(isinstance(one, str) for one in lines)):
        raise BadQuery("`ledger` is a list of lines", field="ledger")
    erasure = request.app[ERASURE]
    if lines is None:
        entries, unreadable = await asyncio.to_thread(erasure.ledger.load)
    else:
        entries, unreadable = erasure.ledger.read(lines)
    erased, failed = await erasure.replay(entries, None if since is None else float(since))
    return json_response({"erased": erased, "failed": failed, "unreadable": unreadable})


async def _named(request: web.Request) -> Identity:
    require(request, "admin")
    user = _said(request, "user").strip()
    if not user or user == "*":
        raise BadQuery("`user` is needed: whose memory", field="user")
    if realm := _said(request, "realm"):
        return Identity(realm, user)
    realms = await request.app[FACTS].realms_of(user)
    if not realms and MEMORY in request.app and not request.app[MEMORY].owns_hook:
        elsewhere = request.app[MEMORY].name
        raise BadQuery(f"{elsewhere} finds nobody by the id alone: say `realm`, too", field="realm")
    if not realms:
        raise NotFound("nothing is kept of a user with that id")
    if len(realms) > 1:
        raise BadQuery(f"this id is known in {', '.join(realms)}: say `realm`", field="realm")
    return Identity(realms[0], user)


# ---------------------------------------------------------------- parts


async def _listed(request: web.Request, identity: Identity) -> web.Response:
    """A page of what is kept of a person, and how many there are on all pages: of the `site` and, with a
    `query`, of what it finds."""
    query = request.query.get("query", "").strip()[:8000]
    site = _said(request, "site") or None
    limit, offset = _number(request, "limit", 100, MAX_PAGE), _number(request, "offset", 0, 10**9)
    if MEMORY in request.app:
        memory = request.app[MEMORY]
        chosen, total = await memory.find(identity, query, site=site, limit=limit, offset=offset)
    else:
        reach = Reach(identity.realm, identity.user, application=site)
        chosen, total = await page_of(request.app[FACTS], reach, query, limit=limit, offset=offset)
    return json_response({"memories": [fact.told() for fact in chosen], "total": total})


async def _forget(request: web.Request, identity: Identity, memory_id: str, *, undo: bool) -> list[str]:
    """Raises NotFound where there was no such fact."""
    if MEMORY in request.app:
        return await request.app[MEMORY].forget(identity, [memory_id], undo=undo)
    gone = await request.app[FACTS].forget(Reach.of(identity), [memory_id], undo=undo)
    if not gone:
        raise NotFound("there is no such memory")
    return gone


def memory_id_of(request: web.Request) -> str:
    """The path's id. Raises NotFound for what no database could hold, and so cannot be one."""
    memory_id = request.match_info["memory_id"]
    if not memory_id.isprintable():
        raise NotFound("there is no such memory")
    return memory_id


def _said(request: web.Request, name: str) -> str:
    """A parameter of the address. Raises BadQuery for what no database could hold."""
    value = request.query.get(name, "")
    if not value.isprintable():
        raise BadQuery(f"`{name}` is a text of printable characters", field=name)
    return value


async def _export(request: web.Request, identity: Identity) -> web.Response:
    app = request.app
    if MEMORY in app:
        kept = [dict(one) for one in await app[MEMORY].export(identity)]
    else:
        kept = [fact.told() for fact in (await app[FACTS].everything(Reach.of(identity)))[0]]
    response = json_response(
        {"realm": identity.realm, "user": identity.user, "exported_at": app[CLOCK](), "memories": kept}
    )
    response.headers["Content-Disposition"] = 'attachment; filename="memory.json"'
    return response


def _detected(request: web.Request, identity: Identity, body: dict[str, Any]) -> Detected:
    scope = _text_id(body, "scope") or "user"
    kind = _text_id(body, "kind")
    if scope not in SCOPES:
        raise BadQuery(f"`scope` is one of {', '.join(SCOPES)}", field="scope")
    if kind and kind not in KINDS:
        raise BadQuery(f"`kind` is one of {', '.join(KINDS)}", field="kind")
    place = {name: _text_id(body, name) for name in ("site", "agent", "conversation_id")}
    needed = {"application": "site", "agent": "agent", "thread": "conversation_id"}.get(scope)
    if needed and not place[needed]:
        raise BadQuery(f"a fact of the scope `{scope}` needs `{needed}`", field=needed)
    lasting = seconds_of(request.app[SETTINGS].memory.expiration)
    return Detected(
        text=checked_text(body.get("text")),
        kind=kind,
        scope=scope,
        identity=identity,
        site=place["site"],
        conversation_id=place["conversation_id"],
        query_id="",
        source_turn="",
        expires_at=_expires(request, body["expires_in"])
        if "expires_in" in body
        else request.app[CLOCK]() + lasting,
        nonce=secrets.token_urlsafe(12),
        subject=_text_id(body, "subject")[:MAX_NAME_CHARS],
        attribute=_text_id(body, "attribute")[:MAX_NAME_CHARS],
        agent=place["agent"],
        metadata=metadata_from(body.get("metadata") or {}),
        asked_at=request.app[CLOCK](),
    )


def _text_id(body: dict[str, Any], name: str) -> str:
    value = body.get(name)
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > MAX_ID_CHARS or not value.isprintable():
        raise BadQuery(f"`{name}` is a text of at most {MAX_ID_CHARS} printable characters", field=name)
    return value.strip()


def _only(body: Mapping[str, Any], fields: Sequence[str]) -> None:
    """Raises BadQuery naming a field that is none: what is misspelt would only seem to count."""
    for name in sorted(set(body) - set(fields)):
        raise BadQuery(f"`{name[:80]}` is none of {', '.join(fields)}", field=name[:80])


def _expires(request: web.Request, duration: Any) -> float:
    if not isinstance(duration, str):
        raise BadQuery("`expires_in` is a text: a number and s, m, h or d, e.g. `24h`", field="expires_in")
    try:
        lasting = seconds_of(duration)
    except ValueError as wrong:
        raise BadQuery(str(wrong)[:200], field="expires_in") from None
    if not 0 < lasting <= MAX_LASTING_S:
        raise BadQuery("`expires_in` is more than `0s` and at most `36500d`", field="expires_in")
    return request.app[CLOCK]() + lasting


def metadata_from(value: Any) -> dict[str, Any]:
    """What a client keeps with a fact. Names of owners are refused: they would only seem to count."""
    if not isinstance(value, dict):
        raise BadQuery("`metadata` is an object", field="metadata")
    # First how deep it is: what is too deep can neither be measured nor, later, be sent.
    if _deeper_than(value, MAX_METADATA_DEPTH):
        raise BadQuery(f"`metadata` may be {MAX_METADATA_DEPTH} levels deep", field="metadata")
    if len(orjson.dumps(value).decode()) > MAX_METADATA_CHARS:
        raise BadQuery(f"`metadata` may have {MAX_METADATA_CHARS} characters, as JSON", field="metadata")
    owners = sorted({"user_id", "agent_id", "app_id", "run_id", "identity"} & set(value))
    if owners:
        raise BadQuery(f"`{owners[0]}` is no metadata: whose a fact is cannot be changed", field="metadata")
    return value


def _deeper_than(value: Any, levels: int) -> bool:
    """Whether objects and lists are nested deeper; level by level, as a recursion has an end of its own."""
    level = [value]
    for _ in range(levels + 1):
        level = [
            one
            for part in level
            if isinstance(part, dict | list)
            for one in (part.values() if isinstance(part, dict) else part)
        ]
    return bool(level)


def _number(request: web.Request, name: str, default: int, most: int) -> int:
    value = request.query.get(name)
    if value is None:
        return default
    # As many digits as the largest may have: Python reads no number of thousands of them.
    if not re.fullmatch(r"[0-9]{1,10}", value) or int(value) > most:
        raise BadQuery(f"`{name}` is a whole number, at most {most}", field=name)
    return int(value)
