"""Which language a text is in, or "" when that is not sure; and the forms in which words are compared."""

from __future__ import annotations

import copy
import re
import threading
import unicodedata
from collections import Counter
from functools import cache, lru_cache

from py3langid.langid import MODEL_FILE, LanguageIdentifier

LOOKED_AT_CHARS = 2000
# How many times its length, and how many characters beside, a text may have when its signs are made plain.
MOST_GROWN, GROWN = 3, 200
LONG_CHARS = 500
_SURE_LONG = 0.5  # of the identifier, on texts of _LONG_WORDS or more
_SURE_SHORT = 0.85  # ... on shorter ones without a function word to go by
_SURE_WITH_WORDS = 0.1  # ... where function words say the same
_LONG_WORDS = 12
_SHORT_WORDS = 4  # fewer words than this tell nothing by their letters: names look like any language

# Scripts that one language has to itself, or nearly so: letters -> language. Counted, not guessed.
_SCRIPTS = (
    ("ko", "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af"),
    ("ja", "\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f"),
    ("zh", "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"),
    ("th", "\u0e00-\u0e7f"),
    ("lo", "\u0e80-\u0eff"),
    ("my", "\u1000-\u109f"),
    ("km", "\u1780-\u17ff"),
    ("el", "\u0370-\u03ff\u1f00-\u1fff"),
    ("he", "\u0590-\u05ff"),
    ("hy", "\u0530-\u058f"),
    ("ka", "\u10a0-\u10ff"),
    ("bn", "\u0980-\u09ff"),
    ("pa", "\u0a00-\u0a7f"),
    ("gu", "\u0a80-\u0aff"),
    ("or", "\u0b00-\u0b7f"),
    ("ta", "\u0b80-\u0bff"),
    ("te", "\u0c00-\u0c7f"),
    ("kn", "\u0c80-\u0cff"),
    ("ml", "\u0d00-\u0d7f"),
    ("si", "\u0d80-\u0dff"),
    ("am", "\u1200-\u137f"),
)
_CYRILLIC = "\u0400-\u052f"
_ARABIC = "\u0600-\u06ff\u0750-\u077f"
_DEVANAGARI = "\u0900-\u097f"
_SHARED = {
    "cyrillic": (_CYRILLIC, ("ru", "uk", "be", "bg", "sr", "mk", "kk", "ky", "mn", "tg")),
    "arabic": (_ARABIC, ("ar", "fa", "ur", "ps", "ug")),
    "devanagari": (_DEVANAGARI, ("hi", "mr", "ne", "sa")),
}
_LATIN = (
    *(
        "en",
        "es",
        "it",
        "fr",
        "de",
        "pt",
        "nl",
        "ca",
        "gl",
        "eu",
        "ro",
        "pl",
        "cs",
        "sk",
        "sl",
        "hr",
        "hu",
        "fi",
    ),
    *(
        "et",
        "lv",
        "lt",
        "sv",
        "da",
        "no",
        "is",
        "tr",
        "az",
        "uz",
        "id",
        "tl",
        "vi",
        "sq",
        "af",
        "sw",
        "cy",
        "ga",
        "la",
    ),
)
# Written so much alike that a short text of one passes for another, and that many of their words meet.
_AKIN = (
    *({"zh", "ja"}, {"es", "pt", "gl", "ca"}, {"no", "da", "sv"}, {"cs", "sk"}, {"sl", "hr", "sr", "mk"}),
    *(
        {"ru", "uk", "be", "bg"},
        {"nl", "af"},
        {"tr", "az", "uz"},
        {"hi", "mr", "ne", "sa"},
        {"ar", "fa", "ur"},
    ),
)
_BY_SCRIPT = re.compile("|".join(f"(?P<{name}>[{letters}])" for name, letters in _SCRIPTS))
_BY_SHARED = re.compile("|".join(f"(?P<{name}>[{letters}])" for name, (letters, _) in _SHARED.items()))
_LETTER = re.compile(r"[^\W\d_]")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_NOT_LANGUAGE = re.compile(r"https?://\S+|(?<!\S)\S+@\S+|`[^`]*`")

# Small words of questions and sentences that hardly any name contains.
_FUNCTION_WORDS = {
    "en": "the of and is are was how what where when who why which does do did can with for from this"
    " that there many much any on at by an you i my me we it not have has should would best to"
    " about show give",
    "es": "el la los las de del y es son qué que cómo dónde cuándo quién cuál cuántos cuántas cuánto"
    " hay en con para por una un se está están mi sin más no cual como donde",
    "it": "il lo gli di del della dei delle e è sono che cosa come dove quando chi quale quali quanti"
    " quante quanto c'è ci con per una un nel nella da al alla senza più non mi dell",
    "fr": "le les des du de et est sont que quoi comment où quand qui quel quelle quels quelles combien"
    " y il avec pour une un dans sur au aux sans plus pas je c'est qu'est",
    "de": "der die das den dem des und ist sind war wie was wo wann wer warum welche welcher welches"
    " viele gibt mit für ein eine einen im in zu zum zur von nicht ich auf am ohne",
    "pt": "o os as do da dos das de e é são que como onde quando quem qual quais quantos quantas quanto"
    " há em no na com para por uma um não sem mais meu",
    "nl": "de het een en is zijn hoe wat waar wanneer wie waarom welke hoeveel er met voor van op te"
    " niet ik zonder naar bij",
    "sv": "och är hur vad var när vem varför vilka vilken många det den en ett med för på av till inte"
    " jag utan",
    "da": "og er hvordan hvad hvor hvornår hvem hvorfor hvilke mange det den en et med for på af til"
    " ikke jeg uden",
    "no": "og er hvordan hva hvor når hvem hvorfor hvilke mange det den en et med for på av til ikke"
    " jeg uten",
    "pl": "jest są jak co gdzie kiedy kto dlaczego który która które ile i w z na do nie się dla bez od",
    "cs": "je jsou jak co kde kdy kdo proč který která které kolik a v s na do ne se pro bez od",
    "ro": "este sunt cum ce unde când cine care câți câte și în cu pentru din la nu un o fără",
    "ca": "el els les de i és són què com on quan qui quin quina quants quantes amb per una un hi ha sense",
    "tr": "ve bir bu ne nasıl nerede kim kaç hangi için ile mi mı var değil",
    "hu": "a az és van hol mikor ki mi hogyan hány melyik nem egy",
    "fi": "on ja missä milloin kuka mikä miten kuinka monta ei että",
    "id": "yang di dan apa bagaimana mana kapan siapa berapa ada dengan untuk dari ini itu",
    "vi": "là có bao nhiêu ở đâu khi nào ai gì như thế và của cho với không",
}
_FUNCTION_WORDS_OF = {language: frozenset(words.split()) for language, words in _FUNCTION_WORDS.items()}
_SPEAKS_FOR: dict[str, frozenset[str]] = {}
for _language, _words in _FUNCTION_WORDS.items():
    for _word in _words.split():
        _SPEAKS_FOR[_word] = _SPEAKS_FOR.get(_word, frozenset()) | {_language}

_loading = threading.Lock()


def normalized(text: str) -> str:
    """Unicode's compatibility composition (NFKC): full-width letters, ligatures and the like made plain. A
    text that would grow by that as no text of people does (one sign may become eighteen) keeps its signs."""
    if text.isascii():
        return text
    return _normalized(text) if len(text) <= LONG_CHARS else _normalized_once(text)


def _normalized(text: str) -> str:
    plain = unicodedata.normalize("NFKC", text)
    return plain if len(plain) <= MOST_GROWN * len(text) + GROWN else unicodedata.normalize("NFC", text)


# A long question is made plain many times on its way, a word once.
_normalized_once = lru_cache(maxsize=64)(_normalized)


def folded(text: str) -> str:
    """For comparing: NFKC, case folded, and without accents on Latin, Greek and Cyrillic letters; the vowel
    signs of other scripts stay, as words differ by them."""
    text = normalized(text).casefold()
    if text.isascii():
        return text
    plain = "".join(char for char in unicodedata.normalize("NFD", text) if not "\u0300" <= char <= "\u036f")
    return unicodedata.normalize("NFC", plain)


def function_words(language: str) -> frozenset[str]:
    """The small words of a language's questions, lower case; none for a language we have no list of."""
    return _FUNCTION_WORDS_OF.get(language, frozenset())


def prepare() -> None:
    """Load the identifier's model (0.7 s of one core): in a thread at start, so that no question waits."""
    for languages in (_LATIN, *(languages for _, languages in _SHARED.values())):
        _identifier(languages)


def detect(text: str) -> str:
    """The ISO 639-1 code of the language `text` is in, or "" when it is too short or too mixed to say."""
    return _detected(text[:LOOKED_AT_CHARS])


@lru_cache(maxsize=4096)
def _detected(text: str) -> str:
    text = normalized(_NOT_LANGUAGE.sub(" ", text))
    letters = len(_LETTER.findall(text))
    if not letters:
        return ""
    own = _by_own_script(text, letters)
    if own is not None:
        return own
    shared = Counter(str(match.lastgroup) for match in _BY_SHARED.finditer(text))
    if shared:
        script, count = shared.most_common(1)[0]
        if count * 2 >= letters:
            return _identified(text, _SHARED[script][1])
    return _identified(text, _LATIN)


def akin(one: str, other: str) -> bool:
    """Whether they are one language or two that are easily taken for each other."""
    return one == other or any(one in group and other in group for group in _AKIN)


def _by_own_script(text: str, letters: int) -> str | None:
    counts = Counter(str(match.lastgroup) for match in _BY_SCRIPT.finditer(text))
    if not counts:
        return None
    # An ideograph says as much as three letters of a Latin name beside it.
    east = {name: counts[name] for name in ("ko", "ja", "zh") if counts[name]}
    total = letters + 2 * sum(east.values())
    if 3 * sum(east.values()) * 2 >= total:
        if east.get("ja", 0) * 10 >= sum(east.values()):
            return "ja"
        return max(east, key=lambda name: east[name])
    name, count = counts.most_common(1)[0]
    return name if name not in east and count * 2 >= letters else None


def _identified(text: str, languages: tuple[str, ...]) -> str:
    words = [word.replace("’", "'") for word in _WORD.findall(text)]
    ranked = _identifier(languages).rank(text)
    best, confidence = ranked[0]
    if len(words) >= _LONG_WORDS and confidence >= _SURE_LONG:
        return str(best)
    by_words = _by_function_words(words, dict(ranked))
    if by_words:
        return by_words
    return str(best) if len(words) >= _SHORT_WORDS and confidence >= _SURE_SHORT else ""


def _by_function_words(words: list[str], confidence: dict[str, float]) -> str:
    said = Counter(language for word in words for language in _SPEAKS_FOR.get(word.casefold(), ()))
    said = Counter({language: count for language, count in said.items() if language in confidence})
    if not said:
        return ""
    others = [word for word in words if word.casefold() not in _SPEAKS_FOR]
    if max(said.values()) == 1 and others and all(word[0].isupper() for word in others):
        return ""  # Los Angeles, Rio de Janeiro: one small word between names
    ranked = sorted(said, key=lambda language: (said[language], confidence[language]), reverse=True)
    best = ranked[0]
    rivals = [language for language in ranked[1:] if said[language] == said[best]]
    if any(confidence[best] < 2 * confidence[rival] for rival in rivals):
        return ""
    # One small word among many others may be a name's (La, Das): the letters have to agree.
    enough = _SURE_WITH_WORDS if said[best] * 3 >= len(words) else 2 * _SURE_WITH_WORDS
    return best if confidence[best] >= enough or said[best] >= 3 else ""


@cache
def _model() -> LanguageIdentifier:
    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


_identifiers: dict[tuple[str, ...], LanguageIdentifier] = {}


def _identifier(languages: tuple[str, ...]) -> LanguageIdentifier:
    """An identifier for these languages alone; the full model is shared between them."""
    with _loading:
        if languages not in _identifiers:
            identifier = copy.copy(_model())
            identifier.set_languages(languages)
            _identifiers[languages] = identifier
        return _identifiers[languages]
