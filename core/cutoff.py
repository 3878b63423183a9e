"""Which of what a search found has to do with the question at all, where no model judges it.

A search gives the nearest there is, however far that is, and fused scores are relative to the best: neither
tells that nothing fits. Two absolute signs do, and an item stays if it has enough of either, or a good
part of both:

- *Words*: the share of the question's discriminating words that the item has, each weighed by its rarity
  among what was found (inverse document frequency, Spaerck Jones 1972; the share is the coordination level of
  early retrieval systems, weighed). A word that no item has counts most. Words that discriminate nothing
  ("show me good ...") count nothing, and a question of nothing else is not judged at all.
- *Meaning*: how far the cosine stands above those of questions and passages that have nothing to do with each
  other. Those are about normally distributed, so the more passages there are, the nearer comes the nearest
  unrelated one (the extreme value of N normal variables): only what is nearer still says something. Each
  dense leg's mean and spread are measured (`providers/legs.py`).

Beside items that have many of the question's words, one that has none of them and is by meaning hardly nearer
than most goes as well. A right item lost is worse than a wrong one shown: what cannot be judged stays. The
numbers were set on the sample sites' judged questions and on others in English, Spanish, Italian, Chinese and
Korean, and checked on Cranfield (`python -m bench.cutoff`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist, median

from core.documents import Candidate
from core.language import akin, detect, folded, function_words, normalized
from core.passages import keys
from core.providers.bm25 import is_stopword, is_unspaced, tokens
from core.providers.legs import LEGS
from core.retrieval import Part

ENOUGH = 0.35  # of the question's words, by weight, without any sign of meaning
MOST = 0.25  # of them in some item: then words tell the others apart
ASIDE = 0.4  # of the way from the middle to the best by meaning: an item's least that has none of them
FAINT = 1.0  # spreads above the unrelated's mean: an item's least where the languages differ
QUIET = 0.75  # of the questions that nothing answers: no passage comes above the level of noise
# For the level of noise: for fewer and for more than that nothing was measured.
LEAST_PASSAGES, MOST_PASSAGES = 50, 10_000
UNSEEN = 0.5  # items that a word is said to be in that is in none
MISTYPED = 0.5  # of a word's weight where an item has it but for one letter
LONG = 5  # letters of a word that one may be wrong in
FEW = 64  # words that are looked for in one go; of more, each word of an item is held against all at once
LOOKED_FOR = 24  # such words: each is held against every word of every item, and a question of more is a text
MOST_WORDS = 60  # of a question: what has more is a text, and nothing has much of it

# Words that ask, praise or point, in any of the languages, folded. An item is no answer for having them.
_WEAK_WORDS = {
    "en": "good great nice best better top cool popular new latest find search look looking want wanted"
    " need like love please help tell know get go see try make made use using recommend recommended"
    " recommendation recommendations suggest suggested suggestion suggestions idea ideas some"
    " something any anything everything nothing thing things stuff kind kinds sort type types option"
    " options hello hi hey thanks thank could",
    "es": "bueno buena buenos buenas mejor mejores bonito bonita algo alguno alguna algunos algunas cosa"
    " cosas todo toda todos todas quiero quisiera busco buscar encontrar necesito puedo puede puedes"
    " recomienda recomiendas recomendar recomendacion recomendaciones dame dime muestra muestrame"
    " ver ir hacer hago tener tienes tienen hola gracias favor tipo",
    "it": "buono buona buoni buone bel bello bella bei belle migliore migliori qualcosa qualche cose"
    " tutto tutti tutte voglio vorrei cerco cercare trovare posso puoi consigli consiglia"
    " consigliami consiglio dammi dimmi mostra mostrami vedere andare fare faccio fai avere hai"
    " avete ciao grazie idee",
}
_FORM = re.compile(r"\w+")
_WEAK = frozenset(word for words in _WEAK_WORDS.values() for word in words.split())
# The same where words are not parted, or endings are written on.
_WEAK_CHINESE = re.compile(
    "推荐|推薦|介绍一下|有没有|有沒有|有什么|有什麼|什么时候|什麼時候|什么|什麼|为什么|為什麼|怎么样|怎么|怎麼|怎样"
    "|如何|在哪里|在哪裡|在哪|哪里|哪裡|哪些|哪个|哪個|哪座|哪儿|多长时间|多長時間|多少|多久|请问|請問|我想要|我想|我要"
    "|想要|给我|給我|告诉我|告訴我|看看|好吃的|好的|最好的|最好|一个|一個|一些|可以|能不能|东西|東西|的|了|吗|嗎|呢|吧"
)
_WEAK_KOREAN = re.compile(
    "(?:추천|알려|보여|찾아|찾고|어디|무엇|무슨|뭐|어떻|어떤|언제|얼마|좋은|좋아|제일|가장|맛있는|싶|있는|있나|있어|있습"
    "|주세요|해주|방법|대해)[가-힣]*"
)


@dataclass(frozen=True, slots=True)
class _Signs:
    """What an item has of the question: a share of its words, and how near it is by meaning, in spreads above
    the unrelated's mean. `across`: in another language than the question, where words can't be expected."""

    words: float
    meaning: float
    across: bool


def related(asked: Sequence[Part], found: Sequence[Candidate], passages: int) -> list[Candidate]:
    """Those of the candidates that have to do with the question, in their order; perhaps none.

    `asked` is the question as it was searched, `passages` among how many. All of them stay where a leg was
    searched that is not known, and where the question has no word that tells anything, or is a whole text.
    """
    weights = _words_of(asked, {one.document.language for one in found} - {""})
    judged = 0 < len(weights) <= MOST_WORDS and all(_is_known(leg) for one in found for leg in one.legs)
    if not found or not judged:
        return list(found)
    signs = _signs(asked, weights, found)
    # Without a leg for meanings an item has a word of the question, and that has to do.
    if not any(_is_dense(leg) for one in found for leg in one.legs):
        stays = [one.across or one.words > 0 for one in signs]
    else:
        stays = _by_both(signs, noise(passages))
    return [one for one, stay in zip(found, stays, strict=True) if stay]


def noise(passages: int) -> float:
    """The level of noise in spreads above the mean: QUIET is the chance that the nearest of so many unrelated
    passages stays below it."""
    return NormalDist().inv_cdf(QUIET ** (1 / max(LEAST_PASSAGES, min(passages, MOST_PASSAGES))))


def _by_both(signs: Sequence[_Signs], level: float) -> list[bool]:
    enough = [math.hypot(one.words / ENOUGH, max(0.0, one.meaning) / level) >= 1 for one in signs]
    if not any(enough):
        return enough
    most = _most(signs)
    meanings = [one.meaning for one in signs]
    aside = median(meanings) + ASIDE * (max(meanings) - median(meanings))
    return [
        is_enough
        # In another language a short question may stand at the noise's level: if anything is above it, that
        # is no proof against the others.
        or (one.across and one.meaning >= FAINT)
        if one.across or most < MOST
        else is_enough and (one.words > 0 or one.meaning >= aside)
        for one, is_enough in zip(signs, enough, strict=True)
    ]


def _most(signs: Sequence[_Signs]) -> float:
    return max((one.words for one in signs if not one.across), default=0.0)


def _is_known(leg: str) -> bool:
    return leg in LEGS and (LEGS[leg].spec.sparse or LEGS[leg].unrelated is not None)


def _is_dense(leg: str) -> bool:
    return not LEGS[leg].spec.sparse


# ---------------------------------------------------------------- words


def _words_of(asked: Sequence[Part], languages: Collection[str]) -> dict[str, float]:
    """The question's discriminating words (or pairs of characters), folded, with their part's weight."""
    weights: dict[str, float] = {}
    for part in asked:
        text = _WEAK_KOREAN.sub(" ", _WEAK_CHINESE.sub(" ", normalized(part.text).lower()))
        spoken = detect(part.text)
        for word in tokens(text):
            plain = folded(word)
            if plain in _WEAK or (len(word) == 1 and not is_unspaced(word)):
                continue
            if not _only_asks(word, {spoken} if spoken else languages):
                weights[plain] = max(weights.get(plain, 0.0), part.weight)
    return weights


def _only_asks(word: str, languages: Collection[str]) -> bool:
    return any(word in function_words(one) or is_stopword(word, one) for one in languages)


def _signs(asked: Sequence[Part], weights: Mapping[str, float], found: Sequence[Candidate]) -> list[_Signs]:
    spoken = detect(asked[0].text)
    words = _shares(weights, found)
    meanings = [_meaning(one) for one in found]
    # What a dense leg did not find at all is no nearer than the last that it did.
    last = min((one for one in meanings if one is not None), default=0.0)
    return [
        _Signs(
            share,
            last if meaning is None else meaning,
            bool(spoken and one.document.language) and not akin(spoken, one.document.language),
        )
        for one, share, meaning in zip(found, words, meanings, strict=True)
    ]


def _meaning(one: Candidate) -> float | None:
    spreads = [
        (score - unrelated.mean) / unrelated.spread
        for leg, score in one.legs.items()
        if (unrelated := LEGS[leg].unrelated) is not None
    ]
    return max(spreads, default=None)


def _shares(weights: Mapping[str, float], found: Sequence[Candidate]) -> list[float]:
    """How much of the question's words each has, by weight and rarity."""
    texts = [folded(f"{one.document.name}\n{one.text}") for one in found]
    languages = [one.document.language for one in found]
    had = _had([*weights], texts, languages)
    rarity = {
        word: weight * math.log(1 + len(found) / (sum(word in one for one in had) or UNSEEN))
        for word, weight in weights.items()
    }
    whole = sum(rarity.values())
    return [sum(rarity[word] * degree for word, degree in one.items()) / whole for one in had]


def _had(words: Sequence[str], texts: Sequence[str], languages: Sequence[str]) -> list[dict[str, float]]:
    """For each text which of the words it has: 1, or MISTYPED where one letter differs and no text has it."""
    # Of other letters than ASCII a word being in a text is enough: its ends may not be where `\b` sees them.
    plain = [word for word in words if not word.isascii()]
    spaced = [word for word in words if not is_unspaced(word)]
    had: list[dict[str, float]] = [{word: 1.0 for word in plain if word in text} for text in texts]
    if not spaced:
        return had
    likely = _likely(spaced)
    known = {language: _by_keys(spaced, language) for language in set(languages)}
    for text, language, one in zip(texts, languages, had, strict=True):
        seen_here = likely(text)
        one.update({word: 1.0 for word in spaced if word in seen_here})
        for form in seen_here:
            for key in keys(form, language):
                one.update(known[language].get(key, {}))
    seen = {word for one in had for word in one}
    unseen = [word for word in spaced if len(word) >= LONG and word.isalpha() and word not in seen]
    unseen = unseen[:LOOKED_FOR]
    if unseen:
        lengths = (rf"{word[0]}\w{{{len(word) - 2},{len(word)}}}\b" for word in unseen)
        alike = re.compile(rf"\b(?:{'|'.join(lengths)})")
        for text, one in zip(texts, had, strict=True):
            for form in set(alike.findall(text)):
                one.update({word: MISTYPED for word in unseen if one_letter_apart(word, form)})
    return had


def _likely(words: Sequence[str]) -> Callable[[str], set[str]]:
    """What tells of a text the words that may be forms of these."""
    begun = {_beginning(word) for word in words}
    if len(begun) <= FEW:
        any_of_them = re.compile(rf"\b(?:{'|'.join(map(re.escape, begun))})\w*")
        return lambda text: set(any_of_them.findall(text))
    lengths = {len(one) for one in begun}
    return lambda text: {
        form for form in _FORM.findall(text) if any(form[:length] in begun for length in lengths)
    }


def _beginning(word: str) -> str:
    """What every form of a word begins with, or nearly every one."""
    return word if len(word) < 4 or not word.isalpha() else word[: max(3, min(5, len(word) - 3))]


def _by_keys(words: Sequence[str], language: str) -> dict[int, dict[str, float]]:
    """For each key of a word (its stem, see `core.passages.keys`) the words that have it, each with 1."""
    known: dict[int, dict[str, float]] = {}
    for word in words:
        for key in keys(word, language):
            known.setdefault(key, {})[word] = 1.0
    return known


def one_letter_apart(one: str, other: str) -> bool:
    """Whether a letter added, left out or changed, or two beside each other exchanged, makes one of the other
    (Damerau 1964: four of five typing errors)."""
    if abs(len(one) - len(other)) > 1:
        return False
    least = min(len(one), len(other))
    start = next((at for at in range(least) if one[at] != other[at]), least)
    end = next((at for at in range(least - start) if one[-1 - at] != other[-1 - at]), least - start)
    left, right = one[start : len(one) - end], other[start : len(other) - end]
    return max(len(left), len(right)) <= 1 or (len(left) == 2 and left == right[::-1])
