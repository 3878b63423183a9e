"""Say a schema.org object in words: the text that is searched, and the smaller object a prompt may see."""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

MAX_TEXT = 2_000_000  # characters of searchable text an item may have
MAX_TRIMMED = 1_500  # characters of JSON a ranking prompt sees of an item
# Characters with their markup, at most, for one that is shown: what is behind that is not read.
MARKED_UP = 20
MAX_NAME = 300

_MAX_DEPTH = 6
_MAX_LIST = 300  # entries of one list that are read
_MAX_REVIEWS = 5


def names(listed: str) -> frozenset[str]:
    """The words of a string as a set: long lists of names read better so."""
    return frozenset(listed.split())


# What is said first, in this order; the rest follows in the order of the object.
_FIRST = (
    "alternateName",
    "alternativeHeadline",
    "headline",
    "description",
    "disambiguatingDescription",
    "abstract",
    "reviewBody",
    "text",
    "articleBody",
    "commentText",
    "itemReviewed",
    "itemOffered",
    "startDate",
    "endDate",
    "doorTime",
    "eventStatus",
    "eventAttendanceMode",
    "location",
    "jobLocation",
    "address",
    "openingHours",
    "openingHoursSpecification",
    "telephone",
    "email",
    "performer",
    "organizer",
    "hiringOrganization",
    "director",
    "actor",
    "brand",
    "offers",
    "price",
    "lowPrice",
    "highPrice",
    "priceCurrency",
    "priceRange",
    "baseSalary",
    "recipeYield",
    "yield",
    "prepTime",
    "cookTime",
    "performTime",
    "totalTime",
    "duration",
    "recipeCategory",
    "category",
    "genre",
    "recipeCuisine",
    "servesCuisine",
    "suitableForDiet",
    "keywords",
    "cookingMethod",
    "aggregateRating",
    "starRating",
    "recipeIngredient",
    "ingredients",
    "supply",
    "tool",
    "recipeInstructions",
    "step",
    "mainEntity",
    "nutrition",
)

_IS_FIRST = frozenset(_FIRST)
# Pictures, addresses, ids, dates of publication and what is written for search engines.
_LEFT_OUT = names(
    """@context @id @type @graph @reverse url sameas image images logo photo photos thumbnail thumbnailurl
    contenturl embedurl primaryimageofpage identifier productid gtin gtin8 gtin12 gtin13 gtin14 datepublished
    datemodified datecreated uploaddate publisher mainentityofpage ispartof potentialaction breadcrumb
    inlanguage wordcount commentcount interactionstatistic interactioncount copyrightholder copyrightyear
    copyrightnotice license acquirelicensepage credittext speakable geo latitude longitude hasmap map maps
    target width height encodingformat bitrate isaccessibleforfree isfamilyfriendly additionaltype sdpublisher
    sddatepublished sdlicense video audio trailer associatedmedia encoding position comment discussionurl
    usageinfo publishingprinciples isbasedon paymentaccepted hasmerchantreturnpolicy
    shippingdetails pricevaliduntil vatid taxid legalname contentsize playertype requiresubscription haspart
    item worstrating masthead ethicspolicy correctionspolicy
    diversitypolicy missioncoverageprioritiespolicy ownershipfundinginfo actionablefeedbackpolicy
    verificationfactcheckingpolicy unnamedsourcespolicy appid pubdate update"""
)

_LABELS = {
    "recipeIngredient": "Ingredients",
    "ingredients": "Ingredients",
    "recipeInstructions": "Instructions",
    "step": "Steps",
    "recipeYield": "Yield",
    "recipeCategory": "Category",
    "recipeCuisine": "Cuisine",
    "suitableForDiet": "Diet",
    "aggregateRating": "Rating",
    "offers": "Offer",
    "openingHoursSpecification": "Opening hours",
    "startDate": "Starts",
    "endDate": "Ends",
    "prepTime": "Preparation time",
    "cookTime": "Cooking time",
    "totalTime": "Total time",
    "alternateName": "Also called",
    "itemReviewed": "Review of",
    "containedInPlace": "In",
    "containedIn": "In",
    "mainEntity": "",
    "subjectOf": "",
}
_UNLABELLED = names(
    "description disambiguatingDescription abstract reviewBody text articleBody commentText headline "
    "alternativeHeadline mainEntity subjectOf additionalProperty"
)
_STEPS = frozenset({"recipeInstructions", "step", "itemListElement", "steps"})
_LISTED = frozenset({"recipeIngredient", "ingredients", "supply", "tool"})

_TAG = re.compile(r"</?([a-zA-Z][a-zA-Z0-9]*)\b[^<>]{0,2000}>|<!--[^<>]{0,2000}-->|<![^<>]{0,200}>")
_FORMAT_TAG = re.compile(
    r"</?(?:b|i|u|em|strong|span|small|sup|sub|br|p|font|mark|wbr|cite|q|abbr|bdi)\b[^<>]{0,500}>", re.I
)
_BLOCK_TAGS = names("p br div li ul ol tr table section article h1 h2 h3 h4 h5 h6 blockquote pre dd dt dl hr")
_SPACES = re.compile(r"[^\S\n]+")
_LINE_ENDS = re.compile(r"[^\S\n]*\n[^\S\n]*")
_MANY_LINES = re.compile(r"\n{3,}")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u200b\ufeff\ufffe\uffff\ud800-\udfff]")
_DURATION = re.compile(
    r"P(?:(\d{1,6})Y)?(?:(\d{1,6})M)?(?:(\d{1,6})W)?(?:(\d{1,6})D)?"
    r"(?:T(?:(\d{1,6})H)?(?:(\d{1,6})M)?(?:(\d{1,6})(?:\.\d+)?S)?)?"
)
_DURATION_UNITS = ("year", "month", "week", "day", "hour", "minute", "second")
_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d:\d\d)(?::\d\d(?:\.\d+)?)?)?\s*(?:Z|[+-]\d\d:?\d\d)?")
_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_SCHEMA = re.compile(r"https?://(?:www\.)?schema\.org/(\w+)/?$", re.I)
_URL = re.compile(r"(?:https?:)?//\S+$|(?:mailto|tel|data|javascript):\S*$|www\.\S+\.\S+$", re.I)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


# ---------------------------------------------------------------- strings


def plain(value: str) -> str:
    """Text without markup: entities decoded, tags taken out (blocks become lines), scripts and styles
    dropped, white space folded, no control characters, NFC."""
    text = value[: MAX_TEXT * 2]
    if "&" in text:
        text = html.unescape(html.unescape(text))
    if "<" in text:
        text = _TAG.sub(_tag_gap, _without_element(_without_element(text, "script"), "style"))
    text = _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    text = _LINE_ENDS.sub("\n", _SPACES.sub(" ", text))
    return unicodedata.normalize("NFC", _MANY_LINES.sub("\n\n", text).strip())


def one_line(value: str, limit: int = MAX_NAME) -> str:
    """A name: entities decoded, formatting tags taken out, one line, at most `limit` characters. Other
    markup stays as the text it is: a name is shown as text, never as markup."""
    text = value[: limit * 20]
    if "&" in text:
        text = html.unescape(html.unescape(text))
    if "<" in text:
        text = _FORMAT_TAG.sub("", text)
    text = unicodedata.normalize("NFC", " ".join(_CONTROL.sub("", text).split()))
    return shortened(text, limit)


def shortened(text: str, limit: int) -> str:
    """At most `limit` characters, cut between words where there are any, with an ellipsis."""
    if len(text) <= limit:
        return text
    cut = text[: max(1, limit - 1)]
    space = cut.rfind(" ")
    return (cut[:space] if space > limit // 2 else cut).rstrip() + "…"


def duration_in_words(value: str) -> str:
    """An ISO 8601 duration in words, "" if `value` is none or zero: PT90M is "90 minutes (1 hour 30
    minutes)"."""
    match = _DURATION.fullmatch(value.strip().upper())
    if match is None:
        return ""
    amounts = [int(group or 0) for group in match.groups()]
    said = _amounts(amounts)
    minutes = amounts[4] * 60 + amounts[5]
    if any(amounts[:4]) or amounts[6] or minutes <= 60 or minutes % 60 == 0:
        return said
    total = _amounts([0, 0, 0, 0, 0, minutes, 0])
    split = _amounts([0, 0, 0, 0, minutes // 60, minutes % 60, 0])
    return f"{total} ({split})"


def date_in_words(value: str) -> str:
    """An ISO 8601 date or date and time in words, "" if `value` is none."""
    match = _DATE.fullmatch(value.strip())
    if match is None or not 1 <= int(match[2]) <= 12:
        return ""
    said = f"{int(match[3])} {_MONTHS[int(match[2]) - 1]} {match[1]}"
    time = f", {match[4]}" if match[4] else ""
    return f"{said}{time} ({match[1]}-{match[2]}-{match[3]})"


def _amounts(amounts: list[int]) -> str:
    parts = (
        f"{amount} {unit}{'' if amount == 1 else 's'}"
        for amount, unit in zip(amounts, _DURATION_UNITS, strict=True)
        if amount
    )
    return " ".join(parts)


def _tag_gap(match: re.Match[str]) -> str:
    name = match[1]
    if name is None:
        return ""
    return "\n" if name.lower() in _BLOCK_TAGS else ""


def _without_element(text: str, name: str) -> str:
    """Without the elements `name` and their content; one that is never closed goes to the end."""
    lower = text.lower()
    if len(lower) != len(text):  # a letter whose lower case is longer; offsets would not fit
        return text
    kept: list[str] = []
    at = 0
    while (start := lower.find(f"<{name}", at)) >= 0:
        kept.append(text[at:start])
        end = lower.find(f"</{name}", start)
        close = lower.find(">", end) if end >= 0 else -1
        if close < 0:
            return "".join(kept)
        at = close + 1
    kept.append(text[at:])
    return "".join(kept)


# ---------------------------------------------------------------- types and names


def type_names(obj: Mapping[str, Any]) -> tuple[str, ...]:
    """The bare names of an object's `@type`, in order: "https://schema.org/Recipe" is "Recipe"."""
    found: list[str] = []
    for value in _listed(obj.get("@type")):
        if isinstance(value, str):
            bare = re.split(r"[/#:]", value.strip().rstrip("/#"))[-1].strip()
            if bare and bare not in found and len(bare) <= 100:
                found.append(bare)
    return tuple(found)


def name_of(obj: Mapping[str, Any]) -> str:
    """The name of an object as people would call it; "" if nothing in it serves as one."""
    for key in ("name", "headline", "title", "alternativeHeadline", "alternateName", "question"):
        found = _first_string(obj.get(key))
        if found:
            return found
    for key, prefix in (("itemReviewed", "Review of "), ("itemOffered", ""), ("about", "")):
        for inner in _listed(obj.get(key)):
            if isinstance(inner, Mapping) and (found := _first_string(inner.get("name"))):
                return f"{prefix}{found}"
    return ""


def name_from_text(obj: Mapping[str, Any], text: str) -> str:
    """A name for an object that has none but has text: its type and the first words."""
    kind = next(iter(type_names(obj)), "")
    words = shortened(" ".join(text.split()), 60)
    return f"{_spaced(kind)}: {words}" if kind else words


def _first_string(value: Any) -> str:
    for one in _listed(value):
        if isinstance(one, Mapping):
            one = one.get("@value")
        if isinstance(one, int | float) and not isinstance(one, bool):
            one = str(one)
        if isinstance(one, str) and (text := one_line(one)):
            return text
    return ""


# ---------------------------------------------------------------- searchable text


def searchable_text(obj: Any) -> str:
    """A schema.org object in words, most telling first; its name is not repeated in it.

    One property a line, named where the value alone would not say what it is; times and dates in words;
    pictures, addresses, ids, publication data left out. At most `MAX_TEXT` characters, NFC. Never raises
    on what JSON can hold."""
    if not isinstance(obj, Mapping):
        return shortened(_words(obj, 0), MAX_TEXT)
    if any(_SPECIAL.get(kind, _nothing) is not _nothing for kind in type_names(obj)):
        return shortened(_object_words(obj, 0), MAX_TEXT)
    lines: list[str] = []
    length = 0
    seen = {name_of(obj).casefold()}
    for key in _ordered(obj):
        said = _said(key, obj[key])
        if not said or said.casefold() in seen:
            continue
        seen.add(said.casefold())
        lines.append(said)
        length += len(said)
        if length > MAX_TEXT:
            break
    return shortened(_MANY_LINES.sub("\n\n", "\n".join(lines)).strip(), MAX_TEXT)


def _said(key: str, value: Any) -> str:
    if key in _STEPS:
        steps = _steps(value, 0)
        return f"\n{_label(key)}:\n" + "\n".join(steps) if steps else ""
    if key in _LISTED:
        listed = "; ".join(line for one in _each(value, 1) for line in one.split("\n") if line)
        return f"\n{_label(key)}: {listed}\n" if listed else ""
    if key in {"review", "reviews"}:
        value = _listed(value)[:_MAX_REVIEWS]
    joined = "\n" if key in {"mainEntity", "subjectOf", "review", "reviews"} else ", "
    text = joined.join(_each(value, 1))
    if not text or key in _UNLABELLED:
        return text
    return f"{_label(key)}: {text}"


def _ordered(obj: Mapping[str, Any]) -> Iterator[str]:
    """The keys worth saying, most telling first."""
    yield from (key for key in _FIRST if key in obj)
    for key in obj:
        if isinstance(key, str) and key not in _IS_FIRST and not _is_left_out(key):
            yield key


def _is_left_out(key: str) -> bool:
    return key.lower() in _LEFT_OUT or key in {"name", "title"} or key.startswith("@")


def _label(key: str) -> str:
    return _LABELS.get(key) or _spaced(key).capitalize()


def _spaced(name: str) -> str:
    return _CAMEL.sub(" ", name.replace("_", " ")).strip()


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value[:_MAX_LIST]) if isinstance(value, list | tuple) else [value]


def _each(value: Any, depth: int) -> list[str]:
    """Each entry of a value in words; empty ones and repetitions left out."""
    return list(dict.fromkeys(said for one in _listed(value) if (said := _words(one, depth))))


def _words(value: Any, depth: int) -> str:
    """Any value in words; "" for one that says nothing to a reader."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:.12g}" if isinstance(value, float) else str(value)
    if isinstance(value, str):
        return _string_words(value)
    if depth >= _MAX_DEPTH:
        return ""
    if isinstance(value, list | tuple):
        return ", ".join(_each(value, depth + 1))
    if isinstance(value, Mapping):
        return _object_words(value, depth)
    return ""


def _string_words(value: str) -> str:
    text = value.strip()
    if len(text) < 300:
        if match := _SCHEMA.match(text):
            return _enum_words(match[1])
        if _URL.match(text):
            return ""
        if text[:1] in {"P", "p"} and _DURATION.fullmatch(text.upper()):
            return duration_in_words(text)
        if text[:1].isdigit() and (said := date_in_words(text)):
            return said
    return plain(text)


def _enum_words(name: str) -> str:
    """A schema.org enumeration member in words: "InStock" is "in stock"."""
    for prefix in ("Event", "ItemList"):
        if name.startswith(prefix) and len(name) > len(prefix):
            name = name[len(prefix) :]
    return _spaced(name).lower()


def _object_words(obj: Mapping[str, Any], depth: int) -> str:
    if "@value" in obj:
        return _words(obj["@value"], depth + 1)
    for kind in type_names(obj):
        if special := _SPECIAL.get(kind):
            return special(obj, depth + 1)
    name = name_of(obj)
    rest = _fields(obj, depth + 1, skip=frozenset())
    if name and rest:
        return f"{name} ({rest})" if "\n" not in rest and len(rest) < 500 else f"{name}: {rest}"
    return name or rest


def _fields(obj: Mapping[str, Any], depth: int, *, skip: frozenset[str]) -> str:
    parts: list[str] = []
    for key in _ordered(obj):
        if key in skip:
            continue
        said = " ".join(_steps(obj[key], depth)) if key in _STEPS else ", ".join(_each(obj[key], depth))
        if said:
            parts.append(said if key in _UNLABELLED or key in _BARE else f"{_label(key)}: {said}")
    return ", ".join(parts)


_BARE = frozenset({"address", "addressCountry", "containedIn", "containedInPlace", "value"})


def _steps(value: Any, depth: int) -> list[str]:
    """Instructions as lines: of steps (numbered), sections with steps, or text."""
    if depth >= _MAX_DEPTH:
        return []
    if isinstance(value, str):
        return [line for line in (line.strip() for line in plain(value).split("\n")) if line]
    lines: list[str] = []
    number = 0
    for entry in _listed(value):
        inner = entry.get("itemListElement") or entry.get("steps") if isinstance(entry, Mapping) else None
        if isinstance(entry, Mapping) and inner is not None:
            name = name_of(entry)
            below = _steps(inner, depth + 1)
            lines += [f"{name}:", *below] if name and below and "HowToSection" in type_names(entry) else below
            if not below and name:
                lines.append(name)
        elif said := _step(entry, depth):
            number += 1
            lines.append(f"{number}. {said}" if len(_listed(value)) > 1 else said)
    return lines


def _step(entry: Any, depth: int) -> str:
    if not isinstance(entry, Mapping):
        return _words(entry, depth + 1).replace("\n", " ")
    name = name_of(entry)
    text = ""
    for key in ("text", "description", "item"):
        text = ", ".join(_each(entry.get(key), depth + 1)).replace("\n", " ")
        if text:
            break
    if not text or text.startswith(name.rstrip("….")):
        return text or name
    return f"{name}: {text}"


def _address(obj: Mapping[str, Any], depth: int) -> str:
    keys = (
        "streetAddress",
        "postOfficeBoxNumber",
        "addressLocality",
        "addressRegion",
        "postalCode",
        "addressCountry",
    )
    said = dict.fromkeys(part for key in keys for part in _each(obj.get(key), depth))
    return ", ".join(said) or name_of(obj)


def _rating(obj: Mapping[str, Any], depth: int) -> str:
    value = _words(obj.get("ratingValue"), depth)
    if not value:
        return ""
    best = _words(obj.get("bestRating"), depth)
    count = _words(obj.get("reviewCount"), depth) or _words(obj.get("ratingCount"), depth)
    return f"{value}{f' of {best}' if best else ''}{f' ({count} ratings)' if count else ''}"


def _offer(obj: Mapping[str, Any], depth: int) -> str:
    currency = _words(obj.get("priceCurrency"), depth)
    low, high = _words(obj.get("lowPrice"), depth), _words(obj.get("highPrice"), depth)
    price = _words(obj.get("price"), depth) or (f"{low} to {high}" if low and high else low or high)
    skip = frozenset({"priceCurrency", "lowPrice", "highPrice", "price"})
    shown = f"{price} {currency}".strip() if price else ""
    parts = (name_of(obj), shown, _fields(obj, depth, skip=skip))
    return ", ".join(part for part in parts if part)


def _amount(obj: Mapping[str, Any], depth: int) -> str:
    value = _words(obj.get("value"), depth)
    low, high = _words(obj.get("minValue"), depth), _words(obj.get("maxValue"), depth)
    value = value or (f"{low} to {high}" if low and high else low or high)
    unit = _words(obj.get("unitText"), depth) or _words(obj.get("unitCode"), depth)
    currency = _words(obj.get("currency"), depth)
    said = " ".join(part for part in (value, currency, unit) if part) if value else ""
    name = name_of(obj)
    return f"{name}: {said}" if name and said else said or name


def _hours(obj: Mapping[str, Any], depth: int) -> str:
    days = ", ".join(_each(obj.get("dayOfWeek"), depth)).title()
    opens, closes = _words(obj.get("opens"), depth), _words(obj.get("closes"), depth)
    return " ".join(part for part in (days, f"{opens}-{closes}" if opens or closes else "") if part)


def _question(obj: Mapping[str, Any], depth: int) -> str:
    answers = [
        text
        for key in ("acceptedAnswer", "suggestedAnswer")
        for answer in _listed(obj.get(key))
        if (text := _words(answer.get("text") if isinstance(answer, Mapping) else answer, depth))
    ]
    asked = name_of(obj) or _words(obj.get("text"), depth)
    return "\n".join(part for part in (asked, *dict.fromkeys(answers)) if part)


def _nothing(_obj: Mapping[str, Any], _depth: int) -> str:
    return ""


_SPECIAL: dict[str, Callable[[Mapping[str, Any], int], str]] = {
    "PostalAddress": _address,
    "AggregateRating": _rating,
    "Rating": _rating,
    "Offer": _offer,
    "AggregateOffer": _offer,
    "QuantitativeValue": _amount,
    "MonetaryAmount": _amount,
    "PropertyValue": _amount,
    "OpeningHoursSpecification": _hours,
    "Question": _question,
    "ImageObject": _nothing,
    "GeoCoordinates": _nothing,
    "GeoShape": _nothing,
    "VideoObject": _nothing,
    "InteractionCounter": _nothing,
}


# ---------------------------------------------------------------- for prompts


def trimmed(obj: Any, limit: int = MAX_TRIMMED) -> Any:
    """What a ranking prompt should see of an object: its type and name, then the most telling properties,
    long ones cut, as many as fit into `limit` characters of JSON."""
    if isinstance(obj, str):
        return shortened(plain(obj), max(1, limit - 2))
    if isinstance(obj, list | tuple):
        return _fitting_list(obj, limit)
    if not isinstance(obj, Mapping):
        return obj if _size(obj) <= limit else None
    result: dict[str, Any] = {}
    types = type_names(obj)
    if types:
        result["@type"] = types[0] if len(types) == 1 else list(types[:3])
    if name := name_of(obj):
        result["name"] = shortened(name, 150)
    for key in _ordered(obj):
        room = limit - _size(result) - len(key) - 6
        if room < 20:
            break
        share = _SHARE.get(key, 300) * min(limit, MAX_TRIMMED) // MAX_TRIMMED
        value = _compact(obj[key], 0, min(room, share))
        if value not in (None, "", [], {}) and value != result.get("name"):
            result[key] = value
    return result if _size(result) <= limit else {}


# Of `MAX_TRIMMED` characters.
_SHARE = {"description": 500, "recipeIngredient": 450, "recipeInstructions": 350, "articleBody": 500}


def _compact(value: Any, depth: int, room: int) -> Any:
    """`value` in at most `room` characters of JSON; None where nothing of use fits."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int | float):
        return value if _size(value) <= room else None
    if isinstance(value, str):
        said = _string_words(value[: room * MARKED_UP]).replace("\n", " ")
        while said and _size(said) > room:  # quotes and backslashes count twice
            said = shortened(said, len(said) - max(1, _size(said) - room)) if len(said) > 2 else ""
        return said or None
    if depth >= 3:
        return None
    if isinstance(value, list | tuple):
        return _compact_list(value, depth, room)
    if isinstance(value, Mapping):
        said = _object_words(value, _MAX_DEPTH - 3)
        return _compact(said, depth + 1, room)
    return None


def _compact_list(values: Iterable[Any], depth: int, room: int) -> Any:
    kept: list[Any] = []
    used = 2
    for value in _listed(values if isinstance(values, list | tuple) else list(values)):
        if room - used < 10:
            break
        one = _compact(value, depth + 1, room - used - 2)
        if one in (None, "", []) or one in kept:
            continue
        kept.append(one)
        used += _size(one) + 2
    return kept[0] if len(kept) == 1 else kept


def _fitting_list(values: list[Any] | tuple[Any, ...], limit: int) -> list[Any]:
    kept: list[Any] = []
    used = 2
    for value in values[:_MAX_LIST]:
        one = trimmed(value, max(0, min(limit - used - 2, MAX_TRIMMED)))
        if one in (None, "", {}, []):
            continue
        used += _size(one) + 2
        if used > limit:
            break
        kept.append(one)
    return kept


def _size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False))
