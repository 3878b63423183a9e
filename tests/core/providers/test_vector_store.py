"""What every vector store keeps, run for each of them; then what the embedded one's process keeps."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from qdrant_client import AsyncQdrantClient

from core.errors import StoreError, StoreMismatch
from core.providers.base import LegQuery, LegSpec, Point, SparseVector, Vector, VectorStore, Where
from core.providers.edge import EdgeStore
from core.providers.qdrant import QdrantStore
from tests.fakes.qdrant_server import fake_qdrant

DENSE = LegSpec("dense", "model-a", 4)
WORDS = LegSpec("words", "counts-1")
KEYWORDS = ("site", "document_id", "version")
EVERYTHING = Where()
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(params=["edge", "double", pytest.param("server", marks=pytest.mark.qdrant_server)])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[VectorStore]:
    if request.param == "edge":
        embedded = await EdgeStore.open(tmp_path / "vectors")
        yield embedded
        await embedded.close()
        return
    if request.param == "double":
        async with fake_qdrant(tmp_path, api_key="secret-key") as fake:
            remote = QdrantStore(fake.url, "secret-key")
            yield remote
            await remote.close()
        return
    url = os.environ.get("QDRANT_URL")
    if url is None:
        pytest.skip("QDRANT_URL names no server")
    key, prefix = os.environ.get("QDRANT_API_KEY"), f"test-{uuid.uuid4().hex}"
    real = QdrantStore(url, key, prefix)
    yield real
    await real.close()
    client = AsyncQdrantClient(url=url, headers={"api-key": key} if key else None, check_compatibility=False)
    for made in (await client.get_collections()).collections:
        if made.name.startswith(prefix):
            await client.delete_collection(made.name)
    await client.close()


def number(n: int) -> str:
    return str(uuid.UUID(int=n))


def point(n: int, vectors: Mapping[str, Vector] | None = None, **payload: Any) -> Point:
    made: Mapping[str, Vector] = vectors or {
        "dense": [1.0, float(n), 0.0, 0.0],
        "words": SparseVector([1, 100 + n], [1.0, 1.0]),
    }
    return Point(number(n), made, {"site": "a", "document_id": f"d{n}", "version": "1", "n": n, **payload})


async def filled(store: VectorStore, points: Sequence[Point]) -> None:
    await store.ensure("content", [DENSE, WORDS], KEYWORDS)
    await store.upsert("content", points)


async def ids(store: VectorStore, where: Where = EVERYTHING) -> list[str]:
    hits, _ = await store.scroll("content", where)
    return [hit.id for hit in hits]


async def test_both_kinds_of_vectors_are_searched_best_first_with_the_fields_asked_for(
    store: VectorStore,
) -> None:
    await filled(store, [point(n) for n in range(1, 6)])
    by_dense, by_words = await store.search(
        "content",
        [LegQuery("dense", [1.0, 3.0, 0.0, 0.0], 3), LegQuery("words", SparseVector([104], [1.0]), 3)],
        EVERYTHING,
        ["document_id", "n"],
    )
    assert by_dense[0].id == number(3)
    assert by_dense[0].score == pytest.approx(1.0)
    assert by_dense[0].payload == {"document_id": "d3", "n": 3}
    assert [hit.score for hit in by_dense] == sorted((hit.score for hit in by_dense), reverse=True)
    assert len(by_dense) == 3
    assert [hit.id for hit in by_words] == [number(4)]


async def test_rare_words_weigh_more_than_common_ones(store: VectorStore) -> None:
    await filled(store, [point(n) for n in range(1, 6)])
    (found,) = await store.search(
        "content", [LegQuery("words", SparseVector([1, 102], [1.0, 1.0]), 5)], EVERYTHING, []
    )
    scores = {hit.id: hit.score for hit in found}
    assert len(scores) == 5
    assert scores[number(2)] > 3 * scores[number(1)]


async def test_filters_take_a_value_or_one_of_a_list_and_leave_out(store: VectorStore) -> None:
    await filled(store, [point(1), point(2, site="b"), point(3, site="c"), point(4, version="2")])
    assert await ids(store, Where({"site": "b"})) == [number(2)]
    assert await ids(store, Where({"site": ["b", "c"]})) == [number(2), number(3)]
    assert await ids(store, Where({"site": "a"}, {"version": "2"})) == [number(1)]
    assert await ids(store, Where({}, {"site": ["a", "b"]})) == [number(3)]
    assert await ids(store, Where({"n": 3})) == [number(3)]
    (found,) = await store.search(
        "content", [LegQuery("dense", [1.0, 1.0, 0.0, 0.0], 9)], Where({"site": ["b"]}), ["site"]
    )
    assert [hit.payload for hit in found] == [{"site": "b"}]


TAGGED = [
    ["course:main", "diet:vegan"],
    ["course:main", "course:side"],
    ["course:dessert", "diet:vegan"],
    [],
]


@pytest.mark.parametrize(
    ("groups", "found"),
    [
        ([[("tags", ["course:main"])]], [1, 2]),
        ([[("tags", ["course:main", "course:dessert"])]], [1, 2, 3]),
        ([[("tags", ["course:main"]), ("tags", ["diet:vegan"])]], [1]),
        ([[("tags", ["course:main"]), ("tags", ["course:side"])]], [2]),
        ([[("tags", ["course:side"])], [("tags", ["course:dessert"]), ("tags", ["diet:vegan"])]], [2, 3]),
        ([[("tags", ["course:main"]), ("site", ["b"])]], []),
        ([[("tags", ["nowhere:x"])]], []),
        ([[]], []),
        ([[("tags", [])]], []),
        ([[], [("tags", ["course:side"])]], [2]),
        ([[("tags", []), ("tags", ["course:main"])], [("tags", ["course:side"])]], [2]),
        ([], [1, 2, 3, 4]),
    ],
)
async def test_of_the_groups_of_a_filter_one_must_hold_whole(
    store: VectorStore, groups: list[list[tuple[str, list[str]]]], found: list[int]
) -> None:
    await store.ensure("content", [DENSE, WORDS], (*KEYWORDS, "tags"))
    await store.upsert("content", [point(n, tags=tags) for n, tags in enumerate(TAGGED, 1)])
    where = Where(any_of=groups)
    expected = [number(n) for n in found]
    assert await ids(store, where) == expected
    assert await store.count("content", where) == len(expected)
    for leg in (LegQuery("dense", [1.0, 1.0, 0.0, 0.0], 9), LegQuery("words", SparseVector([1], [1.0]), 9)):
        (hits,) = await store.search("content", [leg], where, [])
        assert sorted(hit.id for hit in hits) == expected
    assert await ids(store, Where({"site": "b"}, any_of=groups)) == []
    within = Where({"site": "a"}, {"document_id": "d2"}, groups)
    assert await ids(store, within) == [each for each in expected if each != number(2)]


async def test_deleting_by_groups_deletes_only_what_they_match(store: VectorStore) -> None:
    await filled(store, [point(n, tags=tags) for n, tags in enumerate(TAGGED, 1)])
    assert await store.delete("content", Where(any_of=[[("tags", ["course:side"])]])) == 1
    assert await store.delete("content", Where(any_of=[[]])) == 0
    assert await ids(store) == [number(1), number(3), number(4)]


async def test_an_index_that_is_new_to_a_collection_is_added(store: VectorStore) -> None:
    await filled(store, [point(1)])
    await store.ensure("content", [DENSE, WORDS], (*KEYWORDS, "tags"))
    await store.set_payload("content", Where({"document_id": "d1"}), {"tags": ["a:b"]})
    assert await ids(store, Where(any_of=[[("tags", ["a:b"])]])) == [number(1)]


async def test_an_empty_list_of_values_matches_nothing_and_leaves_out_nothing(store: VectorStore) -> None:
    await filled(store, [point(1), point(2)])
    nothing = Where({"site": []})
    assert await store.count("content", nothing) == 0
    assert await store.search("content", [LegQuery("dense", [1.0, 0.0, 0.0, 0.0], 5)], nothing, []) == [[]]
    assert await store.scroll("content", nothing) == ([], None)
    assert await store.delete("content", nothing) == 0
    await store.set_payload("content", nothing, {"site": "gone"})
    assert await store.count("content", Where({"site": "a"}, {"site": []})) == 2


async def test_the_same_id_again_replaces_the_point(store: VectorStore) -> None:
    await filled(store, [point(1)])
    await store.upsert("content", [point(1, {"dense": [0.0, 0.0, 0.0, 1.0]}, site="b")])
    assert await store.count("content", EVERYTHING) == 1
    by_dense, by_words = await store.search(
        "content",
        [LegQuery("dense", [0.0, 0.0, 0.0, 1.0], 5), LegQuery("words", SparseVector([101], [1.0]), 5)],
        EVERYTHING,
        ["site"],
    )
    assert by_dense[0].score == pytest.approx(1.0)
    assert by_dense[0].payload == {"site": "b"}
    assert by_words == []


async def test_scroll_gives_every_point_once_in_pages(store: VectorStore) -> None:
    await filled(store, [point(n) for n in range(1, 8)])
    seen: list[str] = []
    offset: str | None = None
    pages = 0
    while pages == 0 or offset is not None:
        hits, offset = await store.scroll("content", EVERYTHING, limit=3, offset=offset)
        seen += [hit.id for hit in hits]
        pages += 1
    assert seen == [number(n) for n in range(1, 8)]
    assert pages == 3
    assert {hit.score for hit in hits} == {0.0}


async def test_payload_is_set_by_filter_and_the_rest_stays(store: VectorStore) -> None:
    await filled(store, [point(1), point(2)])
    await store.set_payload("content", Where({"document_id": "d1"}), {"version": "2"})
    hits, _ = await store.scroll("content", Where({"version": "2"}))
    assert [(hit.id, hit.payload["site"], hit.payload["n"]) for hit in hits] == [(number(1), "a", 1)]


async def test_deleting_says_how_many_went_and_they_are_gone(store: VectorStore) -> None:
    await filled(store, [point(1), point(2), point(3, site="b"), point(4)])
    assert await store.delete("content", Where({"site": "a"}, {"document_id": "d4"})) == 2
    assert await store.delete("content", Where({"site": "zzz"})) == 0
    assert await ids(store) == [number(3), number(4)]
    await store.delete_ids("content", [number(3), number(99)])
    assert await ids(store) == [number(4)]


@pytest.mark.parametrize("where", [Where(), Where({}, {"site": []})])
async def test_deleting_without_a_filter_is_refused(store: VectorStore, where: Where) -> None:
    await filled(store, [point(1)])
    with pytest.raises(ValueError, match="everything"):
        await store.delete("content", where)
    assert await store.count("content", EVERYTHING) == 1


async def test_a_collection_made_with_another_model_or_size_is_refused_naming_both(
    store: VectorStore,
) -> None:
    await filled(store, [point(1)])
    with pytest.raises(StoreMismatch) as caught:
        await store.ensure("content", [LegSpec("dense", "model-b", 4)], KEYWORDS)
    assert "`model-a`" in caught.value.message
    assert "`model-b`" in caught.value.message
    assert "reembed" in caught.value.message
    with pytest.raises(StoreMismatch, match=r"4 dimensions.*8 dimensions"):
        await store.ensure("content", [LegSpec("dense", "model-a", 8)], KEYWORDS)
    await store.ensure("content", [WORDS, DENSE], KEYWORDS)
    assert await store.count("content", EVERYTHING) == 1


async def test_a_new_leg_is_added_and_points_without_it_are_found_by_the_others(store: VectorStore) -> None:
    await filled(store, [point(1)])
    more, other_words = LegSpec("more", "model-c", 2), LegSpec("other-words", "counts-2")
    await store.ensure("content", [DENSE, WORDS, more, other_words], [*KEYWORDS, "tag"])
    await store.upsert("content", [point(2, {"more": [1.0, 0.0], "other-words": SparseVector([7], [1.0])})])
    found = await store.search(
        "content",
        [
            LegQuery("dense", [1.0, 1.0, 0.0, 0.0], 5),
            LegQuery("more", [1.0, 0.0], 5),
            LegQuery("other-words", SparseVector([7], [1.0]), 5),
        ],
        EVERYTHING,
        [],
    )
    assert [[hit.id for hit in hits] for hits in found] == [[number(1)], [number(2)], [number(2)]]
    with pytest.raises(StoreMismatch, match="model-d"):
        await store.ensure("content", [LegSpec("more", "model-d", 2)], [])


async def test_collections_know_nothing_of_each_other(store: VectorStore) -> None:
    await filled(store, [point(1)])
    await store.ensure("memory", [LegSpec("dense", "model-z", 2)], ["scope"])
    assert await store.count("memory", EVERYTHING) == 0
    assert await store.count("content", EVERYTHING) == 1


async def test_what_cannot_be_done_is_an_error_that_says_what(store: VectorStore) -> None:
    await filled(store, [point(1)])
    with pytest.raises(StoreError, match="nowhere"):
        await store.count("nowhere", EVERYTHING)
    with pytest.raises(StoreError, match="unheard"):
        await store.search("content", [LegQuery("unheard", [1.0], 5)], EVERYTHING, [])
    with pytest.raises(StoreError):
        await store.upsert("content", [point(2, {"dense": [1.0, 2.0]})])
    with pytest.raises(StoreError):
        await store.ensure("../outside", [DENSE], [])
    assert await ids(store) == [number(1)]
    assert await store.ready() is True


async def test_more_points_than_one_message_holds_arrive_whole(store: VectorStore) -> None:
    await filled(store, [point(n) for n in range(1, 301)])
    assert await store.count("content", EVERYTHING) == 300


# ---------------------------------------------------------------- a Qdrant server


async def test_no_error_of_a_server_holds_the_key_or_the_password(tmp_path: Path) -> None:
    async with fake_qdrant(tmp_path, api_key="right-key") as fake:
        address = fake.url.replace("http://", "http://someone:hidden-password@")
        store = QdrantStore(address, "wrong-key")
        with pytest.raises(StoreError) as caught:
            await store.ensure("content", [DENSE], KEYWORDS)
        assert "401" in caught.value.message
        assert "wrong-key" not in caught.value.message
        assert "hidden-password" not in caught.value.message
        assert await store.ready() is False
        await store.close()


async def test_a_server_that_is_down_is_a_store_error_and_not_ready(tmp_path: Path) -> None:
    async with fake_qdrant(tmp_path) as fake:
        store = QdrantStore(fake.url)
        await store.ensure("content", [DENSE], KEYWORDS)
        fake.broken = 500
        with pytest.raises(StoreError, match="500"):
            await store.count("content", EVERYTHING)
    with pytest.raises(StoreError, match="cannot be reached"):
        await store.count("content", EVERYTHING)
    assert await store.ready() is False
    await store.close()


async def test_two_servers_that_start_at_once_make_one_collection(tmp_path: Path) -> None:
    async with fake_qdrant(tmp_path) as fake:
        stores = [QdrantStore(fake.url), QdrantStore(fake.url)]
        await asyncio.gather(*(store.ensure("content", [DENSE, WORDS], KEYWORDS) for store in stores))
        await stores[0].upsert("content", [point(1)])
        assert await stores[1].count("content", EVERYTHING) == 1
        for store in stores:
            await store.close()


async def test_a_key_without_https_to_another_machine_is_warned_about(
    caplog: pytest.LogCaptureFixture,
) -> None:
    await QdrantStore("http://qdrant.example:6333", "key").close()
    await QdrantStore("http://127.0.0.1:6333", "key").close()
    assert [record.message for record in caplog.records] == ["qdrant_key_in_clear"]


# ---------------------------------------------------------------- the embedded store's process


async def ended(pid: int) -> None:
    """Wait until the process is no more."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    loop = asyncio.get_running_loop()
    gone = asyncio.Event()
    loop.add_reader(descriptor, gone.set)
    try:
        await asyncio.wait_for(gone.wait(), 20)
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


async def test_what_was_written_is_there_after_the_process_was_killed(tmp_path: Path) -> None:
    store = await EdgeStore.open(tmp_path)
    await filled(store, [point(n) for n in range(1, 101)])
    await store.ensure("content", [DENSE, WORDS, LegSpec("late", "model-l", 2)], KEYWORDS)
    await store.upsert("content", [point(200, {"late": [1.0, 0.0]})])
    assert await store.delete("content", Where({"document_id": "d1"})) == 1
    assert store.pid is not None
    os.kill(store.pid, signal.SIGKILL)
    await ended(store.pid)
    await store.close()

    again = await EdgeStore.open(tmp_path)
    assert await again.count("content", EVERYTHING) == 100
    (found,) = await again.search("content", [LegQuery("late", [1.0, 0.0], 5)], EVERYTHING, ["n"])
    assert [hit.payload["n"] for hit in found] == [200]
    await again.close()


async def test_the_process_ends_when_its_parent_is_killed_and_nothing_is_lost(tmp_path: Path) -> None:
    script = f"""
import asyncio, pathlib
from core.providers.edge import EdgeStore
from tests.core.providers.test_vector_store import filled, point
async def main():
    store = await EdgeStore.open(pathlib.Path({str(tmp_path)!r}))
    await filled(store, [point(n) for n in range(1, 201)])
    print(store.pid, flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, stdout=asyncio.subprocess.PIPE, cwd=ROOT
    )
    assert parent.stdout is not None
    child = int(await parent.stdout.readline())
    parent.kill()
    await parent.wait()
    await ended(child)
    store = await EdgeStore.open(tmp_path)
    assert await store.count("content", EVERYTHING) == 200
    await store.close()


async def test_after_its_death_requests_fail_and_not_at_once_is_it_started_again(tmp_path: Path) -> None:
    store = await EdgeStore.open(tmp_path)
    await filled(store, [point(1)])
    await killed_with_requests_in_flight(store)
    with pytest.raises(StoreError, match="within seconds"):
        await store.count("content", EVERYTHING)
    assert await store.ready() is False
    await store.close()


async def test_after_its_death_the_next_request_starts_it_again(tmp_path: Path) -> None:
    store = EdgeStore(tmp_path, restart_pause_s=0)
    await filled(store, [point(1)])
    first = store.pid
    await killed_with_requests_in_flight(store)
    assert await store.count("content", EVERYTHING) == 1
    assert store.pid not in (None, first)
    assert await store.ready() is True
    await store.close()


async def killed_with_requests_in_flight(store: EdgeStore) -> None:
    assert store.pid is not None
    os.kill(store.pid, signal.SIGSTOP)
    waiting = [asyncio.create_task(store.count("content", EVERYTHING)) for _ in range(3)]
    await asyncio.sleep(0)
    os.kill(store.pid, signal.SIGKILL)
    for outcome in await asyncio.gather(*waiting, return_exceptions=True):
        assert isinstance(outcome, StoreError)
        assert "ended unexpectedly" in outcome.message


async def test_signals_of_the_terminal_do_not_end_it_and_closing_does(tmp_path: Path) -> None:
    store = await EdgeStore.open(tmp_path)
    await filled(store, [point(1)])
    pid = store.pid
    assert pid is not None
    os.kill(pid, signal.SIGINT)
    os.kill(pid, signal.SIGTERM)
    assert await store.count("content", EVERYTHING) == 1
    assert store.pid == pid
    await store.close()
    await ended(pid)
    with pytest.raises(StoreError, match="closed"):
        await store.count("content", EVERYTHING)


async def test_maintenance_loses_nothing(tmp_path: Path) -> None:
    store = await EdgeStore.open(tmp_path)
    await filled(store, [point(n) for n in range(1, 101)])
    await store.delete("content", Where({"document_id": "d7"}))
    await store.optimize("content")
    assert await store.count("content", EVERYTHING) == 99
    (found,) = await store.search("content", [LegQuery("dense", [1.0, 9.0, 0.0, 0.0], 1)], EVERYTHING, ["n"])
    assert found[0].payload == {"n": 9}
    await store.close()


async def test_a_second_store_on_the_folder_is_told_what_to_do(
    tmp_path: Path,
) -> None:
    store = await EdgeStore.open(tmp_path)
    with pytest.raises(StoreError, match=r"in use by another process.*qdrant\.url"):
        await EdgeStore.open(tmp_path)
    assert await store.ready() is True
    await store.close()


async def test_a_creation_that_was_cut_short_is_finished(tmp_path: Path) -> None:
    (tmp_path / "content").mkdir()
    (tmp_path / "content" / "legs.json").write_text(
        '{"legs": {"dense": {"model": "model-a", "size": 4}}, "keywords": ["site"]}'
    )
    store = await EdgeStore.open(tmp_path)
    await filled(store, [point(1)])
    assert await store.count("content", Where({"site": "a"})) == 1
    await store.close()


async def test_searches_get_in_between_the_pieces_of_a_big_write(tmp_path: Path) -> None:
    store = await EdgeStore.open(tmp_path)
    await filled(store, [point(1)])
    writing = asyncio.create_task(store.upsert("content", [point(n) for n in range(1, 5001)]))
    counts: list[int] = []
    while not writing.done():
        counts.append(await store.count("content", EVERYTHING))
    await writing
    assert any(1 < count < 5000 for count in counts)
    assert await store.count("content", EVERYTHING) == 5000
    await store.close()


async def test_a_request_whose_caller_left_harms_no_other(tmp_path: Path) -> None:
    store = await EdgeStore.open(tmp_path)
    await filled(store, [point(1)])
    left = asyncio.create_task(store.upsert("content", [point(n) for n in range(1, 1001)]))
    await asyncio.sleep(0)
    left.cancel()
    with pytest.raises(asyncio.CancelledError):
        await left
    assert await store.count("content", EVERYTHING) >= 1
    assert await store.ready() is True
    await store.close()
