"""The sentences shown for a question are those that answer it, whole, and in the passage's own words."""

from __future__ import annotations

import pytest

from core.passages import best_of, best_passage, matching_passage, opening, properties, sentences

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


LAMP = """Lynx 400 head lamp

A bright lamp with 400 lumens for two nights. It runs twelve hours on one charge.

Brand: Quota
Offer: 59 EUR
Charging time: 150 minutes (2 hours 30 minutes)
Keywords: lamp, head, light, winter, storm

Lynx 400

Note: red light spares the eyes of others.
The strap of the head lamp can be washed.
"""


@pytest.mark.parametrize(
    ("question", "shown"),
    [
        ("Tell me about the Lynx 400 head lamp", "A bright lamp with 400 lumens for two nights."),
        ("Lynx 400 head lamp", "A bright lamp with 400 lumens for two nights."),
        ("Can the Lynx 400 strap be washed?", "The strap of the head lamp can be washed."),
        ("red light", "Note: red light spares the eyes of others."),
        ("how much does the Lynx 400 cost?", "Offer: 59 EUR"),
        ("quanto costa Lynx 400?", "Offer: 59 EUR"),
        ("Lynx 400 的价格", "Offer: 59 EUR"),
        ("which brand is it?", "Brand: Quota"),
        ("how long does charging take?", "Charging time: 150 minutes (2 hours 30 minutes)"),
        ("storm", "Keywords: lamp, head, light, winter, storm"),
        ("a light for two nights", "A bright lamp with 400 lumens for two nights."),
    ],
)
def test_titles_say_nothing_and_properties_only_what_is_asked(question: str, shown: str) -> None:
    assert best_passage(LAMP, question, "en", 60, name="Lynx 400 head lamp") == shown


@pytest.mark.parametrize(
    ("name", "text", "question", "language", "shown"),
    [
        (
            "云雀炉头",
            "云雀炉头\n这款炉头很轻。它可以烧水。",
            "介绍云雀炉头",
            "zh",
            "这款炉头很轻。它可以烧水。",
        ),
        ("雲雀バーナー", "雲雀バーナー\nとても軽い。", "雲雀バーナーについて", "ja", "とても軽い。"),
        ("종달새", "종달새\n아주 가볍다. 물을 끓인다.", "종달새", "ko", "아주 가볍다. 물을 끓인다."),
        ("Fogón Niña", "Fogón Niña\nPesa poco.", "fogon nina", "es", "Pesa poco."),
        ("Zaino Lupo", "Zaino Lupo\nHa due tasche.", "parlami dello zaino Lupo", "it", "Ha due tasche."),
        ("Zelt Föhn", "# Zelt Föhn\nEs ist grün.", "Zelt Fohn", "de", "Es ist grün."),
    ],
)
def test_a_name_is_no_answer_in_any_script(
    name: str, text: str, question: str, language: str, shown: str
) -> None:
    assert best_passage(text, question, language, name=name) == shown


def test_what_is_nothing_but_a_name_or_properties_is_shown_all_the_same() -> None:
    assert best_passage("Lynx", "lynx", "en", name="Lynx") == "Lynx"
    assert opening("Lynx\nBrand: Quota\nOffer: 59 EUR", "en", name="Lynx") == "Brand: Quota; Offer: 59 EUR"
    assert matching_passage("Lynx\nIt is red.", "lynx", "en", name="Lynx") == ""


def test_a_title_is_told_from_a_name_in_a_sentence_that_is_wrapped() -> None:
    assert opening("Brand: Quota\nLynx\nIt is red.", "en", name="Lynx") == "It is red."
    assert opening("Nobody runs like the\nLynx\nat night.", "en", name="Lynx").endswith("the Lynx at night.")


def test_properties_are_told_from_prose_behind_a_colon() -> None:
    text = "Opening hours: 9:00-18:00\nPopulation (2011): 14\nKnown for: It has a beach.\nprice: 3\n尺寸：大\nhttp://a"
    assert [label for label, _ in properties(text)] == ["Opening hours", "Population (2011)", "price", "尺寸"]


def test_a_step_keeps_its_number_and_a_sentence_said_twice_is_said_once() -> None:
    assert sentences("1. Boil: Take a pot.\n2. Serve it.") == ["1. Boil: Take a pot.", "2. Serve it."]
    assert best_passage("It is red. It is red. It is red.", "red", "en") == "It is red."


def test_how_long_is_not_answered_by_what_is_long() -> None:
    text = "Pinch the long corners together and take a spoon of 3 cheeses. Boil for 5 minutes."
    assert best_passage(text, "how long does it take?", "en", 62) == "Boil for 5 minutes."


def test_a_price_among_the_properties_goes_before_a_description_without_one() -> None:
    texts = ["A lamp for two nights.", "Lynx\nA lamp for two nights.\nOffer: 59 EUR"]
    assert best_of(texts, "Lynx price", "en", name="Lynx") == "Offer: 59 EUR"
    assert best_of(texts, "Lynx lamp", "en", name="Lynx") == texts[0]
