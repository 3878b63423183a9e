"""The ids by which MCP clients name documents: `SITE/DOCUMENT_ID`, the same while the document is there."""

from __future__ import annotations

from core.errors import BadQuery
from core.names import check_document_id, check_site_name


def item_id(site: str, document_id: str) -> str:
    """The id of a document of a site."""
    return f"{site}/{document_id}"


def parts_of(given: str) -> tuple[str, str]:
    """(site, document id) of an id. Raises BadQuery for what is none."""
    site, _, document_id = given.partition("/")
    try:
        return check_site_name(site), check_document_id(document_id)
    except BadQuery:
        raise BadQuery("`id` must be an id from the results of search or ask", field="id") from None
