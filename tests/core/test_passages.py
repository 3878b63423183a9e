"""The sentences shown for a question are those that answer it, whole, and in the passage's own words."""

from __future__ import annotations

import pytest

from core.passages import best_of, best_passage, sentences

TOWN = """# Taggia

Taggia is a town in Liguria, in the province of Imperia. The medieval bridge of Taggia has sixteen arches and
was built in 1450. About 14,000 inhabitants were counted at the last census. St. Benedict is the patron of
Taggia. The museum is open from 9:00 to 18:00 and closed on Mondays. A ticket is 5 euro.

- Olives of Taggia are famous
- The beach is in Arma
"""


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("How many people live in Taggia?", "14,000 inhabitants"),
        ("population of Taggia", "14,000 inhabitants"),
        ("Quanti abitanti ha Taggia?", "14,000 inhabitants"),
        ("人口有多少", "14,000 inhabitants"),
        ("When was the bridge built?", "built in 1450"),
        ("opening hours of the museum", "from 9:00 to 18:00"),
        ("¿Cuándo abre el museo?", "from 9:00 to 18:00"),
        ("How much is a ticket?", "5 euro"),
        ("Who is the patron of Taggia?", "St. Benedict is the patron of Taggia."),
        ("olive", "Olives of Taggia are famous"),
    ],
)
def test_the_sentence_that_answers_is_shown(question: str, answer: str) -> None:
    assert answer in best_passage(TOWN, question, "en", 90)


def test_people_and_a_number_beat_the_name_of_the_town() -> None:
    text = "Taggia lies by the sea. Taggia has olives. It has 14,000 inhabitants. Taggia, Taggia, 1450."
    assert best_passage(text, "how many people live in Taggia", "en", 40) == "It has 14,000 inhabitants."


@pytest.mark.parametrize(
    ("text", "question", "language", "shown"),
    [
        (
            "塔吉亚是一个市镇。它的人口约为14000人。桥建于1450年。",
            "有多少人口?",
            "zh",
            "它的人口约为14000人。",
        ),
        (
            "타자는 도시이다. 타자에서는 약 14,000명이 산다. 다리는 유명하다.",
            "몇 명이 사나요?",
            "ko",
            "타자에서는 약 14,000명이 산다.",
        ),
        ("町は海に近い。人口は約一万人です。橋は古い。", "人口は何人ですか", "ja", "人口は約一万人です。"),
        (
            "Il ponte è lungo. Vi abitano 14.000 persone. Il mare è vicino.",
            "quante persone vivono qui?",
            "it",
            "Vi abitano 14.000 persone.",
        ),
    ],
)
def test_sentences_of_other_scripts_and_languages(
    text: str, question: str, language: str, shown: str
) -> None:
    assert best_passage(text, question, language, 30) == shown


def test_neighbours_come_along_only_if_they_add_something() -> None:
    text = "Pesto needs basil. The weather was fine. Pesto needs pine nuts and garlic."
    assert best_passage(text, "basil", "en") == "Pesto needs basil."
    assert best_passage(text, "basil and garlic", "en") == text


def test_without_anything_of_the_question_it_is_the_beginning() -> None:
    assert best_passage("One thing. Two things. Three things.", "zebra", "en", 24) == "One thing. Two things."


def test_a_sentence_that_is_too_long_is_cut_between_words_around_the_answer() -> None:
    long = "straw " * 100 + "the needle lies here " + "hay " * 100
    shown = best_passage(long, "needle", "en", 80)
    assert "needle" in shown
    assert len(shown) <= 80
    assert shown.startswith("… straw ")
    assert shown.endswith(" hay …")


@pytest.mark.parametrize("text", ["", " \n ", "\n\n"])
def test_nothing_gives_nothing(text: str) -> None:
    assert best_passage(text, "anything", "en") == ""


def test_sentences_end_where_a_reader_sees_them_end() -> None:
    assert sentences("Dr. Rossi paid 3.50 euro, e.g. for bread. He left! Did he?") == [
        "Dr. Rossi paid 3.50 euro, e.g. for bread.",
        "He left!",
        "Did he?",
    ]
    assert sentences("# Title\nA line that is\nwrapped here.\n\n* one\n* two") == [
        "Title",
        "A line that is wrapped here.",
        "one",
        "two",
    ]
    assert sentences("一。二\uff01三") == ["一。", "二\uff01", "三"]


def test_prose_goes_before_a_list_of_properties_unless_that_answers() -> None:
    prose = "Thick, soft focaccia with tomato and salted anchovies."
    listed = "Yield: one tray\nKeywords: tomato, Sanremo\nBaking time: 28 minutes"
    assert best_of([prose, listed], "And in Sanremo?", "en") == prose
    assert "28 minutes" in best_of([prose, listed], "how long is the baking time", "en")
    assert best_of(["", listed], "Sanremo", "en")
    assert best_of([], "Sanremo", "en") == ""
