"""The tools that ask no model: `search` and `fetch` as connectors expect them, `list_sites`, `who`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, Final

from pydantic import Field

from core.errors import NotFound
from core.query import MAX_QUERY_CHARS
from core.retrieval import Part, filtered
from core.who import who
from server.auth import readable_sites, require
from server.keys import DOCUMENTS, LIBRARY, RETRIEVER
from server.mcp.base import Arguments, Call, Result, Told, Tool
from server.mcp.ids import item_id, parts_of
from server.params import MAX_TAGS, question, sites_from, tag_filter

SEARCH_LIMIT = 10
WHO_LIMIT = 10
MAX_FETCHED_CHARS = 200_000
Question = Annotated[str, Field(min_length=1, max_length=MAX_QUERY_CHARS)]
Tags = Annotated[
    list[dict[str, str | list[str]]],
    Field(
        max_length=MAX_TAGS,
        description="Only documents with these tags: {name: value, or values of which one must be "
        "there}. All of an object must hold, and one of several objects.",
    ),
]


class SearchArguments(Arguments):
    query: Annotated[Question, Field(description="What to search for.")]
    site: Annotated[
        str | None, Field(description="Only this site (see list_sites), or several with commas; else all.")
    ] = None
    tags: Tags = []  # noqa: RUF012


class Hit(Result):
    """One document that was found."""

    id: Annotated[str, Field(description="For the tool fetch.")]
    title: str
    url: str
    text: Annotated[str, Field(description="The passage that fits best.")]


class SearchResult(Result):
    results: Annotated[list[Hit], Field(description="The best first.")]


class FetchArguments(Arguments):
    id: Annotated[str, Field(min_length=1, max_length=300, description="An id that search or ask gave.")]


class FetchResult(Result):
    id: str
    title: str
    text: Annotated[str, Field(description="The document's whole text.")]
    url: str
    metadata: Annotated[
        dict[str, Any], Field(description="site, types, language, the schema.org item, and whether cut off.")
    ]


class NoArguments(Arguments):
    pass


class Site(Result):
    name: str
    description: str
    documents: int


class ListSitesResult(Result):
    sites: list[Site]


class WhoArguments(Arguments):
    query: Annotated[Question, Field(description="The question that a site is sought for.")]


class RatedSite(Result):
    """A site that can answer."""

    name: str
    score: Annotated[float, Field(description="How well, 0..100 within this question.")]
    description: str
    documents: int


class WhoResult(Result):
    sites: Annotated[list[RatedSite], Field(description="The best first.")]


async def search(call: Call, given: SearchArguments) -> Told:
    app = call.request.app
    caller = require(call.request, "read")
    sites, _ = sites_from([given.site] if given.site else [], await readable_sites(call.request))
    documents = app[DOCUMENTS]
    tags = tag_filter([given.tags])
    found = await app[RETRIEVER].search(
        [Part(question(given.query))],
        sites=sites,
        limit=SEARCH_LIMIT,
        where=filtered(None, tags),
        languages=await documents.languages(sites),
    )
    hits = [
        Hit(
            id=item_id(one.document.site, one.document.document_id),
            title=one.document.name,
            url=one.document.url,
            text=one.text,
        )
        for one in await documents.live(caller.scope, found, tags)
    ]
    return _as_json(SearchResult(results=hits))


async def fetch(call: Call, given: FetchArguments) -> Told:
    site, document_id = parts_of(given.id)
    documents = call.request.app[DOCUMENTS]
    scope = require(call.request, "read").scope
    document = await documents.document(scope, site, document_id)
    if document is None:
        raise NotFound(f"there is no document `{given.id}`", field="id")
    text = await documents.text(scope, document.key)
    return _as_json(
        FetchResult(
            id=given.id,
            title=document.name,
            text=text[:MAX_FETCHED_CHARS],
            url=document.url,
            metadata={
                "site": site,
                "types": list(document.types),
                "language": document.language,
                "item": document.schema_object,
                "cut_off": len(text) > MAX_FETCHED_CHARS,
            },
        )
    )


async def list_sites(call: Call, _given: NoArguments) -> Told:
    counts = await call.request.app[DOCUMENTS].sites(require(call.request, "read").scope)
    library = call.request.app[LIBRARY].current
    sites = [
        Site(name=one.name, description=library.site(one.name).description, documents=one.documents)
        for one in counts
    ]
    lines = [_site_line(one.name, one.description, one.documents) for one in sites]
    return Told("\n".join(lines) or "There are no sites yet.", ListSitesResult(sites=sites))


async def find_sites(call: Call, given: WhoArguments) -> Told:
    app = call.request.app
    library = app[LIBRARY].current
    matches = await who(
        question(given.query),
        sites=await readable_sites(call.request),
        documents=app[DOCUMENTS],
        retriever=app[RETRIEVER],
        describe=lambda site: library.site(site).description,
        limit=WHO_LIMIT,
    )
    lines = [_site_line(one.name, one.description, one.documents) for one in matches]
    sites = [RatedSite(**asdict(one)) for one in matches]
    return Told("\n".join(lines) or "No site has anything on this.", WhoResult(sites=sites))


def _as_json(data: Result) -> Told:
    """Connectors read the text of these two as JSON of the same shape."""
    return Told(data.model_dump_json(), data)


def _site_line(name: str, description: str, documents: int) -> str:
    return f"{name} ({documents} documents)" + (f": {description}" if description else "")


SEARCH: Final = Tool(
    name="search",
    title="Search passages",
    description="Search these websites for documents, without judging them. Read one in full with fetch.",
    arguments=SearchArguments,
    result=SearchResult,
    run=search,
    cards=True,
)
FETCH: Final = Tool(
    name="fetch",
    title="Fetch a document",
    description="The whole text of a document that search or ask found, by its id.",
    arguments=FetchArguments,
    result=FetchResult,
    run=fetch,
)
LIST_SITES: Final = Tool(
    name="list_sites",
    title="List the sites",
    description="The websites that can be asked here.",
    arguments=NoArguments,
    result=ListSitesResult,
    run=list_sites,
)
WHO: Final = Tool(
    name="who",
    title="Find the site for a question",
    description="Which of these websites can answer a question, the best first.",
    arguments=WhoArguments,
    result=WhoResult,
    run=find_sites,
)
