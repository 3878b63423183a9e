"""Which tool a question could be for, by its words alone: a model is asked only where a rule says so."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache

from core.language import LONG_CHARS, normalized
from core.query import Query, Shown

# All patterns are for `folded` text: lower case, no accents, one space for what is no letter or digit.
_COMPARING = (
    r"\b(?:compar(?:e|es|ed|ing|ison|isons|ar|a|ame|ez|er|aison|acao|acion)|versus|vs|confront(?:a|ami|are|o)"
    r"|paragon(?:a|are|o)|vergleich(?:e|en)?|unterschied(?:e)?|differences?|diferencias?|diferencas?"
    r"|differenz[ae])\b"
    r"|比较|比較|对比|對比|区别|區別|差别|差別|比べ|違い|비교|차이"
)
_COMPARE_WORD = re.compile(_COMPARING)
_COMPARE = re.compile(
    rf"{_COMPARING}"
    r"|\b(?:better|cheaper|healthier|meglio|mejor|besser|mieux|melhor)\b.{0,80}\b(?:or|than|o|oder|als|ou|que)\b"
)
_ENSEMBLE = re.compile(
    r"\b(?:menus?|menue|itinerar\w*|itineraire|day trip|road trip|meal plan|outfits?|reiseplan|tagesausflug"
    r"|(?:two|three|four|five|\d) course(?:s)?|gita di un giorno|excursion de un dia|roteiro"
    r"|plan (?:a|my|our|the) (?:day|week|weekend|meal|dinner|trip))\b"
    r"|菜单|菜單|行程|套餐|穿搭|献立|旅程|메뉴|일정|코스"
)
_DETAILS = re.compile(
    r"\b(?:tell me (?:more )?about|more about|more details|details? (?:of|about|on)|parlami d\w+|dimmi di piu"
    r"|dettagli|cuentame (?:mas )?(?:sobre|de)|mas sobre|detalles|en savoir plus|parle moi d\w*|plus sur"
    r"|erzahl(?:e)? mir|mehr uber|einzelheiten|fale me (?:mais )?sobre|mais sobre|detalhes)\b"
    r"|介绍|介紹|详细|詳細|자세히|詳しく"
)
_ASKS = re.compile(
    r"\A(?:who|what|which|when|where|why|how|does|do|is|are|can|chi|che|cosa|quale|quali|quando|dove|come"
    r"|quanto|quanta|quanti|quante|quien|que|cual|cuando|donde|como|cuanto|cuanta|cuantos|qui|quel|quelle|quand"
    r"|ou|comment|combien|wer|was|welche\w*|wann|wo|wie|warum|quem|qual|onde|quantos)\b"
)
_QUOTED = re.compile(r"[\"“”„«‹「『]([^\"“”„«»‹›「」『』]{2,80})[\"“”»›」』]")
_FIRST_TWO = re.compile(
    r"\b(?:first two|top two|both|these two|those two|them|primi due|prime due|questi due|primeros dos"
    r"|dos primer[oa]s|ambos|ersten beiden|beiden|deux premier\w*|les deux|dois primeiros)\b"
    r"|前两|前兩|这两|這兩|最初の二|二つ|처음 두|두 개"
)
_NOT_TEXT = re.compile(r"[\W_]+")
_SPACED = re.compile(r"[^\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]*")
MIN_NAME = 4  # letters of a name that counts as one: "Pie" is a word of questions
MIN_NAME_UNSPACED = 2
LOOKED_AT = 10  # of what was found; an item that a question names is among the best


def folded(text: str) -> str:
    """Lower case without accents, runs of anything but letters and digits as one space."""
    return (_folded if len(text) <= LONG_CHARS else _folded_long)(text)


@lru_cache(maxsize=4096)  # names
def _folded(text: str) -> str:
    plain = "".join(c for c in unicodedata.normalize("NFD", normalized(text)) if not unicodedata.combining(c))
    # Korean syllables come apart above and are put together again here.
    return _NOT_TEXT.sub(" ", unicodedata.normalize("NFC", plain).casefold()).strip()


# A question of any length is asked about by each rule; few are under way at once.
_folded_long = lru_cache(maxsize=64)(_folded.__wrapped__)


def compares(text: str) -> bool:
    """Whether two things are set side by side."""
    return _COMPARE.search(folded(text)) is not None


def combines(text: str) -> bool:
    """Whether several kinds of thing are to go together."""
    return _ENSEMBLE.search(folded(text)) is not None


def wants_details(text: str) -> bool:
    """Whether more is asked about one thing, by its words or by a name in quotation marks."""
    return _DETAILS.search(folded(text)) is not None or quoted(text) is not None


def quoted(text: str) -> str | None:
    """The first name in quotation marks."""
    found = _QUOTED.search(text)
    return found[1].strip() if found else None


def asks(text: str) -> bool:
    """Whether it is put as a question, so that a name in it may be what it is about."""
    return any(mark in text for mark in "?？") or _ASKS.search(folded(text)) is not None


def beside_names(text: str, names: Iterable[str]) -> str:
    """What a question says beside these names and the words by which more is asked about them or they are
    compared; in the form of `folded`, "" if nothing."""
    rest = folded(text)
    for name in sorted(map(folded, names), key=len, reverse=True):
        rest = rest.replace(name, " ") if name else rest
    for pattern in (_DETAILS, _COMPARE_WORD):
        rest = pattern.sub(" ", rest)
    # "Sanremo e Taggia": what stands between two names is no question.
    return " ".join(word for word in rest.split() if len(word) > 1 or not word.isascii())


def may_be_for_a_tool(text: str) -> bool:
    """Whether any of the rules could hold, before it is known what is found."""
    return compares(text) or combines(text) or wants_details(text) or asks(text)


def named_in(text: str, names: Iterable[str]) -> list[str]:
    """Those of `names` that stand in the text, in the text's order; of names inside each other the longer."""
    there = folded(text)
    places: list[tuple[int, int, str]] = []
    for name in dict.fromkeys(names):
        at = _place(folded(name), there)
        if at is not None:
            places.append((at, at + len(folded(name)), name))
    kept: list[tuple[int, int, str]] = []
    for start, end, name in sorted(places, key=lambda one: one[0] - one[1]):
        if all(end <= s or start >= e for s, e, _ in kept):
            kept.append((start, end, name))
    return [name for _, _, name in sorted(kept)]


def _place(name: str, text: str) -> int | None:
    if _SPACED.fullmatch(name) is None:
        at = text.find(name) if len(name) >= MIN_NAME_UNSPACED else -1
        return None if at < 0 else at
    if len(name) < MIN_NAME:
        return None
    at = f" {text} ".find(f" {name} ")
    return None if at < 0 else at


def meant_of_shown(query: Query, shown: Sequence[Shown]) -> list[str]:
    """The names of the first two items shown before, where the question points at two of them."""
    titles = list(dict.fromkeys(one.title for one in shown if one.title))
    return titles[:2] if len(titles) > 1 and _FIRST_TWO.search(folded(query.text)) else []
