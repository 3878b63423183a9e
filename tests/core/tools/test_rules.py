"""The cheap rules let through what could be for a tool, in several languages, and leave searches alone."""

from __future__ import annotations

import pytest

from core.query import Query, Shown
from core.tools import rules


@pytest.mark.parametrize(
    "text",
    [
        "compare the first two",
        "What is the difference between farinata and panissa?",
        "Alpine Two vs. Base Four",
        "is the tagine better than the stew?",
        "confronta la farinata e la panissa",
        "¿cuál es la diferencia entre los dos?",
        "quelle est la différence entre les deux ?",
        "was ist der Unterschied zwischen Pesto und Salsa verde",
        "比较一下这两个",
        "두 제품을 비교해줘",
    ],
)
def test_comparisons(text: str) -> None:
    assert rules.compares(text)
    assert rules.may_be_for_a_tool(text)


@pytest.mark.parametrize(
    "text",
    [
        "a menu for six",
        "three-course dinner",
        "un itinerario a Genova",
        "ein Menü für Ostern",
        "推荐一个菜单",
    ],
)
def test_things_that_go_together(text: str) -> None:
    assert rules.combines(text)


@pytest.mark.parametrize(
    "text",
    [
        "tell me more about the aquarium",
        'ingredients of "Pesto Genovese"',
        "parlami della buridda",
        "介绍一下热那亚",
    ],
)
def test_details_of_one_thing(text: str) -> None:
    assert rules.wants_details(text)


@pytest.mark.parametrize(
    "text",
    [
        "vegan stew with chickpeas",
        "different kinds of pasta",
        "comfortable boots for rain",
        "dolce veloce con limone",
        "recetas con garbanzos",
        "leichtes Zelt unter zwei Kilo",
        "鹰嘴豆汤",
    ],
)
def test_plain_searches_are_left_alone(text: str) -> None:
    assert not rules.may_be_for_a_tool(text)


@pytest.mark.parametrize(
    ("text", "names", "found"),
    [
        (
            "how long does the Focaccia di Recco bake?",
            ["Focaccia", "Focaccia di Recco"],
            ["Focaccia di Recco"],
        ),
        ("cappòn MAGRO, or buridda", ["Buridda", "Cappon magro"], ["Cappon magro", "Buridda"]),
        ("pies of the region", ["Pie", "Reg"], []),
        ("焼きそばの作り方", ["焼きそば"], ["焼きそば"]),
        ("minestrones", ["Minestrone"], []),
    ],
)
def test_names_are_found_whole_in_the_questions_order(text: str, names: list[str], found: list[str]) -> None:
    assert rules.named_in(text, names) == found


def test_two_items_shown_before_are_meant_only_if_pointed_at() -> None:
    shown = (Shown("Sencha", "u1"), Shown("Gunpowder", "u2"), Shown("Matcha", "u3"))
    said = [
        rules.meant_of_shown(Query(text=text, query_id="q", conversation_id="c"), shown)
        for text in ("compare the first two", "confronta i primi due", "compare with coffee")
    ]
    assert said == [["Sencha", "Gunpowder"], ["Sencha", "Gunpowder"], []]
