"""A text as sentences made plain, and what of it a person states of themselves."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from core.language import detect
from core.phrase_rules import ABBREVIATION, ENGLISH, LANGUAGES, NEXT, QUESTION, SUPPOSED, TEXT_OF_OTHERS

MAX_ABBREVIATION = 12
BLOT = "\ue000"
_INVISIBLE = re.compile("[\u200b-\u200f\u2060\ufeff]")
# One character for one, so that what was said can be cut out as it was written.
_PLAIN = {code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)}
_PLAIN |= dict.fromkeys(map(ord, "\u2018\u2019\u02bc\u00b4`"), "'") | {0x3000: " ", 0x3001: ",", 0xFF61: "。"}
_QUOTED = re.compile(
    '["\u201c\u201d\u201e][^"\u201c\u201d]*(?:["\u201c\u201d]|$)'
    "|\u00ab[^\u00bb]*(?:\u00bb|$)|[\u300c\u300e\u300a][^\u300d\u300f\u300b]*(?:[\u300d\u300f\u300b]|$)"
    r"|(?<!\w)'(?=\w)[^\n]{0,100}?\w[.!?,]?'(?!\w)"
)
_SENTENCE_END = re.compile(
    r"(?<![.!?…])[.!?…]++(?=\s|$)|[。！？]+|(?<![!?])[!?]++(?=[^\x00-\x7f])|\n+|\.(?=[^\x00-\x7f])"
)
# "Remember that Ann hates garlic": a name, and a verb of the third person.
NAME_FIRST = re.compile(
    r"[A-ZÁÉÍÓÚÑÈÀÌÒÙ][\w'-]+(?:\s+[A-ZÁÉÍÓÚÑÈÀÌÒÙ][\w'-]+)*\s+(?:no\s+|non\s+)?"
    r"(?:is|was|has|does|doesn't|isn't|can't|\w+s|es|est[aá]|tiene|odia|ama|[eè]|ha|\w+[ae])\s"
)
CUT_ENDS = " \t\n.,!?;:。…~-"
# Where one clause of a sentence may end and another, with a subject of its own, begin.
_CLAUSE_END = re.compile(
    r"\s*[,;]+\s*|\s+-+\s+|\s+(?:and|but|while|whereas|pero|mientras|y|ma|mentre|e|und|aber|et|mais)\s+"
    r"|(?<=는데)\s+|(?<=니까)\s+|(?<=지만)\s+|(?:而|但是?)",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"[¿\s]*(?:do|does|did|is|are|was|were|can|could|would|will|should|shall|may|might|has|have|had|am"
    r"|what|which|who|whom|whose|where|when|why|how|any(?:body|one)|some(?:body|one)|no(?:body|[\s-]one)"
    r"|every(?:body|one)"
    r"|people|qu[eé]|cu[aá]l\w*|qui[eé]n\w*|d[oó]nde|cu[aá]ndo|c[oó]mo|alguien|nadie|hay|qualcuno|nessuno"
    r"|tutti|chi|che|cosa"
    r"|quale|quali|dove|quando|come|c'[eè])\b|[¿\s]*¿|(?:有没有|有沒有|有人|谁|誰|哪|什么|什麼|怎么|怎麼"
    r"|누가|누구|어디|뭐|혹시)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Piece:
    """A sentence as it was said, and made plain: of the same length."""

    said: str
    plain: str

    def part(self, start: int, end: int | None = None) -> Piece:
        """From `start` to `end`, of both."""
        return Piece(self.said[start:end], self.plain[start:end])

    def stripped(self) -> Piece:
        """Without the signs in front, and the spaces behind."""
        start = len(self.plain) - len(self.plain.lstrip(CUT_ENDS))
        return self.part(start, max(start, len(self.plain.rstrip(" \t\n"))))


def stated(text: str) -> tuple[str, str]:
    """What a text states of who wrote it; and the rest: questions, cases that are supposed, quotations, what
    is said of others, and texts that are handed over."""
    whole = plainly(text)
    language = detect(whole.said)
    kept: list[str] = []
    rest: list[str] = []
    theirs = False  # from here on
    for sentence in sentences(whole):
        theirs = theirs or TEXT_OF_OTHERS.search(sentence.plain) is not None
        for clause, is_stated in _clauses(sentence, language):
            (kept if is_stated and not theirs else rest).append(clause.plain.replace(BLOT, " "))
            rest.append("".join(a for a, b in zip(clause.said, clause.plain, strict=True) if b == BLOT))
    return "\n".join(kept), "\n".join(rest)


def plainly(text: str) -> Piece:
    """A text without what is not seen in it, made plain for the patterns; quotations are blotted out."""
    said = _INVISIBLE.sub("", unicodedata.normalize("NFC", text))
    said = "\n".join(line for line in (" ".join(line.split()) for line in said.splitlines()) if line)
    plain = said.translate(_PLAIN)
    return Piece(said, _QUOTED.sub(lambda found: BLOT * len(found[0]), plain))


def sentences(whole: Piece) -> Iterator[Piece]:
    """Its sentences, one after the other."""
    start = 0
    for end in _SENTENCE_END.finditer(whole.plain):
        if end[0] == "." and ABBREVIATION.search(
            whole.plain[max(start, end.start() - MAX_ABBREVIATION) : end.start()]
        ):
            continue
        yield whole.part(start, end.end()).stripped()
        start = end.end()
    if whole.plain[start:].strip(CUT_ENDS):
        yield whole.part(start).stripped()


def _clauses(sentence: Piece, language: str) -> Iterator[tuple[Piece, bool]]:
    """The clauses of a sentence, and whether the person states them of themselves."""
    asked = QUESTION.search(sentence.plain) is not None
    supposed = SUPPOSED.match(sentence.plain) is not None
    parts = list(_parts(sentence))
    own = False
    for number, part in enumerate(parts):
        # What is asked stands last, or everywhere.
        is_asked = asked and (number == len(parts) - 1 or _ASKS.match(part.plain) is not None)
        own = not is_asked and _is_own(part, language, before=own, first=number == 0)
        yield part, own and not supposed and not is_asked


def _parts(sentence: Piece) -> Iterator[Piece]:
    ends = {found.span() for found in _CLAUSE_END.finditer(sentence.plain)}
    ends |= {(found.start(), found.start()) for found in NEXT.finditer(sentence.plain, 1)}
    start = 0
    for end, following in sorted(ends):
        if sentence.plain[start:end].strip(CUT_ENDS):
            yield sentence.part(start, end)
            start = following
    yield sentence.part(start)


def _is_own(clause: Piece, language: str, *, before: bool, first: bool) -> bool:
    """Whether a clause is about who speaks: by its own words, else as the clause before it was."""
    plain = clause.plain.strip() + " "
    if any(rules.others.match(plain) for rules in LANGUAGES):
        return False
    if ENGLISH.own.match(plain):
        return True
    if NAME_FIRST.match(plain):
        return False
    owned = any(rules.own.match(plain) for rules in LANGUAGES if rules is not ENGLISH)
    # Other languages leave out who speaks; in English that is done behind another clause only.
    return before or (language != "en" and (owned or first))
