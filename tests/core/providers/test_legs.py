"""What the legs' vectors keep: words of every writing are found, and the encoder answers questions first."""

from __future__ import annotations

import asyncio
import math
import os
import signal

import pytest

from core.errors import ConfigError, ModelError
from core.providers.base import SparseVector, Vector
from core.providers.bm25 import Bm25Embedder, stems
from core.providers.legs import LEGS, leg_kind
from core.providers.use import UseEmbedder


def overlap(question: Vector, document: Vector) -> float:
    assert isinstance(question, SparseVector)
    assert isinstance(document, SparseVector)
    weights = dict(zip(document.indices, document.values, strict=True))
    return sum(
        value * weights.get(index, 0.0)
        for index, value in zip(question.indices, question.values, strict=True)
    )


async def matched(question: str, asked_in: str, document: str, written_in: str) -> float:
    words = Bm25Embedder()
    (vector,) = await words.documents([document], [written_in])
    return overlap(await words.query(question, asked_in), vector)


@pytest.mark.parametrize(
    ("question", "asked_in", "document", "written_in"),
    [
        ("running", "en", "She runs every day", "en"),
        ("abitante", "it", "Gli abitanti di Taggia", "it"),
        ("recipes", "", "A recipe for pesto", ""),
        ("mieszkańców", "pl", "Liczba mieszkańcy miasta", "pl"),
        ("타자", "ko", "타자에서는 사람들이 산다", "ko"),
        ("인구", "", "마을의 인구가 늘었다", "ko"),
        ("人口有多少", "zh", "它的人口约为一万", "zh"),
        ("東京", "ja", "私は東京都に住んでいます", "ja"),
        ("ประชากร", "th", "จำนวนประชากรของเมือง", "th"),
        ("जनसंख्या", "hi", "शहर की जनसंख्या", "hi"),
        ("citta", "it", "Una città sul mare", "it"),
        ("ＮＬＷｅｂ", "", "nlweb is a protocol", "en"),
        ("Taggia", "en", "Il ponte di Taggia", "it"),
        ("Apricale", "en", "Il castello di Apricale", "it"),
        ("Apricale", "", "Il castello di Apricale", "it"),
        ("¿Dónde está Sanremo?", "es", "Sanremo is a town", "en"),
    ],
)
async def test_a_word_is_found(question: str, asked_in: str, document: str, written_in: str) -> None:
    assert await matched(question, asked_in, document, written_in) > 0


@pytest.mark.parametrize(
    ("question", "asked_in", "document", "written_in"),
    [
        ("how is the", "en", "The way it is", "en"),
        ("bridge", "en", "The town by the sea", "en"),
        ("타자", "ko", "자전거 타기", "ko"),
        ("", "en", "anything", "en"),
        ("!?", "", "anything", "en"),
    ],
)
async def test_what_is_not_there_is_not_found(
    question: str, asked_in: str, document: str, written_in: str
) -> None:
    assert await matched(question, asked_in, document, written_in) == 0


async def test_the_very_word_counts_more_than_another_form() -> None:
    same = await matched("hotels", "en", "Hotels by the sea", "en")
    other = await matched("hotels", "en", "Hotel by the sea", "en")
    assert same > other > 0


async def test_a_short_text_counts_more_than_a_long_one_for_the_same_word() -> None:
    assert await matched("pesto", "en", "Pesto", "en") > await matched(
        "pesto", "en", "Pesto" + " and more" * 99, "en"
    )


def test_stems_leave_out_stop_words() -> None:
    assert stems("the running of the runners", "en") == stems("run runner", "en")


async def test_sentences_of_one_meaning_are_near_in_different_languages() -> None:
    encoder = await UseEmbedder.open()
    question = await encoder.query("How many people live there?", "en")
    documents = await encoder.documents(
        ["¿Cuántas personas viven allí?", "Mix flour, eggs and sugar."], ["es", "en"]
    )
    await encoder.close()
    same, other = (cosine(question, document) for document in documents)
    assert same > 0.6 > 0.3 > other


async def test_questions_go_ahead_of_waiting_documents() -> None:
    encoder = await UseEmbedder.open()
    await encoder.query("warm", "en")
    texts = [f"Passage {n} tells about olives, bridges and the sea near Taggia." for n in range(300)]
    documents = asyncio.create_task(encoder.documents(texts, [""] * len(texts)))
    answered = 0
    while answered < 5:
        await encoder.query(f"question {answered}", "en")
        answered += 1
    assert not documents.done()
    assert len(await documents) == 300
    await encoder.close()


async def test_any_text_gets_a_vector_of_length_one_or_none() -> None:
    encoder = await UseEmbedder.open()
    vectors = await encoder.documents(["plain", "word " * 5000, "\ud800 \x00 \u202e", "타자에서"], [""] * 4)
    assert await encoder.documents([], []) == []
    await encoder.close()
    assert [len(vector) for vector in vectors if not isinstance(vector, SparseVector)] == [512] * 4
    assert cosine(vectors[0], vectors[0]) == pytest.approx(1.0)
    assert all(math.isfinite(cosine(vector, vectors[0])) for vector in vectors)


async def test_a_question_asked_again_needs_no_process() -> None:
    encoder = await UseEmbedder.open()
    first = await encoder.query("where is Taggia", "en")
    assert encoder.pid is not None
    os.kill(encoder.pid, signal.SIGKILL)
    assert await encoder.query(" where is Taggia ", "") == first
    with pytest.raises(ModelError, match="ended unexpectedly"):
        await encoder.query("where is Sanremo", "en")
    await encoder.close()


def test_legs_that_are_not_there_say_which_are() -> None:
    with pytest.raises(ConfigError, match="`e5` is not available yet; available: bm25, use"):
        leg_kind("e5")
    with pytest.raises(ConfigError, match="`typo` is unknown; available: bm25, use"):
        leg_kind("typo")
    assert {name: kind.spec.name for name, kind in LEGS.items()} == {name: name for name in LEGS}


def cosine(one: Vector, other: Vector) -> float:
    assert not isinstance(one, SparseVector)
    assert not isinstance(other, SparseVector)
    return sum(a * b for a, b in zip(one, other, strict=True))
