"""The resources: the page of cards, and every document by its id as `askable://documents/SITE/ID`."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote, unquote

import mcp_types as types
import orjson
from aiohttp import web
from mcp.shared.exceptions import MCPError

from core.errors import AskError
from server.auth import require
from server.keys import DOCUMENTS
from server.mcp import cards
from server.mcp.finding import MAX_FETCHED_CHARS
from server.mcp.ids import parts_of

DOCUMENT: Final = "askable://documents/"
TEMPLATE: Final = DOCUMENT + "{site}/{document_id}"


def listed() -> types.ListResourcesResult:
    """The page alone: documents are found by search, not by leafing through all of them."""
    page = types.Resource(
        uri=cards.URI,
        name="results",
        title="Results as cards",
        description="Shows the results of ask and search.",
        mime_type=cards.MIME_TYPE,
        _meta=cards.META,
    )
    return types.ListResourcesResult(resources=[page])


def templates() -> types.ListResourceTemplatesResult:
    """How a document is named."""
    document = types.ResourceTemplate(
        uri_template=TEMPLATE,
        name="document",
        title="A document",
        description="The text of a document, then its schema.org item; the id that ask and search give holds "
        "both parts.",
    )
    return types.ListResourceTemplatesResult(resource_templates=[document])


def uri_of(site: str, document_id: str) -> str:
    """The resource of a document."""
    return f"{DOCUMENT}{site}/{quote(document_id, safe='')}"


async def read(uri: str, request: web.Request) -> types.ReadResourceResult:
    """Raises MCPError for what is not there, or not for this caller: the two are told alike."""
    if uri == cards.URI:
        page = types.TextResourceContents(
            uri=cards.URI, mime_type=cards.MIME_TYPE, text=cards.page(), _meta=cards.META
        )
        return types.ReadResourceResult(contents=[page])
    if uri.startswith(DOCUMENT):
        return await _document(uri, request)
    raise _nothing(uri)


async def _document(uri: str, request: web.Request) -> types.ReadResourceResult:
    site, _, named = uri.removeprefix(DOCUMENT).partition("/")
    try:
        site, document_id = parts_of(f"{site}/{unquote(named)}")
    except AskError:
        raise _nothing(uri) from None
    documents = request.app[DOCUMENTS]
    scope = require(request, "read").scope
    document = await documents.document(scope, site, document_id)
    if document is None:
        raise _nothing(uri)
    text = await documents.text(scope, document.key)
    contents: list[types.TextResourceContents | types.BlobResourceContents] = [
        types.TextResourceContents(uri=uri, mime_type="text/plain", text=text[:MAX_FETCHED_CHARS])
    ]
    if document.schema_object:
        item = orjson.dumps(document.schema_object).decode()
        contents.append(types.TextResourceContents(uri=uri, mime_type="application/ld+json", text=item))
    return types.ReadResourceResult(contents=contents)


def _nothing(uri: str) -> MCPError:
    return MCPError(types.INVALID_PARAMS, "there is no such resource", {"uri": uri[:500]})
