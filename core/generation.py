"""Write an answer from stored items: facts to a budget, streamed, every `[n]` a source that was given.

What the model writes is shown from its first valid citation on: an answer that rests on no source never
reaches a reader, neither in pieces nor as a whole. Only the plain word that the sources don't answer the
question (`found` is `nothing`) stands without one.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

import orjson

from core.documents import Candidate
from core.errors import BadModelReply
from core.ingestion.text import trimmed
from core.messages import FOUND, AnswerDelta, Found, GeneratedAnswer, Item, Summary
from core.passages import best_of
from core.prompting.ask import Prompter, call_of
from core.prompting.fill import fill
from core.prompting.library import Prompt
from core.providers.base import Usage
from core.query import Query

SYNTHESIZE = "SynthesizePromptForGenerate"
SUMMARIZE = "SummarizeResultsPrompt"
# Room for facts in one prompt; about 4,000 tokens, which leaves a small model's window room to answer.
FACTS_CHARS = 16_000
SUMMARIZED = 3  # NLWeb's number: the summary is of the best three
WITHOUT_MODEL = 3  # sources that an extractive answer takes a sentence from
ANSWER_KEY = "answer"
FOUND_KEY = "found"
URLS_KEY = "urls"
NOTHING: Found = "nothing"

_CITATION = re.compile(r"\[(\d{1,3})\]")
# As models write them: one number or several, in brackets of other scripts, too; with the blanks before it.
_CITED = re.compile(r"([ \t]*)[\[【［]\s*(\d{1,3}(?:\s*[,;、，]\s*\d{1,3})*)\s*[\]】］]")
_OPEN = re.compile(r"\s*(?:[\[【［][\d\s,;、，]{0,60})?$")


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
        return _CITED.sub(lambda found: f"{found[1]}({found[2]})", value)
    if isinstance(value, Mapping):
        return {uncited(key): uncited(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [uncited(inner) for inner in value]
    return value


def choose(found: Sequence[tuple[Item, Candidate]], budget: int = FACTS_CHARS) -> list[Source]:
    """The best items that fit into `budget` characters of JSON, numbered. One that does not fit is passed
    over, and a smaller one after it may still have its place."""
    chosen: list[Source] = []
    for item, candidate in found:
        source = Source(len(chosen) + 1, item, candidate)
        size = len(orjson.dumps(source.told, default=str))
        if size <= budget:
            chosen.append(source)
            budget -= size
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
    reply = _read("".join(raw), prompt) if not answer.stands else {}
    found = _found(reader.found or reply.get(FOUND_KEY))
    # A reply of another shape than a stream can be read in is repaired as a whole.
    shown = "" if answer.begun else answer.feed(str(reply.get(ANSWER_KEY) or ""))
    if not answer.stands and found != NOTHING:
        # Prompts without numbers (NLWeb's) name their sources by address alone.
        shown += answer.cite(_named(reply.get(URLS_KEY), sources))
    if shown := shown + answer.close(nothing=found == NOTHING):
        yield AnswerDelta(shown)
    yield replace(whole(answer.text, sources), found=_weighed(found, cited=answer.cited))


def _read(raw: str, prompt: Prompt) -> dict[str, Any]:
    """The keys of a whole reply; a plain text is the answer. Raises BadModelReply."""
    return {ANSWER_KEY: raw} if prompt.reply is None else prompt.reply.parse(raw)


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


def extract(query: Query, sources: Sequence[Source]) -> GeneratedAnswer:
    """An answer without a model: the best sentences of the best sources, each cited."""
    asked = query.decontextualized_query or " ".join([query.text, *query.prev[-1:]])
    said = []
    for source in sources[:WITHOUT_MODEL]:
        sentence = best_of([source.candidate.text], asked, source.candidate.document.language)
        said.append(f"{uncited(sentence or source.item.name)} [{source.n}]")
    return whole("\n\n".join(said), sources)


async def summarize(
    prompter: Prompter | None, query: Query, items: Sequence[Item], usage: Usage
) -> Summary | None:
    """A few sentences on the best items; without a model their descriptions. None of no items."""
    best = items[:SUMMARIZED]
    if not best:
        return None
    if prompter is None:
        return Summary("\n".join(f"{item.name}: {item.description}" for item in best))
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
        self.begun = False  # some text came
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
        return self._let(self._citations.feed(text), nothing=nothing)

    def cite(self, numbers: Sequence[int]) -> str:
        """Put the numbers of the sources after a text that has none; the text that can be shown now."""
        told = " " + "".join(f"[{n}]" for n in numbers)
        return self.feed(told) if numbers and self.begun else ""

    def close(self, *, nothing: bool) -> str:
        """The rest. Raises BadModelReply where there is no answer, or none that stands."""
        rest = self._let(self._citations.close(), nothing=nothing)
        if not self.begun:
            raise BadModelReply("the model wrote no answer")
        if not self.stands:
            raise BadModelReply("the model wrote an answer that cites none of its sources")
        return rest

    def _let(self, text: str, *, nothing: bool) -> str:
        self.begun = self.begun or bool(text.strip())
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
    leaves no gap. `[1, 2]` and brackets of other scripts become `[1][2]`. The text begins and ends with no
    white space."""

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
        for found in _CITED.finditer(text):
            passed.append(self._plain(text[at : found.start()]))
            numbers = [int(n) for n in re.findall(r"\d+", found[2])]
            known = "".join(f"[{n}]" for n in numbers if n in self._known)
            if known:
                self.any = True
                passed.append(self._plain(found[1] + known))
            else:
                self._gap = self._gap or self._last in ("", "\n")
            at = found.end()
        passed.append(self._plain(text[at:]))
        return "".join(passed)

    def _plain(self, text: str) -> str:
        if not self._last:
            text = text.lstrip()
        elif self._gap:
            text = text.lstrip(" \t")
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
