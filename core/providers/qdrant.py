"""Vectors on a Qdrant server, behind the `VectorStore` protocol."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from qdrant_client import AsyncQdrantClient
from qdrant_client.http import models
from qdrant_client.http.exceptions import ApiException, UnexpectedResponse

from core.errors import StoreError, StoreMismatch
from core.providers.base import Hit, LegQuery, LegSpec, Point, SparseVector, Vector, Where
from core.providers.vectors import COLLECTION_NAME, Pairs, conditions, mismatch, refuse_all

log = logging.getLogger(__name__)

PIECE_POINTS = 128
TIMEOUT_S = 20
READY_S = 2.0
MODELS = "askable_models"  # in a collection's metadata: what made the vectors of each leg
_LOCAL = ("localhost", "127.0.0.1", "::1")


class QdrantStore:
    """Collections named `prefix-collection` on the server at `url`. The models of the legs are kept in the
    collections' metadata; the key and the rest of the address are in no error."""

    def __init__(self, url: str, api_key: str | None = None, prefix: str = "askable") -> None:
        parts = urlsplit(url)
        self._host = parts.hostname or "the given address"
        self._prefix = prefix
        if api_key and parts.scheme == "http" and parts.hostname not in _LOCAL:
            log.warning("qdrant_key_in_clear", extra={"host": self._host})
        self._client = AsyncQdrantClient(
            url=url,
            headers={"api-key": api_key} if api_key else None,
            timeout=TIMEOUT_S,
            check_compatibility=False,  # it asks from a thread and prints; `ready` and `ensure` tell as much
        )

    async def ensure(self, collection: str, legs: Sequence[LegSpec], keyword_fields: Sequence[str]) -> None:
        if not COLLECTION_NAME.fullmatch(collection) or not legs:
            raise StoreError(f"`{collection}` cannot be a collection with {len(legs)} legs")
        name = self._name(collection)
        with self._translated():
            if not await self._client.collection_exists(name):
                await self._create(name, legs)
            info = await self._client.get_collection(name)
            made = _legs_of(info)
            for leg in legs:
                there = made.get(leg.name)
                if there is not None and there != (leg.model, leg.size):
                    raise StoreMismatch(mismatch(collection, leg.name, there, (leg.model, leg.size)))
            await self._add_legs(name, info, [leg for leg in legs if leg.name not in made])
            for field in keyword_fields:
                if field not in info.payload_schema:
                    await self._client.create_payload_index(name, field, models.PayloadSchemaType.KEYWORD)

    async def upsert(self, collection: str, points: Sequence[Point]) -> None:
        for start in range(0, len(points), PIECE_POINTS):
            piece = [
                models.PointStruct(
                    id=point.id,
                    vector={leg: _vector(vector) for leg, vector in point.vectors.items()},
                    payload=dict(point.payload),
                )
                for point in points[start : start + PIECE_POINTS]
            ]
            with self._translated():
                await self._client.upsert(self._name(collection), piece, wait=True)

    async def search(
        self, collection: str, queries: Sequence[LegQuery], where: Where, fields: Sequence[str]
    ) -> list[list[Hit]]:
        selected = _filter(where)
        if selected is None or not queries:
            return [[] for _ in queries]
        requests = [
            models.QueryRequest(
                query=models.NearestQuery(nearest=_vector(query.vector)),
                using=query.leg,
                filter=selected,
                limit=query.limit,
                with_payload=list(fields) if fields else False,
            )
            for query in queries
        ]
        with self._translated():
            found = await self._client.query_batch_points(self._name(collection), requests)
        return [[Hit(str(hit.id), hit.score, hit.payload or {}) for hit in answer.points] for answer in found]

    async def scroll(
        self, collection: str, where: Where, *, limit: int = 1000, offset: str | None = None
    ) -> tuple[list[Hit], str | None]:
        selected = _filter(where)
        if selected is None:
            return [], None
        with self._translated():
            records, following = await self._client.scroll(
                self._name(collection), selected, limit=limit, offset=offset, with_payload=True
            )
        hits = [Hit(str(record.id), 0.0, record.payload or {}) for record in records]
        return hits, None if following is None else str(following)

    async def set_payload(self, collection: str, where: Where, payload: Mapping[str, Any]) -> None:
        selected = _filter(where)
        if selected is not None:
            with self._translated():
                await self._client.set_payload(self._name(collection), dict(payload), selected, wait=True)

    async def delete(self, collection: str, where: Where) -> int:
        refuse_all(where)
        selected = _filter(where)
        if selected is None:
            return 0
        with self._translated():
            counted = await self._client.count(self._name(collection), selected, exact=True)
            if counted.count:
                await self._client.delete(
                    self._name(collection), models.FilterSelector(filter=selected), wait=True
                )
        return counted.count

    async def delete_ids(self, collection: str, ids: Sequence[str]) -> None:
        if ids:
            with self._translated():
                selector = models.PointIdsList(points=list(ids))
                await self._client.delete(self._name(collection), selector, wait=True)

    async def count(self, collection: str, where: Where) -> int:
        selected = _filter(where)
        if selected is None:
            return 0
        with self._translated():
            return (await self._client.count(self._name(collection), selected, exact=True)).count

    async def ready(self) -> bool:
        try:
            with self._translated():
                await asyncio.wait_for(self._client.get_collections(), READY_S)
        except (StoreError, TimeoutError):
            return False
        return True

    async def close(self) -> None:
        await self._client.close()

    def _name(self, collection: str) -> str:
        return f"{self._prefix}-{collection}"

    async def _create(self, name: str, legs: Sequence[LegSpec]) -> None:
        try:
            await self._client.create_collection(
                name,
                vectors_config={leg.name: _dense(leg.size) for leg in legs if leg.size is not None},
                sparse_vectors_config={
                    leg.name: models.SparseVectorParams(modifier=models.Modifier.IDF)
                    for leg in legs
                    if leg.sparse
                },
                metadata={MODELS: {leg.name: leg.model for leg in legs}},
            )
        except UnexpectedResponse as exc:
            if exc.status_code != 409:  # another server was faster; what it made is looked at next
                raise

    async def _add_legs(self, name: str, info: models.CollectionInfo, legs: Sequence[LegSpec]) -> None:
        for leg in legs:
            config: models.VectorNameConfig
            if leg.size is None:
                sparse = models.SparseVectorConfig(modifier=models.Modifier.IDF)
                config = models.SparseVectorNameConfig(sparse=sparse)
            else:
                dense = models.DenseVectorConfig(size=leg.size, distance=models.Distance.COSINE)
                config = models.DenseVectorNameConfig(dense=dense)
            await self._client.create_vector_name(name, leg.name, config)
        if legs:
            known = _models_of(info) | {leg.name: leg.model for leg in legs}
            await self._client.update_collection(name, metadata={MODELS: known})

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """The client's errors as ours. What the server says is kept (it names collections and vectors); an
        address is not, as it may hold a password."""
        try:
            yield
        except UnexpectedResponse as exc:
            said = exc.content.decode("utf-8", "replace")[:300]
            raise StoreError(f"Qdrant at {self._host} answered {exc.status_code}: {said}") from exc
        except (ApiException, OSError) as exc:
            raise StoreError(f"Qdrant at {self._host} cannot be reached") from exc


def _dense(size: int) -> models.VectorParams:
    return models.VectorParams(size=size, distance=models.Distance.COSINE)


def _models_of(info: models.CollectionInfo) -> dict[str, str]:
    return dict((info.config.metadata or {}).get(MODELS, {}))


def _legs_of(info: models.CollectionInfo) -> dict[str, tuple[str, int | None]]:
    """`(model, size)` of the vectors a collection has."""
    made_by = _models_of(info)
    dense = info.config.params.vectors
    sizes: dict[str, int | None] = dict.fromkeys(info.config.params.sparse_vectors or {})
    if isinstance(dense, dict):
        sizes |= {name: params.size for name, params in dense.items()}
    return {name: (made_by.get(name, "an unknown model"), size) for name, size in sizes.items()}


def _filter(where: Where) -> models.Filter | None:
    selected = conditions(where)
    if selected is None:
        return None
    must, never, any_of = selected
    groups: list[models.Condition] = [models.Filter(must=_conditions(group)) for group in any_of]
    return models.Filter(must=_conditions(must), must_not=_conditions(never), should=groups or None)


def _conditions(pairs: Pairs) -> list[models.Condition]:
    return [models.FieldCondition(key=key, match=models.MatchAny(any=values)) for key, values in pairs]


def _vector(vector: Vector) -> models.SparseVector | list[float]:
    if isinstance(vector, SparseVector):
        return models.SparseVector(indices=list(vector.indices), values=list(vector.values))
    return list(vector)
