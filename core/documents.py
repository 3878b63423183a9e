"""What is loaded: documents with their chunks and versions, as rows; one transaction a method."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import urlsplit

import orjson
import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from core.access import Access, Scope
from core.database import Database, chunks, documents, insert, insert_missing, sites, stale, upsert
from core.errors import StoreError
from core.ingestion.chunks import Chunk
from core.kept import Kept
from core.retrieval import Found
from core.tags import TagFilter, fits

# Of passages that were found lately, with their documents: then only whether they still stand is read.
PASSAGE_BYTES = 32 * 2**20
HOST = re.compile(r"[a-z0-9.-]{1,253}(?::\d{1,5})?")


class Version(NamedTuple):
    """One version of one document: what points and chunks are filed under. (Made and hashed some hundred
    times a question: a tuple takes a third of a frozen class's time for that.)"""

    site: str
    document_id: str
    version: str


@dataclass(frozen=True, slots=True)
class Document:
    """A live document as it was loaded; `item` is its schema.org object as JSON bytes, `tags` are
    `name:value`, sorted."""

    site: str
    document_id: str
    version: str
    url: str
    name: str
    types: tuple[str, ...]
    language: str
    item: bytes
    file: str
    chunks: int
    tags: tuple[str, ...] = ()

    @property
    def schema_object(self) -> Any:
        return orjson.loads(self.item)

    @property
    def key(self) -> Version:
        return Version(self.site, self.document_id, self.version)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A live document that a search found, with the chunk that matched best and the fused score (0..1)."""

    document: Document
    n: int
    text: str
    score: float
    legs: Mapping[str, float]


# Of a passage: its site, its document's id and version, and which of its chunks it is.
_Place: TypeAlias = tuple[str, str, str, int]


@dataclass(frozen=True, slots=True)
class _Passage:
    """A chunk of a document as the row was that was last changed then."""

    document: Document
    text: str
    updated_at: float


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a live document before it is loaded again."""

    version: str
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SiteCounts:
    name: str
    access: str
    documents: int
    chunks: int


class Documents:
    """Reads and writes documents in the database; knows nothing of vectors.

    Whatever reads for a caller takes the `Scope` of what that caller may see and filters by it in the query
    itself: there is no reading past it. `new_site_access` is what a site is when it is first loaded.
    """

    def __init__(self, database: Database, *, new_site_access: Access = "public") -> None:
        self._database = database
        self._new_site_access = new_site_access
        self._languages: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._sizes: dict[tuple[str, ...], int] = {}
        self._passages: Kept[_Place, _Passage] = Kept(PASSAGE_BYTES)

    async def sites(self, scope: Scope) -> list[SiteCounts]:
        """The sites with their counts, by name."""

        def work(c: Connection) -> list[SiteCounts]:
            query = (
                sa.select(
                    sites.c.name,
                    sites.c.access,
                    sa.func.count(documents.c.document_id),
                    sa.func.coalesce(sa.func.sum(documents.c.chunks), 0),
                )
                .select_from(sites.outerjoin(documents, documents.c.site == sites.c.name))
                .where(_within(scope, sites.c.name))
                .group_by(sites.c.name, sites.c.access)
                .order_by(sites.c.name)
            )
            return [SiteCounts(*row) for row in c.execute(query)]

        return await self._database.read(work)

    async def languages(self, among: Sequence[str]) -> tuple[str, ...]:
        """The languages of these sites' documents, the most frequent first; kept until a load."""
        key = tuple(among)
        if key not in self._languages:
            query = (
                sa.select(documents.c.language)
                .where(documents.c.site.in_(key), documents.c.language != "")
                .group_by(documents.c.language)
                .order_by(sa.func.count().desc(), documents.c.language)
            )
            found = await self._database.read(lambda c: tuple(c.execute(query).scalars()))
            self._languages[key] = found
        return self._languages[key]

    async def size(self, among: Sequence[str]) -> int:
        """How many passages these sites' documents have; kept until a load."""
        key = tuple(among)
        if key not in self._sizes:
            query = sa.select(sa.func.coalesce(sa.func.sum(documents.c.chunks), 0)).where(
                documents.c.site.in_(key)
            )
            self._sizes[key] = await self._database.read(lambda c: int(c.execute(query).scalar_one()))
        return self._sizes[key]

    async def hosts(self, scope: Scope, limit: int) -> list[str]:
        """The hosts of the loaded documents' addresses, at most `limit` of them."""
        query = (
            sa.select(documents.c.host)
            .where(documents.c.host != "", _within(scope, documents.c.site))
            .distinct()
        )
        return await self._database.read(
            lambda c: list(c.execute(query.order_by(documents.c.host).limit(limit)).scalars())
        )

    async def site_names(self, scope: Scope) -> list[str]:
        """The sites' names, sorted."""
        query = _names_in_order(scope.private, scope.sites is not None)
        asked = {"allowed": sorted(scope.sites or ())}
        return await self._database.read(lambda c: list(c.execute(query, asked).scalars()))

    async def set_access(self, site: str, access: Access) -> None:
        """Say who may ask a site; one that is not there is made, empty."""
        values = {"name": site, "access": access, "created_at": time.time()}

        def work(c: Connection) -> None:
            if not insert_missing(c, sites, **values):
                c.execute(sa.update(sites).where(sites.c.name == site).values(access=access))

        await self._database.write(work)

    async def documents(
        self,
        scope: Scope,
        site: str | None,
        *,
        tags: Sequence[str] = (),
        after: tuple[str, str] = ("", ""),
        limit: int = 1000,
    ) -> list[Document]:
        """Live documents (that have all of these tags) in (site, document_id) order behind `after`."""

        def work(c: Connection) -> list[Document]:
            query = sa.select(documents).order_by(documents.c.site, documents.c.document_id).limit(limit)
            query = query.where(_within(scope, documents.c.site))
            query = query.where(sa.tuple_(documents.c.site, documents.c.document_id) > after)
            if site is not None:
                query = query.where(documents.c.site == site)
            query = query.where(*(_tagged(tag) for tag in tags))
            return [_document(row) for row in c.execute(query)]

        return await self._database.read(work)

    async def document(self, scope: Scope, site: str, document_id: str) -> Document | None:
        def work(c: Connection) -> Document | None:
            found = c.execute(
                sa.select(documents).where(
                    documents.c.site == site,
                    documents.c.document_id == document_id,
                    _within(scope, documents.c.site),
                )
            ).one_or_none()
            return None if found is None else _document(found)

        return await self._database.read(work)

    async def by_url(self, scope: Scope, url: str, site: str | None) -> list[Document]:
        """Live documents with exactly this address."""

        def work(c: Connection) -> list[Document]:
            query = sa.select(documents).where(documents.c.url == url, _within(scope, documents.c.site))
            if site is not None:
                query = query.where(documents.c.site == site)
            return [_document(row) for row in c.execute(query)]

        return await self._database.read(work)

    async def chunk_rows(self, key: Version) -> list[Chunk]:
        """A version's chunks in order."""

        def work(c: Connection) -> list[Chunk]:
            columns = (chunks.c.n, chunks.c.text, chunks.c.start, chunks.c.end)
            return [
                Chunk(*row)
                for row in c.execute(sa.select(*columns).where(_of(chunks, key)).order_by(chunks.c.n))
            ]

        return await self._database.read(work)

    async def text(self, scope: Scope, key: Version) -> str:
        """A version's whole text: its chunks without what they repeat of each other."""

        def work(c: Connection) -> str:
            query = sa.select(chunks.c.text, chunks.c.start, chunks.c.end).where(
                _of(chunks, key), _within(scope, chunks.c.site)
            )
            return _joined(c.execute(query.order_by(chunks.c.n)))

        return await self._database.read(work)

    async def live(self, scope: Scope, found: Sequence[Found], tags: TagFilter = ()) -> list[Candidate]:
        """The hits whose version is live and that pass the filter as their tags are now, in the given order,
        with document and chunk text. (The vector store learns of new tags a moment later.)

        What is kept of an earlier search counts only if its row has not been changed since."""
        if not found:
            return []
        kept = {place: self._passages.get(place) for place in map(_place, found)}

        def work(c: Connection) -> tuple[dict[_Place, _Passage], list[_Place]]:
            asked = {
                "sites": list({place[0] for place in kept}),
                "ids": list({place[1] for place in kept}),
                "allowed": sorted(scope.sites or ()),
            }
            rows = c.execute(_versions(scope.private, scope.sites is not None), asked)
            now = {(row.site, row.document_id, row.version): row.updated_at for row in rows}
            live: dict[_Place, _Passage] = {}
            missing: list[_Place] = []
            for place, passage in kept.items():
                updated_at = now.get(place[:3])
                if updated_at is None:
                    continue
                if passage is not None and passage.updated_at == updated_at:
                    live[place] = passage
                else:
                    missing.append(place)
            if missing:
                live.update((_place_in(row), _passage(row)) for row in c.execute(_passages(scope, missing)))
            return live, missing

        live, missing = await self._database.read(work)
        for place in missing:
            if (passage := live.get(place)) is not None:
                self._passages.put(place, passage, len(passage.document.item) + 4 * len(passage.text))
        return [
            Candidate(passage.document, one.n, passage.text, one.score, one.legs)
            for one in found
            if (passage := live.get(_place(one))) is not None and fits(passage.document.tags, tags)
        ]

    async def expanded(self, found: Sequence[Candidate], beside: int) -> list[str]:
        """The text of each with up to `beside` chunks of its document before and after it, joined as `text`
        joins them."""

        def one(c: Connection, candidate: Candidate) -> str:
            n = candidate.n
            query = sa.select(chunks.c.text, chunks.c.start, chunks.c.end).where(
                _of(chunks, candidate.document.key), chunks.c.n.between(n - beside, n + beside)
            )
            # A version that was replaced since has no chunks any more.
            return _joined(c.execute(query.order_by(chunks.c.n))) or candidate.text

        return await self._database.read(lambda c: [one(c, candidate) for candidate in found])

    async def known(self, keys: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Known]:
        """What there is of each (site, document_id) that is live."""

        def work(c: Connection) -> dict[tuple[str, str], Known]:
            columns = (documents.c.site, documents.c.document_id, documents.c.version, documents.c.tags)
            query = sa.select(*columns).where(
                sa.tuple_(documents.c.site, documents.c.document_id).in_(list(keys))
            )
            return {
                (row.site, row.document_id): Known(row.version, tuple(row.tags)) for row in c.execute(query)
            }

        return await self._database.read(work) if keys else {}

    async def set_tags(self, site: str, document_ids: Sequence[str], tags: Sequence[str]) -> None:
        """Give these documents these tags and no others; the vector store is to be told next (`unfiled`)."""
        statement = (
            sa.update(documents)
            .where(documents.c.site == site, documents.c.document_id.in_(list(document_ids)))
            .values(tags=list(tags), tags_filed=False, updated_at=time.time())
        )
        await self._database.write(lambda c: c.execute(statement).close())

    async def unfiled(self, site: str | None = None) -> list[tuple[Version, tuple[str, ...]]]:
        """Live versions (of this site) whose tags the vector store may not have, with these tags."""
        columns = (documents.c.site, documents.c.document_id, documents.c.version, documents.c.tags)
        query = sa.select(*columns).where(documents.c.tags_filed.is_(False))
        if site is not None:
            query = query.where(documents.c.site == site)
        return await self._database.read(
            lambda c: [
                (Version(row.site, row.document_id, row.version), tuple(row.tags)) for row in c.execute(query)
            ]
        )

    async def filed(self, keys: Sequence[Version]) -> None:
        """The vector store has the tags of these versions."""
        of_keys = sa.tuple_(documents.c.site, documents.c.document_id, documents.c.version).in_(
            [(key.site, key.document_id, key.version) for key in keys]
        )
        statement = sa.update(documents).where(of_keys).values(tags_filed=True)
        await self._database.write(lambda c: c.execute(statement).close())

    async def announce(self, incoming: Sequence[tuple[Version, Sequence[Chunk]]]) -> None:
        """File the chunks of versions that are about to get points; until `publish` they count as stale."""

        def work(c: Connection) -> None:
            for key, cut in incoming:
                _forget_version(c, key)
                insert_missing(c, stale, **_columns(key))
                c.execute(
                    sa.insert(chunks),
                    [
                        {**_columns(key), "n": k.n, "text": k.text, "start": k.start, "end": k.end}
                        for k in cut
                    ],
                )

        await self._database.write(work)

    async def publish(self, incoming: Sequence[Document]) -> list[Version]:
        """Make these versions the live ones at once; returns those they replaced, which are now stale.

        Raises StoreError where another server, which took the load for an interrupted one, has swept it.
        """
        now = time.time()

        def work(c: Connection) -> list[Version] | None:
            if lost := _swept(c, [new.key for new in incoming]):
                for key in lost:
                    insert_missing(c, stale, **_columns(key))  # it may have points by now
                return None
            replaced = []
            for new in incoming:
                fresh = {"name": new.site, "access": self._new_site_access, "created_at": now}
                insert_missing(c, sites, **fresh)
                old = c.execute(
                    sa.select(documents.c.version).where(
                        documents.c.site == new.site, documents.c.document_id == new.document_id
                    )
                ).scalar_one_or_none()
                if old is not None and old != new.version:
                    gone = Version(new.site, new.document_id, old)
                    _retire(c, gone)
                    replaced.append(gone)
                values = {
                    **_columns(new.key),
                    "url": new.url,
                    "host": _host(new.url),
                    "name": new.name,
                    "types": list(new.types),
                    "language": new.language,
                    "item": new.item,
                    "file": new.file,
                    "chunks": new.chunks,
                    "updated_at": now,
                    "tags": list(new.tags),
                    "tags_filed": True,
                }
                upsert(c, documents, ["site", "document_id"], **values)
                c.execute(sa.delete(stale).where(_of(stale, new.key)))
            return replaced

        replaced = await self._database.write(work)
        if replaced is None:
            raise StoreError("another server has cleaned up during this load: load again")
        self._languages.clear()
        self._sizes.clear()
        return replaced

    async def retire(self, site: str, document_ids: Sequence[str]) -> list[Version]:
        """Take documents out of sight; returns what is now stale."""

        def work(c: Connection) -> list[Version]:
            query = sa.select(documents.c.site, documents.c.document_id, documents.c.version).where(
                documents.c.site == site, documents.c.document_id.in_(list(document_ids))
            )
            gone = [Version(*row) for row in c.execute(query)]
            for key in gone:
                _retire(c, key)
                c.execute(
                    sa.delete(documents).where(
                        documents.c.site == key.site, documents.c.document_id == key.document_id
                    )
                )
            return gone

        gone = await self._database.write(work)
        self._languages.clear()
        self._sizes.clear()
        return gone

    async def retire_site(self, site: str) -> int:
        """Take a site with all its documents out of sight; returns how many those were. What an interrupted
        load has left of it goes as well; its points are stale until `swept_site`."""

        def work(c: Connection) -> int:
            live = sa.select(documents.c.site, documents.c.document_id, documents.c.version).where(
                documents.c.site == site
            )
            columns = ["site", "document_id", "version"]
            c.execute(insert(c, stale).from_select(columns, live).on_conflict_do_nothing())
            c.execute(sa.delete(chunks).where(chunks.c.site == site))
            c.execute(sa.delete(sites).where(sites.c.name == site))
            return c.execute(sa.delete(documents).where(documents.c.site == site)).rowcount

        gone = await self._database.write(work)
        self._languages.clear()
        self._sizes.clear()
        return gone

    async def swept_site(self, site: str) -> None:
        """The points of the site's stale versions are gone."""
        await self._database.write(lambda c: c.execute(sa.delete(stale).where(stale.c.site == site)))

    async def stale(self, site: str | None = None) -> list[Version]:
        """Versions (of this site) whose points are to be deleted from the vector store."""
        query = sa.select(stale) if site is None else sa.select(stale).where(stale.c.site == site)
        return await self._database.read(lambda c: [Version(*row) for row in c.execute(query)])

    async def chunk_count(self) -> int:
        """Chunks of all live documents: as many points should be in the vector store."""
        total = sa.select(sa.func.coalesce(sa.func.sum(documents.c.chunks), 0))
        return int(await self._database.read(lambda c: c.execute(total).scalar_one()))

    async def swept(self, keys: Sequence[Version]) -> None:
        """The points of these stale versions are gone: forget them and their chunks."""

        def work(c: Connection) -> None:
            for key in keys:
                _forget_version(c, key)
                c.execute(sa.delete(stale).where(_of(stale, key)))

        await self._database.write(work)


def _within(scope: Scope, site: sa.ColumnElement[str]) -> sa.ColumnElement[bool]:
    """That `site` is one the scope may see, as it stands in this transaction."""
    allowed = sa.select(sites.c.name)
    if not scope.private:
        allowed = allowed.where(sites.c.access == "public")
    if scope.sites is not None:
        allowed = allowed.where(sites.c.name.in_(sorted(scope.sites)))
    return site.in_(allowed)


def _site_names(private: bool, of_sites: bool) -> sa.Select[str]:
    """The sites that scopes of this kind may see; `allowed` are those that one is limited to."""
    names = sa.select(sites.c.name)
    if not private:
        names = names.where(sites.c.access == "public")
    return names.where(sites.c.name.in_(sa.bindparam("allowed", expanding=True))) if of_sites else names


# The two statements that every question reads by are made once: that takes as long as to run them.
@lru_cache(maxsize=4)
def _names_in_order(private: bool, of_sites: bool) -> sa.Select[str]:
    return _site_names(private, of_sites).order_by(sites.c.name)


@lru_cache(maxsize=4)
def _versions(private: bool, of_sites: bool) -> sa.Select[str, str, str, float]:
    """Which versions of the documents `ids` of `sites` are live, and when their rows were last changed; of
    the sites that such scopes may see."""
    columns = (documents.c.site, documents.c.document_id, documents.c.version, documents.c.updated_at)
    return sa.select(*columns).where(
        documents.c.site.in_(sa.bindparam("sites", expanding=True)),
        documents.c.document_id.in_(sa.bindparam("ids", expanding=True)),
        documents.c.site.in_(_site_names(private, of_sites)),
    )


def _passages(scope: Scope, places: Sequence[_Place]) -> sa.Select[Any]:
    """The live ones of these passages with their documents."""
    of_document = sa.and_(
        chunks.c.site == documents.c.site,
        chunks.c.document_id == documents.c.document_id,
        chunks.c.version == documents.c.version,
    )
    place = sa.tuple_(chunks.c.site, chunks.c.document_id, chunks.c.version, chunks.c.n)
    return (
        sa.select(documents, chunks.c.n, chunks.c.text)
        .join(chunks, of_document)
        .where(place.in_(places), _within(scope, chunks.c.site))
    )


def _place(found: Found) -> _Place:
    return found.site, found.document_id, found.version, found.n


def _place_in(row: Row[Any]) -> _Place:
    return row.site, row.document_id, row.version, row.n


def _passage(row: Row[Any]) -> _Passage:
    return _Passage(_document(row), row.text, row.updated_at)


def _tagged(tag: str) -> sa.ColumnElement[bool]:
    """That the column's JSON list has this tag, told by its text: an element begins behind a bracket or a
    comma, and quotation marks inside of others are escaped."""
    text = sa.cast(documents.c.tags, sa.Text)
    written = json.dumps(tag)
    return sa.or_(*(sa.func.replace(text, before + written, "") != text for before in ("[", ", ")))


def _columns(key: Version) -> dict[str, str]:
    return {"site": key.site, "document_id": key.document_id, "version": key.version}


def _of(table: sa.Table, key: Version) -> sa.ColumnElement[bool]:
    return sa.and_(
        table.c.site == key.site, table.c.document_id == key.document_id, table.c.version == key.version
    )


def _forget_version(c: Connection, key: Version) -> None:
    c.execute(sa.delete(chunks).where(_of(chunks, key)))


def _swept(c: Connection, keys: Sequence[Version]) -> list[Version]:
    """Those that were announced and are so no more, and are not live either."""
    there: set[Version] = set()
    for table in (stale, documents):
        columns = (table.c.site, table.c.document_id, table.c.version)
        wanted = [(key.site, key.document_id, key.version) for key in keys if key not in there]
        if wanted:
            found = c.execute(sa.select(*columns).where(sa.tuple_(*columns).in_(wanted)))
            there.update(Version(*row) for row in found)
    return [key for key in keys if key not in there]


def _retire(c: Connection, key: Version) -> None:
    _forget_version(c, key)
    insert_missing(c, stale, **_columns(key))


def _joined(rows: Iterable[Any]) -> str:
    """Chunks `(text, start, end)` in order as one text, without what they repeat of each other. Between them
    only white space was left out, of which one space or empty line stands for all."""
    parts: list[str] = []
    done = 0
    for text, start, end in rows:
        if start > done and parts:
            parts.append("\n\n" if start - done > 1 else " ")
        parts.append(text[max(0, done - start) :])
        done = max(done, end)
    return "".join(parts)


def _host(url: str) -> str:
    """The address's host and port if it is a web address whose host is plain enough to name in a header."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return parts.netloc if parts.scheme in ("http", "https") and HOST.fullmatch(parts.netloc) else ""


def _document(row: Row[Any]) -> Document:
    return Document(
        site=row.site,
        document_id=row.document_id,
        version=row.version,
        url=row.url,
        name=row.name,
        types=tuple(row.types),
        language=row.language,
        item=row.item,
        file=row.file,
        chunks=row.chunks,
        tags=tuple(row.tags),
    )
