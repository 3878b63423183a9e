"""`/search`: retrieval alone, with scores; no model is asked."""

from __future__ import annotations

from typing import get_args

from aiohttp import web

from core.errors import BadQuery
from core.query import MAX_QUERY_CHARS
from core.retrieval import Part, SearchMode, filtered
from core.tags import shown
from server.auth import readable_sites, require
from server.keys import DOCUMENTS, RETRIEVER
from server.middleware import json_response
from server.params import Params, item_type, question, read_params, sites_from, tag_filter

routes = web.RouteTableDef()

MAX_LIMIT = 200
MAX_EXPAND = 10
TAKEN = (
    "query",
    "site",
    "tags",
    "item_type",
    "required_item_type",
    "limit",
    "min_relevance",
    "expand",
    "mode",
)


@routes.post("/search")
async def search(request: web.Request) -> web.Response:
    """Chunks with their fused score (0..1) and the raw score of each leg; several of a document may come."""
    caller = require(request, "read")
    params = await read_params(request)
    text = question(params.text("query", limit=MAX_QUERY_CHARS))
    for name in params.names():
        if name not in TAKEN:
            raise BadQuery(f"there is no `{name[:80]}`: {', '.join(TAKEN)}", field=name[:80])
    mode = _mode(params)
    limit = params.number("limit", 1, MAX_LIMIT) or 10
    beside = params.number("expand", 0, MAX_EXPAND) or 0
    least = _relevance(params.first("min_relevance"))
    tags = tag_filter(params.all("tags"))
    documents = request.app[DOCUMENTS]
    sites, _ = sites_from(params.all("site"), await readable_sites(request))
    passages = await request.app[RETRIEVER].search(
        [Part(text)],
        sites=sites,
        limit=limit,
        where=filtered(item_type(params), tags),
        languages=await documents.languages(sites),
        by_document=False,
        mode=mode,
    )
    found = [c for c in await documents.live(caller.scope, passages, tags) if c.score >= least]
    texts = await documents.expanded(found, beside) if beside else [c.text for c in found]
    results = [
        {
            "url": c.document.url,
            "name": c.document.name,
            "site": c.document.site,
            "document_id": c.document.document_id,
            "chunk": c.n,
            "text": shown_text,
            "score": round(c.score, 4),
            "scores": {leg: round(score, 4) for leg, score in c.legs.items()},
            "page": None,
            "section": None,
            "tags": shown(c.document.tags),
        }
        for c, shown_text in zip(found, texts, strict=True)
    ]
    return json_response({"query": text, "results": results})


def _mode(params: Params) -> SearchMode:
    modes: dict[str, SearchMode] = {mode: mode for mode in get_args(SearchMode)}
    mode = modes.get(params.text("mode", limit=40) or "hybrid")
    if mode is None:
        raise BadQuery(f"`mode` must be one of {', '.join(modes)}", field="mode")
    return mode


def _relevance(value: object) -> float:
    if value is None:
        return 0.0
    try:
        least = float(str(value))
    except ValueError:
        least = -1.0
    if not 0 <= least <= 1:
        raise BadQuery("`min_relevance` must be a number from 0 to 1", field="min_relevance")
    return least
