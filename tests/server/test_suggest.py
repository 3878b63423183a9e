"""`/suggest`: names of items while somebody types."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import ADMIN, KITCHEN, Serve, Served, recipe


async def suggested(server: Served, typed: str, **more: Any) -> list[str]:
    status, body = await server.json("GET", "/suggest", params={"q": typed, **more})
    assert status == 200, body
    assert body["q"] == typed
    names: list[str] = body["suggestions"]
    return names


@pytest.mark.both_databases
async def test_names_that_begin_so_come_before_those_with_such_a_word(serve: Serve) -> None:
    server = await serve()
    await server.load("kitchen", [*KITCHEN, recipe("stewed", "Stewed plums", "Plums.")])
    assert await suggested(server, "stew") == ["Stewed plums", "Beef stew", "Chickpea stew"]
    assert await suggested(server, "STEW", limit="2") == ["Stewed plums", "Beef stew"]
    assert await suggested(server, "tew") == []


@pytest.mark.both_databases
async def test_every_word_must_begin_one_in_any_order(serve: Serve) -> None:
    server = await serve()
    await server.load("kitchen", KITCHEN)
    assert await suggested(server, "curry to") == ["Tofu curry"]
    assert await suggested(server, "tofu  cur") == ["Tofu curry"]
    assert await suggested(server, "tofu stew") == []


@pytest.mark.both_databases
async def test_descriptions_are_not_searched(serve: Serve) -> None:
    server = await serve()
    await server.load("kitchen", KITCHEN)
    assert await suggested(server, "vegan") == []


@pytest.mark.both_databases
async def test_a_name_comes_once_and_nothing_typed_gives_nothing(serve: Serve) -> None:
    server = await serve()
    await server.load("kitchen", KITCHEN)
    await server.load("other", KITCHEN)
    assert await suggested(server, "lemon") == ["Lemon tart"]
    assert await suggested(server, "  ") == []


@pytest.mark.both_databases
async def test_signs_of_the_store_are_only_signs(serve: Serve) -> None:
    server = await serve()
    await server.load("kitchen", [*KITCHEN, recipe("rye", "100% rye bread", "Bread.")])
    for typed in ("%", "_", "\\", "' OR 1=1", "a" * 100):
        assert await suggested(server, typed) == []
    assert await suggested(server, "100%") == ["100% rye bread"]


@pytest.mark.both_databases
async def test_other_scripts_and_cases(serve: Serve) -> None:
    server = await serve()
    names = ["Éclair au café", "Борщ с говядиной", "麻婆豆腐", "Pain à l'ail"]
    await server.load("world", [recipe(f"n{n}", name, "Food.") for n, name in enumerate(names)])
    assert await suggested(server, "éclair") == ["Éclair au café"]
    assert await suggested(server, "ГОВЯД") == ["Борщ с говядиной"]
    assert await suggested(server, "борщ") == ["Борщ с говядиной"]
    assert await suggested(server, "豆腐") == ["麻婆豆腐"]
    assert await suggested(server, "ail") == ["Pain à l'ail"]


@pytest.mark.both_databases
async def test_only_readable_and_named_sites(serve: Serve) -> None:
    keys = [{"key": "a-reading-key", "roles": ["read"]}]
    server = await serve(auth={"api_keys": keys})
    await server.load("vault", [recipe("gold", "Gold stew", "Gold.")])
    await server.load("kitchen", KITCHEN)
    assert await suggested(server, "stew") == []
    sent = {"Authorization": "Bearer a-reading-key"}
    _, all_sites = await server.json("GET", "/suggest", params={"q": "go"}, headers=sent)
    _, one = await server.json("GET", "/suggest", params={"q": "stew", "site": "kitchen"}, headers=sent)
    status, _ = await server.json("GET", "/suggest", params={"q": "stew", "site": "vault"})
    assert all_sites["suggestions"] == ["Gold stew"]
    assert one["suggestions"] == ["Beef stew", "Chickpea stew"]
    assert status == 404


@pytest.mark.both_databases
async def test_deleted_items_are_not_suggested(serve: Serve) -> None:
    server = await serve()
    await server.load("kitchen", KITCHEN)
    sent = {"Authorization": f"Bearer {ADMIN}"}
    await server.json("DELETE", "/documents?url=https://kitchen.example/lemon-tart", headers=sent)
    assert await suggested(server, "lemon") == []
