"""The `bm25` leg: words as sparse vectors, computed here; the store weighs them by rarity (IDF) when asked.

A document has every word twice: stemmed by its language, and plain (no accents, lower case). A question asks
for its stems first and for its plain words a little: that way a name is found though two languages' stemmers
cut it differently, and what is typed without accents is found too. Writing without spaces becomes overlapping
pairs of characters (as in Lucene's CJK analysis), which also frees Korean nouns from their particles. Where
there is no stemmer, or the language is unknown, a word's first five letters are its stem (within noise of the
English stemmer on Cranfield).
"""

from __future__ import annotations

import asyncio
import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import lru_cache

from qdrant_edge import (
    Bm25,
    Bm25Config,
    DisabledStemmer,
    Language,
    SnowballLanguage,
    SnowballParams,
    StopwordsSet,
    TokenizerType,
)

from core.language import folded, function_words, normalized
from core.providers.base import LegSpec, SparseVector, Vector

SPEC = LegSpec("bm25", "bm25-words-1")

# The usual constants of BM25 (Robertson and Zaragoza 2009); lengths are those of passages of about 100 words.
K1, B = 1.2, 0.75
WORDS_A_PASSAGE = 100
WITHOUT_STOPWORDS = 60
PLAIN_WEIGHT = 0.2  # of a plain word in a question beside its stem
UNSURE_STEM_WEIGHT = 0.5  # ... of the first letters where the language is unknown: the plain word counts most
STEM_LETTERS = 5

_STEMMERS = {
    "ar": SnowballLanguage.Arabic,
    "da": SnowballLanguage.Danish,
    "de": SnowballLanguage.German,
    "el": SnowballLanguage.Greek,
    "en": SnowballLanguage.English,
    "es": SnowballLanguage.Spanish,
    "fi": SnowballLanguage.Finnish,
    "fr": SnowballLanguage.French,
    "hu": SnowballLanguage.Hungarian,
    "hy": SnowballLanguage.Armenian,
    "it": SnowballLanguage.Italian,
    "nl": SnowballLanguage.Dutch,
    "no": SnowballLanguage.Norwegian,
    "pt": SnowballLanguage.Portuguese,
    "ro": SnowballLanguage.Romanian,
    "ru": SnowballLanguage.Russian,
    "sv": SnowballLanguage.Swedish,
    "ta": SnowballLanguage.Tamil,
    "tr": SnowballLanguage.Turkish,
}
_STOPWORDS = {
    "ar": Language.Arabic,
    "az": Language.Azerbaijani,
    "bn": Language.Bengali,
    "ca": Language.Catalan,
    "da": Language.Danish,
    "de": Language.German,
    "el": Language.Greek,
    "en": Language.English,
    "es": Language.Spanish,
    "eu": Language.Basque,
    "fi": Language.Finnish,
    "fr": Language.French,
    "he": Language.Hebrew,
    "hu": Language.Hungarian,
    "id": Language.Indonesian,
    "it": Language.Italian,
    "kk": Language.Kazakh,
    "ne": Language.Nepali,
    "nl": Language.Dutch,
    "no": Language.Norwegian,
    "pt": Language.Portuguese,
    "ro": Language.Romanian,
    "ru": Language.Russian,
    "sl": Language.Slovene,
    "sv": Language.Swedish,
    "tg": Language.Tajik,
    "tr": Language.Turkish,
}

# Han, kana, Hangul, Thai, Lao, Burmese, Khmer: no spaces between words, or endings written on.
_RUNS = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
_MARKS = "".join(chr(n) for n in range(0x300, 0x1100) if unicodedata.category(chr(n)) in ("Mn", "Mc"))
_TOKEN = re.compile(rf"(?P<run>[{_RUNS}]+)|(?:[^\W_{_RUNS}][{_MARKS}]*)+")
_RUN = re.compile(f"[{_RUNS}]+")


class Bm25Embedder:
    """Sparse vectors of words, a fraction of a millisecond each, computed in place."""

    spec = SPEC
    max_tokens = 400  # no limit of its own; longer passages blur what is where

    async def documents(self, texts: Sequence[str], languages: Sequence[str]) -> list[Vector]:
        vectors: list[Vector] = []
        for text, language in zip(texts, languages, strict=True):
            vectors.append(_document(text, language))
            await asyncio.sleep(0)  # a quarter of a millisecond each: others get their turn in between
        return vectors

    async def query(self, text: str, language: str) -> Vector:
        stem_weight, plain_weight = (1.0, PLAIN_WEIGHT) if language else (UNSURE_STEM_WEIGHT, 1.0)
        words = _asked_for(tokens(normalized(text).lower()), language)
        plain = _query_words(words, language)
        return _merged(
            (_stemmed(words, language, question=True), stem_weight),
            (_weights(_counter("", WORDS_A_PASSAGE), plain, question=True), plain_weight),
        )

    async def close(self) -> None:
        """Nothing to let go of."""


def tokens(text: str) -> list[str]:
    """The words of a text, and the pairs of characters of writing without spaces."""
    found: list[str] = []
    for match in _TOKEN.finditer(text):
        word = match[0]
        if match["run"] is None or len(word) < 3:
            found.append(word)
        else:
            found += (word[at : at + 2] for at in range(len(word) - 1))
    return found


def stems(text: str, language: str) -> frozenset[int]:
    """For comparing texts of one language: a key for every word but stop words, equal where the stems are."""
    return frozenset(_stemmed(tokens(normalized(text).lower()), language, question=True))


def is_unspaced(word: str) -> bool:
    """Whether it is of a writing without spaces, of which `tokens` makes pairs of characters."""
    return _RUN.match(word) is not None


def is_stopword(word: str, language: str) -> bool:
    """Whether questions and documents in this language are compared without it."""
    return language in _STOPWORDS and (_is_stopword(word, language) or _is_stopword(folded(word), language))


def _asked_for(words: Sequence[str], language: str) -> Sequence[str]:
    """A question's words without those that only make it a question ("how many", "show me"): no page is a
    better answer for having them, though in a small collection they are rare. All of them if none is left."""
    asked = function_words(language)
    return [word for word in words if word not in asked] or words


def _document(text: str, language: str) -> SparseVector:
    words = tokens(normalized(text).lower())
    plain = _weights(_counter("", WORDS_A_PASSAGE), map(folded, words), question=False)
    return _merged((_stemmed(words, language, question=False), 1.0), (plain, 1.0))


def _stemmed(words: Sequence[str], language: str, *, question: bool) -> dict[int, float]:
    if language in _STEMMERS:
        return _weights(_counter(language, WITHOUT_STOPWORDS), words, question=question)
    cut = [folded(word)[:STEM_LETTERS] for word in _query_words(words, language)]
    return _weights(_counter("", WORDS_A_PASSAGE), cut, question=question)


def _query_words(words: Sequence[str], language: str) -> list[str]:
    """Folded, without the language's stop words."""
    if language not in _STOPWORDS:
        return [folded(word) for word in words]
    return [folded(word) for word in words if not _is_stopword(word, language)]


@lru_cache(maxsize=20_000)
def _is_stopword(word: str, language: str) -> bool:
    config = Bm25Config(
        tokenizer=TokenizerType.Whitespace, stopwords=_STOPWORDS[language], stemmer=DisabledStemmer()
    )
    return not Bm25(config).embed_query(word).indices


@lru_cache(maxsize=64)
def _counter(language: str, average_length: int) -> Bm25:
    """Counts words that are separated by spaces; with a language, their stems without its stop words."""
    stemmer = SnowballParams(_STEMMERS[language]) if language else DisabledStemmer()
    stopwords = _STOPWORDS[language] if language in _STOPWORDS else StopwordsSet()
    return Bm25(
        Bm25Config(
            k=K1,
            b=B,
            avg_len=average_length,
            tokenizer=TokenizerType.Whitespace,
            stemmer=stemmer,
            stopwords=stopwords,
        )
    )


def _weights(counter: Bm25, words: Sequence[str] | map[str], *, question: bool) -> dict[int, float]:
    text = " ".join(words)
    vector = counter.embed_query(text) if question else counter.embed_document(text)
    return dict(zip(vector.indices, vector.values, strict=True))


def _merged(*parts: tuple[Mapping[int, float], float]) -> SparseVector:
    """One vector; where a word is its own stem the greater weight holds."""
    merged: dict[int, float] = {}
    for weights, factor in parts:
        for index, value in weights.items():
            merged[index] = max(merged.get(index, 0.0), factor * value)
    return SparseVector(list(merged), list(merged.values()))
