"""What a message asks of the memory in so many words: what there is to go by without a model, and what a
model's reading is held against.

A message is read sentence by sentence. What it asks stands at its beginning, behind a greeting perhaps, or
is its last sentence; in the middle of a text, in quotation marks, or where another text is handed over it is
not the person's request. The patterns are in `core.phrase_rules`.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

from core.language import detect
from core.memory.claims import is_sensitive, kind_of
from core.memory.facts import Request
from core.phrase_rules import (
    CUE,
    CUED,
    DENIED,
    ENGLISH,
    HANDED_OVER,
    I_FIRST,
    KOREAN,
    LANGUAGES,
    LEAD,
    NAME,
    NEXT,
    NO_MORE,
    NOT_ASKED,
    POLITE_QUESTION,
    QUESTION,
    REFERS_BACK,
    SPOKEN,
    SUPPOSED,
    TAIL,
    WORD,
    Rules,
)
from core.sentences import BLOT, CUT_ENDS, NAME_FIRST, Piece, plainly, sentences

__all__ = ["Asked", "asked_of_memory", "is_sensitive", "may_ask_to_remember"]

# A request is short, and the patterns look at every place where one could begin and end.
MAX_REQUEST_CHARS = 600
MAX_BESIDE = 3  # other sentences before a request that stands last: more of them are a text
MAX_SENTENCE_CHARS = 300  # what is longer is no request
MAX_SENTENCES = 12  # in which a wish is looked for
MAX_LEADS = 4  # greetings and the like in front of a request
_THAT_BEFORE = re.compile(r"\bthat\s+$", re.IGNORECASE)
# Korean nouns that end in "이" of themselves; behind another consonant it is "to be".
_ENDS_IN_I = ("잡이", "양이", "린이", "둥이", "쟁이", "벌이", "놀이", "먹이")
_ASKED_END = re.compile(r"[?\s吗嗎]+$")


@dataclass(frozen=True, slots=True)
class Asked:
    """What a message asks of the memory; `more`: it says something else, too, that wants an answer."""

    requests: tuple[Request, ...] = ()
    more: bool = False


def asked_of_memory(text: str) -> Asked:
    """To remember facts, to forget one or all, or to tell what is kept; and whether there is more to it."""
    if len(" ".join(text.split())) > MAX_REQUEST_CHARS:
        return Asked(more=True)
    whole = plainly(text)
    waiting = deque(sentences(whole))
    found: list[Request] = []
    beside: list[Piece] = []
    while waiting:
        piece = _without_lead(waiting.popleft())
        if not piece.plain.strip(CUT_ENDS):
            continue
        if _takes_back(piece):
            found = [request for request in found if request.action != "remember"]
        if beside and (waiting or not _trusted(beside)):
            beside.append(piece)
            continue
        if beside and (said := _said_before(piece, beside[-1])):
            found.append(said)
            beside.pop()
            continue
        requests, rest = _requests(piece)
        found += requests
        if not requests:
            beside.append(piece)
        elif rest is not None:
            waiting.appendleft(rest)
    return Asked(_settled(found, more=bool(beside)), bool(beside))


def may_ask_to_remember(text: str) -> bool:
    """Whether a message can be meant as a request to remember something of its writer, in any build of
    sentence: a model that reads one out of anything else is wrong.

    Some sentence, outside of quotation marks, has a word by which one asks for that, is no mere question,
    says nothing to the contrary, and is not about somebody else.
    """
    whole = plainly(text)
    if any(request.action == "remember" for request in asked_of_memory(text).requests):
        return True
    if any(DENIED.search(sentence.plain[:MAX_SENTENCE_CHARS]) for sentence in _first_sentences(whole)):
        return False
    cued = detect(whole.said) in CUED
    before: list[Piece] = []
    for sentence in _first_sentences(whole):
        if not _trusted(before):
            return False
        if len(sentence.plain) > MAX_SENTENCE_CHARS:
            before.append(sentence)
            continue
        head = _head(sentence)
        if _may_ask(head) and (CUE.search(head.plain) or not cued):
            return True
        if _without_lead(sentence).plain.strip(CUT_ENDS):
            before.append(sentence)
    return False


def _may_ask(piece: Piece) -> bool:
    """Whether nothing in a sentence says that it is no request, or one about somebody else."""
    denied = any(
        _is_question(one) or NOT_ASKED.match(one.plain) or SUPPOSED.match(one.plain)
        for one in (piece, _without_lead(piece))
    )
    return not denied and not _names_others(piece)


# ---------------------------------------------------------------- the text


def _first_sentences(whole: Piece) -> Iterator[Piece]:
    return islice(sentences(whole), MAX_SENTENCES)


def _without_lead(piece: Piece) -> Piece:
    """Without the greeting, the name, the "also" in front of a request; elsewhere without a greeting."""
    for _ in range(MAX_LEADS):
        greeting = LEAD.match(piece.plain)
        found = greeting or NAME.match(piece.plain)
        if found is None or not found[0]:
            break
        rest = piece.part(found.end()).stripped()
        named = _behind_a_name(rest) if greeting else rest if _begins_as_request(rest) else None
        if named is None and (not greeting or _begins_as_request(piece)):
            break
        piece = named or rest
    return piece


def _behind_a_name(piece: Piece) -> Piece | None:
    """The request that begins here, or behind one or two words: "hey Anna, ..."."""
    whole = piece
    for _ in range(3):
        if _begins_as_request(piece):
            denial = DENIED.search(whole.plain)
            return None if denial and denial.start() < len(whole.plain) - len(piece.plain) else piece
        word = WORD.match(piece.plain)
        if word is None:
            return None
        piece = piece.part(word.end()).stripped()
    return None


def _begins_as_request(piece: Piece) -> bool:
    return _request(_head(piece)) is not None


def _head(piece: Piece) -> Piece:
    """A sentence up to the search that may stand beside the request in it."""
    at = _next(piece)
    return piece if at is None else piece.part(0, at)


def _next(piece: Piece) -> int | None:
    found = NEXT.search(piece.plain, 1)
    # What looks like a question may be the "ok?" behind the request.
    return found.start() if found and found.start() < len(_without_tail(piece).plain) else None


def _is_question(piece: Piece) -> bool:
    plain = TAIL.sub("", piece.plain)
    return QUESTION.search(plain) is not None and not POLITE_QUESTION.match(plain)


# ---------------------------------------------------------------- what is asked


def _requests(piece: Piece) -> tuple[list[Request], Piece | None]:
    """What a sentence asks, and the rest of it that is still to be read."""
    whole = _request(piece)
    if whole is not None and whole.action == "list":
        return [whole], None
    at = _next(piece)
    if at is not None and (first := _request(piece.part(0, at))) is not None:
        return [first], piece.part(at).stripped()
    return ([whole], None) if whole is not None else ([], None)


def _request(piece: Piece) -> Request | None:
    if len(piece.plain) > MAX_SENTENCE_CHARS:
        return None
    cut = _without_tail(piece)
    if any(pattern.fullmatch(cut.plain) for rules in LANGUAGES for pattern in rules.listing):
        return Request(text="", action="list")
    if _is_question(piece):
        return None
    for rules in LANGUAGES:
        if any(pattern.fullmatch(cut.plain) for pattern in rules.forget_all):
            return Request(text="", action="forget", everything=True)
    for rules in LANGUAGES:
        for pattern in rules.remember:
            fact = _fact(cut, pattern, wanted=True)
            if fact is not None and _is_of_the_person(fact, rules):
                text = _written(fact, rules)
                return Request(text=text, kind=kind_of(text), sensitive=is_sensitive(text))
    for rules in LANGUAGES:
        for pattern in rules.forget:
            if (fact := _fact(cut, pattern)) and not SPOKEN.match(fact.plain):
                certain = not DENIED.search(cut.plain) or NO_MORE.search(cut.plain) is not None
                return Request(text=_written(fact, rules), action="forget", certain=certain)
    return None


def _fact(piece: Piece, pattern: re.Pattern[str], *, wanted: bool = False) -> Piece | None:
    """What a sentence of this build tells; where that is `wanted`, nothing around it may deny it."""
    found = pattern.fullmatch(piece.plain)
    if found is None or (wanted and _is_denied(piece, *found.span("fact"))):
        return None
    fact = _without_tail(piece.part(*found.span("fact")).stripped())
    return None if not fact.plain or SUPPOSED.match(fact.plain) else fact


def _is_denied(piece: Piece, start: int, end: int) -> bool:
    """Whether it is denied that something be kept, in other words than those from `start` to `end`."""
    return any(not start <= said.start() <= said.end() <= end for said in DENIED.finditer(piece.plain))


def _takes_back(piece: Piece) -> bool:
    plain = _without_tail(piece).plain[:MAX_SENTENCE_CHARS]
    return any(REFERS_BACK.match(plain, said.end()) for said in DENIED.finditer(plain))


def _is_of_the_person(fact: Piece, rules: Rules) -> bool:
    """Whether who speaks is meant, and not somebody else or a mere name of a thing."""
    plain = fact.plain + " "
    if rules.others.match(plain) or not rules.own.match(plain):
        return False
    return len(fact.plain) > 2 and not fact.plain.startswith(BLOT)


def _without_tail(piece: Piece) -> Piece:
    """Without "please", "ok?", and the like behind it."""
    while (found := TAIL.search(piece.plain)) or (found := _ASKED_END.search(piece.plain)):
        piece = piece.part(0, found.start())
    return piece


def _said_before(piece: Piece, before: Piece) -> Request | None:
    """The statement in the sentence before "remember that", if it is said of the person."""
    that = _without_tail(piece)
    cut = _without_tail(before)
    if _is_question(before) or SUPPOSED.match(cut.plain):
        return None
    for rules in LANGUAGES:
        if rules.that.fullmatch(that.plain) and _is_of_the_person(cut, rules):
            if rules is ENGLISH and not I_FIRST.match(cut.plain):
                return None
            return Request(text=cut.said, kind=kind_of(cut.said), sensitive=is_sensitive(cut.said))
    return None


def _trusted(beside: list[Piece]) -> bool:
    return len(beside) <= MAX_BESIDE and not any(HANDED_OVER.search(piece.plain) for piece in beside)


def _settled(found: list[Request], *, more: bool) -> tuple[Request, ...]:
    """Beside something else, what is to be forgotten is asked about: it was said in passing."""
    return tuple(
        replace(request, certain=False) if more and request.action == "forget" else request
        for request in found
    )


def _names_others(piece: Piece) -> bool:
    """Whether what is to be remembered is about somebody else, as far as the words around it tell."""
    for rules in LANGUAGES:
        found = rules.named.search(piece.plain)
        if found is None:
            continue
        fact = found["fact"] + " "
        if (
            rules is ENGLISH
            and _THAT_BEFORE.search(piece.plain[: found.start("fact")])
            and not rules.own.match(fact)
        ):
            return True
        if rules.others.match(fact) or fact.startswith(BLOT):
            return True
        if NAME_FIRST.match(fact) and not rules.own.match(fact):
            return True
    return False


def _written(fact: Piece, rules: Rules) -> str:
    """The fact as a sentence of its own: Korean says what is to be remembered in a clause."""
    return _korean(fact.said) if rules is KOREAN else fact.said


def _korean(clause: str) -> str:
    """A quoting clause as a statement: "한다고" and "한다는 것을" as "한다", "하는 것" as well."""
    said = re.sub(r"\s*(?:한|말한)?\s*(?:(?:것|거|점|사실)(?:을|를|은|도)?|걸)\s*$", "", clause)
    if said.endswith(("다고", "다는")):
        return said[:-1]
    if said.endswith(("라고", "라는")):
        noun = said[:-2]
        if noun.endswith("아니"):
            return noun + "다"
        is_to_be = _closed(noun[-2:-1]) or noun[-2:-1].isdecimal()
        return noun[:-1] if noun.endswith("이") and is_to_be and not noun.endswith(_ENDS_IN_I) else noun
    if said.endswith(("있는", "없는")):
        return said[:-1] + "다"
    if said.endswith("는") and said != clause and len(said) > 1:
        stem = said[:-1]
        # A syllable without a final consonant takes the \u3134 of "-\u3134다"; others take "는다".
        return said + "다" if _closed(stem[-1]) else stem[:-1] + chr(ord(stem[-1]) + 4) + "다"
    return clause


def _closed(syllable: str) -> bool:
    """Whether a Hangul syllable ends in a consonant (Unicode, 3.12: the index modulo 28)."""
    return len(syllable) == 1 and "가" <= syllable <= "힣" and (ord(syllable) - 0xAC00) % 28 != 0
