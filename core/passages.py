"""The sentences of a passage that answer a question best, found by words alone, without a model."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from core.language import folded
from core.providers.bm25 import stems

NUMBER_WORTH = 1.2  # of the rarest word: a number where one was asked for
CONCEPT_WORTH = 0.8  # a word for the same thing: "inhabitants" where people were asked for
MARGIN = 2  # words of the question that a list of properties must have before prose
LENGTH_COST = 0.6  # of the rarest word, for a run that fills all the room: context has to earn its place

# A sentence ends at these, unless the next letter is a small one or the word before is an abbreviation.
_END = re.compile(
    r"[.!?\u2026\u0964]+[\"'\u2019\u201d\u00bb)\]]*(?=\s)|[\u3002\uff01\uff1f\uff0e]+[\u300d\u300f\u201d\uff09]*"
)
_ABBREVIATION = re.compile(
    r"(?:^|[\s(])(?:[^\W\d_]|mr|mrs|ms|dr|dott|prof|sig|sra?|st|ste|jr|vs|etc|e\.g|i\.e|z\.b|no|nr|ca|approx"
    r"|fig|art|av|ave|p\.zza|jan|feb|aug|sept?|oct|nov|dec)\.$",
    re.IGNORECASE,
)
_BLOCK = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*\u2022#|]|\d+[.)]\s))|(?<=[.!?:])[ \t]*\n")
_MARK = re.compile(r"^\s*(?:#{1,6}|[-*\u2022])[ \t]+")
_HEADING = re.compile(r"^\s*#{1,6}[ \t]+[^\n]*\n", re.MULTILINE)

_HOW_MANY = re.compile(
    r"\bhow (?:many|much|long|far|old|big|high|tall|deep|often)\b"
    r"|\b(?:number|amount|price|cost) of\b|\bpopulation\b"
    r"|\bquant[iaeo]\b|\bcuant[oa]s?\b|\bquant[oa]s\b|\bcombien\b"
    r"|\bwie ?(?:viele?|lange?|weit|alt|gross|hoch)\b"
    r"|\bhoeveel\b|\bhur manga\b|\bhvor mange\b|\bile\b|\bkolik\b|\bkac\b|\bсколько\b"
    r"|多少|几[个人位]|幾[個人]|何[人個円年時]|いくら|いくつ|몇|얼마"
)
_WHEN = re.compile(
    r"\bwhen\b|\bwhat (?:time|year|day)\b|\bwhich year\b|\bhours\b|\bquando\b|\bche ora\b"
    r"|\bin che anno\b|\borari?o?s?\b"
    r"|\bcuando\b|\bque (?:ano|hora)\b|\bquand\b|\bhoraires?\b|\bwann\b|\boffnungszeiten\b|\bкогда\b"
    r"|什么时候|何时|几点|哪年|いつ|何時|언제|몇 시"
)
_NUMBER = re.compile(
    r"\d|[一二三四五六七八九十百千]+[万萬千百亿億人]|\b(?:thousand|million|mila|milion|mil|tausend|mille)\b"
)
_TIME = re.compile(
    r"\b1\d\d\d\b|\b20\d\d\b|\d{1,2}[:.h]\d\d|\b\d{1,2} ?(?:am|pm|uhr|h)\b|\d ?(?:年|月|日|時|点|년|월|일|시)"
    r"|\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\b(?:luned|marted|mercoled|gioved|venerd)i\b|\bdomenica\b"
)
# Words for one thing, in several languages, as their beginnings: asked for by one, answered by another.
_CONCEPTS = tuple(
    re.compile(pattern)
    for pattern in (
        r"\b(?:people|inhabitant|resident|population|live|abitant|popolazion|vivono|habitant|persona|poblacion|viven"
        r"|moradores|populacao|pessoas|einwohner|bevolkerung|leben|wohnen|inwoner|населени|жител)|人口|居民|住民|인구|주민",
        r"\b(?:price|cost|fee|ticket|prezz|cost[ao]|bigliett|precio|cuesta|entrada|prix|coute|tarif|preis|kostet|eintritt"
        r"|prijs|цен[аы])|[$€£¥]|价格|票价|料金|値段|가격|요금",
        r"\b(?:open|clos|hours|apert|chius|orari|abiert|cerrad|abre|horari|ouvert|ferme|geoffnet|offnungszeit|geschlossen)"
        r"|开放|营业|営業|영업|개장",
    )
)


@dataclass(frozen=True, slots=True)
class _Question:
    """What to look for: words with their rarity in this passage, and kinds of thing."""

    words: dict[int, float]
    concepts: tuple[re.Pattern[str], ...]
    kind: re.Pattern[str] | None
    unit: float  # the rarity of the rarest word


@dataclass(frozen=True, slots=True)
class _Sentence:
    text: str
    words: frozenset[int]


def best_passage(text: str, question: str, language: str, max_chars: int = 320) -> str:
    """The run of whole sentences of `text`, at most `max_chars` long, that answers `question` best; its first
    ones if none has anything of the question. A single sentence that is longer is cut between words, with an
    ellipsis. `language` is the text's (ISO 639-1 or "")."""
    cut = [_Sentence(sentence, stems(sentence, language)) for sentence in sentences(text)]
    if not cut:
        return ""
    asked = _read(question, language, cut)
    start, end = _best_run(cut, asked, max_chars)
    passage = " ".join(sentence.text for sentence in cut[start:end])
    return passage if len(passage) <= max_chars else _window(passage, asked, language, max_chars)


def best_of(texts: Sequence[str], question: str, language: str, max_chars: int = 320) -> str:
    """Of the texts' best passages the one that has most of the question. The first text is prose and the
    others may be lists of properties: they go before it only if they answer what it does not, or have
    `MARGIN` more of the question's words."""
    passages = [best_passage(text, question, language, max_chars) for text in texts if text.strip()]
    asked = stems(question, language)
    plain = folded(question)
    kind = _NUMBER if _HOW_MANY.search(plain) else _TIME if _WHEN.search(plain) else None

    def has(passage: str) -> int:
        answers = kind is not None and kind.search(folded(passage)) is not None
        return len(asked & stems(passage, language)) + MARGIN * answers

    best = passages[0] if passages else ""
    for passage in passages[1:]:
        if has(passage) >= has(best) + MARGIN:
            best = passage
    return best


def sentences(text: str) -> list[str]:
    """The sentences of a text, white space folded and Markdown's marks of headings and lists removed;
    headings, list items and table rows stand alone."""
    found: list[str] = []
    for block in _BLOCK.split(_HEADING.sub(lambda heading: f"\n\n{heading[0].strip()}\n\n", text)):
        found += _sentences_of(" ".join(_MARK.sub("", block).split()))
    return found


def _sentences_of(block: str) -> Iterator[str]:
    start = 0
    for match in _END.finditer(block):
        so_far, rest = block[start : match.end()], block[match.end() :].lstrip()
        if rest[:1].islower() or _ABBREVIATION.search(so_far):
            continue
        yield so_far.strip()
        start = match.end()
    if block[start:].strip():
        yield block[start:].strip()


def _read(question: str, language: str, cut: Sequence[_Sentence]) -> _Question:
    frequency = Counter(word for sentence in cut for word in sentence.words)
    words = {
        word: math.log(1 + len(cut) / frequency[word])
        for word in stems(question, language)
        if frequency[word]
    }
    plain = folded(question)
    kind = _NUMBER if _HOW_MANY.search(plain) else _TIME if _WHEN.search(plain) else None
    concepts = tuple(concept for concept in _CONCEPTS if concept.search(plain))
    return _Question(words, concepts, kind, math.log(1 + len(cut)))


def _best_run(cut: Sequence[_Sentence], asked: _Question, max_chars: int) -> tuple[int, int]:
    if not any(_answer(sentence, asked) or not sentence.words.isdisjoint(asked.words) for sentence in cut):
        return max(run for run in _runs(cut, max_chars) if run[0] == 0)
    return max(_runs(cut, max_chars), key=lambda run: _worth(cut[run[0] : run[1]], asked, max_chars))


def _runs(cut: Sequence[_Sentence], max_chars: int) -> Iterator[tuple[int, int]]:
    """Every run that fits, and every sentence by itself."""
    for start in range(len(cut)):
        length = -1
        for end in range(start, len(cut)):
            length += len(cut[end].text) + 1
            if length > max_chars and end > start:
                break
            yield start, end + 1


def _worth(run: Sequence[_Sentence], asked: _Question, max_chars: int) -> float:
    """How much of the question a run has, less the room it takes."""
    present = frozenset[int]().union(*(sentence.words for sentence in run))
    worth = sum(rarity for word, rarity in asked.words.items() if word in present)
    worth += max(_answer(sentence, asked) for sentence in run)
    length = sum(len(sentence.text) + 1 for sentence in run)
    return worth - LENGTH_COST * asked.unit * min(1.0, length / max_chars)


def _answer(sentence: _Sentence, asked: _Question) -> float:
    """What a sentence has of the kind that was asked for; a number alone may be one of anything."""
    plain = folded(sentence.text)
    concepts = sum(1 for concept in asked.concepts if concept.search(plain))
    worth = CONCEPT_WORTH * concepts
    if asked.kind is not None and asked.kind.search(plain):
        touches = concepts or any(word in sentence.words for word in asked.words)
        worth += NUMBER_WORTH if touches else NUMBER_WORTH / 2
    return worth * asked.unit


def _window(sentence: str, asked: _Question, language: str, max_chars: int) -> str:
    """The part of a long sentence around the question's words."""
    wanted = [
        match.start()
        for match in re.finditer(r"\w+", sentence)
        if not stems(match[0], language).isdisjoint(asked.words)
    ]
    room = max_chars - 4
    middle = wanted[len(wanted) // 2] if wanted else 0
    start = max(0, min(middle - room // 2, len(sentence) - room))
    piece = sentence[start : start + room]
    if start > 0 and " " in piece[:40]:
        piece = piece.split(" ", 1)[1]
    if start + room < len(sentence) and " " in piece[-40:]:
        piece = piece.rsplit(" ", 1)[0]
    before, after = "… " if start > 0 else "", " …" if start + room < len(sentence) else ""
    return f"{before}{piece.strip()}{after}"
