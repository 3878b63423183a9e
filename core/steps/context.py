"""Tell what the page is about that a question is asked on: a stored item, or what the client says of it."""

from __future__ import annotations

from core.access import Scope
from core.documents import Documents
from core.ingestion.text import trimmed
from core.prompting.variables import write_json
from core.query import Query

# A page is context, not a source: its name and beginning say what "this" is.
MAX_CONTEXT_CHARS = 4000


async def with_context(query: Query, documents: Documents) -> Query:
    """The query with the stored item of `context_url`, looked for in the sites that are asked; nothing is
    fetched. What the client says of the page stands after it. Raises StoreError."""
    if not query.context_url:
        return query
    scope = Scope.of(query.sites)
    found = await documents.by_url(scope, query.context_url, None)
    if not found:
        found = await documents.by_url(scope, query.context_url.partition("#")[0], None)
    if not found:
        return query
    document = found[0]
    told = f"{document.name}\n{write_json(trimmed(document.schema_object))}"[:MAX_CONTEXT_CHARS]
    return query.with_(context_text="\n".join(part for part in (told, query.context_text) if part))
