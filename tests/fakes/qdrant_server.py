"""A Qdrant server as far as its client is used here: REST routes over the embedded engine, on loopback."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import orjson
import qdrant_edge as edge
from aiohttp import web
from pydantic import BaseModel
from qdrant_client.http import models

ModelT = TypeVar("ModelT", bound=BaseModel)


class FakeQdrant:
    """Collections as shards under a folder. `api_key`, if given, is required; `broken`: the status of all."""

    def __init__(self, folder: Path, api_key: str | None = None) -> None:
        self.url = ""
        self.broken: int | None = None
        self._folder = folder
        self._api_key = api_key
        self._shards: dict[str, edge.EdgeShard] = {}
        self._created: dict[str, models.CreateCollection] = {}

    def app(self) -> web.Application:
        app = web.Application(middlewares=[self._guard], client_max_size=64 * 2**20)
        routes: Mapping[tuple[str, str], Callable[[web.Request], Awaitable[Any]]] = {
            ("GET", ""): self._list,
            ("GET", "/{name}"): self._info,
            ("GET", "/{name}/exists"): self._exists,
            ("PUT", "/{name}"): self._create,
            ("PATCH", "/{name}"): self._patch,
            ("DELETE", "/{name}"): self._drop,
            ("PUT", "/{name}/vectors/{vector}"): self._add_vector,
            ("PUT", "/{name}/index"): self._index,
            ("PUT", "/{name}/points"): self._upsert,
            ("POST", "/{name}/points/query/batch"): self._query,
            ("POST", "/{name}/points/scroll"): self._scroll,
            ("POST", "/{name}/points/count"): self._count,
            ("POST", "/{name}/points/delete"): self._delete,
            ("POST", "/{name}/points/payload"): self._payload,
        }
        for (method, path), handler in routes.items():
            app.router.add_route(method, "/collections" + path, _answered(handler))
        return app

    def close(self) -> None:
        for shard in self._shards.values():
            shard.close()

    @web.middleware
    async def _guard(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        if self.broken is not None:
            return _error(self.broken, "broken on purpose")
        if self._api_key is not None and request.headers.get("api-key") != self._api_key:
            return _error(401, "Must provide an API key")
        name = request.match_info.get("name")
        making = request.method == "PUT" and request.path.endswith(f"/{name}")
        if (
            name is not None
            and name not in self._shards
            and not making
            and not request.path.endswith("/exists")
        ):
            return _error(404, f"Not found: Collection `{name}` doesn't exist!")
        try:
            return await handler(request)
        except web.HTTPException:
            raise
        except Exception as exc:  # noqa: BLE001 - the engine raises bare ones
            return _error(400, f"Wrong input: {exc}")

    async def _list(self, request: web.Request) -> Any:
        return {"collections": [{"name": name} for name in self._shards]}

    async def _exists(self, request: web.Request) -> Any:
        return {"exists": request.match_info["name"] in self._shards}

    async def _create(self, request: web.Request) -> Any:
        name, body = request.match_info["name"], await _body(request, models.CreateCollection)
        if name in self._shards:
            raise web.HTTPConflict(text=_said("exists already"), content_type="application/json")
        folder = self._folder / name
        folder.mkdir()
        assert isinstance(body.vectors, dict)
        self._created[name] = body
        self._shards[name] = edge.EdgeShard.create(
            str(folder),
            edge.EdgeConfig(
                vectors={
                    key: edge.EdgeVectorParams(params.size, edge.Distance.Cosine)
                    for key, params in body.vectors.items()
                },
                sparse_vectors={
                    key: edge.EdgeSparseVectorParams(modifier=_modifier(params.modifier))
                    for key, params in (body.sparse_vectors or {}).items()
                },
            ),
        )
        return True

    async def _patch(self, request: web.Request) -> Any:
        body = await _body(request, models.UpdateCollection)
        created = self._created[request.match_info["name"]]
        created.metadata = {**(created.metadata or {}), **(body.metadata or {})}
        return True

    async def _drop(self, request: web.Request) -> Any:
        self._shards.pop(request.match_info["name"]).close()
        return True

    async def _info(self, request: web.Request) -> Any:
        created, shard = self._created[request.match_info["name"]], self._shard(request)
        indexed = shard.info().payload_schema
        return models.CollectionInfo(
            status=models.CollectionStatus.GREEN,
            optimizer_status=models.OptimizersStatusOneOf.OK,
            segments_count=1,
            points_count=shard.count(edge.CountRequest()),
            payload_schema={
                key: models.PayloadIndexInfo(data_type=models.PayloadSchemaType.KEYWORD, points=0)
                for key in indexed
            },
            config=models.CollectionConfig(
                params=models.CollectionParams(
                    vectors=created.vectors, sparse_vectors=created.sparse_vectors
                ),
                hnsw_config=models.HnswConfig(m=16, ef_construct=100, full_scan_threshold=10_000),
                optimizer_config=models.OptimizersConfig(default_segment_number=1, flush_interval_sec=5),
                metadata=created.metadata,
            ),
        ).model_dump(mode="json", exclude_none=True)

    async def _add_vector(self, request: web.Request) -> Any:
        name, raw = request.match_info["vector"], await request.json()
        created = self._created[request.match_info["name"]]
        if "dense" in raw:
            dense = models.DenseVectorNameConfig(**raw).dense
            self._shard(request).update(
                edge.UpdateOperation.create_dense_vector(name, dense.size, edge.Distance.Cosine)
            )
            assert isinstance(created.vectors, dict)
            created.vectors[name] = models.VectorParams(size=dense.size, distance=dense.distance)
        else:
            sparse = models.SparseVectorNameConfig(**raw).sparse
            self._shard(request).update(
                edge.UpdateOperation.create_sparse_vector(name, _modifier(sparse.modifier))
            )
            created.sparse_vectors = {
                **(created.sparse_vectors or {}),
                name: models.SparseVectorParams(modifier=sparse.modifier),
            }
        return _done()

    async def _index(self, request: web.Request) -> Any:
        body = await _body(request, models.CreateFieldIndex)
        assert body.field_schema == models.PayloadSchemaType.KEYWORD
        self._shard(request).update(
            edge.UpdateOperation.create_field_index(body.field_name, edge.PayloadSchemaType.Keyword)
        )
        return _done()

    async def _upsert(self, request: web.Request) -> Any:
        body = await _body(request, models.PointsList)
        points = []
        for point in body.points:
            assert isinstance(point.vector, dict)
            vectors: Any = {name: _vector(vector) for name, vector in point.vector.items()}
            points.append(edge.Point(point.id, vectors, point.payload))
        self._shard(request).update(edge.UpdateOperation.upsert_points(points))
        return _done()

    async def _query(self, request: web.Request) -> Any:
        body = await _body(request, models.QueryRequestBatch)
        answers = []
        for search in body.searches:
            assert isinstance(search.query, models.NearestQuery)
            assert search.limit is not None
            wanted: Any = search.with_payload
            hits = self._shard(request).query(
                edge.QueryRequest(
                    limit=search.limit,
                    query=edge.Query.Nearest(_vector(search.query.nearest), search.using),
                    filter=_filter(search.filter),
                    with_payload=wanted,
                )
            )
            points = [
                {"id": str(hit.id), "version": hit.version, "score": hit.score, "payload": hit.payload}
                for hit in hits
            ]
            answers.append({"points": points})
        return answers

    async def _scroll(self, request: web.Request) -> Any:
        body = await _body(request, models.ScrollRequest)
        records, following = self._shard(request).scroll(
            edge.ScrollRequest(
                offset=body.offset, limit=body.limit, filter=_filter(body.filter), with_payload=True
            )
        )
        points = [{"id": str(record.id), "payload": record.payload} for record in records]
        return {"points": points, "next_page_offset": None if following is None else str(following)}

    async def _count(self, request: web.Request) -> Any:
        body = await _body(request, models.CountRequest)
        return {"count": self._shard(request).count(edge.CountRequest(filter=_filter(body.filter)))}

    async def _delete(self, request: web.Request) -> Any:
        raw = await request.json()
        if "points" in raw:
            operation = edge.UpdateOperation.delete_points(models.PointIdsList(**raw).points)
        else:
            selected = _filter(models.FilterSelector(**raw).filter)
            assert selected is not None
            operation = edge.UpdateOperation.delete_points_by_filter(selected)
        self._shard(request).update(operation)
        return _done()

    async def _payload(self, request: web.Request) -> Any:
        body = await _body(request, models.SetPayload)
        selected = _filter(body.filter)
        assert selected is not None
        self._shard(request).update(edge.UpdateOperation.set_payload_by_filter(selected, body.payload))
        return _done()

    def _shard(self, request: web.Request) -> edge.EdgeShard:
        return self._shards[request.match_info["name"]]


@asynccontextmanager
async def fake_qdrant(folder: Path, api_key: str | None = None) -> AsyncIterator[FakeQdrant]:
    """A running server; its collections live in `folder`."""
    fake = FakeQdrant(folder, api_key)
    runner = web.AppRunner(fake.app())
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        fake.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield fake
    finally:
        await runner.cleanup()
        fake.close()


def _answered(
    handler: Callable[[web.Request], Awaitable[Any]],
) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(request: web.Request) -> web.Response:
        result = await handler(request)
        return web.Response(
            body=orjson.dumps({"result": result, "status": "ok", "time": 0.0}),
            content_type="application/json",
        )

    return answer


async def _body(request: web.Request, model: type[ModelT]) -> ModelT:
    return model.model_validate_json(await request.read())


def _done() -> Any:
    return {"operation_id": 1, "status": "completed"}


def _said(message: str) -> str:
    return orjson.dumps({"status": {"error": message}, "time": 0.0}).decode()


def _error(status: int, message: str) -> web.Response:
    return web.Response(status=status, text=_said(message), content_type="application/json")


def _modifier(modifier: models.Modifier | None) -> edge.Modifier | None:
    return edge.Modifier.Idf if modifier is models.Modifier.IDF else None


def _vector(vector: Any) -> Any:
    if isinstance(vector, models.SparseVector):
        return edge.SparseVector(vector.indices, vector.values)
    return vector


def _filter(selected: models.Filter | None) -> edge.Filter | None:
    if selected is None:
        return None
    return edge.Filter(
        must=_conditions(selected.must),
        must_not=_conditions(selected.must_not),
        should=_conditions(selected.should) or None,
    )


def _conditions(conditions: Any) -> list[Any]:
    made = []
    for condition in conditions or []:
        if isinstance(condition, models.Filter):
            made.append(_filter(condition))
            continue
        assert isinstance(condition.match, models.MatchAny)
        made.append(edge.FieldCondition(key=condition.key, match=edge.MatchAny(condition.match.any)))
    return made
