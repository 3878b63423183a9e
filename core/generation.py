"""Write an answer from stored items: facts to a budget, streamed, every `[n]` a source that was given.

What the model writes is shown from its first valid citation on: an answer that rests on no source never
reaches a reader, neither in pieces nor as a whole. Only the plain word that the sources don't answer the
question (`found` is `nothing`) stands without one.
"""

from __future__ import annotations

import math
import re
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

import orjson

from core.documents import Candidate
from core.errors import BadModelReply
from core.ingestion.text import trimmed
from core.items import language_of, told
from core.language import detect, folded, function_words, normalized
from core.messages import FOUND, AnswerDelta, Found, GeneratedAnswer, Item, Summary
from core.pace import Pace
from core.passages import asked_words, best_of, has_kind, keys
from core.prompting.ask import Prompter, call_of, parsed
from core.prompting.fill import fill
from core.prompting.library import Prompt
from core.providers.base import Usage
from core.providers.bm25 import tokens
from core.query import Query

SYNTHESIZE = "SynthesizePromptForGenerate"
SUMMARIZE = "SummarizeResultsPrompt"
# Room for facts in one prompt; about 4,000 tokens, which leaves a small model's window room to answer.
FACTS_CHARS = 16_000
SUMMARIZED = 3  # NLWeb's number: the summary is of the best three
WITHOUT_MODEL = 3  # sources at most that an extractive answer takes sentences from
NEARLY = 0.75  # of what the best source has of the question, for another to be taken beside it
ANSWER_WORTH = 0.8  # of the rarest word: a number where one was asked for
ANSWER_KEY = "answer"
FOUND_KEY = "found"
URLS_KEY = "urls"
NOTHING: Found = "nothing"

_CITATION = re.compile(r"\[(\d{1,6})\]")
_WORD = re.compile(r"\w")
# What may be a citation as models write them: brackets of any script, doubled or escaped, then the target of
# a link or the address of a Markdown reference; with the blanks before it. Blanks are taken once and never
# given back, so that a text full of them takes no longer than another.
_LEFT, _RIGHT = r"\[【［〔〖", r"\]】］〕〗"
_OPENS, _CLOSES = rf"(?:\\?[{_LEFT}]\s*+){{1,4}}", rf"(?:\s{{0,8}}+\\?[{_RIGHT}]){{1,4}}"
_BETWEEN = rf"[^{_LEFT}{_RIGHT}]"
_BRACKETS = re.compile(
    rf"(?<![ \t])(?P<blanks>[ \t]*+)(?P<opens>{_OPENS})(?P<inside>{_BETWEEN}{{1,200}}?)(?P<closes>{_CLOSES})"
    r"(?:\((?:https?://|www\.|[#/])[^()\n]{0,500}\)|:[ \t]*+<?(?:https?://|www\.)\S{1,500})?"
)
# The end of a piece that may go on to be that; white space before it or at the end, too.
_OPEN = re.compile(
    rf"(?<!\s)\s*+(?:\\|{_OPENS}{_BETWEEN}{{0,200}}"
    rf"(?:{_CLOSES}\s*+\\?(?:\([^()\n]{{0,500}}|:[ \t]*+\S{{0,500}})?)?)?$"
)
# What stands in such brackets: numbers, ranges of them, what they are called in some languages, `3†source`.
_CALLED = (
    r"(?:sources?|src|docs?|documents?|ref(?:erence)?s?|citations?|cite|n|no|nr|quellen?|font[ei]|fuentes?"
    r"|источники?|来源|來源|出典|출처)"
)
_NUMBER = (
    rf"(?P<called>[\^#]|{_CALLED}[\s.:=#]*)?(?P<first>\d{{1,6}})\^?"
    r"(?:\s*(?:[-‐‑–—−~]|to)\s*[\^#]?(?P<last>\d{1,6})\^?)?"
    r"(?:(?::\d{1,4})?†[^,;]{0,60})?"
)
_ONE = re.compile(_NUMBER, re.IGNORECASE)
_BARE = re.sub(r"\?P<\w+>", "?:", _NUMBER)
_SEVERAL = re.compile(
    rf"{_BARE}(?:(?:[\s,;、，/&+]|\b(?:and|or|und|oder|et|ou|e|o|y)\b|和|と|및)+{_BARE})*", re.IGNORECASE
)
# A number in brackets that is a year, and no citation unless there are so many sources.
YEARS = range(1500, 2200)


@dataclass(frozen=True, slots=True)
class Source:
    """A fact for the answer: number `n` (from 1), the item, and the passage that was found in it."""

    n: int
    item: Item
    candidate: Candidate

    @property
    def told(self) -> dict[str, Any]:
        """What the model sees."""
        seen = trimmed(self.candidate.document.schema_object)
        return {
            "n": self.n,
            "url": self.item.url,
            "name": uncited(self.item.name),
            "text": uncited(self.candidate.text),
            "item": uncited(seen),
        }

    @property
    def shown(self) -> dict[str, Any]:
        """What the client sees."""
        return {
            "n": self.n,
            "url": self.item.url,
            "name": self.item.name,
            "description": self.item.description,
            "site": self.item.site,
            "schema_object": self.item.schema_object,
            "document_id": self.item.document_id,
        }


def uncited(value: Any) -> Any:
    """A source's own text without what would be taken for a citation of a source if an answer repeats it:
    its `[2]` becomes `(2)`."""
    if isinstance(value, str):
        return _BRACKETS.sub(_in_parentheses, value)
    if isinstance(value, Mapping):
        return {uncited(key): uncited(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [uncited(inner) for inner in value]
    return value


def _in_parentheses(found: re.Match[str]) -> str:
    numbers = _numbers(found["inside"], ())
    if numbers is None:
        return found[0]
    target = found.string[found.end("closes") : found.end()]
    return f"{found['blanks']}({found['inside'].strip()}){target}"


def _numbers(inside: str, known: Collection[int]) -> list[int] | None:
    """The known sources that the text of a pair of brackets cites; None if that is no citation but text."""
    inside = inside.strip(" \t\r\n\\*_`\u200b\u200c\u200d\u2060\ufeff")
    if not _SEVERAL.fullmatch(inside):
        return None
    entries = list(_ONE.finditer(inside))
    cited: list[int] = []
    for one in entries:
        first, last = int(one["first"]), int(one["last"] or one["first"])
        cited += [n for n in sorted(known) if first <= n <= last or n in (first, last)]
    if not cited and all(not one["called"] and int(one["first"]) in YEARS for one in entries):
        return None
    return list(dict.fromkeys(cited))


async def choose(found: Sequence[tuple[Item, Candidate]], budget: int = FACTS_CHARS) -> list[Source]:
    """The best items that fit into `budget` characters of JSON, numbered. One that does not fit is passed
    over, and a smaller one after it may still have its place."""
    chosen: list[Source] = []
    pace = Pace()
    for item, candidate in found:
        source = Source(len(chosen) + 1, item, candidate)
        size = len(orjson.dumps(source.told, default=str))
        if size <= budget:
            chosen.append(source)
            budget -= size
        await pace.turn()
    return chosen


async def generate(
    prompter: Prompter, query: Query, sources: Sequence[Source], usage: Usage
) -> AsyncGenerator[AnswerDelta | GeneratedAnswer, None]:
    """The answer in pieces while the model writes it, then once as a whole, which is the pieces joined.

    Raises ModelError and its kinds; BadModelReply where the reply has no answer in it, or one that cites no
    source that was given and does not say that there is nothing.
    """
    prompt = prompter.find(SYNTHESIZE, query)
    if prompt is None:
        raise BadModelReply(f"there is no `{SYNTHESIZE}` for this site")
    values = await prompter.values_for(prompt, query)
    filled = fill(prompt, {**values, "request.answers": [source.told for source in sources]})
    call = replace(call_of(prompt, filled, query, tier="high"), written=True)
    reader = AnswerReader(structured=prompt.reply is not None)
    answer = Written({source.n for source in sources})
    raw: list[str] = []
    async with aclosing(prompter.model.stream(call, usage)) as pieces:
        async for piece in pieces:
            raw.append(piece)
            text = reader.feed(piece)
            if shown := answer.feed(text, nothing=reader.found == NOTHING):
                yield AnswerDelta(shown)
    reply = await _read("".join(raw), prompt) if not answer.stands else {}
    found = _found(reader.found or reply.get(FOUND_KEY) or await _said_after("".join(raw), prompt))
    # A reply of another shape than a stream can be read in is repaired as a whole.
    shown = "" if answer.fed else answer.feed(str(reply.get(ANSWER_KEY) or ""))
    if not answer.stands and found != NOTHING:
        # Prompts without numbers (NLWeb's) name their sources by address alone.
        shown += answer.cite(_named(reply.get(URLS_KEY), sources))
    if shown := shown + answer.close(nothing=found == NOTHING):
        yield AnswerDelta(shown)
    yield replace(whole(answer.text, sources), found=_weighed(found, cited=answer.cited))


async def _read(raw: str, prompt: Prompt) -> dict[str, Any]:
    """The keys of a whole reply; a plain text is the answer. Raises BadModelReply."""
    return {ANSWER_KEY: raw} if prompt.reply is None else await parsed(prompt.reply, raw)


async def _said_after(raw: str, prompt: Prompt) -> Any:
    """How much was found, where the reply says so behind an answer that has been read already."""
    try:
        return (await _read(raw, prompt)).get(FOUND_KEY)
    except BadModelReply:
        return None


def _found(said: Any) -> Found | None:
    """How much the model says it found; None where its prompt does not ask, or it says something else."""
    word = str(said or "").strip().casefold()
    return next((one for one in FOUND if one == word), None)


def _weighed(found: Found | None, *, cited: bool) -> Found | None:
    """`found` in the light of what is cited: an answer that rests on a source found something."""
    return "part" if found == NOTHING and cited else found


def _named(addresses: Any, sources: Sequence[Source]) -> list[int]:
    """The numbers of the sources with these addresses."""
    if not isinstance(addresses, list):
        return []
    number = {source.item.url: source.n for source in reversed(sources) if source.item.url}
    return list(dict.fromkeys(number[one] for one in map(str, addresses) if one in number))


async def extract(query: Query, sources: Sequence[Source]) -> GeneratedAnswer:
    """An answer without a model: what the sources say of the question in their own sentences, each cited.

    Those that have nearly as much of the question as the best are taken; where none has anything of its words
    (it may be in another language), the first few as the search had them.
    """
    asked = query.decontextualized_query or " ".join([query.text, *query.prev[-1:]])
    language = query.language or detect(asked)
    pace = Pace()
    taken = []
    for source in sources:
        taken.append(_Taken.of(source, asked))
        await pace.turn()
    weighed = [_Weight(word, taken) for word in _words(asked, language)]
    worth = [sum(word.rarity for word in weighed if one in word.said_by) for one in taken]
    # A number where one was asked for, or a word for the same thing, is worth as much as a rare word.
    answer = ANSWER_WORTH * max((word.rarity for word in weighed), default=1.0)
    worth = [sum_ + answer * one.answers for sum_, one in zip(worth, taken, strict=True)]
    least = NEARLY * max(worth, default=0.0)
    best = [one for one, value in zip(taken, worth, strict=True) if value >= least]
    said = "\n\n".join(one.shown for one in best[:WITHOUT_MODEL])
    return replace(whole(said, sources), extractive=True)


@dataclass(frozen=True, slots=True, eq=False)
class _Taken:
    """What an extractive answer would take of a source, and what that has of the question."""

    source: Source
    passage: str
    answers: bool  # it has the kind of thing that was asked for
    words: frozenset[int]  # of the name and the passage
    everything: frozenset[int]  # of the name and all that was found of the item
    language: str

    @classmethod
    def of(cls, source: Source, asked: str) -> _Taken:
        """The passage that answers best; the item's first sentences where only its name answers."""
        candidate = source.candidate
        name, language = candidate.document.name, language_of(candidate)
        passage = best_of(told(candidate), asked, language, name=name)
        words = keys(f"{name}\n{passage}", language)
        everything = keys("\n".join([name, *told(candidate)]), language)
        return cls(source, passage, has_kind(passage, asked), words, everything, language)

    @property
    def shown(self) -> str:
        """The sentences, with the item's name before them if they don't name it, and the citation."""
        name = " ".join(self.source.item.name.split())
        said = self.passage or name
        if name and folded(name) not in folded(said):
            colon = "\uff1a" if self.language in ("zh", "ja") else ": "
            said = f"{name}{colon}{said}"
        return f"{uncited(said)} [{self.source.n}]"


class _Weight:
    """A word of the question: which sources say it, and how rare that makes it."""

    def __init__(self, word: str, taken: Sequence[_Taken]) -> None:
        known = {language: keys(word, language) for language in {one.language for one in taken}}
        self.said_by = {one for one in taken if known[one.language] and known[one.language] <= one.words}
        found = sum(bool(known[one.language]) and known[one.language] <= one.everything for one in taken)
        self.rarity = math.log(1 + len(taken) / found) if found else 0.0


def _words(asked: str, language: str) -> list[str]:
    """The words of a question, in whatever language, without those that only make it a question."""
    small = function_words(language)
    wanted = asked_words(asked, language)
    return [
        word
        for word in dict.fromkeys(tokens(normalized(asked).lower()))
        if word not in small and keys(word, language) & wanted
    ]


async def summarize(
    prompter: Prompter | None, query: Query, items: Sequence[Item], usage: Usage
) -> Summary | None:
    """A few sentences on the best items; without a model their descriptions. None of no items."""
    best = items[:SUMMARIZED]
    if not best:
        return None
    if prompter is None:
        return Summary("\n".join(f"{item.name}: {item.description}" for item in best), extractive=True)
    told = [{"url": i.url, "name": i.name, "description": i.description} for i in best]
    reply = await prompter.ask(SUMMARIZE, query, usage, **{"request.answers": told})
    return Summary(str(reply["summary"])) if reply is not None else None


def whole(answer: str, sources: Sequence[Source]) -> GeneratedAnswer:
    """The answer with the sources it cites; the others are listed apart, as considered."""
    cited = {int(n) for n in _CITATION.findall(answer)}
    return GeneratedAnswer(
        answer=answer,
        items=tuple(source.shown for source in sources if source.n in cited),
        considered=tuple(source.shown for source in sources if source.n not in cited),
    )


class Written:
    """An answer on its way to the reader, who sees nothing of it before it is known to stand: before it cites
    a source (or says, where it may, that there is `nothing`)."""

    def __init__(self, known: set[int]) -> None:
        self._citations = Citations(known)
        self._held: list[str] = []
        self._shown: list[str] = []
        self.fed = False  # some text came, be it all held back
        self.begun = False  # a word came: numbers of sources alone are no answer
        self.stands = False

    @property
    def cited(self) -> bool:
        """Whether a source that was given is cited."""
        return self._citations.any

    @property
    def text(self) -> str:
        """What the reader has seen."""
        return "".join(self._shown)

    def feed(self, text: str, *, nothing: bool = False) -> str:
        """The text that can be shown now."""
        self.fed = self.fed or bool(text.strip())
        return self._let(self._citations.feed(text), nothing=nothing)

    def cite(self, numbers: Sequence[int]) -> str:
        """Put the numbers of the sources after a text that has none; the text that can be shown now."""
        told = " " + "".join(f"[{n}]" for n in numbers)
        return self.feed(told) if numbers and self.fed else ""

    def close(self, *, nothing: bool) -> str:
        """The rest. Raises BadModelReply where there is no answer, or none that stands."""
        rest = self._let(self._citations.close(), nothing=nothing)
        if not self.begun:
            raise BadModelReply("the model wrote no answer")
        if not self.stands:
            raise BadModelReply("the model wrote an answer that cites none of its sources")
        return rest

    def _let(self, text: str, *, nothing: bool) -> str:
        self.begun = self.begun or _WORD.search(_CITATION.sub("", text)) is not None
        self.stands = self.begun and (self.stands or nothing or self.cited)
        self._held.append(text)
        if not self.stands:
            return ""
        shown = "".join(self._held)
        self._held = []
        self._shown.append(shown)
        return shown


class Citations:
    """Lets `[n]` through only if source n was given; a model's invented number never reaches the client, and
    leaves no gap. However it is written (`[1, 2]`, `[1-2]`, `[source 1]`, `\\[1\\]`, brackets of other
    scripts), it becomes `[1][2]`. Only a year in brackets stays. The text begins and ends with no white
    space."""

    def __init__(self, known: set[int]) -> None:
        self._known = known
        self._held = ""
        self._last = ""  # the last letter that was let through
        self._gap = False  # a number went from the beginning of a line: the blanks after it go, too
        self.any = False  # a source that was given is cited

    def feed(self, text: str) -> str:
        """The text that can be shown now; a bracket that may become a citation is held back, and so is white
        space, which may stand before one, or at the end."""
        text = self._held + text
        opened = _OPEN.search(text)
        at = opened.start() if opened else len(text)
        self._held = text[at:]
        return self._through(text[:at])

    def close(self) -> str:
        """What was held back and became nothing."""
        held, self._held = self._held, ""
        return self._through(held).rstrip()

    def _through(self, text: str) -> str:
        passed: list[str] = []
        at = 0
        for found in _BRACKETS.finditer(text):
            numbers = _numbers(found["inside"], self._known)
            if numbers is None:
                continue
            passed.append(self._plain(text[at : found.start()]))
            # Brackets that are not of this pair stay.
            opens, closes = (re.findall(r"[^\s\\]", found[side]) for side in ("opens", "closes"))
            before, after = "".join(opens[len(closes) :]), "".join(closes[len(opens) :])
            known = "".join(f"[{n}]" for n in numbers)
            if shown := before + known + after:
                self.any = self.any or bool(known)
                blanks = found["blanks"] if before + known else ""
                passed.append(self._plain(blanks + shown))
            else:
                self._gap = self._gap or self._last in ("", "\n")
            at = found.end()
        passed.append(self._plain(text[at:]))
        return "".join(passed)

    def _plain(self, text: str) -> str:
        if not self._last:
            text = text.lstrip()
        elif self._gap:
            text = text.lstrip(" \t:：")
        if text:
            self._last = text[-1]
            self._gap = False
        return text


class AnswerReader:
    """Takes the text of `"answer"` out of a JSON object while it streams; plain text passes as it is."""

    _START = re.compile(r'"' + ANSWER_KEY + r'"\s*:\s*"')
    _FOUND = re.compile(r'"' + FOUND_KEY + r'"\s*:\s*"(\w+)"')

    def __init__(self, *, structured: bool) -> None:
        self._structured = structured
        self._seen = ""
        self._inside = False
        self._done = False
        self.found = ""  # what stands before the answer of how much was found

    def feed(self, piece: str) -> str:
        """The next characters of the answer, unescaped; an escape that is cut waits for its rest."""
        if not self._structured:
            return piece
        if self._done:
            return ""
        self._seen += piece
        if not self._inside:
            start = self._START.search(self._seen)
            if start is None:
                return ""
            self._inside = True
            if (said := self._FOUND.search(self._seen, 0, start.start())) is not None:
                self.found = said[1]
            self._seen = self._seen[start.end() :]
        return self._read()

    def _read(self) -> str:
        end = at = 0
        while at < len(self._seen):
            letter = self._seen[at]
            if letter == '"':
                self._done = True
                break
            width = 1 if letter != "\\" else self._escape_width(at)
            if width == 0:
                break
            at += width
            end = at
        taken, self._seen = self._seen[:end], self._seen[end:]
        return _unescaped(taken)

    def _escape_width(self, at: int) -> int:
        """Characters of the escape at `at` (a surrogate pair is one); 0 if the rest has not come yet."""
        if len(self._seen) < at + 2:
            return 0
        if self._seen[at + 1] != "u":
            return 2
        if len(self._seen) < at + 6:
            return 0
        if self._seen[at + 2 : at + 4].lower() in ("d8", "d9", "da", "db"):
            return 12 if len(self._seen) >= at + 12 else 0
        return 6


def _unescaped(text: str) -> str:
    """JSON's escapes undone; raw line ends and tabs, which models write inside strings, stay."""
    if "\\" not in text:
        return text
    safe = text.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    try:
        value = orjson.loads(f'"{safe}"')
    except orjson.JSONDecodeError:
        return text.replace("\\", "")
    return str(value)
