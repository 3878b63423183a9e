"""Stores what was read: cut, embed, save, publish - so that a kill at any point leaves the old or the new.

A document's version is a digest of its content. New chunks and points are written under the new version
first, while readers still take the old one; then one transaction makes the new version live; then the old
version's points are deleted. What a kill leaves over is listed in `stale_versions` and swept at start.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import uuid
from collections import defaultdict
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import orjson

from core.access import EVERYTHING
from core.documents import Document, Documents, Version
from core.errors import AskError, StoreError
from core.ingestion.chunks import Chunk, cut
from core.ingestion.items import NotLoaded, Read, SourceItem
from core.ingestion.jsonld import sane
from core.language import detect
from core.names import check_site_name, document_id_of
from core.prompting.schema_types import kinds
from core.providers.base import Point, Vector, VectorStore, Where
from core.retrieval import Retriever
from core.tags import FIELD

log = logging.getLogger(__name__)

COLLECTION = "content"
BATCH_CHUNKS = 48
REFILL_PAGE = 200
POINTS = uuid.UUID("6f0cbd0e-7c1e-5b52-9c0b-0b6f3e0f6a55")
# Changes when text, cutting or embedding input changes, so that a reload replaces what older code stored.
FORMAT = "3"

OutcomeKind = Literal["added", "replaced", "unchanged", "skipped", "failed"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one item (or of a source that gave none)."""

    kind: OutcomeKind
    source: str
    url: str = ""
    name: str = ""
    document_id: str = ""
    chunks: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Deleted:
    """How much went, and what a read afterwards still found (0 unless something is wrong)."""

    documents: int
    chunks: int
    left: int


@dataclass(frozen=True, slots=True)
class _Prepared:
    item: SourceItem
    document: Document
    chunks: Sequence[Chunk]


class Loader:
    """Loads and deletes documents. One at a time per site; searches go on beside it."""

    def __init__(
        self,
        documents: Documents,
        store: VectorStore,
        retriever: Retriever,
        *,
        max_words: int,
        overlap_words: int,
    ) -> None:
        self._documents = documents
        self._store = store
        self._retriever = retriever
        self._max_words = max_words
        self._overlap_words = overlap_words
        self._turn: Mapping[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def load(
        self, site: str, reads: Iterable[Read], tags: Sequence[str] = ()
    ) -> AsyncGenerator[Outcome, None]:
        """Store what was read, yielding an outcome per item as soon as it is live.

        Every item gets these tags (`core.tags.read`) and no others: what it had before goes. Reading happens
        in a thread. Raises BadQuery for a site name that is none; an item that fails is an outcome and not an
        error.
        """
        check_site_name(site)
        async with self._turn[site]:
            await self.sweep(site)
            source = iter(reads)
            while True:
                taken = await asyncio.to_thread(self._take, source, site, tuple(tags))
                if not taken:
                    return
                for outcome in taken:
                    if isinstance(outcome, Outcome):
                        yield outcome
                async for outcome in self._store_batch([p for p in taken if isinstance(p, _Prepared)]):
                    yield outcome

    async def delete(self, site: str, document_ids: Sequence[str] | None) -> Deleted:
        """Delete documents, or with None the whole site; then count what is left in the store."""
        async with self._turn[site]:
            if document_ids is None:
                return await self._delete_site(site)
            gone = await self._documents.retire(site, document_ids)
            if not gone:
                return Deleted(documents=0, chunks=0, left=0)
            where = _where(gone)
            removed = await self._store.delete(COLLECTION, where)
            left = await self._store.count(COLLECTION, where)
            if not left:
                await self._documents.swept(gone)
            return Deleted(documents=len(gone), chunks=removed, left=left)

    async def _delete_site(self, site: str) -> Deleted:
        gone = await self._documents.retire_site(site)
        where = Where(must={"site": site})
        removed = await self._store.delete(COLLECTION, where)
        left = await self._store.count(COLLECTION, where)
        if not left:
            await self._documents.swept_site(site)
        return Deleted(documents=gone, chunks=removed, left=left)

    async def sweep(self, site: str | None = None) -> int:
        """Finish what an interrupted load (of this site) has left: the points of stale versions go, tags that
        were changed are filed. How many versions went."""
        keys = await self._documents.stale(site)
        for key in keys:
            await self._store.delete(COLLECTION, _where([key]))
        await self._documents.swept(keys)
        await self._file_tags(site)
        return len(keys)

    async def retag(self, site: str, document_ids: Sequence[str], tags: Sequence[str]) -> None:
        """Give these documents these tags and no others; nothing is embedded again. Raises StoreError, and
        then the next sweep finishes it."""
        async with self._turn[site]:
            await self._retag(site, document_ids, tags)

    async def _retag(self, site: str, document_ids: Sequence[str], tags: Sequence[str]) -> None:
        await self._documents.set_tags(site, document_ids, tags)
        await self._file_tags(site)

    async def _file_tags(self, site: str | None) -> None:
        """Bring the vector store's tags to what the database says, a call for all that have the same."""
        waiting: dict[tuple[str, ...], list[Version]] = {}
        for key, tags in await self._documents.unfiled(site):
            waiting.setdefault(tags, []).append(key)
        for tags, keys in waiting.items():
            await self._store.set_payload(COLLECTION, _where(keys), {FIELD: list(tags)})
            await self._documents.filed(keys)

    async def missing(self) -> int:
        """How many points the vector store lacks of what the database says is live (0: none)."""
        return max(0, await self._documents.chunk_count() - await self._store.count(COLLECTION, Where()))

    async def refill(self) -> None:
        """Write the points of every live document again from its stored chunks: for a vector store that was
        lost, or restored from another day than the database."""
        after = ("", "")
        while page := await self._documents.documents(EVERYTHING, None, after=after, limit=REFILL_PAGE):
            for document in page:
                async with self._turn[document.site]:
                    await self._refill(document)
            after = (page[-1].site, page[-1].document_id)

    async def _refill(self, document: Document) -> None:
        chunks = await self._documents.chunk_rows(document.key)
        if chunks:
            await self._store.upsert(COLLECTION, await self._points([(document, chunks)]))

    def _take(self, source: Iterator[Read], site: str, tags: tuple[str, ...]) -> list[Outcome | _Prepared]:
        """The next items, about a batch of chunks of them; runs in a thread."""
        taken: list[Outcome | _Prepared] = []
        size = 0
        for read in source:
            if isinstance(read, NotLoaded):
                taken.append(Outcome(read.outcome, read.source, name=read.what, reason=read.reason))
            else:
                prepared = self._prepare(site, read, tags)
                taken.append(prepared)
                size += len(prepared.chunks)
            if size >= BATCH_CHUNKS or len(taken) >= 4 * BATCH_CHUNKS:
                break
        return taken

    def _prepare(self, site: str, item: SourceItem, tags: tuple[str, ...]) -> _Prepared:
        chunks = cut(item.text, max_words=self._max_words, overlap_words=self._overlap_words)
        if not chunks:
            # No text: it is found by its name.
            chunks = [Chunk(n=0, text=item.name or item.url, start=0, end=0)]
        stored = orjson.dumps(sane(item.schema_object))
        content = orjson.dumps(
            [FORMAT, item.url, item.name, item.types, item.text, self._max_words, self._overlap_words]
        )
        version = hashlib.sha256(content + stored).hexdigest()[:32]
        document = Document(
            site=site,
            document_id=document_id_of(site, item.key),
            version=version,
            url=item.url,
            name=item.name,
            types=item.types,
            language=item.language or detect(f"{item.name}\n{item.text}"),
            item=stored,
            file=item.source,
            chunks=len(chunks),
            tags=tags,
        )
        return _Prepared(item, document, chunks)

    async def _store_batch(self, batch: Sequence[_Prepared]) -> AsyncGenerator[Outcome, None]:
        if not batch:
            return
        latest = {p.document.document_id: p for p in batch}
        known = await self._documents.known([(p.document.site, p.document.document_id) for p in batch])
        fresh, retagged = [], []
        for prepared in batch:
            document = prepared.document
            there = known.get((document.site, document.document_id))
            if latest[document.document_id] is not prepared:
                yield _outcome("skipped", prepared, "the same address comes again later in this load")
            elif there is None or there.version != document.version:
                fresh.append(prepared)
            elif there.tags != document.tags:
                retagged.append(prepared)
            else:
                yield _outcome("unchanged", prepared)
        async for outcome in self._store_tags(retagged):
            yield outcome
        if not fresh:
            return
        try:
            await self._documents.announce([(p.document.key, p.chunks) for p in fresh])
            await self._store.upsert(COLLECTION, await self._points([(p.document, p.chunks) for p in fresh]))
            replaced = await self._documents.publish([p.document for p in fresh])
        except AskError as failed:
            log.warning("load.batch_failed", extra={"site": fresh[0].document.site, "reason": failed.message})
            for prepared in fresh:
                yield _outcome("failed", prepared, failed.message)
            return
        if replaced:
            try:
                await self._store.delete(COLLECTION, _where(replaced))
                await self._documents.swept(replaced)
            except StoreError as failed:
                # Readers pass over them already; the next start sweeps them.
                log.warning("load.sweep_failed", extra={"reason": failed.message})
        for prepared in fresh:
            known_before = (prepared.document.site, prepared.document.document_id) in known
            yield _outcome("replaced" if known_before else "added", prepared)

    async def _store_tags(self, batch: Sequence[_Prepared]) -> AsyncGenerator[Outcome, None]:
        """Documents that are as they were but for their tags, which one load gives to all alike."""
        if not batch:
            return
        first = batch[0].document
        try:
            await self._retag(first.site, [p.document.document_id for p in batch], first.tags)
        except AskError as failed:
            log.warning("load.tags_failed", extra={"site": first.site, "reason": failed.message})
            for prepared in batch:
                yield _outcome("failed", prepared, failed.message)
            return
        for prepared in batch:
            yield _outcome("replaced", prepared, "its tags")

    async def _points(self, batch: Sequence[tuple[Document, Sequence[Chunk]]]) -> list[Point]:
        texts, languages = [], []
        for document, chunks in batch:
            for chunk in chunks:
                # The title in front: a chunk from a page's middle is still found by what the page is about.
                name = document.name
                texts.append(chunk.text if chunk.text.startswith(name) else f"{name}\n{chunk.text}")
                languages.append(document.language)
        vectors = iter(await self._retriever.vectors(texts, languages))
        return [_point(document, chunk, next(vectors)) for document, chunks in batch for chunk in chunks]


def _point(document: Document, chunk: Chunk, vectors: Mapping[str, Vector]) -> Point:
    name = f"{document.site}\n{document.document_id}\n{document.version}\n{chunk.n}"
    payload = {
        "site": document.site,
        "document_id": document.document_id,
        "version": document.version,
        "n": chunk.n,
        "lang": document.language,
        "types": kinds(document.types),
        FIELD: list(document.tags),
    }
    return Point(id=str(uuid.uuid5(POINTS, name)), vectors=vectors, payload=payload)


def _where(keys: Sequence[Version]) -> Where:
    """The points of these versions: ids and versions are digests, so no pair of two of them is a third."""
    return Where(
        must={
            "site": sorted({key.site for key in keys}),
            "document_id": sorted({key.document_id for key in keys}),
            "version": sorted({key.version for key in keys}),
        }
    )


def _outcome(kind: OutcomeKind, prepared: _Prepared, reason: str = "") -> Outcome:
    document = prepared.document
    return Outcome(
        kind=kind,
        source=prepared.item.source,
        url=document.url,
        name=document.name,
        document_id=document.document_id,
        chunks=document.chunks,
        reason=reason,
    )
