"""Every way in which a question can come, and every way in which it can be wrong."""

from __future__ import annotations

from typing import Any

import pytest

from core.errors import BadQuery, UnknownSite
from core.settings import Settings
from server.params import Asked, Params, asked_from, previous, sites_from

SITES = ["liguria", "trattoria"]


def asked(accept: str = "", **values: Any) -> Asked:
    params = Params({name: value if isinstance(value, list) else [value] for name, value in values.items()})
    return asked_from(
        params, settings=Settings(), readable=SITES, identity=None, remember=True, accept=accept
    )


def test_defaults_come_from_the_settings() -> None:
    query = asked(query=" soup ").query
    assert (query.text, query.num_results, query.max_results, query.min_score) == ("soup", 50, 10, None)
    assert query.sites == ("liguria", "trattoria")
    assert query.all_sites
    assert query.query_id
    assert query.conversation_id


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({}, "query"),
        ({"query": "   "}, "query"),
        ({"query": "x" * 8001}, "query"),
        ({"query": ["a"], "num_results": "many"}, "num_results"),
        ({"query": "a", "max_results": 0}, "max_results"),
        ({"query": "a", "max_results": "101"}, "max_results"),
        ({"query": "a", "min_score": True}, "min_score"),
        ({"query": "a", "min_score": 1.5}, "min_score"),
        ({"query": "a", "mode": "poem"}, "mode"),
        ({"query": "a", "mode": "generate"}, "mode"),
        ({"query": "a", "query_id": "a b"}, "query_id"),
        ({"query": "a", "conversation_id": "x" * 129}, "conversation_id"),
        ({"query": "a", "prev": [[1]]}, "prev"),
        ({"query": "a", "last_ans": "not json"}, "last_ans"),
        ({"query": "a", "last_ans": [["x"]]}, "last_ans"),
        ({"query": "a", "tags": "x"}, "tags"),
        ({"query": {"text": "a"}}, "query"),
        ({"query": "a", "context_url": 5}, "context_url"),
    ],
)
def test_wrong_values_name_their_field(values: dict[str, Any], field: str) -> None:
    with pytest.raises(BadQuery) as caught:
        asked(**values)
    assert caught.value.field == field


@pytest.mark.parametrize("off", ["false", "False", "0", False])
def test_streaming_is_switched_off_as_nlweb_does(off: Any) -> None:
    assert not asked(query="a", streaming=off).streaming
    assert asked(query="a").streaming
    assert not asked(accept="application/json", query="a").streaming
    assert asked(accept="application/json, text/event-stream", query="a").streaming


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], ()),
        (['["salt, pepper", "soup"]'], ("salt, pepper", "soup")),
        ([["salt, pepper"]], ("salt, pepper",)),
        (["salt, pepper", "and soup, too"], ("salt, pepper", "and soup, too")),
        (["salt, pepper"], ("salt", "pepper")),
        (["[salt, pepper]"], ("salt", "pepper")),
        (['["a \\"quoted\\" one"]'], ('a "quoted" one',)),
        (["", " "], ()),
    ],
)
def test_previous_questions_come_unharmed(values: list[Any], expected: tuple[str, ...]) -> None:
    assert previous(values) == expected


@pytest.mark.parametrize(
    "values",
    [
        ["liguria,trattoria"],
        ["liguria", "trattoria"],
        [["liguria", "trattoria"]],
        ['["liguria","trattoria"]'],
    ],
)
def test_sites_in_every_form(values: list[Any]) -> None:
    assert sites_from(values, SITES) == (["liguria", "trattoria"], False)


def test_unknown_site_names_those_there_are() -> None:
    with pytest.raises(UnknownSite, match=r"no site `lombardia`; sites: liguria, trattoria"):
        sites_from(["lombardia"], SITES)
    assert sites_from(["all"], SITES) == (SITES, True)


def test_one_site_is_not_all_sites() -> None:
    query = asked(query="a", site="liguria").query
    assert query.sites == ("liguria",)
    assert not query.all_sites
