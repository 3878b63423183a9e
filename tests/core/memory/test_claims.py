"""What facts claim, by their words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.memory.claims import claim, grounded, is_sensitive, kind_of, leaning
from tests.core.phrase_tables import SENSITIVE


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


# What has one value: the newer of two takes the older's place.
REPLACED = [
    ("My name is Anna", "My name is Bea"),
    ("I live in Genoa", "I live in Milan"),
    ("I live in Genoa", "I have moved to Milan"),
    ("I live in Genoa", "I've just moved to Milan"),
    ("I live in Genoa", "I don't live in Genoa any more"),
    ("I no longer live in Genoa", "I live in Genoa again"),
    ("I work at the bakery", "I work for the harbour now"),
    ("I work as a nurse", "I now work as a teacher"),
    ("I love olives", "I can't stand olives any more"),
    ("I love coriander", "I don't like coriander any longer"),
    ("I love coriander", "i dont like coriander any longer"),
    ("I live in Genoa", "I don't live in Genoa any longer"),
    ("My favourite colour is green", "My favorite color is blue"),
    ("My favorite theater is the Globe", "My favourite theatre is the Old Vic"),
    ("I love yogurt", "I can't stand yoghurt any longer"),
    ("I can't stand olives", "I love olives again"),
    ("I am vegan", "I am not vegan any more"),
    ("I'm vegan", "I am no longer a vegan"),
    ("I am vegan", "I eat meat again"),
    ("I'm a vegetarian", "I eat fish again"),
    ("I'm vegetarian", "I am vegan now"),
    ("I eat meat again", "I'm vegan"),
    ("My favourite colour is green", "My favorite colour is blue"),
    ("I am 42", "I'm 43 years old"),
    ("We are 4 people", "we are five"),
    ("I cook for two", "I cook for 3 people"),
    ("I have two kids", "I have 3 children"),
    ("Me llamo Ana", "Mi nombre es Bea"),
    ("Vivo en Bilbao", "Me he mudado a Málaga"),
    ("Vivo en Bilbao", "Ya no vivo en Bilbao"),
    ("Trabajo para Acme", "Ahora trabajo para Iberia"),
    ("Soy vegana", "Ya no soy vegana"),
    ("Soy vegano", "Vuelvo a comer carne"),
    ("Mi color favorito es el verde", "Mi color favorito es el azul"),
    ("Tengo 42 años", "Tengo 43 años"),
    ("Somos cuatro", "Somos 5 personas"),
    ("Tengo dos hijos", "Tengo tres hijos"),
    ("Mi chiamo Anna", "Il mio nome è Bea"),
    ("Vivo a Genova", "Mi sono trasferita a Milano"),
    ("Abito a Genova", "Non vivo più a Genova"),
    ("Lavoro come infermiera", "Ora lavoro come maestra"),
    ("Sono vegana", "Non sono più vegana"),
    ("Sono vegetariano", "Mangio di nuovo la carne"),
    ("Il mio colore preferito è il verde", "Il mio colore preferito è il blu"),
    ("Ho 42 anni", "Ho 43 anni"),
    ("Siamo in quattro", "Siamo in cinque"),
    ("Ho due figli", "Ho tre figli"),
    ("我叫安娜", "我的名字是小美"),
    ("我住在上海", "我搬到北京了"),
    ("我住在上海", "我不再住在上海了"),
    ("我在银行工作", "我在医院上班"),
    ("我吃素", "我不再吃素了"),
    ("我是素食者", "我又吃肉了"),
    ("我最喜欢的颜色是绿色", "我最喜欢的颜色是蓝色"),
    ("我42岁", "我今年43岁了"),
    ("我家有四口人", "我们有5个人"),
    ("我有两个孩子", "我有三个孩子"),
    ("제 이름은 안나예요", "내 이름은 미나야"),
    ("저는 서울에 살아요", "나는 부산으로 이사했어"),
    ("나는 서울에 산다", "더 이상 서울에 살지 않아"),
    ("나는 은행에서 일해", "저는 병원에서 근무해요"),
    ("나는 채식주의자야", "더 이상 채식주의자가 아니야"),
    ("나는 비건이야", "다시 고기를 먹어"),
    ("내가 가장 좋아하는 색은 초록이야", "내가 제일 좋아하는 색은 파랑이야"),
    ("나는 42살이야", "나는 43살이에요"),
    ("우리 가족은 네 명이야", "우리 가족은 5명이야"),
]
# What can both be: of two attributes, or of one that has many values.
BESIDE = [
    ("my name is Anna", "my name is pronounced An"),
    ("my name is Anna", "My name is hard to spell"),
    ("My name is Anna", "call me Annie"),
    ("I live in Genoa", "I live with two cats"),
    ("I live in Genoa", "I live in a small flat"),
    ("I live in Genoa", "I live near the harbour"),
    ("I live in Genoa", "I don't live in Milan"),
    ("I live in Genoa", "I work in Milan"),
    ("I moved the meeting to Friday", "I live in Genoa"),
    ("I work at the bakery", "I work at night"),
    ("I work at the bakery", "I work as a baker"),
    ("I work as a baker", "I work for fun"),
    ("I love olives", "I love capers"),
    ("I am vegan", "I am not a vegetarian"),
    ("I am vegan", "I am tall"),
    ("I eat fish again", "I am pescatarian"),
    ("My favourite colour is green", "My favourite film is Alien"),
    ("I am 42", "We are 4 people"),
    ("I have two kids", "I have two cats"),
    ("I have a dog", "I have a cat"),
    ("Me llamo Ana", "Llámame Anita"),
    ("Mi nombre es Ana", "Mi nombre es difícil de pronunciar"),
    ("Vivo en Bilbao", "Vivo en un piso pequeño"),
    ("Vivo en Bilbao", "Vivo con dos gatos"),
    ("Tengo 42 años", "Tengo dos hijos"),
    ("Trabajo para Acme", "Trabajo de noche"),
    ("Mi chiamo Anna", "Il mio nome è difficile"),
    ("Vivo a Genova", "Vivo in un appartamento"),
    ("Vivo a Genova", "Vivo con due gatti"),
    ("Ho 42 anni", "Ho due figli"),
    ("Lavoro come maestra", "Lavoro per Acme"),
    ("我叫安娜", "我叫了外卖"),
    ("我住在上海", "我在北京工作"),
    ("我住在上海", "我和两只猫一起住"),
    ("我有两个孩子", "我有两只猫"),
    ("제 이름은 안나예요", "나는 안나를 좋아해"),
    ("저는 서울에 살아요", "저는 고양이 두 마리와 살아요"),
    ("저는 서울에 살아요", "저는 부산에서 일해요"),
]


@pytest.mark.parametrize(("older", "newer"), REPLACED)
def test_of_what_has_one_value_the_newer_replaces_the_older(older: str, newer: str) -> None:
    one, other = claim(newer), claim(older)
    assert one is not None
    assert other is not None
    assert one.replaces(other)


@pytest.mark.parametrize(("one", "other"), BESIDE)
def test_what_can_both_be_replaces_nothing(one: str, other: str) -> None:
    first, second = claim(one), claim(other)
    assert first is None or second is None or not (first.replaces(second) or second.replaces(first))


@pytest.mark.parametrize("text", sorted({text for pair in (*REPLACED, *BESIDE) for text in pair}))
@pytest.mark.parametrize("around", ["{}", "{}.", " {} !", "“{}”"])
def test_case_and_punctuation_change_no_claim(text: str, around: str) -> None:
    assert claim(around.format(text).upper()) == claim(text)


@given(st.text(max_size=200))
def test_no_claim_replaces_itself(text: str) -> None:
    told = claim(text)
    assert told is None or not told.replaces(told)


def test_a_favourite_is_a_preference_that_leans_up() -> None:
    assert kind_of("My favourite fruit is quince") == "preference"
    assert leaning(["quince jam", "plum jam"], ["My favourite fruit is quince"]) == [0.1, 0.0]


@pytest.mark.parametrize("text", ["My oven is small", "Has a dog", "", "Tengo dos hijos", "我有两个孩子"])
def test_what_is_not_recognised_claims_nothing_about_likes(text: str) -> None:
    told = claim(text)
    assert told is None or not told.about


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("I am allergic to walnuts", "constraint"),
        ("soy vegano", "constraint"),
        ("soy alérgica al marisco", "constraint"),
        ("ho l'asma", "constraint"),
        ("我打胰岛素", "constraint"),
        ("저는 휠체어를 탄다", "constraint"),
        ("我不吃花生", "constraint"),
        ("채식주의자예요", "constraint"),
        ("I love coriander", "preference"),
        ("mi piace il basilico", "preference"),
        ("My oven is small", "fact"),
    ],
)
def test_kinds_by_words(text: str, kind: str) -> None:
    assert kind_of(text) == kind


@pytest.mark.parametrize("text", ["My favourite colour is grey", "My favorite color is gray"])
def test_a_british_spelling_is_the_american_one(text: str) -> None:
    told = claim(text)
    assert told is not None
    assert (told.topic, told.value) == ("favourite:color", "gray")


def test_what_always_holds_for_health_or_belief_is_sensitive() -> None:
    constraints = [text for text in SENSITIVE if kind_of(text) == "constraint"]
    assert len(constraints) >= 50
    assert kind_of("my budget is 500 euros") == "constraint"
    assert not is_sensitive("my budget is 500 euros")


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
