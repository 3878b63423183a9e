"""Answers written from sources: what a stream lets through, which facts go in, what is cited."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.documents import Candidate, Document
from core.errors import BadModelReply
from core.generation import AnswerReader, Citations, Source, Written, choose, extract, uncited, whole
from core.messages import Item
from core.query import Query


def found(name: str, text: str = "Some text.", language: str = "en") -> tuple[Item, Candidate]:
    document = Document("s", name, "v", f"https://e.example/{name}", name, ("Thing",), language, b"{}", "", 1)
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
        ("at [1999] or [a, b] or [ ]", "at [1999] or [a, b] or [ ]"),
        ("  Two hours  ", "Two hours"),
        ("[9]", ""),
    ],
)
@given(st.lists(st.integers(0, 3), max_size=30))
def test_a_number_that_goes_leaves_no_gap(written: str, shown: str, cuts: list[int]) -> None:
    assert let_through(Citations({1, 3}), written, cuts) == shown


INVENTED = [
    *(
        "[99]",
        "[1000]",
        "[123456]",
        "[7-99]",
        "[7–99]",
        "[7 to 99]",
        "[#99]",
        "[^99]",
        "[^99^]",
        "[source 99]",
    ),
    *("[Sources: 98, 99]", "[Quelle 99]", "[fonte 99]", "[来源99]", "[n=99]", "[ref. 99]", "[source #99]"),
    *(
        r"\[99\]",
        "[9 9]",
        "[98 and 99]",
        "[98 & 99]",
        "[98, and 99]",
        "[98/99]",
        "[98和99]",
        "[[99]]",
        "[[[99]]]",
    ),
    *(
        "[ [99] ]",
        r"\[\[99\]\]",
        "【99†source】",
        "【98:0†file.pdf】",
        "〔99〕",
        "[**99**]",
        "[`99`]",
        "[\u200b99]",
    ),
    *(
        "[source 2024]",
        "[#2024]",
        "[2024, 99]",
        "[99](https://evil.example/a?b)",
        "[99](#99)",
        "[٩٩]",
        "[９９]",
    ),
    *("[99]: https://evil.example/a", "[^99]: <https://evil.example/a>", '[99](www.evil.example "t")'),
]


@pytest.mark.parametrize("written", INVENTED)
@given(st.lists(st.integers(0, 5), max_size=30))
def test_a_number_that_is_no_source_goes_however_it_is_written(written: str, cuts: list[int]) -> None:
    citations = Citations({1, 3})
    assert let_through(citations, f"Two {written}\nhours", cuts) == "Two\nhours"
    assert not citations.any
    assert let_through(Citations({1, 3}), f"Two [1]{written} hours", cuts) in (
        "Two [1] hours",
        "Two [1]hours",
    )
    assert let_through(Citations({1, 3}), f"Two\n{written}\nhours", cuts) == "Two\n\nhours"


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        *((one, "[1][2][3]") for one in ("[1-3]", "[1–3]", "[1 to 3]", "[1, 2-3]", "[1-99]", "[^1-^3]")),
        *((one, "[1][3]") for one in ("[1 and 3]", "[1 & 3]", "[1, and 3]", "[1 e 3]", "[1 3]", "[#1, #3]")),
        *(
            (one, "[1][3]")
            for one in ("[sources 1, 3]", "[source 1 and source 3]", "[1, 3, 99]", "[1; 99 3]")
        ),
        *(
            (one, "[1]")
            for one in ("[source 1]", "[^1]", "[#1]", r"\[1\]", "[[1]]", "【1†L3】", "[01]", "[1, 1]")
        ),
        *((one, "[1]") for one in ("[1](https://a.example)", "[1, 2024]", "[Quelle 1]", "[99-1]")),
        *((one, one) for one in ("[2024]", "[1999-2004]", "[2024-05]", "[1984, 1999]", "[see 1]", "[1.5]")),
        *((one, one) for one in ("[2024-05-01]", "[10:30]", "[a1]", "[x]", "[3 cups]", "[-1]")),
        *((one, one) for one in ("[text](https://a.example)", "[1234567]", "[nothing]")),
        ("[1]: the first", "[1]: the first"),
        ("[1] (see there)", "[1] (see there)"),
        ("[1](see there)", "[1](see there)"),
        ("[see [99]]", "[see]"),
        ("[[1], [99]]", "[[1],]"),
        ("[" + "1, " * 80 + "1]", "[" + "1, " * 80 + "1]"),
    ],
)
@given(st.lists(st.integers(0, 5), max_size=30))
def test_a_source_is_cited_however_its_number_is_written(written: str, shown: str, cuts: list[int]) -> None:
    citations = Citations({1, 2, 3})
    assert let_through(citations, f"Two hours {written}.", cuts) == f"Two hours {shown}."
    assert citations.any == ("[1]" in shown)


def test_a_year_that_is_a_source_is_one() -> None:
    assert let_through(Citations({2024}), "a [2024] b [2025]", []) == "a [2024] b [2025]"


def test_brackets_without_an_end_hold_nothing_up_for_long() -> None:
    citations = Citations({1})
    assert citations.feed("a [b") == "a"
    assert citations.feed("c" * 300) == " [b" + "c" * 300


ALPHABET = st.text("ab [1293],.\n【】\\^#-():/h†", max_size=60) | st.lists(
    st.sampled_from(
        ["[", "]", "\\", "9", "1", " and ", "source ", "-", "](http://x.example/y", ")", ": http://x", " "]
    )
).map("".join)


@given(ALPHABET, st.lists(st.integers(0, 3), max_size=30))
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


async def test_a_fact_that_does_not_fit_is_passed_over_and_not_the_end() -> None:
    big = found("big", "x" * 5000)
    chosen = await choose([found("a"), big, found("b")], budget=1000)
    assert [(source.n, source.item.name) for source in chosen] == [(1, "a"), (2, "b")]
    assert await choose([big], budget=1000) == []


async def test_extractive_answer_takes_what_answers_and_lists_the_rest() -> None:
    texts = [
        "Taggia has 14,032 people.",
        "Sanremo has 54,137 people.",
        "Lerici is on a gulf.",
        "More people.",
    ]
    sources = await choose([found(f"t{n}", text) for n, text in enumerate(texts)])
    answer = await extract(Query("How many people live in Taggia?", "q", "c"), sources)
    assert "14,032 people. [1]" in answer.answer
    assert [item["n"] for item in answer.items] == [1]
    assert [item["n"] for item in answer.considered] == [2, 3, 4]


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("Which lamp is waterproof?", "Luchs: A waterproof head lamp. [1]"),
        ("What does the Luchs cost?", "Luchs: Offer: 59 EUR [1]"),
        ("Wie schwer ist das Zelt Alpino?", "Alpino: Das Zelt wiegt 1,9 kg. [3]"),
        ("¿Cuánto pesa el saco Nevada?", "El saco Nevada pesa 980 gramos. [4]"),
        ("quanto pesa lo zaino?", "Marmotta: Lo zaino pesa 1,1 kg. [5]"),
        ("炉头有多重？", "云雀炉头：它只有七十克重。 [6]"),
        ("코펠은 몇 그램입니까?", "종달새: 코펠은 300그램이다. [7]"),
    ],
)
async def test_an_extractive_answer_names_its_item_and_leaves_out_what_does_not_answer(
    question: str, said: str
) -> None:
    pages = [
        ("Luchs", "Luchs\nA waterproof head lamp.\nOffer: 59 EUR\nKeywords: lamp, waterproof", "en"),
        ("Kauz", "Kauz\nA lamp for the table, to be kept dry.\nKeywords: lamp", "en"),
        ("Alpino", "Alpino\nDas Zelt wiegt 1,9 kg. Es ist grün.", "de"),
        ("Nevada", "Nevada\nEs de plumas. El saco Nevada pesa 980 gramos.", "es"),
        ("Marmotta", "Marmotta\nHa due tasche. Lo zaino pesa 1,1 kg.", "it"),
        ("云雀炉头", "云雀炉头\n折叠后可以放进杯子里。它只有七十克重。", "zh"),
        ("종달새", "종달새\n코펠은 300그램이다. 불은 없다.", "ko"),
    ]
    sources = await choose([found(name, text, language) for name, text, language in pages])
    assert (await extract(Query(question, "q", "c"), sources)).answer == said


async def test_where_only_a_name_answers_its_item_is_described() -> None:
    sources = await choose(
        [
            found("Polenta", "Stir for an hour. It comes to the table hot.", "en"),
            found("Mesta, the Bean Soup of Porto", "Cooked apart, mixed in the bowl.\nCategory: Soup", "en"),
        ]
    )
    answer = await extract(Query("Which soup comes from Porto?", "q", "c"), sources)
    assert answer.answer == "Mesta, the Bean Soup of Porto: Cooked apart, mixed in the bowl. [2]"


async def test_where_no_source_has_a_word_of_the_question_the_first_ones_are_shown() -> None:
    sources = await choose([found(f"t{n}", "It is blue.", "en") for n in range(5)])
    answer = await extract(Query("zzzz", "q", "c"), sources)
    assert answer.answer == "t0: It is blue. [1]\n\nt1: It is blue. [2]\n\nt2: It is blue. [3]"


async def test_an_answer_that_cites_a_range_or_by_words_stands() -> None:
    for written in ("It takes two hours [1-2].", "It takes two hours [1 and 2]."):
        answer = Written({1, 2})
        shown = answer.feed(written) + answer.close(nothing=False)
        assert shown == "It takes two hours [1][2]."
        assert [
            one["n"] for one in whole(shown, await choose([found("a"), found("b"), found("c")])).items
        ] == [
            1,
            2,
        ]


def test_a_sources_own_numbers_are_no_citations_in_whatever_form() -> None:
    text = "Salt [2], [^3], \\[4\\], [[5]], [1-3](https://a.example/b), since [2024], [sic]."
    assert uncited(text) == "Salt (2), (^3), (4), (5), (1-3)(https://a.example/b), since [2024], [sic]."


@pytest.mark.parametrize("field", ["n", "url", "name", "text"])
def test_the_model_sees_number_address_name_and_text(field: str) -> None:
    told: dict[str, Any] = Source(1, *found("a")).told
    assert told[field]
