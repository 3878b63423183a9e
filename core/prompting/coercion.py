"""Turns what a model wrote for a key into the value the key stands for; what cannot be is a Miss."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from core.prompting.variables import clean, write_json


class Miss(ValueError):
    """The value cannot be what was asked for; the message says what was."""


# One line a family of languages: English, Romance, Germanic and Nordic, Slavic and Baltic, others, East
# Asian.
YES_WORDS = """
true yes y t on correct right
si sí sì vero certo verdadero cierto oui vrai sim verdadeiro da adevărat
ja wahr richtig waar sann kyllä
да верно истина так правда tak prawda ano
igen evet doğru ναι αληθής نعم صحيح हाँ हां सही vâng đúng benar ya ใช่
是 是的 对 對 真 有 はい 真実 예 네 참 맞습니다 그렇습니다
"""
NO_WORDS = """
false no n f off wrong incorrect
falso non faux não nao nu
nein falsch nee onwaar nej usann ei
нет неверно ложь ні nie ne
nem hayır yanlış όχι لا خطأ नहीं ग़लत không sai tidak ไม่
否 不 不是 不对 不對 假 没有 沒有 いいえ 偽 아니요 아니오 아뇨 아닙니다 거짓
"""
YES = frozenset(YES_WORDS.split()) | {"1"}
NO = frozenset(NO_WORDS.split()) | {"0"}
ENGLISH = re.compile(r"\b(true|false|yes|no|not|never)\b", re.IGNORECASE)
# "Yes, they do" and not "si tratta di": only what stands before a mark is an answer
WORDS = re.compile(r"[^\W\d_]{2,}")
FIRST_WORD = re.compile(r"([\w']+)\s*[,.;:!?()–—-]")

NUMBER_CHARS = 200
NUMBER = r"[-+]?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:[.,]\d+)?(?:[eE][-+]?\d{1,3})?"
ONE_NUMBER = re.compile(rf"(?<![\w.])[~≈≥≤<>=\s]*({NUMBER})")
FRACTION = re.compile(rf"({NUMBER})\s*(?:/|out\s+of|von|sur|su|de|di|점\s*/)\s*({NUMBER})", re.IGNORECASE)
SPAN = re.compile(rf"^\W*({NUMBER})\s*(?:-|–|to)\s*(\d+(?:\.\d+)?)\W*$")
NAMED = re.compile(
    rf"(?:score|rating|relevance|punteggio|puntuación|分数|점수)\W*(?:is|of|=|:|è|es|为)?\W*({NUMBER})",
    re.IGNORECASE,
)
ADDRESS = re.compile(r"[a-z][a-z0-9+.-]{0,30}://[^\s,;\"'<>\])}]+", re.IGNORECASE)
BULLET = re.compile(r"^\s*(?:[-*•·]|\d{1,3}[.)])\s+")


def to_boolean(value: Any) -> bool:
    """True, "yes", 1, "sì", "是", "예.", "Yes, they do" and their opposites."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float) and value in (0, 1):
        return bool(value)
    if not isinstance(value, str):
        return to_boolean(only_one(value, "True or False"))
    text = unicodedata.normalize("NFKC", value).casefold().strip(" \t\r\n\"'`*.,;:!?。、！¿¡()[]")
    if text in YES or text in NO:
        return text in YES
    said = {word.casefold() for word in ENGLISH.findall(text)}
    if len(said) > 1:
        raise Miss("True or False")
    first = FIRST_WORD.match(text)
    if first and (first[1] in YES or first[1] in NO):
        opposite = NO if first[1] in YES else YES
        if opposite & set(WORDS.findall(text[first.end() :])):
            raise Miss("True or False")
        return first[1] in YES
    if said & {"true", "yes"}:
        return True
    if said & {"false", "no"}:
        return False
    raise Miss("True or False")


def to_number(value: Any, low: float | None, high: float | None) -> float:
    """85, 85.0, "85", "85/100", "4/5" (of the range), "85 %", "The relevance is 42."; kept inside the range.

    A number is never rescaled by guess: 2.0 on a scale of 100 is 2. NaN and infinity are a miss.
    """
    wanted = number_wanted(low, high)
    if isinstance(value, bool):
        raise Miss(wanted)
    if isinstance(value, int | float):
        number = finite(value, wanted)
    elif isinstance(value, str):
        number = read_number(value, low, high, wanted)
    else:
        return to_number(only_one(value, wanted), low, high)
    if low is not None:
        number = max(low, number)
    return min(high, number) if high is not None else number


def to_integer(value: Any, low: float | None, high: float | None) -> int:
    """As `to_number`, rounded half up."""
    return math.floor(to_number(value, low, high) + 0.5)


@lru_cache(maxsize=64)
def number_wanted(low: float | None, high: float | None) -> str:
    return "a number" if low is None or high is None else f"a number between {low:g} and {high:g}"


def finite(value: int | float, wanted: str) -> float:
    try:
        number = float(value)
    except OverflowError:
        return 1e300 if value > 0 else -1e300
    if not math.isfinite(number):
        raise Miss(wanted)
    return number


def read_number(text: str, low: float | None, high: float | None, wanted: str) -> float:
    """The number a text names as the score, else the one it starts with, else its only one."""
    # A score is said in few words; the patterns below look at every pair of numbers.
    text = unicodedata.normalize("NFKC", text[:NUMBER_CHARS]).replace("−", "-").strip(" \t\r\n\"'`*")
    text = without_scale(text, low, high)
    span = SPAN.match(text)
    if span:
        return (parsed(span[1]) + parsed(span[2])) / 2
    whole = f"{high:g}" if high is not None else ""
    fractions = [one for one in FRACTION.finditer(text) if one[2] == whole]
    named = fractions[0] if fractions else NAMED.search(text)
    first = named or ONE_NUMBER.search(text)
    if first is None:
        raise Miss(wanted)
    fraction = FRACTION.match(text, first.start(1))
    if fraction and high is not None:
        return scaled(parsed(fraction[1]), parsed(fraction[2]), low or 0, high, wanted)
    others = {parsed(one) for one in ONE_NUMBER.findall(text)}
    if named is None and len(others) > 1 and not ONE_NUMBER.match(text):
        raise Miss(wanted)
    return finite(parsed(first[1]), wanted)


def scaled(part: float, whole: float, low: float, high: float, wanted: str) -> float:
    """`4/5` on a scale up to 100 is 80; `85/100` is 85."""
    if whole <= 0 or not math.isfinite(part / whole):
        raise Miss(wanted)
    return part if whole == high else low + part / whole * (high - low)


def without_scale(text: str, low: float | None, high: float | None) -> str:
    """The text without the mention of the scale itself (`on a scale of 0 to 100`)."""
    if low is None or high is None:
        return text
    scale = rf"(?:scale\s+(?:of|from)|between|range)\W*{low:g}\s*(?:-|–|to|and)\s*{high:g}"
    return re.sub(scale, " ", text, flags=re.IGNORECASE)


def parsed(number: str) -> float:
    """`1,000` has a separator of thousands, `85,5` a decimal comma."""
    if re.fullmatch(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?", number):
        number = number.replace(",", "")
    try:
        return float(number.replace(",", "."))
    except ValueError:
        raise Miss("a number") from None


def to_text(value: Any) -> str:
    """A string; a list of strings is joined, other things are written as JSON, null is empty."""
    if value is None:
        return ""
    if isinstance(value, str):
        # Half a surrogate pair can be neither sent nor stored.
        return clean(value).strip()
    if isinstance(value, bool | int):
        return str(value)
    if isinstance(value, float):
        return "" if not math.isfinite(value) else f"{value:g}"
    if isinstance(value, Sequence) and all(isinstance(one, str) for one in value):
        return "; ".join(clean(one).strip() for one in value)
    return write_json(sane(value))


def to_choice(value: Any, choices: Sequence[str]) -> str:
    """One of `choices`, ignoring case and what stands around it; empty where it is none of them."""
    text = to_text(value).casefold()
    for choice in choices:
        if text == choice.casefold():
            return choice
    inside = [one for one in choices if re.search(rf"\b{re.escape(one.casefold())}\b", text)]
    return inside[0] if len(inside) == 1 else ""


def to_list(value: Any) -> list[Any]:
    """A list as it is; a string as JSON, lines, bullets or addresses; another thing as a list of one."""
    if value is None or value == "":
        return []
    if isinstance(value, str):
        return list_in(value.strip())
    if isinstance(value, Sequence):
        return [sane(one) for one in value]
    return [sane(value)]


def list_in(text: str) -> list[Any]:
    if text.casefold() in ("none", "null", "n/a", "[]", NO_ITEMS):
        return []
    if text.startswith("["):
        try:
            read = json.loads(text)
        except (ValueError, RecursionError):
            read = None
        if isinstance(read, list):
            return [sane(one) for one in read]
    addresses = ADDRESS.findall(text)
    if addresses and not re.search(r"[^\W\d]{3,}", ADDRESS.sub("", text)):
        return [one.rstrip(".") for one in addresses]
    lines = [BULLET.sub("", line).strip() for line in text.splitlines()]
    parts = [line for line in lines if line]
    if len(parts) == 1 and ";" in text:
        parts = [part.strip() for part in text.split(";") if part.strip()]
    return list(parts)


NO_ITEMS = "(none)"


def sane(value: Any, depth: int = 0) -> Any:
    """JSON without NaN and infinity (null instead) and without absurd nesting."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if depth > 20:
        return None
    if isinstance(value, Mapping):
        return {str(key): sane(one, depth + 1) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [sane(one, depth + 1) for one in value]
    return value


def only_one(value: Any, wanted: str) -> Any:
    """What is inside a list of one, or an object with a value in it (`{"value": 85}`)."""
    if isinstance(value, Sequence) and len(value) == 1:
        inside = value[0]
    elif isinstance(value, Mapping):
        inside = next((value[key] for key in ("value", "score", "answer") if key in value), None)
        inside = next(iter(value.values())) if inside is None and len(value) == 1 else inside
    else:
        raise Miss(wanted)
    if inside is None or isinstance(inside, Mapping | list | tuple):
        raise Miss(wanted)
    return inside
