"""Every way in which a question can come, and every way in which it can be wrong."""

from __future__ import annotations

from typing import Any

import pytest

from core.errors import BadQuery, Forbidden, UnknownSite
from core.settings import Settings
from server.params import Asked, Params, asked_from, previous, sites_from, tag_filter

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
        ({"query": "a", "query_id": "a b"}, "query_id"),
        ({"query": "a", "conversation_id": "x" * 129}, "conversation_id"),
        ({"query": "a", "prev": [[1]]}, "prev"),
        ({"query": "a", "prev": [5]}, "prev"),
        ({"query": "a", "prev": [{"a": 1}]}, "prev"),
        ({"query": "a", "prev": [True]}, "prev"),
        ({"query": "a", "prev": '{"a": 1}'}, "prev"),
        ({"query": "a", "prev": ' ["a", "b"'}, "prev"),
        ({"query": "a", "prev": '["a", "b"]]'}, "prev"),
        ({"query": "a", "prev": '["a" "b"]'}, "prev"),
        ({"query": "a", "prev": "[a, b"}, "prev"),
        ({"query": "a", "prev": "[1, 2]"}, "prev"),
        ({"query": "a", "last_ans": "not json"}, "last_ans"),
        ({"query": "a", "last_ans": [["x"]]}, "last_ans"),
        ({"query": "a", "tags": "x"}, "tags"),
        ({"query": {"text": "a"}}, "query"),
        ({"query": "a", "context_url": 5}, "context_url"),
        ({"query": ["a", "b"]}, "query"),
        ({"query": "a", "mode": "list,poem"}, "mode"),
        ({"query": "a", "mode": ["list", "summarize"]}, "mode"),
        ({"query": "a", "num_results": 5, "max_results": 6}, "max_results"),
        ({"query": "a", "num_results": 5, "start_num": 5}, "start_num"),
        ({"query": "a", "start_num": -1}, "start_num"),
        ({"query": "a", "provisional": "perhaps"}, "provisional"),
        ({"query": "a", "remember": 2}, "remember"),
        ({"query": "a", "item_type": "no type"}, "item_type"),
        ({"query": "a", "tool": "a tool"}, "tool"),
        ({"query": "a", "filters": "[]"}, "filters"),
        ({"query": "a", "memory": ["one", 2]}, "memory"),
        ({"query": "a", "near": "Genova"}, "near"),
        ({"query": "a", "near": "44.4"}, "near"),
        ({"query": "a", "near": "91,0"}, "near"),
        ({"query": "a", "near": ["1,2", "3,4"]}, "near"),
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
        ([' [the "best" salt, pepper] '], ('the "best" salt', "pepper")),
        (["[]"], ()),
        ([[]], ()),
        ([None], ()),
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


@pytest.mark.parametrize("values", [[], [None], [""], [[]], ["[]"], [None, "all"], [[" "]]])
def test_no_site_is_all_sites(values: list[Any]) -> None:
    assert sites_from(values, SITES) == (SITES, True)
    assert asked(query="a", site=values).query.all_sites


@pytest.mark.parametrize(
    "value", [5, True, {"a": 1}, [["liguria"]], [5], ["liguria", None], '[{"a": 1}]', "[5]", '[["liguria"]]']
)
def test_what_is_no_name_of_a_site_is_a_bad_request_and_no_unknown_site(value: Any) -> None:
    with pytest.raises(BadQuery) as caught:
        sites_from([value], SITES)
    assert caught.value.status == 400
    assert caught.value.field == "site"


@pytest.mark.parametrize(
    "name",
    [
        *("site", "prev", "last_ans", "decontextualized_query", "context_url", "context_description"),
        *("memory", "near", "mode", "generate_mode", "num_results", "max_results", "min_score", "start_num"),
        *("tags", "item_type", "required_item_type", "tool", "filters", "query_id", "conversation_id"),
        *(
            "provisional",
            "remember",
            "accept_language",
            "debug",
            "streaming",
            "response_format",
            "respond_async",
        ),
    ],
)
def test_null_is_as_if_it_were_not_there(name: str) -> None:
    given, without = asked(query="a", **{name: [None]}), asked(query="a")
    same = {"query_id": "q", "conversation_id": "c"}
    assert given.query.with_(**same) == without.query.with_(**same)
    assert (given.streaming, given.response_format) == (without.streaming, without.response_format)


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"generate_mode": "poem"}, "generate_mode"),
        ({"generate_mode": 5}, "generate_mode"),
        ({"mode": None, "generate_mode": "x" * 101}, "generate_mode"),
        ({"mode": "poem", "generate_mode": "list"}, "mode"),
        ({"required_item_type": "no type"}, "required_item_type"),
        ({"required_item_type": "x" * 151}, "required_item_type"),
        ({"item_type": "", "required_item_type": "no type"}, "required_item_type"),
    ],
)
def test_what_has_two_names_is_refused_by_the_one_that_was_used(values: dict[str, Any], field: str) -> None:
    with pytest.raises(BadQuery) as caught:
        asked(query="a", **values)
    assert caught.value.field == field
    assert f"`{field}`" in caught.value.message


def test_unknown_site_names_those_there_are() -> None:
    with pytest.raises(UnknownSite, match=r"no site `lombardia`; sites: liguria, trattoria"):
        sites_from(["lombardia"], SITES)
    assert sites_from(["all"], SITES) == (SITES, True)


def test_one_site_is_not_all_sites() -> None:
    query = asked(query="a", site="liguria").query
    assert query.sites == ("liguria",)
    assert not query.all_sites


@pytest.mark.parametrize("mode", ["list", "none", "LIST", "", " list , none "])
def test_list_is_the_mode_under_every_name_it_has(mode: str) -> None:
    assert asked(query="a", mode=mode).query.mode == "list"
    assert asked(query="a", generate_mode=mode).query.mode == "list"


def test_debug_is_for_operators() -> None:
    with pytest.raises(Forbidden):
        asked(query="a", debug="true")
    assert not asked(query="a", debug="false").query.debug


def test_a_page_behind_the_default_number_of_candidates_is_no_error() -> None:
    query = asked(query="a", start_num=990, max_results=100).query
    assert (query.start_num, query.max_results, query.num_results) == (990, 100, 50)
    assert asked(query="a", num_results=10, max_results=10, start_num=9).query.start_num == 9


def test_where_the_asker_is_comes_as_latitude_and_longitude() -> None:
    assert asked(query="a").query.near is None
    assert asked(query="a", near=" ").query.near is None
    assert asked(query="a", near="-44.4, 8.93").query.near == (-44.4, 8.93)


def test_facts_for_this_request_come_as_a_list_or_repeated() -> None:
    for values in ([["a, b", "c"]], ['["a, b", "c"]'], ["a, b", "c"]):
        assert asked(query="x", memory=values).query.memory == ("a, b", "c")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], ()),
        ([[]], ()),
        (["[]"], ()),
        ([""], ()),
        ([[{"course": "main"}]], ({"course": ("main",)},)),
        ([{"course": "main"}], ({"course": ("main",)},)),
        ([{" course ": " main "}], ({"course": ("main",)},)),
        (['{"course": "main"}'], ({"course": ("main",)},)),
        (
            ['[{"course": ["main", "side"], "diet": "vegan"}, {"course": "soup"}]'],
            ({"course": ("main", "side"), "diet": ("vegan",)}, {"course": ("soup",)}),
        ),
        (["course:main"], ({"course": ("main",)},)),
        (["url:https://e.example"], ({"url": ("https://e.example",)},)),
        (
            ["course:main", "course:side", "diet:vegan"],
            ({"course": ("main", "side"), "diet": ("vegan",)},),
        ),
    ],
)
def test_tags_in_every_form(values: list[Any], expected: tuple[Any, ...]) -> None:
    assert tag_filter(values) == expected


@pytest.mark.parametrize(
    "values",
    [
        [[{}]],
        [{}],
        ["[{}]"],
        [[{"course": []}]],
        [[{"course": ""}]],
        [[{"course": [1]}]],
        [[{"__document_id": "x"}]],
        [[{"": "x"}]],
        [["main"]],
        ["main"],
        ["course:"],
        [":main"],
        [5],
        ['[{"course": "main"'],
        ['{"course": "main"'],
        [[{"a:b": "c"}]],
        [[{"a": " "}]],
        [[{"a": "b" * 501}]],
        [[{"a": "b"}] * 51],
        [{"a": [str(n) for n in range(2001)]}],
    ],
)
def test_tags_that_would_mean_nothing_are_refused(values: list[Any]) -> None:
    with pytest.raises(BadQuery) as caught:
        tag_filter(values)
    assert caught.value.field == "tags"
