"""`/documents`: load items, list what is loaded, delete."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict, replace
from typing import Any

from aiohttp import web

from core.documents import Document
from core.errors import BadQuery, NotFound
from core.ingestion.items import NotLoaded, Read, SourceItem
from core.ingestion.jsonld import items_from_object
from core.ingestion.load import Deleted
from core.ingestion.urls import safe
from core.names import check_document_id, check_site_name
from core.tags import read, shown
from server.auth import check_writable, require
from server.keys import DOCUMENTS, LOADER
from server.middleware import json_response
from server.params import json_body, read_params
from server.sse import event, open_stream

routes = web.RouteTableDef()

PAGE = 1000
NOT_YET = ("text", "url", "steps", "args")


@routes.post("/documents")
async def load(request: web.Request) -> web.StreamResponse:
    """Load `item` or `items` into `site`: outcomes as events while they come, or one report at the end.

    An element is a schema.org object, or `{url, item}`, to which a program that has read the page itself may
    add `text`, `name`, `types`, `language`, `source`. All of them get `tags`, and lose those they had.
    """
    require(request, "write")
    body = await json_body(request)
    site = check_site_name(str(body.get("site") or ""))
    await check_writable(request, site)
    for name in NOT_YET:
        if name in body:
            raise BadQuery(f"`{name}` is not available yet: send `item` or `items`", field=name)
    items = [body["item"]] if "item" in body else body.get("items")
    if not isinstance(items, list):
        raise BadQuery("`items` is needed: a list of schema.org objects", field="items")
    tags = read(() if body.get("tags") is None else body["tags"])
    outcomes = request.app[LOADER].load(site, _reads(items), tags)
    counts: Counter[str] = Counter()
    if "text/event-stream" not in request.headers.get("Accept", ""):
        async with aclosing(outcomes):
            collected = [outcome async for outcome in outcomes]
        counts.update(outcome.kind for outcome in collected)
        return json_response({"site": site, **_report(counts), "items": [asdict(o) for o in collected]})
    response = await open_stream(request)
    async with aclosing(outcomes):
        async for outcome in outcomes:
            counts[outcome.kind] += 1
            await response.write(event(asdict(outcome), name="item"))
    await response.write(event({"site": site, **_report(counts)}, name="complete"))
    await response.write_eof()
    return response


@routes.get("/documents")
async def listed(request: web.Request) -> web.Response:
    """Loaded documents, a page of a thousand; `cursor` of the answer asks for the next. `tag` (`name:value`,
    perhaps repeated) is what they must have."""
    scope = require(request, "write").scope
    params = await read_params(request)
    site = params.text("site", limit=64) or None
    after_site, _, after_id = params.text("cursor", limit=300).partition("/")
    documents = await request.app[DOCUMENTS].documents(
        scope, site, tags=read(list(params.all("tag"))), after=(after_site, after_id), limit=PAGE
    )
    last = documents[-1] if len(documents) == PAGE else None
    return json_response(
        {
            "documents": [_row(document) for document in documents],
            "cursor": f"{last.site}/{last.document_id}" if last else None,
        }
    )


@routes.patch("/documents/{document_id}/tags")
async def retag(request: web.Request) -> web.Response:
    """Give a document of `site` the tags of the body (`{tags}`) and no others; nothing is embedded again."""
    document = await _named(request)
    body = await json_body(request)
    if "tags" not in body:
        raise BadQuery("`tags` is needed: `{name: value or values}`, `{}` for none", field="tags")
    tags = read(body["tags"])
    await request.app[LOADER].retag(document.site, [document.document_id], tags)
    return json_response(_row(replace(document, tags=tags)))


@routes.delete("/documents/{document_id}")
async def delete(request: web.Request) -> web.Response:
    """Delete one document of `site`."""
    document = await _named(request)
    return _deleted([document.site], await request.app[LOADER].delete(document.site, [document.document_id]))


@routes.delete("/documents")
async def delete_by_url(request: web.Request) -> web.Response:
    """Delete what was loaded from `url`, in `site` or in all sites."""
    scope = require(request, "write").scope
    params = await read_params(request)
    url = params.text("url", limit=4000)
    if not url:
        raise BadQuery("`url` is needed", field="url")
    found = await request.app[DOCUMENTS].by_url(scope, url, params.text("site", limit=64) or None)
    if not found:
        raise NotFound(f"nothing was loaded from {url}", field="url")
    total = Deleted(0, 0, 0)
    for document in found:
        gone = await request.app[LOADER].delete(document.site, [document.document_id])
        total = Deleted(total.documents + gone.documents, total.chunks + gone.chunks, total.left + gone.left)
    return _deleted(sorted({document.site for document in found}), total)


async def _named(request: web.Request) -> Document:
    """The document that the path and `site` name. Raises NotFound, also where the caller may not see it."""
    scope = require(request, "write").scope
    document_id = check_document_id(request.match_info["document_id"])
    params = await read_params(request)
    site = check_site_name(params.text("site", limit=64))
    document = await request.app[DOCUMENTS].document(scope, site, document_id)
    if document is None:
        raise NotFound(f"there is no document `{document_id}` in site `{site}`", field="document_id")
    return document


def _reads(items: Sequence[Any]) -> Iterator[Read]:
    for number, element in enumerate(items, 1):
        source = f"item {number}"
        if not isinstance(element, Mapping):
            yield NotLoaded(source, "", "not a JSON object", "failed")
        elif "item" in element and isinstance(element.get("text"), str):
            yield _prepared(element, source)
        elif "item" in element:
            yield from items_from_object(str(element.get("url") or ""), element["item"], source)
        else:
            yield from items_from_object("", element, source)


def _prepared(element: Mapping[str, Any], source: str) -> Read:
    source = str(element.get("source") or source)
    url = safe(str(element.get("url") or ""))
    if not url:
        return NotLoaded(source, str(element.get("name") or ""), "no usable address (`url`)", "failed")
    types = element.get("types") or ["Thing"]
    return SourceItem(
        url=url,
        name=str(element.get("name") or url),
        types=tuple(str(one) for one in types) if isinstance(types, list) else (str(types),),
        schema_object=element["item"],
        text=element["text"],
        language=str(element.get("language") or "")[:3],
        source=source,
    )


def _report(counts: Mapping[str, int]) -> dict[str, int]:
    return {kind: counts.get(kind, 0) for kind in ("added", "replaced", "unchanged", "skipped", "failed")}


def _row(document: Document) -> dict[str, Any]:
    return {
        "document_id": document.document_id,
        "name": document.name,
        "url": document.url,
        "file": document.file,
        "site": document.site,
        "types": list(document.types),
        "state": "completed",
        "chunks": document.chunks,
        "tags": shown(document.tags),
        "error": None,
    }


def _deleted(sites: Sequence[str], gone: Deleted) -> web.Response:
    return json_response(
        {"sites": list(sites), "documents": gone.documents, "chunks": gone.chunks, "left": gone.left}
    )
