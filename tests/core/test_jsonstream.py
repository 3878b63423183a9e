"""Objects come out of a reply as soon as they can, however it is cut and whatever is wrong with it."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.jsonstream import ObjectReader, parse_object

A, B = {"tag": "a", "score": 80}, {"tag": "b", "score": 10}

scalars = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=12)
hard_text = st.text(alphabet='{}[]",:\\<>think/ a\n北🌍', max_size=12)
values = st.recursive(
    scalars | hard_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(hard_text, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.text(max_size=5), values, min_size=1, max_size=4)


def read(text: str, *cuts: int, want: str = "") -> list[dict[str, Any]]:
    """All objects of a text that is fed in pieces cut at these places."""
    reader = ObjectReader(want)
    places = [0, *sorted({min(cut, len(text)) for cut in cuts}), len(text)]
    found = [item for start, end in pairwise(places) for item in reader.feed(text[start:end])]
    return found + reader.close()


@given(
    st.lists(objects, max_size=4), st.lists(st.integers(0, 400)), st.sampled_from([None, 1]), st.booleans()
)
def test_a_list_of_objects_comes_out_whole_however_it_is_cut(
    items: list[dict[str, Any]], cuts: list[int], indent: int | None, ascii_only: bool
) -> None:
    text = json.dumps(items, indent=indent, ensure_ascii=ascii_only)
    assert read(text, *cuts) == items
    assert read(text, *range(len(text))) == items


@given(st.lists(objects, min_size=1, max_size=4), st.lists(st.integers(0, 400)), objects)
def test_a_list_in_an_outer_object_comes_out_as_its_items(
    items: list[dict[str, Any]], cuts: list[int], other: dict[str, Any]
) -> None:
    around = {"note": str(other), "items": items, "count": len(items)}
    assert read(json.dumps(around), *cuts) == items


@given(st.lists(objects, max_size=4), st.lists(st.integers(0, 400)))
def test_json_lines_come_out_line_by_line(items: list[dict[str, Any]], cuts: list[int]) -> None:
    tagged = [{"tag": str(n), "value": item} for n, item in enumerate(items)]
    assert read("\n".join(json.dumps(item) for item in tagged), *cuts, want="tag") == tagged


@given(st.text(alphabet='{}[]",:\\<>think/ab1 \n', max_size=60), st.lists(st.integers(0, 60)))
def test_how_broken_text_is_cut_makes_no_difference(text: str, cuts: list[int]) -> None:
    whole = read(text)
    assert read(text, *cuts) == whole
    assert read(text, *range(len(text))) == whole
    for item in whole:
        orjson.dumps(item)


def test_an_object_is_there_with_its_last_brace_and_not_before() -> None:
    reader = ObjectReader()
    assert reader.feed('{"items": [{"tag": "a", "score": 80') == []
    assert reader.feed("}") == [A]
    assert reader.feed(', {"tag": "b", "score": 10}') == [B]
    assert reader.feed("]}") == []
    assert reader.close() == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param('```json\n{"tag": "a", "score": 80}\n```', [A], id="fence"),
        pytest.param('Here is {it} [1]:\n[{"tag": "a", "score": 80}]\nEnjoy!', [A], id="prose"),
        pytest.param('<think>maybe {"score": 5}?</think>{"tag": "a", "score": 80}', [A], id="thinking"),
        pytest.param('<think>[{"tag": "x"}', [], id="nothing but thinking"),
        pytest.param('{"tag": "a", "score": 80}{"tag": "b", "score": 10}', [A, B], id="one after the other"),
        pytest.param(
            '[[{"tag": "a", "score": 80}], [{"tag": "b", "score": 10}]]', [A, B], id="list of lists"
        ),
        pytest.param('[{"tag": "a", "score": 80},, {"tag": "b", "score": 10},]', [A, B], id="stray commas"),
        pytest.param('[{"tag": "a", "score": 80} {"tag": "b", "score": 10}]', [A, B], id="no comma"),
        pytest.param('[{"tag": "a", "score": 80}}, {"tag": "b", "score": 10}]', [A, B], id="brace too many"),
        pytest.param('[{"tag": "a", "score": 80, {"tag": "b", "score": 10}]', [A, B], id="brace missing"),
        pytest.param('[{"tag": "a", "score": 80], {"tag": "b", "score": 10}]', [A, B], id="wrong bracket"),
        pytest.param("[{'tag': 'a', 'score': 80,}, {tag: \"b\", score: 10}]", [A, B], id="python and js"),
        pytest.param('{{"tag": "a", "score": 80}}', [A], id="template braces"),
        pytest.param('use { first: [{"tag": "a", "score": 80}]', [A], id="brace in prose"),
        pytest.param(
            '[{"tag": "a", "d": "runs on}, {"tag": "b", "score": 10}]',
            [{"tag": "a", "d": "runs on"}, B],
            id="string without end",
        ),
        pytest.param(
            '[{"tag": "a", "d": "a "nice" dish}", "score": 80}, {"tag": "b", "score": 10}]',
            [{"tag": "a", "d": 'a "nice" dish}', "score": 80}, B],
            id="quotes inside",
        ),
        pytest.param(
            '[{"tag": "a", "d": "a 5" pipe"}, {"tag": "b", "score": 10}]',
            [{"tag": "a", "d": 'a 5" pipe'}, B],
            id="one quote inside",
        ),
        pytest.param('[{"tag": "a", "d": "x\ny\tz"}]', [{"tag": "a", "d": "x\ny\tz"}], id="raw line ends"),
        pytest.param('[{"a", }, {"tag": "b", "score": 10}]', [B], id="hopeless one dropped"),
        pytest.param('{"tag": "a", "score": NaN}', [{"tag": "a", "score": None}], id="not a number"),
        pytest.param('{"tag": "\\ud83c"}', [{"tag": "\ufffd"}], id="half a character"),
        pytest.param("no objects here", [], id="none"),
        pytest.param("", [], id="empty"),
    ],
)
def test_what_models_write_around_and_into_json(text: str, expected: list[dict[str, Any]]) -> None:
    assert read(text) == expected
    assert read(text, *range(len(text))) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            '[{"tag": "a", "score": 80}, {"tag": "b", "description": "Good br',
            {"tag": "b", "description": "Good br"},
        ),
        ('[{"tag": "a", "score": 80}, {"tag": "b", "score": 8', {"tag": "b"}),
        ('[{"tag": "a", "score": 80}, {"tag": "b", "score":', {"tag": "b"}),
        ('{"items": [{"tag": "a", "score": 80}, {"tag": "b", "relevant": tr', {"tag": "b"}),
    ],
)
def test_a_reply_cut_short_keeps_what_is_sure(text: str, expected: dict[str, Any]) -> None:
    assert read(text) == [A, expected]


@pytest.mark.parametrize("text", ['[{"tag": "a", "score": 80}, {', '[{"tag": "a", "score": 80}, {"score": 8'])
def test_a_last_object_with_nothing_in_it_is_not_made_up(text: str) -> None:
    assert read(text) == [A]


def test_a_reader_that_wants_a_key_keeps_the_lists_inside_its_objects() -> None:
    item = {"tag": "a", "sources": [{"n": 1}, {"n": 2}]}
    assert read(json.dumps(item), want="tag") == [item]
    assert read(json.dumps({"items": [item, B]}), want="tag") == [item, B]
    assert read(json.dumps(item)) == [{"n": 1}, {"n": 2}]


@pytest.mark.parametrize(
    "text",
    [
        '{"a":' * 20_000,
        "[" * 50_000,
        '[{"a":"' + 'x"y' * 30_000,
        "[{" * 30_000,
        '{"a":[' * 20_000,
        "<" * 50_000,
    ],
)
def test_floods_of_brackets_and_quotes_break_nothing(text: str) -> None:
    assert all(isinstance(item, dict) for item in read(text, *range(0, len(text), 7)))
    assert read("]" * 3 + '{"tag": "a", "score": 80}') == [A]


def test_an_object_that_cannot_be_sent_on_is_made_sendable() -> None:
    value = parse_object('{"a": Infinity, "b": [NaN], "c": "\ud83c"}')
    assert value == {"a": None, "b": [None], "c": "\ufffd"}
    assert not any(isinstance(v, float) and math.isnan(v) for v in value.values())
