"""`/feedback`: what people say of an answer or of an item in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, get_args

from aiohttp import web

from core.errors import BadQuery, Forbidden
from core.feedback import MAX_COMMENT_CHARS, MAX_REASON_CHARS, MAX_REASONS, Judgement, Rating
from core.names import check_document_id, check_site_name
from server.auth import may_store, require
from server.keys import FEEDBACK
from server.middleware import json_response
from server.params import json_body, read_params

routes = web.RouteTableDef()

WITHDRAWN = "none"
MAX_ID_CHARS = 128
PAGE = 100
MOST = 1000


@routes.post("/feedback")
async def give(request: web.Request) -> web.Response:
    """`{query_id, document_id?, site?, rating: up|down|none, reasons?, comment?}` -> what holds now.

    Given again it replaces what was said of the same before; `none` withdraws that.
    """
    caller = require(request, "read")
    if caller.via == "cookie" and not may_store(request):
        raise Forbidden("feedback is given on this server's own page")
    said = _judgement(await json_body(request))
    await request.app[FEEDBACK].give(caller.label, caller.identity, said)
    return json_response(
        {
            "query_id": said.query_id,
            "document_id": said.document_id or None,
            "rating": said.rating or WITHDRAWN,
        }
    )


@routes.get("/feedback")
async def listed(request: web.Request) -> web.Response:
    """What was said, the latest first; `limit`, and `cursor` of the answer for the next page. Admin."""
    require(request, "admin")
    params = await read_params(request)
    limit = params.number("limit", 1, MOST) or PAGE
    before = params.number("cursor", 1, 2**31)
    found = await request.app[FEEDBACK].listed(before=before, limit=limit)
    cursor = found[-1].id if len(found) == limit else None
    return json_response({"feedback": [asdict(one) for one in found], "cursor": cursor})


def _judgement(body: Mapping[str, Any]) -> Judgement:
    query_id = _text(body, "query_id", MAX_ID_CHARS)
    if not query_id:
        raise BadQuery("`query_id` is needed: that of the answer", field="query_id")
    document_id, site = _text(body, "document_id", 200), _text(body, "site", 64)
    ratings: dict[str, Rating | None] = {WITHDRAWN: None, **{one: one for one in get_args(Rating)}}
    given = body.get("rating")
    if not isinstance(given, str) or given not in ratings:
        raise BadQuery(f"`rating` is needed: {', '.join(get_args(Rating))} or {WITHDRAWN}", field="rating")
    return Judgement(
        query_id=query_id,
        document_id=check_document_id(document_id) if document_id else "",
        site=check_site_name(site) if site else "",
        rating=ratings[given],
        reasons=_reasons(body.get("reasons")),
        comment=_text(body, "comment", MAX_COMMENT_CHARS),
    )


def _reasons(given: Any) -> tuple[str, ...]:
    if given is None:
        return ()
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        raise BadQuery("`reasons` must be a list of texts", field="reasons")
    if len(given) > MAX_REASONS or any(len(one) > MAX_REASON_CHARS for one in given):
        raise BadQuery(
            f"`reasons` may have {MAX_REASONS} entries of {MAX_REASON_CHARS} characters", field="reasons"
        )
    return tuple(dict.fromkeys(one.strip() for one in given if one.strip()))


def _text(body: Mapping[str, Any], name: str, limit: int) -> str:
    value = body.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise BadQuery(f"`{name}` must be text", field=name)
    if len(value) > limit:
        raise BadQuery(f"`{name}` may have {limit} characters, not {len(value)}", field=name)
    return value.strip()
