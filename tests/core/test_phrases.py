"""Explicit memory phrases, without a model."""

from __future__ import annotations

import pytest

from core.phrases import is_sensitive, memory_request

ASKED = [
    ("remember that I am vegetarian", "I am vegetarian"),
    ("Please remember I have two kids.", "I have two kids"),
    ("Can you remember that my oven is small?", "my oven is small"),
    ("Don't forget that we are four at table", "we are four at table"),
    ("Recuerda que soy vegano", "soy vegano"),
    ("Por favor, ten en cuenta que vivo en Bilbao", "vivo en Bilbao"),
    ("Ricordati che non mangio pesce!", "non mangio pesce"),
    ("Per favore ricorda che cucino per due", "cucino per due"),
    ("记住我不吃花生", "我不吃花生"),
    ("请记得,我住在上海。", "我住在上海"),
    ("내가 땅콩을 못 먹는다는 것을 기억해 주세요", "내가 땅콩을 못 먹는다"),
    ("저는 서울에 산다고 기억해 줘", "저는 서울에 산"),
    ("Merk dir, dass ich kein Fleisch esse", "ich kein Fleisch esse"),
    ("Souviens-toi que j'habite à Nice", "j'habite à Nice"),
]

NOT_ASKED = [
    "Do you remember the name of the first Roman emperor?",
    "What should I remember to buy for pesto?",
    "recipes I will remember",
    "remember the Alamo",
    "I would like to remember this evening with a good dinner",
    "a memorable dessert",
    "quiero recordar mis vacaciones",
    "cosa devo ricordare di comprare?",
    "我记得这道菜",
    "기억에 남는 디저트",
    "vegetarian dinner",
    "I am vegetarian, what can I cook?",
    "how do I forget him",
]


@pytest.mark.parametrize(("text", "fact"), ASKED)
def test_an_explicit_request_gives_the_fact(text: str, fact: str) -> None:
    request = memory_request(text)
    assert request is not None
    assert request.text == fact


@pytest.mark.parametrize("text", NOT_ASKED)
def test_anything_else_gives_none(text: str) -> None:
    assert memory_request(text) is None


@pytest.mark.parametrize(
    "fact", ["I am vegetarian", "soy vegano", "sono celiaca", "我吃素", "저는 채식주의자", "I have diabetes"]
)
def test_sensitive_facts_are_known(fact: str) -> None:
    assert is_sensitive(fact)


@pytest.mark.parametrize("fact", ["I have two kids", "vivo en Bilbao", "my oven is small"])
def test_harmless_facts_are_too(fact: str) -> None:
    assert not is_sensitive(fact)
