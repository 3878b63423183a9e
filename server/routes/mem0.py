"""Mem0's wire: its client and Semantic Kernel's provider work with this server, only their address changed.

Paths, fields and replies are those of Mem0's platform (its published OpenAPI document, and the requests that
`mem0ai` and Semantic Kernel's Mem0 client send). `app_id`, `agent_id`, `run_id` and `user_id` are our
application, agent, thread and user; they count only for a credential that may act for users, and name ids of
that credential's own realm: two programs' users never meet. A request that names its user by our header
(`X-User-Id`, which Mem0's clients do not send) reaches that user's memories alone.
"""

from __future__ import annotations

import hashlib
import math
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Any
from urllib.parse import urlencode

from aiohttp import web
from multidict import MultiMapping

from core.errors import BadQuery, Forbidden, NotFound
from core.memory import Change, Detected, Fact, Place, Reach, Request, Stored
from core.memory.facts import MAX_KEPT_CHARS, checked_text, normal
from core.query import Identity, Query
from core.settings import seconds_of
from server.auth import Caller, check_user, may_store, owner, require, speaking_for
from server.keys import CLOCK, EXTRACTOR, FACTS, SETTINGS
from server.middleware import json_response
from server.params import json_body
from server.routes.memory import memory_id_of, metadata_from

routes = web.RouteTableDef()

IDS: Mapping[str, str] = {
    "user_id": "user",
    "agent_id": "agent",
    "app_id": "application",
    "run_id": "thread",
}
ENTITIES: Mapping[str, str] = {"user": "user_id", "agent": "agent_id", "app": "app_id", "run": "run_id"}
MAX_MESSAGES = 100
MAX_ROLE_CHARS = 64
MAX_PAGE = 1000
MAX_BATCH = 1000
MAX_ALTERNATIVES = 20
MAX_FILTER_DEPTH = 20
MAX_LOOKED_AT = 10 * MAX_PAGE  # facts of one reach, where they are picked by what no index knows
MAX_TIME_S = 253_402_300_800.0  # the end of the year 9999: what a date can say
DAY_S = 86_400.0
# What would narrow a list or a search and is not done here: passed over, it would widen it.
NOT_DONE = ("categories", "keywords")
# What may stand beside the ids of whose memories are deleted; anything else would delete more than meant.
BESIDE_IDS = frozenset({"org_id", "project_id", "org_name", "project_name"})
_WHOLE = re.compile(r"[0-9]{1,12}")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}(?=$|[T ])")


@dataclass(frozen=True, slots=True)
class Named:
    """Whose memories a request is about: one reach, or several of which any will do; and what else they must
    have: metadata, and to have been made within a time (Unix seconds, the end is not in it)."""

    reaches: tuple[Reach, ...]
    metadata: Mapping[str, Any]
    start: float | None = None
    end: float | None = None

    @property
    def narrower(self) -> bool:
        """Whether not everything within reach is wanted."""
        return bool(self.metadata) or self.start is not None or self.end is not None

    def has(self, fact: Fact) -> bool:
        """Whether a fact within reach is wanted."""
        return (
            all(key in fact.metadata and fact.metadata[key] == value for key, value in self.metadata.items())
            and (self.start is None or fact.created_at >= self.start)
            and (self.end is None or fact.created_at < self.end)
        )


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
    asked_at = request.app[CLOCK]()
    caller = _program(request)
    body = await json_body(request)
    reach = _reach(caller, {**_plain_ids(body.get("filters")), **_ids_in(body)})
    # All of it is looked at before the first is kept: what is refused leaves nothing behind.
    messages = _messages(body.get("messages"))
    metadata = metadata_from(body.get("metadata") or {})
    expires_at = _expires(request, body.get("expiration_date"))
    told_at = _timestamp(body.get("timestamp"))
    facts = await _facts_in(request, messages, reach, infer=_infer(body.get("infer")))
    results = []
    for fact, role in facts:
        detected = _detected(fact, role, reach, metadata, expires_at, asked_at)
        stored = await request.app[FACTS].remember(detected)
        if told_at is not None and not stored.repeated:
            await request.app[FACTS].update(reach, stored.memory_id, created_at=told_at)
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
        known = [fact.text for fact in await request.app[FACTS].search(reach, "\n".join(said)[-8000:], 20)]
        return [(fact, "user") for fact in await extractor.facts(query, said, known)]
    kept = [message for message in messages if message["role"] == "user" or not infer]
    return [
        (Request(text=message["content"], kind=""), message["role"])
        for message in kept
        if message["role"] != "system"
    ]


def _detected(
    fact: Request,
    role: str,
    reach: Reach,
    metadata: Mapping[str, Any],
    expires_at: float | None,
    asked_at: float,
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
        asked_at=asked_at,
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
    if threshold is not None and (
        isinstance(threshold, bool) or not isinstance(threshold, int | float) or not 0 <= threshold <= 1
    ):
        raise BadQuery("`threshold` is a number from 0 to 1", field="threshold")
    found: dict[str, Fact] = {}
    for reach in named.reaches:
        # What is wanted beside the ids is looked for in all of them: the nearest few may not have it.
        looked_at = MAX_LOOKED_AT if named.narrower else limit
        for fact in await request.app[FACTS].search(reach, query[:8000], looked_at):
            found.setdefault(fact.memory_id, fact)
    ranked = sorted(found.values(), key=lambda fact: -(fact.score or 0.0))
    kept = [
        fact for fact in ranked if named.has(fact) and (threshold is None or (fact.score or 0.0) >= threshold)
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
    _refuse_undone(request.query)
    named = Named((_reach(caller, _ids_in(request.query)),), {}, *_times(request.query))
    if "page" in request.query:
        return json_response(await _page(request, named))
    limit = _number(request.query.get("limit", request.query.get("top_k")), "limit", MAX_PAGE, MAX_PAGE)
    _, kept = await _wanted(request, named, limit, 0)
    return json_response([_record(fact) for fact in kept])


async def _page(request: web.Request, named: Named) -> dict[str, Any]:
    page = _number(request.query.get("page"), "page", 1, 1_000_000)
    size = _number(request.query.get("page_size"), "page_size", 100, MAX_PAGE)
    if page < 1 or size < 1:
        raise BadQuery("pages are counted from 1, and hold one at least", field="page")
    count, chosen = await _wanted(request, named, size, (page - 1) * size)
    return {
        "count": count,
        "next": _page_url(request, page + 1, size) if page * size < count else None,
        "previous": _page_url(request, page - 1, size) if page > 1 else None,
        "results": [_record(fact) for fact in chosen],
    }


async def _wanted(request: web.Request, named: Named, limit: int, offset: int) -> tuple[int, list[Fact]]:
    """How many memories are wanted, and those of one page, newest first."""
    facts = request.app[FACTS]
    if len(named.reaches) == 1 and not named.narrower:
        (reach,) = named.reaches
        return await facts.count(reach), await facts.all(reach, limit=limit, offset=offset)
    found: dict[str, Fact] = {}
    for reach in named.reaches:
        found |= {fact.memory_id: fact for fact in await facts.all(reach, limit=MAX_LOOKED_AT)}
    kept = sorted(
        (fact for fact in found.values() if named.has(fact)),
        key=lambda fact: (-fact.created_at, fact.memory_id),
    )
    return len(kept), kept[offset : offset + limit]


def _page_url(request: web.Request, page: int, size: int) -> str:
    """Where another page is: the same address, with all that it said."""
    same = [(name, value) for name, value in request.query.items() if name not in ("page", "page_size")]
    query = urlencode([*same, ("page", page), ("page_size", size)])
    return f"{request.scheme}://{request.host}{request.path}?{query}"


@routes.get("/v1/memories/{memory_id}/")
async def show(request: web.Request) -> web.Response:
    reach = _by_id(request, changes=False)
    return json_response(_record(await request.app[FACTS].get(reach, memory_id_of(request))))


@routes.get("/v1/memories/{memory_id}/history/")
async def history(request: web.Request) -> web.Response:
    reach = _by_id(request, changes=False)
    steps = await request.app[FACTS].changes(reach, memory_id_of(request))
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
    changes = _changes(request, await json_body(request))
    fact = await request.app[FACTS].update(reach, memory_id_of(request), **changes)
    return json_response(_record(fact))


@routes.delete("/v1/memories/{memory_id}/")
async def delete(request: web.Request) -> web.Response:
    """With `?delete_linked=true` the older ones go, too, that it stands for and that those stood for."""
    reach = _by_id(request, changes=True)
    memory_id = memory_id_of(request)
    linked = _flag(request.query.get("delete_linked"), "delete_linked")
    these = [memory_id, *(await _stood_for(request, reach, memory_id) if linked else ())]
    if memory_id not in await request.app[FACTS].forget(reach, these):
        raise NotFound("there is no such memory")
    return json_response({"message": "Memory deleted successfully!"})


@routes.delete("/v1/memories/")
async def delete_all(request: web.Request) -> web.Response:
    """All memories under the ids given; never all of everybody."""
    caller = _program(request)
    for name in request.query:
        if name not in IDS and name not in BESIDE_IDS:
            raise BadQuery(f"`{name[:80]}` would not narrow what is deleted here", field=name[:80])
    gone = await request.app[FACTS].erase(_reach(caller, _ids_in(request.query)))
    return json_response({"message": "Memories deleted successfully!", "deleted": gone["memories"]})


@routes.delete("/v2/entities/{type}/{id}/")
async def delete_entity(request: web.Request) -> web.Response:
    """All memories of a user, agent, app or run. One without memories is no error: a client that deletes all
    entities it was told of has taken out a later one's memories with an earlier one."""
    caller = _program(request)
    name = ENTITIES.get(request.match_info["type"])
    if name is None:
        raise BadQuery(f"an entity is one of {', '.join(ENTITIES)}", field="type")
    gone = await request.app[FACTS].erase(_reach(caller, {name: request.match_info["id"]}))
    return json_response({"message": "Entity deleted successfully!", "deleted": gone["memories"]})


@routes.put("/v1/batch/")
async def update_batch(request: web.Request) -> web.Response:
    reach = _by_id(request, changes=True)
    batch = _batch(await json_body(request))
    await request.app[FACTS].update_all(
        reach, [(str(one["memory_id"]), _changes(request, one)) for one in batch]
    )
    return json_response({"message": f"Successfully updated {len(batch)} memories"})


@routes.delete("/v1/batch/")
async def delete_batch(request: web.Request) -> web.Response:
    reach = _by_id(request, changes=True)
    batch = _batch(await json_body(request))
    for one in batch:
        await request.app[FACTS].get(reach, str(one["memory_id"]))
    gone = await request.app[FACTS].forget(reach, [str(one["memory_id"]) for one in batch])
    return json_response({"message": f"Successfully deleted {len(gone)} memories"})


def _changes(request: web.Request, body: Mapping[str, Any]) -> dict[str, Any]:
    """What is to change, as `Facts.update` takes it. An `expiration_date` of null clears the one that was
    given: the memory is kept as long as one without. Raises BadQuery."""
    changes: dict[str, Any] = {}
    text = body.get("text", body.get("memory"))
    if text is not None:
        changes["text"] = checked_text(text, most=MAX_KEPT_CHARS)
    if body.get("metadata") is not None:
        changes["metadata"] = metadata_from(body["metadata"])
    if "expiration_date" in body:
        changes["expires_at"] = _expires(request, body["expiration_date"])
    if body.get("timestamp") is not None:
        changes["created_at"] = _timestamp(body["timestamp"])
    if not changes:
        raise BadQuery("`text`, `metadata`, `expiration_date` or `timestamp` is needed", field="text")
    return changes


async def _stood_for(request: web.Request, reach: Reach, memory_id: str) -> list[str]:
    """The older memories that this one supersedes, and those that they did. Raises NotFound."""
    facts = request.app[FACTS]
    owner_ = (await facts.get(reach, memory_id)).identity
    assert owner_ is not None
    kept, _ = await facts.everything(Reach.of(owner_) if owner_.user else reach)
    older: dict[str, list[str]] = {}
    for fact in kept:
        if fact.superseded_by is not None:
            older.setdefault(fact.superseded_by, []).append(fact.memory_id)
    found: list[str] = []
    waiting = [memory_id]
    while waiting:
        these = [one for one in older.pop(waiting.pop(), ()) if one not in found]
        found += these
        waiting += these
    return found


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
        try:
            checked[IDS[name]] = check_user(_id(name, value))
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
    return {name: _id(name, values[name]) for name in IDS if name in values and values[name] is not None}


def _id(name: str, value: Any) -> str:
    """An id as a text. Raises BadQuery for a value that is none."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise BadQuery(f"`{name}` is a text", field=name)
    return str(value)


def _plain_ids(filters: Any) -> dict[str, Any]:
    return _ids_in(filters) if isinstance(filters, Mapping) else {}


def _named(caller: Caller, body: Mapping[str, Any]) -> Named:
    """Ids of the body and of its filters, which all must hold; alternatives are tried one by one."""
    _refuse_undone(body)
    alternatives, metadata = _alternatives(body.get("filters") or {})
    own = _ids_in(body)
    reaches = []
    for ids in alternatives:
        for name in own.keys() & ids.keys():
            if own[name] != ids[name]:
                raise BadQuery(f"`{name}` is given twice, and differs", field=name)
        reaches.append(_reach(caller, {**ids, **own}))
    return Named(tuple(reaches), {**metadata, **_object(body.get("metadata"), "metadata")}, *_times(body))


def _alternatives(filters: Any, depth: int = 0) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """`[{id: value}]`, any of which may hold, and the metadata wanted. Raises BadQuery for what we don't do:
    a filter that is not understood must not turn into a wider one."""
    if depth > MAX_FILTER_DEPTH:
        raise BadQuery(f"`filters` may be {MAX_FILTER_DEPTH} levels deep", field="filters")
    filters = _object(filters, "filters")
    any_of: list[dict[str, Any]] = [{}]
    metadata: dict[str, Any] = {}
    for key, value in filters.items():
        if key in IDS:
            any_of = _crossed(any_of, [{key: _id(key, one)} for one in _values(key, value)])
        elif key == "AND":
            for part in _listed(value, key):
                parts, wanted = _alternatives(part, depth + 1)
                any_of = _crossed(any_of, parts)
                metadata |= wanted
        elif key == "OR":
            some: list[dict[str, Any]] = []
            for part in _listed(value, key):
                parts, wanted = _alternatives(part, depth + 1)
                if wanted:
                    raise BadQuery("`OR` is for ids here", field="filters")
                some += parts
            any_of = _crossed(any_of, some)
        elif key == "metadata":
            metadata |= _object(value, "filters")
        else:
            raise BadQuery(f"the filter `{str(key)[:40]}` is not supported here", field="filters")
    _check_few(len(any_of))
    return any_of, metadata


def _check_few(alternatives: int) -> None:
    if alternatives > MAX_ALTERNATIVES:
        raise BadQuery(f"at most {MAX_ALTERNATIVES} alternatives", field="filters")


def _crossed(some: list[dict[str, Any]], others: list[dict[str, Any]]) -> list[dict[str, Any]]:
    _check_few(len(some) * len(others))  # before they are made: two long lists have very many pairs
    joined = []
    for one in some:
        for other in others:
            clash = [name for name in one.keys() & other.keys() if one[name] != other[name]]
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
    """The messages that have words in them ("?" or an emoji has none), in one line each. Raises BadQuery
    naming the one that cannot be stored."""
    place = "messages[{}].content"
    if isinstance(value, str):
        value, place = [{"role": "user", "content": value}], "messages"
    elif isinstance(value, Mapping):
        value, place = [value], "messages.content"
    if not isinstance(value, list) or not value or len(value) > MAX_MESSAGES:
        raise BadQuery(f"`messages` is a list of 1 to {MAX_MESSAGES} messages", field="messages")
    found = []
    for n, one in enumerate(value):
        if not isinstance(one, Mapping):
            raise BadQuery("a message is {role, content}", field=f"messages[{n}]")
        content = _text_of(one.get("content"), place.format(n))
        if normal(content):
            line = checked_text(content, place.format(n), most=MAX_KEPT_CHARS)
            found.append({"role": _role(one.get("role"), f"messages[{n}].role"), "content": line})
    return found


def _role(value: Any, field: str) -> str:
    if value is None or value == "":
        return "user"
    if not isinstance(value, str) or len(value) > MAX_ROLE_CHARS or not value.isprintable():
        raise BadQuery("a message's `role` is a word, as `user` or `assistant`", field=field)
    return value


def _text_of(content: Any, field: str) -> str:
    """A message's text; "" where it has none, as a message that only calls tools. Raises BadQuery."""
    if content is None:
        return ""
    if isinstance(content, list):  # parts, as chat models take them: the texts among them
        texts = [part.get("text") for part in content if isinstance(part, Mapping)]
        content = " ".join(text for text in texts if isinstance(text, str))
    if not isinstance(content, str):
        raise BadQuery("a message's `content` is a text", field=field)
    return content


def _batch(body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    listed_ = body.get("memories")
    if not isinstance(listed_, list) or not 0 < len(listed_) <= MAX_BATCH:
        raise BadQuery(f"`memories` is a list of 1 to {MAX_BATCH}", field="memories")
    for one in listed_:
        memory_id = one.get("memory_id") if isinstance(one, Mapping) else None
        if not isinstance(memory_id, str) or not memory_id.isprintable():
            raise BadQuery("each of `memories` has a `memory_id`", field="memories")
    return list(listed_)


def _number(value: Any, name: str, default: int, most: int) -> int:
    if value is None:
        return default
    given = str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
    number = int(given) if _WHOLE.fullmatch(given) else most + 1
    if number > most:
        raise BadQuery(f"`{name}` is a whole number, at most {most}", field=name)
    return number


def _flag(value: str | None, name: str) -> bool:
    word = (value or "").strip().lower()
    if word not in ("", "true", "false", "1", "0"):
        raise BadQuery(f"`{name}` is true or false", field=name)
    return word in ("true", "1")


def _infer(value: Any) -> bool:
    if value is not None and not isinstance(value, bool):
        raise BadQuery("`infer` is true or false", field="infer")
    return value is not False


def _expires(request: web.Request, value: Any) -> float:
    """The end of the day that is named (UTC, inclusive as with Mem0), else what the settings say. Raises
    BadQuery for a day that is over: what has expired is taken out here, and not hidden."""
    now = request.app[CLOCK]()
    if value is None or value == "":
        return now + seconds_of(request.app[SETTINGS].memory.expiration)
    end = _day(value, "expiration_date") + DAY_S
    if end <= now:
        raise BadQuery("`expiration_date` is over: delete the memory instead", field="expiration_date")
    return end


def _day(value: Any, name: str) -> float:
    """The beginning of a day (UTC), in Unix seconds. Raises BadQuery for what is none."""
    try:
        if not isinstance(value, str) or not _DAY.match(value):
            raise ValueError
        day = date.fromisoformat(value[:10])
    except ValueError:
        raise BadQuery(f"`{name}` is a day: YYYY-MM-DD", field=name) from None
    return datetime.combine(day, time(), UTC).timestamp()


def _moment(value: Any, name: str) -> float:
    """A day's beginning or a moment by ISO 8601 (UTC where it names no zone), in Unix seconds. Raises
    BadQuery."""
    try:
        moment = datetime.fromisoformat(value)
        seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (TypeError, ValueError, OverflowError):
        raise BadQuery(f"`{name}` is a day or a moment by ISO 8601", field=name) from None
    return seconds


def _timestamp(value: Any) -> float | None:
    """When a memory is said to have been made: Unix seconds, or a moment by ISO 8601; None for nothing said.
    Raises BadQuery, also for one that no date can be."""
    if value is None:
        return None
    if isinstance(value, str) and not _WHOLE.fullmatch(value):
        seconds = _moment(value, "timestamp")
    elif isinstance(value, bool) or not isinstance(value, str | int | float):
        raise BadQuery("`timestamp` is a time in Unix seconds, or by ISO 8601", field="timestamp")
    else:
        seconds = float(value)
    if not math.isfinite(seconds) or not 0 <= seconds < MAX_TIME_S:
        raise BadQuery("`timestamp` is a time from 1970 to 9999", field="timestamp")
    return seconds


def _times(values: Mapping[str, Any]) -> tuple[float | None, float | None]:
    """`start_date` and `end_date`; an end that is a day has the whole day in it. Raises BadQuery."""
    start, end = values.get("start_date"), values.get("end_date")
    until = None if end is None else _moment(end, "end_date")
    if until is not None:
        until += DAY_S if len(str(end)) == len("YYYY-MM-DD") else 1e-6
    return (None if start is None else _moment(start, "start_date")), until


def _refuse_undone(values: Mapping[str, Any]) -> None:
    """Raises BadQuery for what is to narrow the results and does not here."""
    for name in NOT_DONE:
        if values.get(name):
            raise BadQuery(f"`{name}` is not supported here", field=name)


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
