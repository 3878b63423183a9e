"""`/search`: retrieval alone, with scores; no model is asked."""

from __future__ import annotations

from typing import get_args

from aiohttp import web

from core.errors import BadQuery
from core.query import MAX_QUERY_CHARS
from core.retrieval import Part, SearchMode
from server.auth import readable_sites, require
from server.keys import DOCUMENTS, RETRIEVER
from server.middleware import json_response
from server.params import read_params, sites_from

routes = web.RouteTableDef()

MAX_LIMIT = 200
NOT_YET = ("item_type", "required_item_type", "tags", "filters", "expand")


@routes.post("/search")
async def search(request: web.Request) -> web.Response:
    """Chunks with their fused score (0..1) and the raw score of each leg; several of a document may come."""
    caller = require(request, "read")
    params = await read_params(request)
    text = params.text("query", limit=MAX_QUERY_CHARS).strip()
    if not text:
        raise BadQuery(f"`query` is needed: 1 to {MAX_QUERY_CHARS} characters", field="query")
    for name in NOT_YET:
        if params.first(name) is not None:
            raise BadQuery(f"`{name}` is not available yet", field=name)
    modes: dict[str, SearchMode] = {mode: mode for mode in get_args(SearchMode)}
    mode = modes.get(str(params.first("mode") or "hybrid"))
    if mode is None:
        raise BadQuery(f"`mode` must be one of {', '.join(modes)}", field="mode")
    limit = params.number("limit", 1, MAX_LIMIT) or 10
    least = _relevance(params.first("min_relevance"))
    documents = request.app[DOCUMENTS]
    sites, _ = sites_from(params.all("site"), await readable_sites(request))
    found = await request.app[RETRIEVER].search(
        [Part(text)],
        sites=sites,
        limit=limit,
        languages=await documents.languages(sites),
        by_document=False,
        mode=mode,
    )
    results = [
        {
            "url": c.document.url,
            "name": c.document.name,
            "site": c.document.site,
            "document_id": c.document.document_id,
            "chunk": c.n,
            "text": c.text,
            "score": round(c.score, 4),
            "scores": {leg: round(score, 4) for leg, score in c.legs.items()},
        }
        for c in await documents.live(caller.scope, found)
        if c.score >= least
    ]
    return json_response({"query": text, "results": results})


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
