"""Tags from loading to answers: kept with a document, filtered by in the store, changed without embedding."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from core.errors import StoreError
from core.ingestion.load import COLLECTION
from core.providers.base import Where
from core.tags import FIELD
from server.keys import DOCUMENTS, LOADER, STORE
from tests.conftest import ADMIN, KITCHEN, Serve, Served, recipe
from tests.fakes.openai_server import ScriptedModel
from tests.fakes.qdrant_server import fake_qdrant
from tests.fakes.sensible_model import SensibleModel

AUTH = {"Authorization": f"Bearer {ADMIN}"}
TOFU, BEEF, CHICKPEA, TART, MINESTRONE = KITCHEN


async def load(
    server: Served, site: str, items: Sequence[dict[str, Any]], tags: Any = None
) -> dict[str, Any]:
    body: dict[str, Any] = {"site": site, "items": items}
    if tags is not None:
        body["tags"] = tags
    status, report = await server.json("POST", "/documents", json=body, headers=AUTH)
    assert status == 200, report
    assert isinstance(report, dict)
    return report


async def kitchen(server: Served) -> None:
    """Tofu and chickpea are vegan mains, beef is a main, the tart has no tags, minestrone is a soup."""
    await load(server, "kitchen", [TOFU, CHICKPEA], {"course": "main", "diet": ["vegan", "light"]})
    await load(server, "kitchen", [BEEF], ["course:main"])
    await load(server, "kitchen", [MINESTRONE], "course:soup")
    await load(server, "kitchen", [TART])


async def names(server: Served, query: str, **more: Any) -> set[str]:
    return {item["name"] for item in (await server.ask(query, **more)).final}


async def searched(server: Served, query: str, **more: Any) -> list[dict[str, Any]]:
    status, answer = await server.json("POST", "/search", json={"query": query, **more})
    assert status == 200, answer
    results: list[dict[str, Any]] = answer["results"]
    return results


ANY = "curry stew tart soup"
FILTERS = [
    (None, {"Tofu curry", "Beef stew", "Chickpea stew", "Lemon tart", "Minestrone"}),
    ([], {"Tofu curry", "Beef stew", "Chickpea stew", "Lemon tart", "Minestrone"}),
    ([{"course": "main"}], {"Tofu curry", "Beef stew", "Chickpea stew"}),
    ([{"course": "main", "diet": "vegan"}], {"Tofu curry", "Chickpea stew"}),
    ([{"course": ["main", "soup"]}], {"Tofu curry", "Beef stew", "Chickpea stew", "Minestrone"}),
    ([{"diet": "vegan"}, {"course": "soup"}], {"Tofu curry", "Chickpea stew", "Minestrone"}),
    ([{"diet": ["light"], "course": "soup"}], set()),
]


@pytest.mark.parametrize("legs", [["bm25"], ["bm25", "use"]])
async def test_every_leg_finds_only_what_the_tags_let_through(serve: Serve, legs: list[str]) -> None:
    server = await serve(retrieval={"legs": legs})
    await kitchen(server)
    for tags, expected in FILTERS:
        more = {} if tags is None else {"tags": tags}
        assert await names(server, ANY, **more) == expected
        for mode in ("hybrid", "sparse", "dense")[: 1 + len(legs)]:
            if mode == "dense" and "use" not in legs:
                continue
            assert {r["name"] for r in await searched(server, ANY, mode=mode, **more)} == expected


async def test_a_qdrant_server_filters_the_same(serve: Serve, tmp_path: Path) -> None:
    async with fake_qdrant(tmp_path) as fake:
        server = await serve(qdrant={"url": fake.url})
        await kitchen(server)
        for tags, expected in FILTERS:
            assert await names(server, ANY, **({} if tags is None else {"tags": tags})) == expected
        await load(server, "kitchen", [BEEF], {"course": "soup"})
        assert await names(server, ANY, tags=[{"course": "soup"}]) == {"Beef stew", "Minestrone"}


async def test_every_dialect_takes_tags(serve: Serve) -> None:
    server = await serve()
    await kitchen(server)
    bodies: list[dict[str, Any]] = [
        {"tags": [{"diet": "vegan"}]},
        {"tags": "diet:vegan"},
        {"query": {"text": ANY, "tags": [{"diet": ["vegan"]}]}},
        {"tags": [{"diet": "vegan"}], "protocol": "legacy-2026"},
        {"query": {"text": ANY, "tags": {"diet": "vegan"}}, "meta": {"version": "0.54"}},
    ]
    for more in bodies:
        status, answer = await server.json("POST", "/ask", json={"query": ANY, "streaming": False, **more})
        assert status == 200, answer
        shown = [
            name for name in ("Tofu curry", "Beef stew", "Chickpea stew", "Minestrone") if name in str(answer)
        ]
        assert shown == ["Tofu curry", "Chickpea stew"], more


async def test_tags_in_a_query_string(serve: Serve) -> None:
    server = await serve()
    await kitchen(server)
    tags = "tags=course:main&tags=course:soup&tags=diet:vegan"
    async with server.session.get(f"{server.url}/ask?query=stew+curry&streaming=false&{tags}") as response:
        answer = await response.json()
    assert {item["name"] for item in answer["results"]} == {"Tofu curry", "Chickpea stew"}


async def test_a_filter_that_would_mean_everything_is_refused(serve: Serve) -> None:
    server = await serve()
    await kitchen(server)
    wrong: list[Any] = [[{}], {"course": []}, [{"__site": "x"}], "main", 5, [{"course": "main"}, {}]]
    for tags in wrong:
        for path in ("/ask", "/search"):
            status, answer = await server.json("POST", path, json={"query": "stew", "tags": tags})
            assert (status, answer["error"]["field"]) == (400, "tags"), tags


async def test_nothing_left_by_the_filter_is_said_so(serve: Serve) -> None:
    server = await serve()
    await kitchen(server)
    nothing = (await server.ask("stew", tags=[{"course": "breakfast"}])).one("no_results")
    assert nothing["reason"] == "filters"
    assert (await server.ask("xyzzy")).one("no_results")["reason"] == "below_min_score"


async def test_tags_are_shown_by_search_and_the_list_of_documents(serve: Serve) -> None:
    server = await serve()
    await kitchen(server)
    (curry,) = await searched(server, "tofu")
    assert curry["tags"] == {"course": ["main"], "diet": ["light", "vegan"]}
    _, listed = await server.json("GET", "/documents?site=kitchen", headers=AUTH)
    by_name = {d["name"]: d["tags"] for d in listed["documents"]}
    assert by_name["Beef stew"] == {"course": ["main"]}
    assert by_name["Lemon tart"] == {}


@pytest.mark.both_databases
async def test_documents_are_listed_by_their_tags(serve: Serve) -> None:
    server = await serve()
    odd = ['a:x"course:main', 'b:x", "course:main', "c:100%_\\", "d:Città, però", "e:[x]"]
    await kitchen(server)
    await load(server, "odd", [recipe("odd", "Odd", "Odd.")], odd)

    async def named(*tags: str) -> list[str]:
        params = [("tag", tag) for tag in tags]
        status, answer = await server.json("GET", "/documents", params=params, headers=AUTH)
        assert status == 200, answer
        return sorted(d["name"] for d in answer["documents"])

    assert await named("course:main") == ["Beef stew", "Chickpea stew", "Tofu curry"]
    assert await named("course:main", "diet:vegan") == ["Chickpea stew", "Tofu curry"]
    assert await named("Course:main") == await named("course:mai") == await named("ourse:main") == []
    assert len(await named()) == 6
    for tag in odd:
        assert await named(tag) == ["Odd"], tag
    status, answer = await server.json("GET", "/documents?tag=main", headers=AUTH)
    assert (status, answer["error"]["field"]) == (400, "tags")


@pytest.mark.both_databases
async def test_other_tags_replace_those_before_and_nothing_is_embedded_again(serve: Serve) -> None:
    server = await serve()
    await kitchen(server)
    # What is embedded is written: a point that is not there would come back.
    lost = (await listed(server))["Lemon tart"]
    await server.app[STORE].delete(COLLECTION, Where({"document_id": lost}))
    report = await load(server, "kitchen", KITCHEN, {"menu": "winter"})
    assert (report["replaced"], report["unchanged"], report["failed"]) == (5, 0, 0)
    assert {item["reason"] for item in report["items"]} == {"its tags"}
    assert await server.app[STORE].count(COLLECTION, Where({"site": "kitchen"})) == 4
    assert await names(server, ANY, tags=[{"menu": "winter"}]) == await names(server, ANY)
    assert await names(server, ANY, tags=[{"course": "main"}]) == set()
    assert (await load(server, "kitchen", KITCHEN, ["menu:winter"]))["unchanged"] == 5


async def test_loading_without_tags_takes_them_away(serve: Serve) -> None:
    server = await serve()
    await kitchen(server)
    report = await load(server, "kitchen", KITCHEN)
    assert (report["replaced"], report["unchanged"]) == (4, 1)
    assert await names(server, ANY, tags=[{"course": "main"}]) == set()
    assert len(await names(server, ANY)) == 5


async def test_a_new_text_brings_its_new_tags(serve: Serve) -> None:
    server = await serve()
    await load(server, "kitchen", [BEEF], "course:main")
    await load(server, "kitchen", [recipe("beef-stew", "Beef stew", "Now a soup.")], "course:soup")
    assert await names(server, "beef", tags="course:main") == set()
    assert await names(server, "beef", tags="course:soup") == {"Beef stew"}


@pytest.mark.both_databases
async def test_tags_of_one_document_are_changed_by_patch(serve: Serve) -> None:
    server = await serve()
    await kitchen(server)
    (curry,) = await searched(server, "tofu")
    path = f"/documents/{curry['document_id']}/tags?site=kitchen"
    status, row = await server.json("PATCH", path, json={"tags": {"course": "soup"}}, headers=AUTH)
    assert (status, row["tags"]) == (200, {"course": ["soup"]})
    assert await names(server, ANY, tags="course:soup") == {"Tofu curry", "Minestrone"}
    status, row = await server.json("PATCH", path, json={"tags": {}}, headers=AUTH)
    assert (status, row["tags"]) == (200, {})
    assert await names(server, ANY, tags="course:soup") == {"Minestrone"}
    assert (await server.json("PATCH", path, json={"tags": {"course": "soup"}}))[0] == 401
    for body, field in (({}, "tags"), ({"tags": {"__x": "y"}}, "tags")):
        status, answer = await server.json("PATCH", path, json=body, headers=AUTH)
        assert (status, answer["error"]["field"]) == (400, field)
    gone = await server.json("PATCH", "/documents/nowhere/tags?site=kitchen", json={"tags": {}}, headers=AUTH)
    assert gone[0] == 404


async def test_loading_with_what_is_no_tag_loads_nothing(serve: Serve) -> None:
    server = await serve()
    wrong: list[Any] = ["main", {"__site": "other"}, {"a:b": "c"}, {"a": 5}, 5]
    for tags in wrong:
        body = {"site": "kitchen", "items": KITCHEN, "tags": tags}
        status, answer = await server.json("POST", "/documents", json=body, headers=AUTH)
        assert (status, answer["error"]["field"]) == (400, "tags"), tags
    assert (await server.json("GET", "/sites"))[1]["sites"] == []


async def test_a_tag_opens_no_other_site(serve: Serve) -> None:
    server = await serve()
    await load(server, "kitchen", [BEEF], "site:vault")
    await load(server, "vault", [recipe("gold", "Gold stew", "A stew of gold.")], {"course": "main"})
    await server.json("PUT", "/sites/vault", json={"access": "private"}, headers=AUTH)
    for tags in ([{"course": "main"}], [{"site": "vault"}], [{"course": "main"}, {"site": "vault"}]):
        assert "Gold stew" not in await names(server, "stew", tags=tags)
        assert "Gold stew" not in {r["name"] for r in await searched(server, "stew", tags=tags)}
    async with server.session.post(
        f"{server.url}/search", json={"query": "stew", "tags": [{"course": "main"}]}, headers=AUTH
    ) as response:
        assert [r["name"] for r in (await response.json())["results"]] == ["Gold stew"]


@pytest.mark.both_databases
async def test_tags_taken_away_hold_at_once_though_the_store_does_not_know_yet(serve: Serve) -> None:
    server = await serve()
    await kitchen(server)
    (beef,) = await searched(server, "beef")
    await server.app[DOCUMENTS].set_tags("kitchen", [beef["document_id"]], ["course:secret"])
    assert await names(server, ANY, tags="course:main") == {"Tofu curry", "Chickpea stew"}
    # What an interrupted change has left is finished by the next load of the site, or at the next start.
    assert await server.app[DOCUMENTS].unfiled("other") == []
    assert len(await server.app[DOCUMENTS].unfiled("kitchen")) == 1
    await server.app[LOADER].sweep()
    assert await server.app[DOCUMENTS].unfiled() == []
    assert await names(server, ANY, tags="course:secret") == {"Beef stew"}


async def test_a_store_that_fails_is_told_the_tags_later(serve: Serve, tmp_path: Path) -> None:
    async with fake_qdrant(tmp_path) as fake:
        server = await serve(qdrant={"url": fake.url})
        await kitchen(server)
        fake.broken = 500
        with pytest.raises(StoreError):
            await server.app[LOADER].retag("kitchen", [(await listed(server))["Beef stew"]], ["course:soup"])
        fake.broken = None
        await load(server, "kitchen", [MINESTRONE], "course:soup")
        assert await names(server, ANY, tags="course:soup") == {"Beef stew", "Minestrone"}


async def listed(server: Served) -> dict[str, str]:
    _, answer = await server.json("GET", "/documents?site=kitchen", headers=AUTH)
    return {d["name"]: d["document_id"] for d in answer["documents"]}


async def test_a_store_that_is_filled_again_has_the_tags(serve: Serve) -> None:
    server = await serve()
    await kitchen(server)
    await server.app[STORE].delete(COLLECTION, Where({"site": "kitchen"}))
    assert await names(server, ANY, tags="course:main") == set()
    await server.app[LOADER].refill()
    assert await names(server, ANY, tags="course:main") == {"Tofu curry", "Beef stew", "Chickpea stew"}


async def test_what_an_earlier_version_loaded_has_no_tags_and_gets_them(serve: Serve) -> None:
    server = await serve()
    await server.load("kitchen", KITCHEN)
    await server.app[STORE].set_payload(COLLECTION, Where({"site": "kitchen"}), {FIELD: None})
    assert await names(server, ANY, tags="course:main") == set()
    await load(server, "kitchen", [BEEF], "course:main")
    assert await names(server, ANY, tags="course:main") == {"Beef stew"}


async def test_the_store_filters_and_not_what_is_left_of_the_best(serve: Serve) -> None:
    server = await serve(retrieval={"legs": ["bm25", "use"]})
    films = [
        {"@type": "Movie", "url": f"https://e.example/{n}", "name": f"Film {n}", "description": "A stew."}
        for n in range(3)
    ]
    stews = [recipe(f"s{n}", f"Vegan stew {n}", "A vegan stew, a stew of beans.") for n in range(60)]
    await load(server, "all", [*stews, *films], "kind:most")
    await load(
        server,
        "all",
        [recipe("rare", "Rare", "Here a stew is only named once, among much else.")],
        "kind:rare",
    )
    for more, expected in (
        ({"item_type": "Movie"}, {"Film 0", "Film 1", "Film 2"}),
        ({"tags": "kind:rare"}, {"Rare"}),
        ({"tags": "kind:rare", "item_type": "Movie"}, set()),
        ({"tags": [{"kind": ["rare", "most"]}], "item_type": "Movie"}, {"Film 0", "Film 1", "Film 2"}),
    ):
        found = await names(server, "a vegan stew", num_results=5, max_results=5, **more)
        assert found == expected, more
        for mode in ("dense", "hybrid"):
            assert {
                r["name"] for r in await searched(server, "a vegan stew", mode=mode, limit=5, **more)
            } == expected


async def test_a_long_document_does_not_hide_others_that_have_the_tag(serve: Serve) -> None:
    server = await serve(ingestion={"max_tokens_per_paragraph": 20, "overlapping_tokens": 0})
    long = " ".join(f"Garden {n}: a garden with a garden path of stones." for n in range(520))
    short = "Someone once had a small plot behind the house with a garden in it."
    await load(server, "k", [recipe("long", "Long", long), recipe("shown", "Shown", short)], "kind:a")
    await load(server, "k", [recipe("other", "Other", short)], "kind:b")
    assert await names(server, "garden", tags="kind:a") == {"Long", "Shown"}
    assert await names(server, "garden") == {"Long", "Shown", "Other"}


async def test_pages_under_a_filter_hold_every_item_once(serve: Serve) -> None:
    server = await serve()
    soups = [recipe(f"soup-{n}", f"Soup {n}", "A soup of beans.") for n in range(25)]
    await load(server, "kitchen", soups[:15], "course:soup")
    await load(server, "kitchen", soups[15:], "course:other")
    more = {"tags": "course:soup", "item_type": "Recipe", "num_results": 40, "max_results": 4}
    seen: list[str] = []
    for start in range(0, 20, 4):
        seen += [item["document_id"] for item in (await server.ask("beans", start_num=start, **more)).final]
    assert len(seen) == len(set(seen)) == 15
    again: list[str] = []
    for start in range(0, 20, 4):
        again += [item["document_id"] for item in (await server.ask("beans", start_num=start, **more)).final]
    assert again == seen
    few = await server.ask("beans", tags="course:soup", num_results=6, max_results=6)
    assert len(few.final) == 6


async def test_a_model_is_shown_only_what_the_tags_let_through(serve: Serve, model: ScriptedModel) -> None:
    model.answer = SensibleModel()
    server = await serve(model=model)
    await kitchen(server)
    answer = await server.ask(ANY, tags=[{"diet": "vegan"}], min_score=0)
    assert {item["name"] for item in answer.final} == {"Tofu curry", "Chickpea stew"}
    ranking = [r.prompt for r in model.requests if r.schema_name == "RankingPrompt"]
    assert "Chickpea stew" in "".join(ranking)
    assert "Beef stew" not in "".join(r.prompt for r in model.requests)
