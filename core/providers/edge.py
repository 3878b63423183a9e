"""The embedded vector store: Qdrant's engine in one process of its own, behind the `VectorStore` protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from core.errors import StoreError, StoreMismatch
from core.providers.base import Hit, LegQuery, LegSpec, Point, SparseVector, Vector, Where
from core.providers.child import RESTART_PAUSE_S, Child
from core.providers.line import packed
from core.providers.vectors import conditions, refuse_all

PIECE_POINTS = 64  # written at a time: a search waits for one piece at most (about 10 ms)
READY_S = 2.0


class EdgeStore:
    """Vectors under one folder. The engine holds the interpreter's lock while it works and its folder takes
    one process only, so a child process owns it; everything here is a message to that child."""

    def __init__(self, folder: Path, *, restart_pause_s: float = RESTART_PAUSE_S) -> None:
        self._child = Child(
            "core.providers.edge_process",
            [str(folder.resolve())],
            name="vector store's process",
            failure=StoreError,
            errors={"mismatch": StoreMismatch},
            restart_pause_s=restart_pause_s,
        )

    @classmethod
    async def open(cls, folder: Path) -> EdgeStore:
        """Start the store on `folder` (made if missing). Raises StoreError if another process has it."""
        store = cls(folder)
        try:
            await store._child.start()
        except StoreError:
            await store.close()
            raise
        return store

    @property
    def pid(self) -> int | None:
        """The id of the process that owns the folder, while it runs."""
        return self._child.pid

    async def ensure(self, collection: str, legs: Sequence[LegSpec], keyword_fields: Sequence[str]) -> None:
        specs = [{"name": leg.name, "model": leg.model, "size": leg.size} for leg in legs]
        await self._call("ensure", collection, legs=specs, keywords=list(keyword_fields))

    async def upsert(self, collection: str, points: Sequence[Point]) -> None:
        for start in range(0, len(points), PIECE_POINTS):
            piece = [_point(point) for point in points[start : start + PIECE_POINTS]]
            await self._call("upsert", collection, points=piece)

    async def search(
        self, collection: str, queries: Sequence[LegQuery], where: Where, fields: Sequence[str]
    ) -> list[list[Hit]]:
        selected = conditions(where)
        if selected is None or not queries:
            return [[] for _ in queries]
        asked = [{"leg": q.leg, "vector": _vector(q.vector), "limit": q.limit} for q in queries]
        found = await self._call(
            "search", collection, urgent=True, queries=asked, where=selected, fields=list(fields)
        )
        return [[Hit(id_, score, payload) for id_, score, payload in hits] for hits in found]

    async def scroll(
        self, collection: str, where: Where, *, limit: int = 1000, offset: str | None = None
    ) -> tuple[list[Hit], str | None]:
        selected = conditions(where)
        if selected is None:
            return [], None
        records, following = await self._call(
            "scroll", collection, urgent=True, where=selected, limit=limit, offset=offset
        )
        return [Hit(id_, 0.0, payload) for id_, payload in records], following

    async def set_payload(self, collection: str, where: Where, payload: Mapping[str, Any]) -> None:
        selected = conditions(where)
        if selected is not None:
            await self._call("set_payload", collection, where=selected, payload=dict(payload))

    async def delete(self, collection: str, where: Where) -> int:
        refuse_all(where)
        selected = conditions(where)
        if selected is None:
            return 0
        return int(await self._call("delete", collection, where=selected))

    async def delete_ids(self, collection: str, ids: Sequence[str]) -> None:
        if ids:
            await self._call("delete_ids", collection, ids=list(ids))

    async def count(self, collection: str, where: Where) -> int:
        selected = conditions(where)
        if selected is None:
            return 0
        return int(await self._call("count", collection, urgent=True, where=selected))

    async def optimize(self, collection: str) -> bool:
        """Build the graph indexes and drop what was deleted: maintenance that takes minutes for 100,000
        points and lets nothing else through, so it is never automatic. Whether there was anything to do."""
        return bool(await self._call("optimize", collection))

    async def compact(self, collection: str) -> bool:
        """Write the collection's files anew, without what was deleted since they were last: whether anything
        was. Searches and changes get in between its pieces. Disk: twice the collection for the moment."""
        if not await self._call("deleted", collection):
            return False
        while not await self._call("compact", collection):
            pass
        return True

    async def ready(self) -> bool:
        return await self._child.answers(READY_S)

    async def close(self) -> None:
        await self._child.close()

    async def _call(self, verb: str, collection: str, *, urgent: bool = False, **body: Any) -> Any:
        return await self._child.call(verb, {"collection": collection, **body}, urgent=urgent)


def _point(point: Point) -> dict[str, Any]:
    vectors = {leg: _vector(vector) for leg, vector in point.vectors.items()}
    return {"id": point.id, "vectors": vectors, "payload": dict(point.payload)}


def _vector(vector: Vector) -> str | list[list[int] | list[float]]:
    if isinstance(vector, SparseVector):
        return [list(vector.indices), list(vector.values)]
    return packed(vector)
