"""Languages are told where they can be, and short texts are left alone rather than guessed."""

from __future__ import annotations

import pytest

from core.language import akin, detect, folded, normalized


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("how many people live in Taggia", "en"),
        ("and on Sundays?", "en"),
        ("Who is Napoleon", "en"),
        ("quanti abitanti ha Taggia?", "it"),
        ("ricetta del pesto", "it"),
        ("¿cuántas personas viven en Sanremo?", "es"),
        ("y en Turín?", "es"),
        ("quels sont les horaires d'ouverture", "fr"),
        ("Wie viele Einwohner hat Taggia?", "de"),
        ("Quantas pessoas vivem em Taggia?", "pt"),
        ("Hoeveel mensen wonen er in Taggia?", "nl"),
        ("Сколько людей живёт в Таджии", "ru"),
        ("Скільки людей живе в Таджії", "uk"),
        ("कितने लोग रहते हैं", "hi"),
        ("كم عدد الأشخاص الذين يعيشون في هذه المدينة", "ar"),
        ("타자에서 몇 명이 살고 있나요", "ko"),
        ("NLWeb은 무엇인가요?", "ko"),
        ("人口有多少", "zh"),
        ("NLWeb是什么", "zh"),
        ("東京の人口", "ja"),
        ("NLWebとは何ですか", "ja"),
        ("πόσοι άνθρωποι ζουν εδώ", "el"),
        ("มีคนอาศัยอยู่กี่คน", "th"),
    ],
)
def test_questions_are_told_by_their_words_or_script(text: str, language: str) -> None:
    assert detect(text) == language


@pytest.mark.parametrize(
    "text",
    [
        *("", "   ", "12345", "?!", "https://example.com/how/are/you", "Taggia", "Sanremo", "pasta", "hotel"),
        *("vegan lasagna", "best hotels", "gluten free", "pad thai", "chicken tikka masala", "Los Angeles"),
        *("La Spezia", "Rio de Janeiro", "Das Boot", "São Paulo", "Ristorante Da Mario", "crème brûlée"),
    ],
)
def test_names_and_other_short_texts_are_not_guessed(text: str) -> None:
    assert detect(text) == ""


def test_a_document_is_told_though_it_has_names_and_addresses_of_other_languages() -> None:
    text = (
        "The old bridge of Taggia, called ponte romanico, has sixteen arches (https://comune.example/ponte). "
        "It was built by the monks of San Domenico and leads to the Villa Curlo, where a market is held."
    )
    assert detect(text) == "en"


def test_languages_that_pass_for_each_other_are_akin() -> None:
    assert akin("it", "it")
    assert akin("zh", "ja")
    assert akin("no", "da")
    assert not akin("it", "en")
    assert not akin("ja", "ko")


def test_words_are_compared_without_case_width_and_accents() -> None:
    assert folded("CAFÉ") == folded("cafe") == "cafe"
    assert folded("Straße") == "strasse"
    assert folded("ＮＬＷｅｂ") == "nlweb"
    assert normalized("ﬁn") == "fin"


def test_folding_keeps_what_tells_words_apart_in_other_scripts() -> None:
    assert folded("कितने") == "कितने"
    assert folded("が") != folded("か")
    assert folded("타자") == "타자"
