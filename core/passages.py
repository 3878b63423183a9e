"""The sentences of a passage that answer a question best, found by words alone, without a model.

Every text is of an item that has a name. What says nothing beyond that name (a page's title) is never shown,
and words of the name in a question tell nothing about which sentence answers it. Lines of properties
(`Keywords: soup, beans`) say little by themselves: they are taken where they have just what is asked for
(`Cooking time: 150 minutes`), or where nothing else answers.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from core.language import folded, normalized
from core.providers.bm25 import stems, tokens

MAX_CHARS = 320  # of a passage, unless told
NUMBER_WORTH = 1.2  # of the rarest word: a number where one was asked for
CONCEPT_WORTH = 0.8  # a word for the same thing: "inhabitants" where people were asked for
PROPERTY_WORTH = 0.5  # a property of the kind asked for, beside what is said of it in passing
MARGIN = 2  # words of the question that another text must have before the description
LENGTH_COST = 0.6  # of the rarest word, for a run that fills all the room: context has to earn its place
EVEN = 1e-9  # less between two runs is a matter of rounding
KINDS_KEPT = 256  # of questions, which may be long

# A sentence ends at these, unless the next letter is a small one or the word before is an abbreviation.
_END = re.compile(
    r"(?<![.!?\u2026\u0964])[.!?\u2026\u0964]++[\"'\u2019\u201d\u00bb)\]]*+(?=\s)"
    r"|[\u3002\uff01\uff1f\uff0e]+[\u300d\u300f\u201d\uff09]*"
)
_ABBREVIATION = re.compile(
    r"(?:^|[\s(])(?:[^\W\d_]|mr|mrs|ms|dr|dott|prof|sig|sra?|st|ste|jr|vs|etc|e\.g|i\.e|z\.b|no|nr|ca|approx"
    r"|fig|art|av|ave|p\.zza|jan|feb|aug|sept?|oct|nov|dec)\.$",
    re.IGNORECASE,
)
ABBREVIATED = 12  # characters of a text's end that tell whether that is an abbreviation: more than it has
# "Cooking time: 150 minutes": a few words, a colon, and a value on the same line.
_LABEL = re.compile(
    r"[^\W\d_][\w'\u2019()/&-]*(?:[ \t]+[\w'\u2019()/&-]+){0,3}[ \t]?(?::[ \t]+|\uff1a[ \t]*)(?=\S)"
)
_ENDED = re.compile(
    r"[.!?\u2026\u0964\u3002\uff01\uff1f\uff0e][\"'\u2019\u201d\u00bb)\]\u300d\u300f\uff09]*$"
)
_WIDE_ENDS = frozenset("\u3002\uff01\uff1f\uff0e\u300d\u300f\uff09")
_KEYWORDS = re.compile(r"keywords?\b|tags?\b")
_ITEM_NUMBER = re.compile(r"\s*\d{1,3}[.)]")
_BLOCK = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*\u2022#|]|\d+[.)]\s))|(?<=[.!?:\u3002\uff01\uff1f])[ \t]*\n")
_MARK = re.compile(r"^\s*(?:#{1,6}|[-*\u2022])[ \t]+")
_HEADING = re.compile(r"^[^\S\n]*#{1,6}[ \t][^\n]*\n", re.MULTILINE)

_HOW_MANY = re.compile(
    r"\bhow (?:many|much|long|far|old|big|high|tall|deep|often)\b"
    r"|\b(?:number|amount|price|cost) of\b|\bpopulation\b"
    r"|\bquant[iaeo]\b|\bcuant[oa]s?\b|\bquant[oa]s\b|\bcombien\b"
    r"|\bwie ?(?:viele?|lange?|weit|alt|gross|hoch)\b"
    r"|\bhoeveel\b|\bhur manga\b|\bhvor mange\b|\bile\b|\bkolik\b|\bkac\b|\bсколько\b"
    r"|多[少重大长長高远遠久深宽寬快]|几[个人位]|幾[個人]|何[人個円年時]|いくら|いくつ|몇|얼마"
)
# Words that only ask: what takes long is not a better answer for saying "long".
_ASKING = re.compile(
    r"\bhow (?:many|much|long|far|old|big|high|tall|deep|often)\b|\bwithout\b"
    r"|\bwie (?:viele?|lange?|weit|alt|gross|hoch)\b"
    r"|\bquanto tempo\b|\bcuanto tiempo\b|\bcombien de temps\b"
)
_TAKES = re.compile(r"\btakes?\b")
_WHEN = re.compile(
    r"\bwhen\b|\bwhat (?:time|year|day)\b|\bwhich year\b|\bhours\b|\bquando\b|\bche ora\b"
    r"|\bin che anno\b|\borari?o?s?\b"
    r"|\bcuando\b|\bque (?:ano|hora)\b|\bquand\b|\bhoraires?\b|\bwann\b|\boffnungszeiten\b|\bкогда\b"
    r"|什么时候|何时|几点|哪年|いつ|何時|언제|몇 시"
)
_NUMBER = re.compile(
    r"\d|[一二三四五六七八九十百千]{1,12}(?:[万萬千百亿億人克斤升米元度天年月日岁歲]|公里|公斤|分[钟鐘]|小[时時]|時間)|\b(?:thousand|million|mila|milion|mil|tausend|mille)\b"
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
        r"|prijs|цен[аы])|[$€£¥]|\b(?:eur|usd|gbp|chf|cad|aud|jpy|cny|krw)\b|价格|票价|料金|値段|가격|요금",
        r"\b(?:open|clos|hours|apert|chius|orari|abiert|cerrad|abre|horari|ouvert|ferme|geoffnet|offnungszeit|geschlossen)"
        r"|开放|营业|営業|영업|개장",
        r"\bhow long\b.{0,80}\b(?:take|last|cook|bake|boil|need|ready|prepar)|\bquanto tempo\b"
        r"|\bcuanto (?:tiempo|tarda)"
        r"|\bcombien de temps\b|\bwie lange\b|\d ?(?:minut|min\b|hours?\b|or[ae]\b|horas?\b|heures?\b|stunde)"
        r"|多久|多长时间|多長時間|どのくらい|얼마나 걸|分[钟鐘間]|小[时時]|\d ?시간",
    )
)


@dataclass(frozen=True, slots=True)
class _Question:
    """What to look for: words with their rarity in this passage, and kinds of thing."""

    words: Mapping[int, float]
    concepts: tuple[re.Pattern[str], ...]
    kind: re.Pattern[str] | None
    unit: float  # the rarity of the rarest word
    language: str


@dataclass(frozen=True, slots=True, eq=False)
class _Sentence:
    text: str
    plain: str  # folded
    words: frozenset[int]
    label: str = ""  # of a property


def best_passage(
    text: str, question: str, language: str, max_chars: int = MAX_CHARS, *, name: str = ""
) -> str:
    """The run of whole sentences of `text`, at most `max_chars` long, that answers `question` best; its first
    ones if none has anything of the question. A single sentence that is longer is cut between words, with an
    ellipsis. `language` is the text's (ISO 639-1 or ""), `name` that of the item it is of."""
    found = matching_passage(text, question, language, max_chars, name=name)
    return found or opening(text, language, max_chars, name=name)


def matching_passage(
    text: str, question: str, language: str, max_chars: int = MAX_CHARS, *, name: str = ""
) -> str:
    """The same; "" if no sentence has anything of the question beyond the item's name."""
    cut = _telling(text, language, name)
    asked = _read(question, language, cut, name)
    # Properties that have just what is asked for stand beside prose. The others wait for it, each by itself.
    answers = {sentence: _answer(sentence, asked) for sentence in cut}
    prose = [sentence for sentence in cut if not sentence.label or _is_asked_for(sentence, asked)]
    best = _best_run(prose, answers, asked, max_chars) or _best_run(
        cut, answers, asked, max_chars, alone=True
    )
    return _shown(best, asked, language, max_chars)


def opening(text: str, language: str, max_chars: int = MAX_CHARS, *, name: str = "") -> str:
    """The first sentences of a text that say something; properties only where there is nothing else."""
    cut = _telling(text, language, name)
    cut = tuple(sentence for sentence in cut if not sentence.label) or cut
    if not cut:
        return " ".join(text.split())[:max_chars]
    return _shown(cut[: _fitting(cut, max_chars)], _read("", language, cut, name), language, max_chars)


def best_of(
    texts: Sequence[str], question: str, language: str, max_chars: int = MAX_CHARS, *, name: str = ""
) -> str:
    """Of the texts' best passages the one that has most of the question. The first text is a description, the
    others go before it only if they answer what it does not, or have `MARGIN` more of the question's
    words."""
    texts = [text for text in texts if text.strip()]
    passages = [best_passage(text, question, language, max_chars, name=name) for text in texts]
    best = passages[0] if passages else ""
    for passage in passages[1:]:
        if matches(passage, question, language, name=name) >= MARGIN + matches(
            best, question, language, name=name
        ):
            best = passage
    return best


def matches(passage: str, question: str, language: str, *, name: str = "") -> int:
    """How many of the question's words, those of the item's name aside, a passage has; what it has of the
    kind that was asked for counts as `MARGIN`."""
    words = (asked_words(question, language) - keys(name, language)) & keys(passage, language)
    return len(words) + MARGIN * has_kind(passage, question)


@lru_cache(maxsize=1024)
def asked_words(question: str, language: str) -> frozenset[int]:
    """The keys of a question's words without those that only ask ("how long does it take")."""
    plain = folded(question)
    asking = _ASKING.findall(plain)
    if "how long" in asking:
        asking += _TAKES.findall(plain)
    return keys(question, language) - keys(" ".join(asking), language)


def has_kind(passage: str, question: str) -> bool:
    """Whether a passage has the kind of thing that is asked for (a number, a time), if one is, and where it
    is a known one (people, prices, opening hours) a word for that."""
    kind, concepts = _kind_of(question)
    plain = folded(passage)
    if concepts and not any(concept.search(plain) for concept in concepts):
        return False
    if kind is None:
        return bool(concepts)
    return kind.search(plain) is not None


@lru_cache(maxsize=4096)
def keys(text: str, language: str) -> frozenset[int]:
    """For comparing texts of one language: the stems of their words without accents, which people leave out
    where pages have them, and without the language's stop words."""
    if text.isascii():
        return stems(text, language)
    return frozenset[int]().union(*(_keys_of(word, language) for word in tokens(normalized(text).lower())))


@lru_cache(maxsize=20_000)
def _keys_of(word: str, language: str) -> frozenset[int]:
    known = stems(word, language)
    return known if word.isascii() or not known else stems(folded(word), language)


def properties(text: str) -> list[tuple[str, str]]:
    """The properties (`Label: value`) that stand in a text, as label and whole line."""
    return [(label, sentence) for sentence in sentences(text) if (label := _label(sentence))]


@lru_cache(maxsize=512)  # the same chunks are found for many questions
def _telling(text: str, language: str, name: str) -> tuple[_Sentence, ...]:
    """The sentences that say something beyond the item's name, each once."""
    known = keys(name, language)
    found: dict[str, _Sentence] = {}
    for sentence in sentences(_untitled(text, name)):
        words = keys(sentence, language)
        plain = folded(sentence)
        if words - known and plain not in found:
            found[plain] = _Sentence(sentence, plain, words, _label(sentence))
    return tuple(found.values())


def _untitled(text: str, name: str) -> str:
    """A text without the lines that are its item's name, unless a sentence goes on behind it."""
    title = folded(name).strip()
    lines = text.split("\n")
    if not title or title not in folded(text):
        return text
    for n, (line, after) in enumerate(zip(lines, [*lines[1:], ""], strict=True)):
        before = lines[n - 1].strip() if n else ""
        goes_on = after.strip()[:1].islower() or (before[-1:].isalnum() and not _label(before))
        if folded(_MARK.sub("", line)).strip() == title and not goes_on:
            lines[n] = ""
    return "\n".join(lines)


def _label(sentence: str) -> str:
    """What a property is called; "" of what is none: prose behind a colon ends as prose does."""
    found = _LABEL.match(sentence)
    return found[0].strip(" \t:\uff1a") if found and not _ENDED.search(sentence) else ""


def _is_asked_for(sentence: _Sentence, asked: _Question) -> bool:
    """Whether a property has just what the question wants: by its label, or by its kind of value."""
    label = folded(sentence.label)
    if _KEYWORDS.match(label):
        return False
    if any(concept.search(sentence.plain) for concept in asked.concepts):
        return True
    named = any(word in asked.words for word in keys(sentence.label, asked.language))
    has_kind = asked.kind is not None and asked.kind.search(sentence.plain) is not None
    if named:
        return asked.kind is None or has_kind
    return has_kind and not sentence.words.isdisjoint(asked.words)


def _shown(run: Sequence[_Sentence], asked: _Question, language: str, max_chars: int) -> str:
    passage = ""
    for before, sentence in zip([None, *run], run, strict=False):
        passage += ("" if before is None else _between(before, sentence)) + sentence.text
    return passage if len(passage) <= max_chars else _window(passage, asked, language, max_chars)


def _between(before: _Sentence, after: _Sentence) -> str:
    """What stands between two sentences: nothing in writing without spaces, a semicolon in a list."""
    if before.text[-1:] in _WIDE_ENDS:
        return ""
    return "; " if (before.label or after.label) and not _ENDED.search(before.text) else " "


def sentences(text: str) -> list[str]:
    """The sentences of a text, white space folded and Markdown's marks of headings and lists removed;
    headings, list items and table rows stand alone."""
    found: list[str] = []
    for block in _BLOCK.split(_HEADING.sub(lambda heading: f"\n\n{heading[0].strip()}\n\n", text)):
        for part in _unlisted(block):
            found += _sentences_of(" ".join(_MARK.sub("", part).split()))
    return found


def _unlisted(block: str) -> Iterator[str]:
    """Each property of a block by itself, and each line of it that no other goes on from."""
    part: list[str] = []
    labelled = False  # the part begins with a label
    for line in block.split("\n"):
        said = line.strip()
        if not said:
            continue
        label = _LABEL.match(said) is not None
        if part and (label or labelled) and not said[0].islower():
            yield "\n".join(part)
            part = []
        if not part:
            labelled = label
        part.append(line)
    yield "\n".join(part)


def _sentences_of(block: str) -> Iterator[str]:
    start = 0
    for match in _END.finditer(block):
        end = match.end()
        before, rest = block[max(start, end - ABBREVIATED) : end], block[end : end + 2].lstrip()
        if rest[:1].islower() or _ABBREVIATION.search(before):
            continue
        if rest and _ITEM_NUMBER.fullmatch(block, start, end):
            continue
        yield block[start:end].strip()
        start = end
    if block[start:].strip():
        yield block[start:].strip()


def _read(question: str, language: str, cut: Sequence[_Sentence], name: str) -> _Question:
    frequency = Counter(word for sentence in cut for word in sentence.words)
    words = {
        word: math.log(1 + len(cut) / frequency[word])
        for word in asked_words(question, language) - keys(name, language)
        if frequency[word]
    }
    kind, concepts = _kind_of(question)
    return _Question(words, concepts, kind, math.log(1 + len(cut)), language)


@lru_cache(maxsize=KINDS_KEPT)  # each item of an answer asks
def _kind_of(question: str) -> tuple[re.Pattern[str] | None, tuple[re.Pattern[str], ...]]:
    """The kind of value that a question asks for, and the kinds of thing it names."""
    plain = folded(question)
    kind = _NUMBER if _HOW_MANY.search(plain) else _TIME if _WHEN.search(plain) else None
    return kind, tuple(concept for concept in _CONCEPTS if concept.search(plain))


def _fitting(cut: Sequence[_Sentence], max_chars: int) -> int:
    """How many of the first sentences there is room for, at least one."""
    length = -1
    for n, sentence in enumerate(cut):
        length += len(sentence.text) + 1
        if n and length > max_chars:
            return n
    return len(cut)


def _best_run(
    cut: Sequence[_Sentence],
    answers: Mapping[_Sentence, float],
    asked: _Question,
    max_chars: int,
    *,
    alone: bool = False,
) -> Sequence[_Sentence]:
    """Of every run of sentences that fits (of every sentence, where each stands `alone`) the first that has
    most of the question, less the room it takes; none if no sentence has anything of it.

    What a run has is counted up as it grows. It begins and ends with a sentence that has something of the
    question: any other there takes room for nothing.
    """
    has = [asked.words.keys() & sentence.words for sentence in cut]
    best, first, last = -math.inf, 0, 0
    for start in range(len(cut)):
        if not has[start] and not answers[cut[start]]:
            continue
        present: set[int] = set()
        words = answer = 0.0
        length = 0
        for end in range(start, start + 1 if alone else len(cut)):
            sentence = cut[end]
            length += len(sentence.text) + 1
            if length > max_chars + 1 and end > start:
                break
            if not has[end] and not answers[sentence]:
                continue
            words += sum(asked.words[word] for word in has[end] - present)
            present |= has[end]
            answer = max(answer, answers[sentence])
            worth = words + answer - LENGTH_COST * asked.unit * min(1.0, length / max_chars)
            if worth > best + EVEN:
                best, first, last = worth, start, end + 1
    return cut[first:last]


def _answer(sentence: _Sentence, asked: _Question) -> float:
    """What a sentence has of the kind that was asked for; a number alone may be one of anything."""
    plain = sentence.plain
    concepts = sum(1 for concept in asked.concepts if concept.search(plain))
    worth = CONCEPT_WORTH * concepts
    if sentence.label and not keys(sentence.label, asked.language).isdisjoint(asked.words):
        worth += PROPERTY_WORTH
    if asked.kind is not None and asked.kind.search(plain):
        touches = concepts or any(word in sentence.words for word in asked.words)
        worth += NUMBER_WORTH if touches else NUMBER_WORTH / 2
    return worth * asked.unit


def _window(sentence: str, asked: _Question, language: str, max_chars: int) -> str:
    """The part of a long sentence around the question's words."""
    wanted = [
        match.start()
        for match in re.finditer(r"\w+", sentence)
        if not keys(match[0], language).isdisjoint(asked.words)
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
