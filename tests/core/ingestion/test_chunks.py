"""Cutting texts into passages."""

from __future__ import annotations

import re
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from core.ingestion.chunks import count_words, cut

_GAPS = ["\n\n", "\n", " ", "\u3000", "\t", "\x85", "…"]
_WORDS = [
    "word",
    "Sentence one. Two!",
    "# Heading\n",
    "a" * 230,
    "もっと。日本語",
    "ไทยภาษา",
    "👩👧",
    "한국어 문장입니다. ",
]
_PIECES = st.sampled_from([*_GAPS, *_WORDS, "```\ncode\n```\n"])
_TEXTS = st.one_of(st.text(max_size=400), st.lists(_PIECES, max_size=150).map(" ".join))
_SIZES = st.integers(min_value=12, max_value=120)


@settings(deadline=None)
@given(_TEXTS, _SIZES, st.integers(min_value=0, max_value=200))
def test_passages_are_exact_numbered_substrings_within_the_limit(text: str, size: int, overlap: int) -> None:
    for n, chunk in enumerate(cut(text, max_words=size, overlap_words=overlap)):
        assert chunk.n == n
        assert chunk.text == text[chunk.start : chunk.end]
        assert chunk.text == chunk.text.strip()
        assert 0 < count_words(chunk.text) <= size


@settings(deadline=None)
@given(_TEXTS, _SIZES, st.integers(min_value=0, max_value=200))
def test_passages_cover_everything_but_white_space_and_always_go_on(
    text: str, size: int, overlap: int
) -> None:
    covered = 0
    last = -1
    for chunk in cut(text, max_words=size, overlap_words=overlap):
        assert not text[covered : chunk.start].strip()
        assert chunk.start > last
        assert chunk.end > covered
        covered, last = chunk.end, chunk.start
    assert not text[covered:].strip()


@settings(deadline=None)
@given(st.lists(st.text(alphabet="abcäöüéñ", min_size=1, max_size=15), max_size=300), _SIZES)
def test_words_are_never_cut(words: list[str], size: int) -> None:
    whole = set(words)
    for chunk in cut(" ".join(words), max_words=size):
        assert set(chunk.text.split()) <= whole


def test_short_text_is_one_passage_and_blank_text_none() -> None:
    text = "A soup. With beans.\n\nServe hot."
    (chunk,) = cut(f"  {text}\n")
    assert (chunk.text, chunk.start) == (text, 2)
    assert cut(" \n\t\u3000 ") == []
    assert cut("") == []


def test_cuts_at_headings_before_paragraphs_before_sentences() -> None:
    first = "One two three four five six seven. " * 8
    text = f"{first}\n\nMiddle paragraph of six words here.\n\n# Second part\n{first}"
    chunks = cut(text, max_words=70, overlap_words=10)
    assert any(chunk.text.startswith("# Second part") for chunk in chunks)
    sentences = cut("One two three four five six seven. " * 30, max_words=50, overlap_words=0)
    assert all(chunk.text.endswith("seven.") for chunk in sentences)


def test_neighbours_overlap_by_whole_words_up_to_the_limit() -> None:
    words = [f"w{n}" for n in range(400)]
    chunks = cut(" ".join(words), max_words=100, overlap_words=10)
    for before, after in pairwise(chunks):
        shared = set(before.text.split()) & set(after.text.split())
        assert len(shared) == 10


def test_chinese_and_japanese_are_counted_by_characters() -> None:
    text = "今天天气很好。我们去公园散步吧！" * 40
    chunks = cut(text, max_words=60, overlap_words=0)
    assert all(len(chunk.text) <= 105 for chunk in chunks)
    assert all(re.search("[。！]$", chunk.text) for chunk in chunks)
    assert "".join(chunk.text for chunk in chunks) == text


def test_code_fence_stays_whole_where_it_fits() -> None:
    fence = "```python\nfirst = 1\n\nsecond = 2\n\nthird = 3\n```"
    text = "Some words before it here. " * 8 + f"\n\n{fence}\n\n" + "And some words after. " * 8
    assert any(fence in chunk.text for chunk in cut(text, max_words=60, overlap_words=0))


def test_table_rows_stay_whole_where_they_fit() -> None:
    rows = [f"| item {n} | {n} euros. And | tax |" for n in range(60)]
    for chunk in cut("\n".join(rows), max_words=50, overlap_words=0):
        assert set(chunk.text.split("\n")) <= set(rows)
