"""Mem0's wire: its client and Semantic Kernel's provider work with this server, only their address changed.

Paths, fields and replies are those of Mem0's platform (its published OpenAPI document, and the requests that
`mem0ai` and Semantic Kernel's Mem0 client send). `app_id`, `agent_id`, `run_id` and `user_id` are our
application, agent, thread and user; they count only for a credential that may act for users, and name ids of
that credential's own realm: two programs' users never meet. A request that names its user by our header
(`X-User-Id`, which Mem0's clients do not send) reaches that user's memories alone.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from aiohttp import web
from multidict import MultiMapping

from core.errors import BadQuery, Forbidden, NotFound
from core.memory import MAX_FACT_CHARS, Change, Detected, Fact, Place, Reach, Request, Stored
from core.query import Identity, Query
from core.settings import seconds_of
from server.auth import Caller, check_user, may_store, owner, require, speaking_for
from server.keys import CLOCK, EXTRACTOR, FACTS, SETTINGS
from server.middleware import json_response
from server.params import json_body
from server.routes.memory import metadata_from

routes = web.RouteTableDef()

IDS: Mapping[str, str] = {
    "user_id": "user",
    "agent_id": "agent",
    "app_id": "application",
    "run_id": "thread",
}
ENTITIES: Mapping[str, str] = {"user": "user_id", "agent": "agent_id", "app": "app_id", "run": "run_id"}
MAX_MESSAGES = 100
MAX_PAGE = 1000
MAX_BATCH = 1000
MAX_ALTERNATIVES = 20


@dataclass(frozen=True, slots=True)
class Named:
    """Whose memories a request is about: one reach, or several of which any will do; and wanted metadata."""

    reaches: tuple[Reach, ...]
    metadata: Mapping[str, Any]


@routes.get("/v1/ping/")
async def ping(request: web.Request) -> web.Response:
    """The client goes on only if it is told an organisation and a project: the key's realm is both."""
    realm = require(request, "read").realm or "anonymous"
    return json_response({"status": "ok", "org_id": realm, "project_id": realm, "user_email": None})


# ---------------------------------------------------------------- add


@routes.post("/v3/memories/add/")
async def add(request: web.Request) -> web.Response:
    return json_response({"results": await _add(request)})


@routes.post("/v1/memories/")
async def add_v1(request: web.Request) -> web.Response:
    return json_response(await _add(request))


async def _add(request: web.Request) -> list[dict[str, Any]]:
    caller = _program(request)
    body = await json_body(request)
    reach = _reach(caller, {**_plain_ids(body.get("filters")), **_ids_in(body)})
    messages = _messages(body.get("messages"))
    metadata = metadata_from(body.get("metadata") or {})
    expires_at = _expires(request, body.get("expiration_date"))
    facts = await _facts_in(request, messages, reach, infer=body.get("infer") is not False)
    results = []
    for fact, role in facts:
        detected = _detected(fact, role, reach, metadata, expires_at)
        stored = await request.app[FACTS].remember(detected)
        results.append(_added(stored))
    return results


async def _facts_in(
    request: web.Request, messages: Sequence[Mapping[str, str]], reach: Reach, *, infer: bool
) -> list[tuple[Request, str]]:
    """What to store of these messages: what the model finds in the user's, else the messages as they are."""
    extractor = request.app[EXTRACTOR]
    said = [message["content"] for message in messages if message["role"] == "user"]
    if infer and extractor is not None:
        if not said:
            return []
        query = Query(
            text=said[-1][:8000], query_id=secrets.token_urlsafe(8), conversation_id=reach.thread or ""
        )
        known = [fact.text for fact in await request.app[FACTS].search(reach, "\n".join(said), 20)]
        return [(fact, "user") for fact in await extractor.facts(query, said, known)]
    kept = [message for message in messages if message["role"] == "user" or not infer]
    return [
        (Request(text=" ".join(message["content"].split())[:MAX_FACT_CHARS], kind=""), message["role"])
        for message in kept
        if message["role"] != "system"
    ]


def _detected(
    fact: Request, role: str, reach: Reach, metadata: Mapping[str, Any], expires_at: float | None
) -> Detected:
    place = Place(reach.application or "", reach.agent or "", reach.thread or "")
    # The narrowest id it was told under is where it belongs.
    scope = (
        "thread"
        if place.thread
        else "agent"
        if place.agent
        else "application"
        if place.application
        else "user"
    )
    return Detected(
        text=fact.text,
        kind=fact.kind,
        scope=scope,
        identity=Identity(reach.realm, reach.user or ""),
        site=place.application,
        conversation_id=place.thread,
        query_id="",
        source_turn="",
        expires_at=expires_at,
        nonce=secrets.token_urlsafe(12),
        subject=fact.subject,
        attribute=fact.attribute,
        agent=place.agent,
        metadata=dict(metadata) if role == "user" else {**metadata, "role": role},
    )


# ---------------------------------------------------------------- find


@routes.post("/v3/memories/search/")
async def search(request: web.Request) -> web.Response:
    return json_response({"results": await _search(request)})


@routes.post("/v1/memories/search/")
@routes.post("/v2/memories/search/")
async def search_v1(request: web.Request) -> web.Response:
    return json_response(await _search(request))


async def _search(request: web.Request) -> list[dict[str, Any]]:
    caller = _program(request)
    body = await json_body(request)
    named = _named(caller, body)
    query = body.get("query")
    if not isinstance(query, str) or not query.strip():
        raise BadQuery("`query` is needed", field="query")
    limit = _number(body.get("top_k", body.get("limit")), "top_k", 10, MAX_PAGE)
    threshold = body.get("threshold")
    if threshold is not None and (isinstance(threshold, bool) or not isinstance(threshold, int | float)):
        raise BadQuery("`threshold` is a number from 0 to 1", field="threshold")
    found: dict[str, Fact] = {}
    for reach in named.reaches:
        for fact in await request.app[FACTS].search(reach, query[:8000], limit):
            found.setdefault(fact.memory_id, fact)
    ranked = sorted(found.values(), key=lambda fact: -(fact.score or 0.0))
    kept = [
        fact
        for fact in ranked
        if _has(fact, named.metadata) and (threshold is None or (fact.score or 0.0) >= threshold)
    ]
    return [_record(fact) for fact in kept[:limit]]


@routes.post("/v3/memories/")
@routes.post("/v2/memories/")
async def listed(request: web.Request) -> web.Response:
    """`?page=&page_size=`: `{count, next, previous, results}`."""
    caller = _program(request)
    named = _named(caller, await json_body(request))
    return json_response(await _page(request, named))


@routes.get("/v1/memories/")
async def listed_v1(request: web.Request) -> web.Response:
    """A bare array; with `page` the same as the newer list."""
    caller = _program(request)
    named = Named((_reach(caller, _ids_in(request.query)),), {})
    if "page" in request.query:
        return json_response(await _page(request, named))
    limit = _number(request.query.get("limit", request.query.get("top_k")), "limit", MAX_PAGE, MAX_PAGE)
    kept = await request.app[FACTS].all(named.reaches[0], limit=limit)
    return json_response([_record(fact) for fact in kept])


async def _page(request: web.Request, named: Named) -> dict[str, Any]:
    page = _number(request.query.get("page"), "page", 1, 1_000_000)
    size = _number(request.query.get("page_size"), "page_size", 100, MAX_PAGE)
    if page < 1 or size < 1:
        raise BadQuery("pages are counted from 1, and hold one at least", field="page")
    facts = request.app[FACTS]
    if len(named.reaches) == 1 and not named.metadata:
        (reach,) = named.reaches
        count = await facts.count(reach)
        chosen = await facts.all(reach, limit=size, offset=(page - 1) * size)
    else:
        found: dict[str, Fact] = {}
        for reach in named.reaches:
            found |= {fact.memory_id: fact for fact in await facts.all(reach, limit=10 * MAX_PAGE)}
        kept = sorted(
            (fact for fact in found.values() if _has(fact, named.metadata)), key=lambda fact: -fact.created_at
        )
        count, chosen = len(kept), kept[(page - 1) * size : page * size]
    base = f"{request.scheme}://{request.host}{request.path}"
    more = page * size < count
    return {
        "count": count,
        "next": f"{base}?page={page + 1}&page_size={size}" if more else None,
        "previous": f"{base}?page={page - 1}&page_size={size}" if page > 1 else None,
        "results": [_record(fact) for fact in chosen],
    }


@routes.get("/v1/memories/{memory_id}/")
async def show(request: web.Request) -> web.Response:
    reach = _by_id(request, changes=False)
    return json_response(_record(await request.app[FACTS].get(reach, request.match_info["memory_id"])))


@routes.get("/v1/memories/{memory_id}/history/")
async def history(request: web.Request) -> web.Response:
    reach = _by_id(request, changes=False)
    steps = await request.app[FACTS].changes(reach, request.match_info["memory_id"])
    return json_response([_step(n, step) for n, step in enumerate(steps, 1)])


@routes.get("/v1/entities/")
async def entities(request: web.Request) -> web.Response:
    caller = _program(request)
    found = [
        {
            "id": f"{one['type']}:{one['name']}",
            "type": one["type"],
            "name": one["name"],
            "total_memories": one["total"],
            "created_at": _iso(one["created_at"]),
            "updated_at": _iso(one["updated_at"]),
            "metadata": {},
        }
        for one in await request.app[FACTS].entities(_everything(caller))
    ]
    return json_response({"count": len(found), "next": None, "previous": None, "results": found})


# ---------------------------------------------------------------- change


@routes.put("/v1/memories/{memory_id}/")
async def update(request: web.Request) -> web.Response:
    reach = _by_id(request, changes=True)
    body = await json_body(request)
    return json_response(_record(await _update(request, reach, request.match_info["memory_id"], body)))


@routes.delete("/v1/memories/{memory_id}/")
async def delete(request: web.Request) -> web.Response:
    reach = _by_id(request, changes=True)
    if not await request.app[FACTS].forget(reach, [request.match_info["memory_id"]]):
        raise NotFound("there is no such memory")
    return json_response({"message": "Memory deleted successfully!"})


@routes.delete("/v1/memories/")
async def delete_all(request: web.Request) -> web.Response:
    """All memories under the ids given; never all of everybody."""
    caller = _program(request)
    gone = await request.app[FACTS].erase(_reach(caller, _ids_in(request.query)))
    return json_response({"message": "Memories deleted successfully!", "deleted": gone["memories"]})


@routes.delete("/v2/entities/{type}/{id}/")
async def delete_entity(request: web.Request) -> web.Response:
    caller = _program(request)
    name = ENTITIES.get(request.match_info["type"])
    if name is None:
        raise BadQuery(f"an entity is one of {', '.join(ENTITIES)}", field="type")
    gone = await request.app[FACTS].erase(_reach(caller, {name: request.match_info["id"]}))
    if not any(gone.values()):
        raise NotFound("there is no such entity")
    return json_response({"message": "Entity deleted successfully!", "deleted": gone["memories"]})


@routes.put("/v1/batch/")
async def update_batch(request: web.Request) -> web.Response:
    reach = _by_id(request, changes=True)
    batch = _batch(await json_body(request))
    # All are there and sound before the first is changed.
    for one in batch:
        await request.app[FACTS].get(reach, str(one["memory_id"]))
    for one in batch:
        await _update(request, reach, str(one["memory_id"]), one)
    return json_response({"message": f"Successfully updated {len(batch)} memories"})


@routes.delete("/v1/batch/")
async def delete_batch(request: web.Request) -> web.Response:
    reach = _by_id(request, changes=True)
    batch = _batch(await json_body(request))
    for one in batch:
        await request.app[FACTS].get(reach, str(one["memory_id"]))
    gone = await request.app[FACTS].forget(reach, [str(one["memory_id"]) for one in batch])
    return json_response({"message": f"Successfully deleted {len(gone)} memories"})


async def _update(request: web.Request, reach: Reach, memory_id: str, body: Mapping[str, Any]) -> Fact:
    text = body.get("text", body.get("memory"))
    if text is None and body.get("metadata") is None and body.get("expiration_date") is None:
        raise BadQuery("`text`, `metadata` or `expiration_date` is needed", field="text")
    if text is not None and (not isinstance(text, str) or not text.strip()):
        raise BadQuery("`text` is a text", field="text")
    return await request.app[FACTS].update(
        reach,
        memory_id,
        text=text,
        metadata=None if body.get("metadata") is None else metadata_from(body["metadata"]),
        expires_at=_expires(request, body["expiration_date"]) if body.get("expiration_date") else None,
    )


# ---------------------------------------------------------------- whose


def _program(request: web.Request) -> Caller:
    """The caller, which may name the users it speaks for. Raises Forbidden where it may not."""
    caller = require(request, "read")
    if caller.via in ("anonymous", "cookie") or not caller.may("act-as"):
        raise Forbidden("naming the user one speaks for needs a key with the role `act-as`")
    return caller


def _by_id(request: web.Request, *, changes: bool) -> Reach:
    """What a request that names a memory alone may touch: a program its users' facts, or those of the one
    user that it speaks for; a person their own."""
    caller = require(request, "read")
    if changes and not may_store(request):
        raise Forbidden("this is changed on this server's own page")
    if caller.via not in ("anonymous", "cookie") and caller.may("act-as"):
        return _everything(caller)
    return Reach.of(owner(request, changes=changes))


def _everything(caller: Caller) -> Reach:
    """All that a program reaches: its realm, or the user of the request's header."""
    if caller.named and caller.identity is not None:
        return Reach.of(caller.identity)
    return Reach(caller.realm, None, whole=True)


def _reach(caller: Caller, ids: Mapping[str, Any]) -> Reach:
    """The memories under these ids, of the user alone that the request speaks for, if it names one.

    Raises BadQuery for no id, and for one that is empty, `*`, or no id at all, Forbidden for another user's.
    """
    if not ids:
        raise BadQuery(f"say whose memories: one of {', '.join(IDS)}", field="user_id")
    checked: dict[str, str] = {}
    for name, value in ids.items():
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise BadQuery(f"`{name}` is a text", field=name)
        try:
            checked[IDS[name]] = check_user(str(value))
        except BadQuery as wrong:
            raise BadQuery(wrong.message.replace("a user's id", f"`{name}`"), field=name) from None
    if caller.named and caller.identity is not None:
        speaking_for(caller, checked.setdefault("user", caller.identity.user))
    return Reach(
        caller.realm,
        checked.get("user"),
        application=checked.get("application"),
        agent=checked.get("agent"),
        thread=checked.get("thread"),
    )


def _ids_in(values: Mapping[str, Any]) -> dict[str, Any]:
    """The ids that are given; null is not given, empty is (and refused). Raises BadQuery for one that an
    address has more than once: it would be read as one of them."""
    if isinstance(values, MultiMapping):
        for name in IDS:
            if len(values.getall(name, [])) > 1:
                raise BadQuery(f"`{name}` is given more than once", field=name)
    return {name: values[name] for name in IDS if name in values and values[name] is not None}


def _plain_ids(filters: Any) -> dict[str, Any]:
    return _ids_in(filters) if isinstance(filters, Mapping) else {}


def _named(caller: Caller, body: Mapping[str, Any]) -> Named:
    """Ids of the body and of its filters, which all must hold; alternatives are tried one by one."""
    alternatives, metadata = _alternatives(body.get("filters") or {})
    own = _ids_in(body)
    reaches = []
    for ids in alternatives:
        for name in own.keys() & ids.keys():
            if str(own[name]) != str(ids[name]):
                raise BadQuery(f"`{name}` is given twice, and differs", field=name)
        reaches.append(_reach(caller, {**ids, **own}))
    return Named(tuple(reaches), {**metadata, **_object(body.get("metadata"), "metadata")})


def _alternatives(filters: Any) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """`[{id: value}]`, any of which may hold, and the metadata wanted. Raises BadQuery for what we don't do:
    a filter that is not understood must not turn into a wider one."""
    filters = _object(filters, "filters")
    any_of: list[dict[str, Any]] = [{}]
    metadata: dict[str, Any] = {}
    for key, value in filters.items():
        if key in IDS:
            any_of = _crossed(any_of, [{key: one} for one in _values(key, value)])
        elif key == "AND":
            for part in _listed(value, key):
                parts, wanted = _alternatives(part)
                any_of = _crossed(any_of, parts)
                metadata |= wanted
        elif key == "OR":
            some: list[dict[str, Any]] = []
            for part in _listed(value, key):
                parts, wanted = _alternatives(part)
                if wanted:
                    raise BadQuery("`OR` is for ids here", field="filters")
                some += parts
            any_of = _crossed(any_of, some)
        elif key == "metadata":
            metadata |= _object(value, "filters")
        else:
            raise BadQuery(f"the filter `{str(key)[:40]}` is not supported here", field="filters")
    if len(any_of) > MAX_ALTERNATIVES:
        raise BadQuery(f"at most {MAX_ALTERNATIVES} alternatives", field="filters")
    return any_of, metadata


def _crossed(some: list[dict[str, Any]], others: list[dict[str, Any]]) -> list[dict[str, Any]]:
    joined = []
    for one in some:
        for other in others:
            clash = [name for name in one.keys() & other.keys() if str(one[name]) != str(other[name])]
            if clash:
                raise BadQuery(f"`{clash[0]}` cannot be two ids at once", field="filters")
            joined.append({**one, **other})
    return joined


def _values(key: str, value: Any) -> list[Any]:
    if not isinstance(value, Mapping):
        return [value]
    if set(value) == {"in"} and isinstance(value["in"], list) and value["in"]:
        return list(value["in"])
    if set(value) == {"eq"}:
        return [value["eq"]]
    raise BadQuery(f"`{key}` is an id, or one of several: {{in: [..]}}", field="filters")


def _object(value: Any, name: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise BadQuery(f"`{name}` is an object", field=name)
    return dict(value)


def _listed(value: Any, name: str) -> list[Any]:
    if not isinstance(value, list) or not value:
        raise BadQuery(f"`{name}` is a list of filters", field="filters")
    return value


# ---------------------------------------------------------------- bodies


def _messages(value: Any) -> list[dict[str, str]]:
    if isinstance(value, str):
        value = [{"role": "user", "content": value}]
    elif isinstance(value, Mapping):
        value = [value]
    if not isinstance(value, list) or not value or len(value) > MAX_MESSAGES:
        raise BadQuery(f"`messages` is a list of 1 to {MAX_MESSAGES} messages", field="messages")
    found = []
    for one in value:
        if not isinstance(one, Mapping):
            raise BadQuery("a message is {role, content}", field="messages")
        content = one.get("content")
        if isinstance(content, list):  # parts, as chat models take them: the texts among them
            content = " ".join(str(part.get("text") or "") for part in content if isinstance(part, Mapping))
        if not isinstance(content, str):
            raise BadQuery("a message's `content` is a text", field="messages")
        if content.strip():
            found.append({"role": str(one.get("role") or "user"), "content": content[:8000]})
    return found


def _batch(body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    listed_ = body.get("memories")
    if not isinstance(listed_, list) or not 0 < len(listed_) <= MAX_BATCH:
        raise BadQuery(f"`memories` is a list of 1 to {MAX_BATCH}", field="memories")
    for one in listed_:
        if not isinstance(one, Mapping) or not isinstance(one.get("memory_id"), str):
            raise BadQuery("each of `memories` has a `memory_id`", field="memories")
    return list(listed_)


def _number(value: Any, name: str, default: int, most: int) -> int:
    if value is None:
        return default
    try:
        number = int(str(value)) if not isinstance(value, bool) else -1
    except ValueError:
        number = -1
    if not 0 <= number <= most:
        raise BadQuery(f"`{name}` is a whole number, at most {most}", field=name)
    return number


def _expires(request: web.Request, value: Any) -> float | None:
    """The end of the day that is named (UTC, inclusive as with Mem0), else what the settings say."""
    if value is None or value == "":
        return request.app[CLOCK]() + seconds_of(request.app[SETTINGS].memory.expiration)
    try:
        day = date.fromisoformat(str(value)[:10])
    except ValueError:
        raise BadQuery("`expiration_date` is a day: YYYY-MM-DD", field="expiration_date") from None
    return datetime.combine(day + timedelta(days=1), time(), UTC).timestamp()


def _has(fact: Fact, wanted: Mapping[str, Any]) -> bool:
    return all(fact.metadata.get(key) == value for key, value in wanted.items())


def _added(stored: Stored) -> dict[str, Any]:
    event = "NONE" if stored.repeated else "ADD"
    return {"id": stored.memory_id, "memory": stored.text, "event": event, "data": {"memory": stored.text}}


def _record(fact: Fact) -> dict[str, Any]:
    record: dict[str, Any] = {
        "id": fact.memory_id,
        "memory": fact.text,
        "hash": hashlib.md5(fact.text.encode(), usedforsecurity=False).hexdigest(),
        "user_id": (fact.identity.user if fact.identity else "") or None,
        "agent_id": fact.place.agent or None,
        "app_id": fact.place.application or None,
        "run_id": fact.place.thread or None,
        "metadata": dict(fact.metadata) or None,
        "categories": [],
        "created_at": _iso(fact.created_at),
        "updated_at": _iso(fact.updated_at),
        "expiration_date": _iso(fact.expires_at - 1)[:10] if fact.expires_at is not None else None,
    }
    if fact.score is not None:
        record["score"] = round(fact.score, 4)
    return record


def _step(n: int, step: Change) -> dict[str, Any]:
    return {
        "id": f"{step.memory_id}:{n}",
        "memory_id": step.memory_id,
        "event": step.event,
        "old_memory": step.old_text,
        "new_memory": step.new_text,
        "created_at": _iso(step.at),
        "updated_at": _iso(step.at),
        "is_deleted": step.event == "DELETE",
    }


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()
