"""`/search`: which passages come, in which order, with what, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import ADMIN, KITCHEN, Serve, Served, recipe
from tests.fakes.openai_server import ScriptedModel
from tests.fakes.sensible_model import SensibleModel

AUTH = {"Authorization": f"Bearer {ADMIN}"}
LONG = " ".join(f"Sentence number {n} is about the vegetable garden." for n in range(120))


async def found(server: Served, query: str, **more: Any) -> list[dict[str, Any]]:
    status, answer = await server.json("POST", "/search", json={"query": query, **more})
    assert status == 200, answer
    assert answer["query"] == query
    results: list[dict[str, Any]] = answer["results"]
    return results


async def test_a_result_has_every_field_of_the_contract(serve: Serve) -> None:
    server = await serve()
    await server.load("kitchen", KITCHEN)
    (result,) = await found(server, "beef")
    assert set(result) == {
        *("url", "name", "site", "document_id", "chunk", "text"),
        *("score", "scores", "page", "section", "tags"),
    }
    assert (result["name"], result["site"], result["chunk"], result["tags"]) == (
        "Beef stew",
        "kitchen",
        0,
        {},
    )
    assert (result["page"], result["section"]) == (None, None)
    assert 0 < result["score"] <= 1
    assert set(result["scores"]) == {"bm25"}


@pytest.mark.parametrize("with_model", [False, True])
async def test_an_answers_items_cite_the_passage_that_was_found(
    serve: Serve, model: ScriptedModel, with_model: bool
) -> None:
    server = await serve(model=model if with_model else None)
    model.answer = SensibleModel(scores={"": 80})
    await server.load("kitchen", [*KITCHEN, recipe("garden", "Garden soup", LONG)])
    await server.load("others", [recipe(f"other-{n}", f"Dish {n}", "Something else.") for n in range(3)])
    for query in ("beef", "sentence number 77"):
        best, *_ = await found(server, query, site="kitchen")
        for more in ({}, {"provisional": True}, {"mode": "summarize"}):
            frames = await server.ask(query, site="kitchen", **more)
            (shown,) = [one for one in frames.final if one["document_id"] == best["document_id"]]
            (cited,) = shown["citations"]
            assert len(cited["text"]) <= 800
            assert best["text"].startswith(cited.pop("text").rstrip("…"))
            assert cited == {key: best[key] for key in ("chunk", "page", "section")}
    # What the model reads of an item is not longer for it.
    assert not [one for one in model.requests if '"citations"' in one.prompt]


WRONG: list[tuple[dict[str, Any], str]] = [
    ({}, "query"),
    ({"query": " "}, "query"),
    ({"query": 5}, "query"),
    ({"query": "x" * 8001}, "query"),
    ({"query": "a", "colour": "red"}, "colour"),
    ({"query": "a", "filters": []}, "filters"),
    ({"query": "a", "minRelevance": 0}, "minRelevance"),
    ({"query": "a", "site": 5}, "site"),
    ({"query": "a", "site": {"name": "kitchen"}}, "site"),
    ({"query": "a", "required_item_type": "no type"}, "required_item_type"),
    ({"query": "a", "limit": 0}, "limit"),
    ({"query": "a", "limit": 201}, "limit"),
    ({"query": "a", "limit": "many"}, "limit"),
    ({"query": "a", "expand": -1}, "expand"),
    ({"query": "a", "expand": 11}, "expand"),
    ({"query": "a", "expand": True}, "expand"),
    ({"query": "a", "min_relevance": 1.1}, "min_relevance"),
    ({"query": "a", "min_relevance": "nan"}, "min_relevance"),
    ({"query": "a", "min_relevance": "much"}, "min_relevance"),
    ({"query": "a", "mode": "poem"}, "mode"),
    ({"query": "a", "mode": ["dense"]}, "mode"),
    ({"query": "a", "mode": "dense"}, "mode"),
    ({"query": "a", "item_type": "no type"}, "item_type"),
    ({"query": "a", "tags": [{}]}, "tags"),
    ({"query": "a", "tags": {"course": []}}, "tags"),
    ({"query": "a", "tags": [{"__site": "other"}]}, "tags"),
]


async def test_what_is_wrong_is_a_400_that_names_the_field(serve: Serve) -> None:
    server = await serve()
    await server.load("kitchen", KITCHEN[:1])
    for body, field in WRONG:
        status, answer = await server.json("POST", "/search", json=body)
        assert (status, answer["error"]["field"]) == (400, field), body


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/search", {"query": "stew", "site": None, "tags": None, "limit": None, "mode": None}),
        ("/ask", {"query": "stew", "site": None, "streaming": False}),
        ("/ask", {"query": "stew", "site": None, "streaming": False, "protocol": "legacy-2026"}),
        ("/ask?site=[]", {"query": "stew", "streaming": False}),
        ("/suggest?q=st&site=[]", None),
    ],
)
async def test_a_site_that_is_null_or_an_empty_list_is_all_sites(
    serve: Serve, path: str, body: dict[str, Any] | None
) -> None:
    server = await serve()
    await server.load("kitchen", KITCHEN)
    status, answer = await server.json("GET" if body is None else "POST", path, json=body)
    assert status == 200, answer
    assert "Beef stew" in str(answer)


async def test_an_unknown_site_is_a_404(serve: Serve) -> None:
    server = await serve()
    status, answer = await server.json("POST", "/search", json={"query": "a", "site": "nowhere"})
    assert (status, answer["error"]["field"]) == (404, "site")


@pytest.mark.both_databases
async def test_expand_joins_the_chunks_before_and_after_without_their_overlap(serve: Serve) -> None:
    server = await serve(ingestion={"max_tokens_per_paragraph": 40, "overlapping_tokens": 10})
    await server.load("kitchen", [recipe("garden", "Garden soup", LONG)])
    plain = (await found(server, "sentence number 60", limit=1))[0]
    (wide,) = await found(server, "sentence number 60", limit=1, expand=2)
    assert wide["chunk"] == plain["chunk"] > 2
    assert plain["text"] in wide["text"]
    assert len(wide["text"]) > 3 * len(plain["text"])
    assert wide["text"] in LONG
    (whole,) = await found(server, "sentence number 60", limit=1, expand=10)
    assert wide["text"] in whole["text"]
    assert whole["text"] in LONG


async def test_expand_at_the_ends_of_a_document_takes_what_there_is(serve: Serve) -> None:
    server = await serve(ingestion={"max_tokens_per_paragraph": 40, "overlapping_tokens": 0})
    await server.load("kitchen", [*KITCHEN, recipe("garden", "Garden soup", LONG)])
    (beef,) = await found(server, "beef", expand=5)
    assert beef["text"] == (await found(server, "beef"))[0]["text"]
    first = next(r for r in await found(server, "Sentence number 0", limit=50, expand=1) if r["chunk"] == 0)
    assert first["text"].startswith("Sentence number 0 is")


async def test_min_relevance_leaves_out_what_is_worse(serve: Serve) -> None:
    server = await serve()
    await server.load("kitchen", KITCHEN)
    everything = await found(server, "vegan stew")
    best = await found(server, "vegan stew", min_relevance=everything[0]["score"])
    assert [r["name"] for r in best] == [everything[0]["name"]]
    assert len(everything) > 1


async def test_item_type_keeps_the_type_and_those_below_it(serve: Serve) -> None:
    server = await serve()
    film = {"@type": "Movie", "url": "https://e.example/f", "name": "Stew of fate", "description": "A film."}
    await server.load("all", [*KITCHEN, film])
    assert {r["name"] for r in await found(server, "stew")} == {"Beef stew", "Chickpea stew", "Stew of fate"}
    for kind in ("Movie", "CreativeWork", "https://schema.org/Movie"):
        names = {r["name"] for r in await found(server, "stew", item_type=kind)}
        assert ("Stew of fate" in names, "Beef stew" in names) == (True, kind == "CreativeWork")
    assert await found(server, "stew", required_item_type="Event") == []
    assert len(await found(server, "stew", item_type="Thing")) == 3


async def test_equally_good_passages_always_come_in_the_same_order(serve: Serve) -> None:
    server = await serve()
    twins = [recipe(f"twin-{n}", f"Soup {n}", "A soup of beans.") for n in range(30)]
    await server.load("kitchen", twins)
    tags = {"course": "soup"}
    await server.json(
        "POST", "/documents", json={"site": "kitchen", "items": twins, "tags": tags}, headers=AUTH
    )
    first = [r["document_id"] for r in await found(server, "beans", limit=30)]
    assert len(first) == 30
    assert first == sorted(first)
    assert [r["document_id"] for r in await found(server, "beans", limit=30, tags=tags)] == first
    assert [r["document_id"] for r in await found(server, "beans", limit=7)] == first[:7]
