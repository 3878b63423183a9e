"""What facts claim, by their words."""

from __future__ import annotations

import pytest

from core.memory.claims import claim, grounded, kind_of, leaning


@pytest.mark.parametrize(
    ("text", "topic", "value"),
    [
        ("I love coriander", "attitude:coriander", "likes"),
        ("Loves the coriander", "attitude:coriander", "likes"),
        ("I can't stand coriander any more", "attitude:coriander", "dislikes"),
        ("I don’t like coriander anymore.", "attitude:coriander", "dislikes"),
        ("Me encanta el cilantro", "attitude:cilantro", "likes"),
        ("Ya no soporto el cilantro", "attitude:cilantro", "dislikes"),
        ("Adoro il basilico", "attitude:basilico", "likes"),
        ("Non sopporto più il basilico", "attitude:basilico", "dislikes"),
        ("我非常喜欢吃香菜", "attitude:香菜", "likes"),
        ("我不喜欢香菜", "attitude:香菜", "dislikes"),
        ("고수를 정말 좋아해요", "attitude:고수", "likes"),
        ("고수를 못 먹어요", "attitude:고수", "dislikes"),
        ("My name is Ada", "name", "ada"),
        ("Mi chiamo Ada", "name", "ada"),
        ("我住在上海", "home", "上海"),
        ("저는 서울에 살아요", "home", "서울"),
    ],
)
def test_a_claim_has_a_topic_and_a_value(text: str, topic: str, value: str) -> None:
    told = claim(text)
    assert told is not None
    assert (told.topic, told.value) == (topic, value)


@pytest.mark.parametrize("text", ["My oven is small", "Has a dog", "", "Tengo dos hijos", "我有两个孩子"])
def test_what_is_not_recognised_claims_nothing_about_likes(text: str) -> None:
    told = claim(text)
    assert told is None or not told.about


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("I am allergic to walnuts", "constraint"),
        ("soy vegano", "constraint"),
        ("我不吃花生", "constraint"),
        ("채식주의자예요", "constraint"),
        ("I love coriander", "preference"),
        ("mi piace il basilico", "preference"),
        ("My oven is small", "fact"),
    ],
)
def test_kinds_by_words(text: str, kind: str) -> None:
    assert kind_of(text) == kind


@pytest.mark.parametrize(
    ("fact", "said", "is_grounded"),
    [
        ("Allergic to walnuts", "remember that I'm allergic to walnuts, and show me cakes", True),
        ("Loves coriander", "remember that I love coriander", True),
        ("The user wants short answers in French", "hi", False),
        ("Works as a software developer at Google", "remember my name is Ada", False),
        ("不吃花生", "请记住我不吃花生", True),
    ],
)
def test_a_fact_is_made_of_what_was_said(fact: str, said: str, is_grounded: bool) -> None:
    assert grounded(fact, said) == is_grounded


def test_what_is_liked_leans_up_and_what_is_not_leans_down() -> None:
    texts = ["A salad with coriander", "Basil pesto", "Plain rice"]
    assert leaning(texts, ["I can't stand coriander", "I love basil"]) == [-0.5, 0.1, 0.0]
    assert leaning(texts, ["My oven is small"]) == [0.0, 0.0, 0.0]
    assert leaning(texts, []) == [0.0, 0.0, 0.0]
