"""Answers written from sources: what a stream lets through, which facts go in, what is cited."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.documents import Candidate, Document
from core.errors import BadModelReply
from core.generation import AnswerReader, Citations, Source, Written, choose, extract
from core.messages import Item
from core.query import Query


def found(name: str, text: str = "Some text.") -> tuple[Item, Candidate]:
    document = Document("s", name, "v", f"https://e.example/{name}", name, ("Thing",), "en", b"{}", "", 1)
    item = Item(document.url, name, "s", 80, "", {}, "FAST_TRACK", name)
    return item, Candidate(document, 0, text, 1.0, {})


@given(st.text(), st.lists(st.integers(1, 9), max_size=40), st.booleans())
def test_answer_is_read_the_same_however_it_is_cut(text: str, cuts: list[int], ascii_only: bool) -> None:
    text = text.encode("utf-8", "replace").decode()
    reply = json.dumps({"answer": text, "urls": ["https://e.example"]}, ensure_ascii=ascii_only)
    reader, read, at = AnswerReader(structured=True), "", 0
    for width in [*cuts, len(reply)]:
        read += reader.feed(reply[at : at + width])
        at += width
    assert read == text


def test_plain_text_passes_as_it_is() -> None:
    reader = AnswerReader(structured=False)
    assert reader.feed('rows:\n  "x" = 1\n') == 'rows:\n  "x" = 1\n'


def test_raw_line_ends_inside_a_string_are_kept() -> None:
    assert AnswerReader(structured=True).feed('{"answer": "a\n\\"b\\"\tc"}') == 'a\n"b"\tc'


def let_through(citations: Citations, text: str, cuts: list[int]) -> str:
    shown, at = "", 0
    for width in [*cuts, len(text)]:
        shown += citations.feed(text[at : at + width])
        at += width
    return shown + citations.close()


@given(st.lists(st.integers(0, 3), min_size=1, max_size=30))
def test_only_given_sources_are_cited_however_the_text_is_cut(cuts: list[int]) -> None:
    text = "One [1], two [22], odd [x], open [, three [3][1], list a[0] and [999"
    shown = let_through(Citations({1, 3}), text, cuts)
    assert shown == "One [1], two, odd [x], open [, three [3][1], list a and [999"


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("Two hours [9]. Then [1].", "Two hours. Then [1]."),
        ("Two [9] hours", "Two hours"),
        ("Two  [9][8] hours", "Two hours"),
        ("Two [9] [8], hours", "Two, hours"),
        ("Two [1] [9] hours", "Two [1] hours"),
        ("[9] Two hours", "Two hours"),
        ("First.\n[9] Two hours", "First.\nTwo hours"),
        ("- a [1]\n  - b [9]\n", "- a [1]\n  - b"),
        ("Two hours [1, 3] or [1,9; 3].", "Two hours [1][3] or [1][3]."),
        ("两个小时【1】，三个［9］。", "两个小时[1]，三个。"),
        ("at [1999] or [a, b] or [ ] or [1-3]", "at [1999] or [a, b] or [ ] or [1-3]"),
        ("  Two hours  ", "Two hours"),
        ("[9]", ""),
    ],
)
@given(st.lists(st.integers(0, 3), max_size=30))
def test_a_number_that_goes_leaves_no_gap(written: str, shown: str, cuts: list[int]) -> None:
    assert let_through(Citations({1, 3}), written, cuts) == shown


@given(st.text("ab [1293],.\n【】", max_size=60), st.lists(st.integers(0, 3), max_size=30))
def test_how_a_text_is_cut_changes_nothing(text: str, cuts: list[int]) -> None:
    assert let_through(Citations({1, 3}), text, cuts) == let_through(Citations({1, 3}), text, [])


def test_nothing_is_shown_before_a_source_is_cited() -> None:
    answer = Written({1})
    assert answer.feed("It takes two hours") == ""
    assert answer.feed(" [7], or three") == ""
    assert answer.feed(" [1]. And ") == "It takes two hours, or three [1]. And"
    assert answer.feed("so on. ") == " so on."
    assert answer.close(nothing=False) == ""
    assert answer.text == "It takes two hours, or three [1]. And so on."


@pytest.mark.parametrize("text", ["", "  \n", "It takes two hours.", "It takes two hours [7].", "[7]"])
def test_an_answer_that_cites_none_of_its_sources_is_none(text: str) -> None:
    answer = Written({1})
    assert answer.feed(text) == ""
    with pytest.raises(BadModelReply):
        answer.close(nothing=False)
    assert answer.text == ""


def test_that_there_is_nothing_is_said_without_a_source() -> None:
    answer = Written({1})
    assert answer.feed("Davon steht hier nichts.", nothing=True) == "Davon steht hier nichts."
    assert answer.close(nothing=True) == ""
    late = Written({1})
    assert late.feed("Davon steht hier nichts.") == ""
    assert late.close(nothing=True) == "Davon steht hier nichts."


@pytest.mark.parametrize("cut", [1, 7, 400])
def test_how_much_was_found_is_read_before_the_answer(cut: int) -> None:
    reply = json.dumps({"found": "nothing", "answer": 'He said "found": "all".', "urls": []})
    reader, read = AnswerReader(structured=True), ""
    for at in range(0, len(reply), cut):
        read += reader.feed(reply[at : at + cut])
    assert (reader.found, read) == ("nothing", 'He said "found": "all".')


def test_a_fact_that_does_not_fit_is_passed_over_and_not_the_end() -> None:
    big = found("big", "x" * 5000)
    chosen = choose([found("a"), big, found("b")], budget=1000)
    assert [(source.n, source.item.name) for source in chosen] == [(1, "a"), (2, "b")]
    assert choose([big], budget=1000) == []


def test_extractive_answer_cites_what_it_takes_and_lists_the_rest() -> None:
    texts = [
        "Taggia has 14,032 people.",
        "Sanremo has 54,137 people.",
        "Lerici is on a gulf.",
        "More people.",
    ]
    sources = choose([found(f"t{n}", text) for n, text in enumerate(texts)])
    answer = extract(Query("How many people live in Taggia?", "q", "c"), sources)
    assert "14,032 people. [1]" in answer.answer
    assert [item["n"] for item in answer.items] == [1, 2, 3]
    assert [item["n"] for item in answer.considered] == [4]


@pytest.mark.parametrize("field", ["n", "url", "name", "text"])
def test_the_model_sees_number_address_name_and_text(field: str) -> None:
    told: dict[str, Any] = Source(1, *found("a")).told
    assert told[field]
