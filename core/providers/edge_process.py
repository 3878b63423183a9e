"""The process that owns the embedded vector store: `python -m core.providers.edge_process FD PARENT FOLDER`.

Every collection is a shard in a folder of its own, with a `legs.json` beside the engine's files: what is
written there is what the shard must have, so a creation that a crash cut short is finished at the next start.
The engine keeps what was deleted in its segments and its log; a `deleted` beside them says so until `compact`
has copied what lives into a new shard, `NAME.new`, which then takes the place of the old one, `NAME.old`.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import orjson
from qdrant_edge import (
    CountRequest,
    Distance,
    EdgeConfig,
    EdgeOptimizersConfig,
    EdgeShard,
    EdgeSparseVectorParams,
    EdgeVectorParams,
    FieldCondition,
    Filter,
    MatchAny,
    Modifier,
    PayloadSchemaType,
    Point,
    Query,
    QueryBatchRequest,
    QueryRequest,
    ScrollRequest,
    SparseVector,
    UpdateOperation,
)

from core.providers.line import ChildFailure, Work, run_child, unpacked
from core.providers.vectors import COLLECTION_NAME, mismatch

RECORD = "legs.json"
DELETED = "deleted"
PIECE_POINTS = 64  # copied at a time: a search waits for one piece at most
FLUSH_COPY_EVERY = 1024  # points, so that little is left to flush when the copy takes its place
LOCK_PATIENCE_S = 3.0  # a store process whose parent was killed is still writing its last piece
FLUSH_EVERY = 20_000  # points; what is not flushed is replayed from the log at the next start
NEVER = 10**9  # kB: a graph index is built by `optimize` alone


class Shard:
    """One collection: the engine's shard and the record of its legs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._record: dict[str, Any] = orjson.loads((folder / RECORD).read_bytes())
        self._unflushed = 0
        self._deleted = (folder / DELETED).exists()
        self.engine = self._load() if (folder / "edge_config.json").exists() else self._create()
        self._complete()

    @classmethod
    def make(cls, folder: Path, legs: Sequence[dict[str, Any]], keywords: Sequence[str]) -> Shard:
        """A new and empty collection."""
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder / RECORD, _record(legs, keywords))
        return cls(folder)

    @property
    def keywords(self) -> list[str]:
        """The payload fields that are indexed."""
        keywords: list[str] = self._record["keywords"]
        return keywords

    @property
    def legs(self) -> dict[str, dict[str, Any]]:
        """`{name: {model, size}}`."""
        legs: dict[str, dict[str, Any]] = self._record["legs"]
        return legs

    def add(self, legs: Sequence[dict[str, Any]], keywords: Sequence[str]) -> None:
        """Have these legs and indexes too."""
        new = _record(legs, keywords)
        wanted = {
            "legs": self.legs | new["legs"],
            "keywords": sorted({*self._record["keywords"], *new["keywords"]}),
        }
        if wanted != self._record:
            _write(self._folder / RECORD, wanted)
            self._record = wanted
            self._complete()

    def update(self, operation: UpdateOperation, points: int = 1) -> None:
        """Apply an operation; the log keeps it from here on."""
        self.engine.update(operation)
        self._unflushed += points
        if self._unflushed >= FLUSH_EVERY:
            self.flush()

    @property
    def deleted(self) -> bool:
        """Whether the files may hold what was deleted."""
        return self._deleted

    def note_deleted(self) -> None:
        """Before something is deleted: its bytes stay until the files are written anew."""
        if not self._deleted:
            _write(self._folder / DELETED, True)
            self._deleted = True

    def flush(self) -> None:
        """Write what only the log has; without news it costs nothing."""
        if self._unflushed:
            self.engine.flush()
            self._unflushed = 0

    def close(self) -> None:
        """Flush and let go of the files."""
        self.flush()
        self.engine.close()

    def _load(self) -> EdgeShard:
        self._unflushed = 1  # a log may have been replayed
        return EdgeShard.load(str(self._folder))

    def _create(self) -> EdgeShard:
        config = EdgeConfig(
            vectors={
                name: EdgeVectorParams(size=leg["size"], distance=Distance.Cosine)
                for name, leg in self.legs.items()
                if leg["size"] is not None
            },
            sparse_vectors={
                name: EdgeSparseVectorParams(modifier=Modifier.Idf)
                for name, leg in self.legs.items()
                if leg["size"] is None
            },
            optimizers=EdgeOptimizersConfig(indexing_threshold=NEVER),
        )
        return EdgeShard.create(str(self._folder), config)

    def _complete(self) -> None:
        """Give the engine the legs and indexes that the record names and it lacks."""
        config = orjson.loads((self._folder / "edge_config.json").read_bytes())
        there = {*config.get("vectors", {}), *config.get("sparse_vectors", {})}
        for name, leg in self.legs.items():
            if name in there:
                continue
            if leg["size"] is None:
                self.update(UpdateOperation.create_sparse_vector(name, Modifier.Idf))
            else:
                self.update(UpdateOperation.create_dense_vector(name, leg["size"], Distance.Cosine))
        indexed = self.engine.info().payload_schema
        for field in self._record["keywords"]:
            if field not in indexed:
                self.update(UpdateOperation.create_field_index(field, PayloadSchemaType.Keyword))
        self.flush()


class Copy:
    """A shard that is being made of another one's living points; `following`: where the next piece starts."""

    def __init__(self, shard: Shard) -> None:
        self.shard = shard
        self.following: str | None = None
        self.unflushed = 0


class Store:
    """All collections under one folder, which is locked while this process lives."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = _locked(folder / ".lock")
        self._shards: dict[str, Shard] = {}
        self._copies: dict[str, Copy] = {}

    def handle(self, verb: str, body: Any) -> Any:
        """Answer one request; the verbs are the methods below."""
        return VERBS[verb](self, **(body or {}))

    def flush(self) -> None:
        """Between requests, when nobody waits."""
        for shard in self._shards.values():
            shard.flush()

    def close(self) -> None:
        """Flush everything and let go of the files."""
        for shard in [*self._shards.values(), *(copy.shard for copy in self._copies.values())]:
            shard.close()

    def ping(self) -> bool:
        return True

    def ensure(self, collection: str, legs: list[dict[str, Any]], keywords: list[str]) -> None:
        if not COLLECTION_NAME.fullmatch(collection):
            raise ChildFailure("failed", f"`{collection}` cannot be a collection's name")
        if not legs:
            raise ChildFailure("failed", f"collection `{collection}` needs a leg at least")
        self._tidy(collection)
        if not (self._folder / collection / RECORD).exists():
            self._shards[collection] = Shard.make(self._folder / collection, legs, keywords)
        shard = self._shard(collection)
        for leg in legs:
            _check(collection, leg, shard.legs.get(leg["name"]))
        for one in self._written(collection):
            one.add(legs, keywords)

    def upsert(self, collection: str, points: list[dict[str, Any]]) -> None:
        shard = self._shard(collection)
        # The engine writes its log before it looks at the vectors: what it would refuse must not get there.
        ready = [Point(p["id"], _vectors(p["vectors"], collection, shard.legs), p["payload"]) for p in points]
        for one in self._written(collection):
            one.update(UpdateOperation.upsert_points(ready), len(ready))

    def search(
        self, collection: str, queries: list[dict[str, Any]], where: Any, fields: list[str]
    ) -> list[list[tuple[str, float, dict[str, Any]]]]:
        shard = self._shard(collection)
        selected = _filter(where)
        requests = [
            QueryRequest(
                limit=query["limit"],
                query=Query.Nearest(
                    _vector(query["leg"], query["vector"], collection, shard.legs), query["leg"]
                ),
                filter=selected,
                with_payload=fields or False,
            )
            for query in queries
        ]
        found = shard.engine.query_batch(QueryBatchRequest(requests))
        return [[(str(hit.id), hit.score, hit.payload or {}) for hit in hits] for hits in found]

    def scroll(self, collection: str, where: Any, limit: int, offset: str | None) -> Any:
        request = ScrollRequest(limit=limit, offset=offset, filter=_filter(where), with_payload=True)
        records, following = self._shard(collection).engine.scroll(request)
        return [(str(r.id), r.payload or {}) for r in records], None if following is None else str(following)

    def set_payload(self, collection: str, where: Any, payload: dict[str, Any]) -> None:
        for shard in self._written(collection):
            shard.update(UpdateOperation.set_payload_by_filter(_filter(where), payload))

    def delete(self, collection: str, where: Any) -> int:
        selected = _filter(where)
        count = self._shard(collection).engine.count(CountRequest(exact=True, filter=selected))
        for shard in self._written(collection) if count else ():
            shard.note_deleted()
            shard.update(UpdateOperation.delete_points_by_filter(selected), count)
        return count

    def delete_ids(self, collection: str, ids: list[str]) -> None:
        for shard in self._written(collection):
            shard.note_deleted()
            shard.update(UpdateOperation.delete_points(list(ids)), len(ids))

    def count(self, collection: str, where: Any) -> int:
        return self._shard(collection).engine.count(CountRequest(exact=True, filter=_filter(where)))

    def optimize(self, collection: str) -> bool:
        shard = self._shard(collection)
        shard.engine.flush()
        return shard.engine.optimize()

    def deleted(self, collection: str) -> bool:
        return self._shard(collection).deleted or self._beside(collection, "old").exists()

    def compact(self, collection: str) -> bool:
        """Do the next piece, so that no search waits for more: copy points, put the copy in the old shard's
        place, remove that. Whether all is done. What is written meanwhile is written to both."""
        shard = self._shard(collection)
        if (old := self._beside(collection, "old")).exists():
            shutil.rmtree(old)
            return not shard.deleted
        copy = self._copies.get(collection)
        if copy is None:
            new = Shard.make(self._beside(collection, "new"), _legs(shard), shard.keywords)
            self._copies[collection] = copy = Copy(new)
        request = ScrollRequest(
            limit=PIECE_POINTS, offset=copy.following, with_payload=True, with_vector=True
        )
        records, following = shard.engine.scroll(request)
        points = [Point(r.id, r.vector or {}, r.payload or {}) for r in records]
        if points:
            copy.shard.update(UpdateOperation.upsert_points(points), len(points))
            copy.unflushed += len(points)
        if copy.unflushed >= FLUSH_COPY_EVERY:
            copy.shard.flush()
            copy.unflushed = 0
        copy.following = None if following is None else str(following)
        if copy.following is None:
            self._replace(collection, shard, copy.shard)
        return False

    def _replace(self, collection: str, old: Shard, new: Shard) -> None:
        del self._copies[collection], self._shards[collection]
        new.close()
        old.close()
        (self._folder / collection).rename(self._beside(collection, "old"))
        self._beside(collection, "new").rename(self._folder / collection)
        self._shards[collection] = Shard(self._folder / collection)

    def _tidy(self, collection: str) -> None:
        """Finish a replacement that was begun, and drop a copy that was not finished."""
        if collection in self._shards:
            return
        folder, new, old = (
            self._folder / collection,
            self._beside(collection, "new"),
            self._beside(collection, "old"),
        )
        if old.exists() and not folder.exists() and new.exists():
            new.rename(folder)
        for rest in (new, old):
            if rest.exists():
                shutil.rmtree(rest)

    def _beside(self, collection: str, what: str) -> Path:
        return self._folder / f"{collection}.{what}"

    def _written(self, collection: str) -> list[Shard]:
        """The shards that a change goes to."""
        copy = self._copies.get(collection)
        return [self._shard(collection), *([copy.shard] if copy else [])]

    def _shard(self, collection: str) -> Shard:
        shard = self._shards.get(collection)
        if shard is None:
            self._tidy(collection)
            folder = self._folder / collection
            if not COLLECTION_NAME.fullmatch(collection) or not (folder / RECORD).exists():
                raise ChildFailure("failed", f"there is no collection `{collection}` yet")
            shard = self._shards[collection] = Shard(folder)
        return shard


VERBS: dict[str, Callable[..., Any]] = {
    "ping": Store.ping,
    "ensure": Store.ensure,
    "upsert": Store.upsert,
    "search": Store.search,
    "scroll": Store.scroll,
    "set_payload": Store.set_payload,
    "delete": Store.delete,
    "delete_ids": Store.delete_ids,
    "count": Store.count,
    "optimize": Store.optimize,
    "deleted": Store.deleted,
    "compact": Store.compact,
}


def _record(legs: Sequence[dict[str, Any]], keywords: Sequence[str]) -> dict[str, Any]:
    return {
        "legs": {leg["name"]: {"model": leg["model"], "size": leg["size"]} for leg in legs},
        "keywords": sorted(keywords),
    }


def _legs(shard: Shard) -> list[dict[str, Any]]:
    return [{"name": name, **leg} for name, leg in shard.legs.items()]


def _check(collection: str, wanted: dict[str, Any], there: dict[str, Any] | None) -> None:
    if there is None or there == {"model": wanted["model"], "size": wanted["size"]}:
        return
    found, asked = (there["model"], there["size"]), (wanted["model"], wanted["size"])
    raise ChildFailure("mismatch", mismatch(collection, wanted["name"], found, asked))


def _vectors(packed: dict[str, Any], collection: str, legs: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return {name: _vector(name, vector, collection, legs) for name, vector in packed.items()}


def _vector(name: str, packed: Any, collection: str, legs: dict[str, dict[str, Any]]) -> Any:
    if name not in legs:
        raise ChildFailure("failed", f"collection `{collection}` has no vectors `{name}`")
    size = legs[name]["size"]
    if (size is None) != isinstance(packed, list):
        raise ChildFailure("failed", f"`{name}` takes {'sparse' if size is None else 'dense'} vectors")
    if size is None:
        return SparseVector(packed[0], packed[1])
    numbers = unpacked(packed)
    if len(numbers) != size:
        raise ChildFailure("failed", f"`{name}` takes vectors of {size} dimensions, not {len(numbers)}")
    return numbers


def _filter(where: Any) -> Filter:
    must, never, any_of = where
    groups: list[Any] = [Filter(must=_conditions(group)) for group in any_of]
    return Filter(must=_conditions(must), must_not=_conditions(never), should=groups or None)


def _conditions(pairs: Any) -> list[Any]:
    return [FieldCondition(key=key, match=MatchAny(values)) for key, values in pairs]


def _write(path: Path, value: Any) -> None:
    new = path.with_suffix(".new")
    with new.open("wb") as file:
        file.write(orjson.dumps(value, option=orjson.OPT_INDENT_2))
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)


def _locked(path: Path) -> Any:
    file = path.open("a")
    end = time.monotonic() + LOCK_PATIENCE_S
    while True:
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return file
        if time.monotonic() > end:
            raise ChildFailure(
                "failed",
                f"the vector store in {path.parent} is in use by another process: stop the other server, or "
                "let the command talk to it; several servers at once need a Qdrant server (`qdrant.url`)",
            )
        time.sleep(0.05)


def _prepare(arguments: Sequence[str]) -> Work:
    store = Store(Path(arguments[0]))
    return Work(store.handle, idle=store.flush, close=store.close)


if __name__ == "__main__":
    run_child(_prepare)
