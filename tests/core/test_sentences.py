"""What of a text its writer states of themselves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.memory.claims import grounded, only_in
from core.sentences import stated

# A message, and what a model reads out of it as if the person had stated it.
NOT_STATED = [
    ("If I were vegan and lived in Genoa, what could I eat?", "I live in Genoa"),
    ("What if I lived in Genoa?", "I live in Genoa"),
    ("Suppose I had two kids. Where should we go?", "Has two kids"),
    ("I'd like to live in Genoa if I were rich", "Lives in Genoa"),
    ("my friend lives in Genoa", "I live in Genoa"),
    ("My friend lives in Genoa and works at Fincantieri", "I work at Fincantieri"),
    ("My friend lives in Genoa and I live in Milan", "I live in Genoa"),
    ("Ann lives in Genoa", "Lives in Genoa"),
    ('"I live in Genoa" is a song', "I live in Genoa"),
    ("Does anybody live in Genoa?", "I live in Genoa"),
    ("Translate: I live in Genoa", "I live in Genoa"),
    ("My mother says I live in Genoa", "Lives in Genoa"),
    ("¿Vive alguien en Génova?", "Vivo en Génova"),
    ("Mi amigo vive en Génova", "Vivo en Génova"),
    ("Si viviera en Génova, ¿qué comería?", "Vivo en Génova"),
    ("Qualcuno vive a Genova?", "Vivo a Genova"),
    ("Il mio amico vive a Genova", "Vivo a Genova"),
    ("Se vivessi a Genova cosa mangerei?", "Vivo a Genova"),
    ("«Vivo a Genova» è una canzone", "Vivo a Genova"),
    ("有人住在上海吗？", "我住在上海"),
    ("我朋友住在上海", "我住在上海"),
    ("如果我住在上海\uff0c有什么好玩的？", "我住在上海"),
    ("“我住在上海”是一首歌", "我住在上海"),
    ("누가 서울에 살아?", "서울에 산다"),
    ("내 친구는 서울에 살아", "서울에 산다"),
    ("만약 내가 서울에 산다면?", "서울에 산다"),
]
STATED = [
    ("I cook for five people and have diabetes, what stew?", "Cooks for five people"),
    ("My friend lives in Genoa and I live in Milan", "I live in Milan"),
    ("I'm vegan what can I cook?", "Is vegan"),
    ("I have two dogs and love hiking.", "Loves hiking"),
    ("We are moving to Milan in May - which schools are good?", "Moving to Milan in May"),
    ("Vivo en Génova, ¿qué me recomiendas?", "Vivo en Génova"),
    ("Tengo dos hijos y vivo en Bilbao.", "Vivo en Bilbao"),
    ("Vivo a Genova, cosa posso cucinare?", "Vivo a Genova"),
    ("我住在上海\uff0c有什么好吃的？", "我住在上海"),
    ("나는 서울에 살아, 어디가 좋을까?", "나는 서울에 살아"),
]


def is_told(said: str, fact: str) -> bool:
    own, rest = stated(said)
    return grounded(fact, own) and not only_in(fact, rest, own)


@pytest.mark.parametrize(("said", "fact"), NOT_STATED)
def test_what_is_asked_supposed_quoted_or_said_of_others_is_not_stated(said: str, fact: str) -> None:
    assert grounded(fact, said)
    assert not is_told(said, fact)


@pytest.mark.parametrize(("said", "fact"), STATED)
def test_what_is_said_of_oneself_is_stated_also_beside_a_question(said: str, fact: str) -> None:
    assert is_told(said, fact)


@given(st.text(max_size=400))
def test_any_text_is_read_and_nothing_is_added_to_it(text: str) -> None:
    own, _ = stated(text)
    assert len(own) <= 2 * len(text)
