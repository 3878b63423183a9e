"""Loading, listing and deleting over HTTP; and what a kill or a reload leaves."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa

from core.database import chunks
from core.ingestion.load import COLLECTION
from core.providers.base import Where
from server.keys import DATABASE, STORE
from tests.conftest import ADMIN, KITCHEN, Serve, Served, recipe

AUTH = {"Authorization": f"Bearer {ADMIN}"}
LONG = " ".join(f"Sentence number {n} is about the vegetable garden." for n in range(120))


async def points(server: Served, site: str) -> int:
    return await server.app[STORE].count(COLLECTION, Where(must={"site": site}))


async def chunk_rows(server: Served) -> int:
    count = sa.select(sa.func.count()).select_from(chunks)
    return int(await server.app[DATABASE].read(lambda c: c.execute(count).scalar_one()))


@pytest.mark.both_databases
async def test_loading_twice_changes_nothing(serve: Serve) -> None:
    server = await serve()
    first = await server.load("kitchen", KITCHEN)
    assert (first["added"], first["failed"]) == (5, 0)
    before = await points(server, "kitchen")
    second = await server.load("kitchen", KITCHEN)
    assert (second["added"], second["replaced"], second["unchanged"]) == (0, 0, 5)
    assert await points(server, "kitchen") == before == await chunk_rows(server)


@pytest.mark.both_databases
async def test_shorter_version_leaves_no_old_chunk(serve: Serve) -> None:
    server = await serve()
    await server.load("kitchen", [recipe("garden", "Garden soup", LONG)])
    assert await points(server, "kitchen") > 2
    report = await server.load("kitchen", [recipe("garden", "Garden soup", "Now it is short.")])
    assert report["replaced"] == 1
    assert await points(server, "kitchen") == 1 == await chunk_rows(server)
    _, answer = await server.json("POST", "/search", json={"query": "short sentence number 90", "limit": 5})
    assert [result["text"] for result in answer["results"]] == ["Now it is short."]


@pytest.mark.both_databases
async def test_long_page_is_one_result_and_several_passages(serve: Serve) -> None:
    server = await serve()
    await server.load("kitchen", [recipe("garden", "Garden soup", LONG), *KITCHEN])
    frames = await server.ask("vegetable garden")
    assert [item["name"] for item in frames.final].count("Garden soup") == 1
    _, answer = await server.json("POST", "/search", json={"query": "vegetable garden", "limit": 8})
    assert len([r for r in answer["results"] if r["name"] == "Garden soup"]) > 1


@pytest.mark.both_databases
async def test_report_names_what_could_not_be_read(serve: Serve) -> None:
    server = await serve()
    report = await server.load("kitchen", [KITCHEN[0], 5, {"@type": "Recipe"}])  # type: ignore[list-item]
    assert report["added"] == 1
    others = [item for item in report["items"] if item["kind"] in ("skipped", "failed")]
    assert len(others) == 2
    assert all(item["reason"] and item["source"] for item in others)


@pytest.mark.both_databases
async def test_loading_streams_an_outcome_per_item(serve: Serve) -> None:
    server = await serve()
    body = {"site": "kitchen", "items": KITCHEN}
    async with server.session.post(
        f"{server.url}/documents", json=body, headers={**AUTH, "Accept": "text/event-stream"}
    ) as response:
        text = await response.text()
    assert text.count("event: item\n") == 5
    assert text.count("event: complete\n") == 1
    assert '"added":5' in text.rsplit("data: ", 1)[1]


@pytest.mark.both_databases
async def test_item_without_text_loads_by_its_name(serve: Serve) -> None:
    server = await serve()
    await server.load(
        "kitchen", [{"@type": "Recipe", "url": "https://k.example/x", "name": "Xyloba surprise"}]
    )
    assert (await server.ask("xyloba")).final[0]["name"] == "Xyloba surprise"


@pytest.mark.parametrize("site", ["", "Über", "a b", "x" * 65, "../etc"])
async def test_site_name_that_is_none_is_refused(serve: Serve, site: str) -> None:
    server = await serve()
    status, answer = await server.json(
        "POST", "/documents", json={"site": site, "items": KITCHEN}, headers=AUTH
    )
    assert (status, answer["error"]["field"]) == (400, "site")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/documents"),
        ("GET", "/documents"),
        ("DELETE", "/documents?url=x"),
        ("DELETE", "/documents/abc?site=kitchen"),
        ("DELETE", "/sites/kitchen"),
    ],
)
async def test_writing_needs_a_credential(serve: Serve, method: str, path: str) -> None:
    server = await serve()
    await server.load("kitchen", KITCHEN[:1])
    assert (await server.json(method, path))[0] == 401
    wrong = {"Authorization": "Bearer " + "x" * len(ADMIN)}
    assert (await server.json(method, path, headers=wrong))[0] == 401
    assert len((await server.ask("curry")).final) == 1


@pytest.mark.both_databases
async def test_deleted_is_deleted(serve: Serve) -> None:
    server = await serve()
    await server.load("kitchen", [recipe("garden", "Garden soup", LONG), *KITCHEN])
    _, listed = await server.json("GET", "/documents?site=kitchen", headers=AUTH)
    garden = next(d for d in listed["documents"] if d["name"] == "Garden soup")
    assert garden["state"] == "completed"
    status, gone = await server.json(
        "DELETE", f"/documents/{garden['document_id']}?site=kitchen", headers=AUTH
    )
    assert (status, gone["documents"], gone["left"]) == (200, 1, 0)
    assert gone["chunks"] == garden["chunks"]
    assert "Garden soup" not in [item["name"] for item in (await server.ask("garden")).final]
    _, by_url = await server.json("DELETE", f"/documents?url={KITCHEN[0]['url']}", headers=AUTH)
    assert by_url["documents"] == 1
    _, site = await server.json("DELETE", "/sites/kitchen", headers=AUTH)
    assert (site["documents"], site["left"]) == (4, 0)
    assert await points(server, "kitchen") == 0 == await chunk_rows(server)
    assert (await server.json("GET", "/sites"))[1]["sites"] == []


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/documents/nothere?site=kitchen", "document_id"),
        ("/documents?url=https://no.example/", "url"),
        ("/sites/nowhere", "site"),
    ],
)
async def test_deleting_what_is_not_there_says_so(serve: Serve, path: str, field: str) -> None:
    server = await serve()
    status, answer = await server.json("DELETE", path, headers=AUTH)
    assert (status, answer["error"]["field"]) == (404, field)


async def test_listing_goes_page_by_page(serve: Serve) -> None:
    server = await serve()
    many = [recipe(f"r{n}", f"Recipe {n}", "Short.") for n in range(1100)]
    await server.load("kitchen", many)
    _, first = await server.json("GET", "/documents?site=kitchen", headers=AUTH)
    _, second = await server.json("GET", f"/documents?site=kitchen&cursor={first['cursor']}", headers=AUTH)
    ids = [d["document_id"] for d in (*first["documents"], *second["documents"])]
    assert len(ids) == len(set(ids)) == 1100
    assert second["cursor"] is None


@pytest.mark.both_databases
async def test_searching_goes_on_beside_loading(serve: Serve) -> None:
    server = await serve()
    await server.load("kitchen", KITCHEN)
    many: list[dict[str, Any]] = [recipe(f"r{n}", f"Recipe {n}", LONG) for n in range(40)]
    async with server.session.post(
        f"{server.url}/documents",
        json={"site": "garden", "items": many},
        headers={**AUTH, "Accept": "text/event-stream"},
    ) as loading:
        await read_frames_of_load(loading, 1)
        assert (await server.ask("tofu curry", site="kitchen")).final[0]["name"] == "Tofu curry"
        await loading.read()
    assert (await server.json("GET", "/sites"))[1]["details"][0]["documents"] == 40


async def read_frames_of_load(response: Any, most: int) -> None:
    """Read until so many item events have come."""
    seen = b""
    async for block in response.content.iter_any():
        seen += block
        if seen.count(b"event: item") >= most:
            return
