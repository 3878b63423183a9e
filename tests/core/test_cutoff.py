"""Which candidates have to do with a question: by words, by meaning, and what is left alone."""

from __future__ import annotations

import pytest

from core.cutoff import LEAST_PASSAGES, MOST_PASSAGES, noise, one_letter_apart, related
from core.documents import Candidate, Document
from core.providers.legs import LEGS
from core.retrieval import Part

PASSAGES = 50
USE = LEGS["use"].unrelated
assert USE is not None
FAR, NEAR = USE.mean, USE.mean + 10 * USE.spread  # cosines that say nothing, and much


def candidate(name: str, text: str = "", language: str = "en", **legs: float) -> Candidate:
    document = Document("s", name, "1", f"https://s.example/{name}", name, (), language, b"{}", "", 1)
    return Candidate(document, 0, text, 0.5, legs or {"bm25": 1.0})


def kept(question: str, *found: Candidate, passages: int = PASSAGES) -> list[str]:
    return [one.document.name for one in related([Part(question)], found, passages)]


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [
        ("vegan", "vegna", True),
        ("tiramisu", "tiramsu", True),
        ("tiramsu", "tiramisu", True),
        ("minestrome", "minestrone", True),
        ("pesto", "pesto", True),
        ("taggia", "tagia", True),
        ("pesto", "pasta", False),
        ("olive", "live", True),
        ("abcde", "badce", False),
        ("abc", "abcde", False),
    ],
)
def test_one_letter_apart(one: str, other: str, apart: bool) -> None:
    assert one_letter_apart(one, other) is apart
    assert one_letter_apart(other, one) is apart


def test_the_level_of_noise_rises_with_the_passages_as_far_as_it_was_measured() -> None:
    assert noise(LEAST_PASSAGES) < noise(1000) < noise(MOST_PASSAGES)
    assert noise(MOST_PASSAGES) == noise(100 * MOST_PASSAGES)
    assert noise(0) == noise(LEAST_PASSAGES)


def test_without_words_and_meaning_nothing_stays() -> None:
    found = [candidate("Lemon tart", "A sharp cream.", use=FAR), candidate("Soup", "Of beans.", use=FAR)]
    assert kept("quantum chromodynamics", *found) == []


def test_either_sign_is_enough_and_so_is_a_good_part_of_both() -> None:
    words = candidate("Beef stew", "Beef and carrots.", use=FAR, bm25=3.0)
    meaning = candidate("Goulash", "A Hungarian pot.", use=NEAR)
    neither = candidate("Lemon tart", "A sharp cream.", use=FAR)
    assert kept("beef stew", words, meaning, neither) == ["Beef stew", "Goulash"]
    assert USE is not None
    half = USE.mean + 0.8 * noise(PASSAGES) * USE.spread
    one_word = "A stew of beans"
    question = "stew herring rhubarb"
    assert kept(question, candidate("Pot", one_word, use=half, bm25=1.0)) == ["Pot"]
    assert kept(question, candidate("Pot", one_word, use=FAR, bm25=1.0)) == []
    assert kept(question, candidate("Pot", "Of beans", use=half)) == []


def test_in_more_passages_the_same_nearness_says_less() -> None:
    assert USE is not None
    one = candidate("Pot", "Of beans.", use=USE.mean + 3 * USE.spread)
    assert kept("herring", one, passages=20) == ["Pot"]
    assert kept("herring", one, passages=5_000) == []


def test_beside_items_with_the_words_one_without_any_has_to_be_nearer_than_most() -> None:
    assert USE is not None
    spreads = {"Curry": 8.0, "Stew": 6.9, "Tart": 5.1, "Cake": 5.0, "Bread": 5.0, "Soup": 4.9}
    found = [
        candidate(name, "A vegan dish" if name == "Curry" else "A dish", use=USE.mean + at * USE.spread)
        for name, at in spreads.items()
    ]
    assert kept("vegan", *found) == ["Curry", "Stew"]
    # Where no item has the words, they tell nothing of the others.
    assert len(kept("herring", *found)) == len(found)


@pytest.mark.parametrize(
    "question",
    [
        "show me something good",
        "what do you have?",
        "¿qué me recomiendas?",
        "qualcosa di buono",
        "推荐一个好的",
        "추천해 주세요",
        "?",
    ],
)
def test_a_question_of_words_that_tell_nothing_is_not_judged(question: str) -> None:
    found = [candidate("Lemon tart", use=FAR), candidate("Soup", use=FAR)]
    assert kept(question, *found) == ["Lemon tart", "Soup"]


@pytest.mark.parametrize("legs", [{"bm25": 2.0}, {"bm25": 2.0, "use": FAR}], ids=["words", "both"])
def test_a_weak_word_is_no_reason_to_show_an_item(legs: dict[str, float]) -> None:
    good = candidate("Lemon tart", "A good tart to show to guests.", "en", **legs)
    assert kept("show me good running shoes", good) == []
    assert kept("show me a good tart", good) == ["Lemon tart"]


def test_a_text_as_a_question_is_not_judged() -> None:
    found = [candidate("Lemon tart", use=FAR), candidate("Soup", use=FAR)]
    assert kept(" ".join(f"herring{n}" for n in range(1000)), *found) == ["Lemon tart", "Soup"]


def test_a_leg_nothing_is_known_of_keeps_all() -> None:
    found = [candidate("Lemon tart", own=0.7), candidate("Soup", own=0.6, bm25=1.0)]
    assert kept("quantum chromodynamics", *found) == ["Lemon tart", "Soup"]


@pytest.mark.parametrize(
    ("question", "text", "language"),
    [
        ("anchovies", "An anchovy", "en"),
        ("cities by the sea", "A city", "en"),
        ("pinones", "Con piñones", "es"),
        ("castagna", "Con le castagne", "it"),
        ("豆腐怎么做", "嫩豆腐和花椒", "zh"),
        ("김치로 만든 찌개", "익은 김치를 넣고 끓인다", "ko"),
        ("हिन्दी की किताब", "यह हिन्दी में है", "hi"),
        ("борщ со сметаной", "Борща тарелка", "ru"),
        ("Straße", "in der strasse", "de"),
    ],
)
def test_words_are_found_in_every_writing_and_form(question: str, text: str, language: str) -> None:
    assert kept(question, candidate("1", text, language), candidate("2", "---", language)) == ["1"]


def test_a_mistyped_word_is_found_unless_an_item_has_it_as_typed() -> None:
    curry, tart = candidate("Vegan curry", use=FAR), candidate("Lemon tart", use=FAR)
    assert kept("vegna", curry, tart) == ["Vegan curry"]
    assert kept("vegna", curry, candidate("Vegna", use=FAR)) == ["Vegna"]
    assert kept("tarte", curry, tart) == ["Lemon tart"]


def test_in_another_language_meaning_alone_counts_once_something_is_above_the_noise() -> None:
    assert USE is not None
    faint = candidate("Botanic garden", "Of an Englishman.", use=USE.mean + 1.5 * USE.spread)
    near = candidate("Park", "With palms.", use=NEAR)
    assert kept("식물원이 어디에 있나요", faint, near) == ["Botanic garden", "Park"]
    assert kept("식물원이 어디에 있나요", faint) == []
    assert kept("where are roses and palms", faint, near) == ["Park"]


def test_a_follow_up_is_judged_by_what_it_leans_on_too() -> None:
    found = [candidate("Tofu curry", "With coconut.", use=FAR), candidate("Lemon tart", use=FAR)]
    parts = [Part("and with raisins?"), Part("a curry", 0.45)]
    assert [one.document.name for one in related(parts, found, PASSAGES)] == []
    parts = [Part("with coconut?"), Part("a curry", 0.45)]
    assert [one.document.name for one in related(parts, found, PASSAGES)] == ["Tofu curry"]
