"""Write an answer from stored items: facts to a budget, streamed, every `[n]` a source that was given."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import orjson

from core.documents import Candidate
from core.errors import BadModelReply
from core.ingestion.text import trimmed
from core.messages import AnswerDelta, GeneratedAnswer, Item, Summary
from core.passages import best_of
from core.prompting.ask import Prompter, call_of
from core.prompting.fill import fill
from core.providers.base import Usage
from core.query import Query

SYNTHESIZE = "SynthesizePromptForGenerate"
SUMMARIZE = "SummarizeResultsPrompt"
# Room for facts in one prompt; about 4,000 tokens, which leaves a small model's window room to answer.
FACTS_CHARS = 16_000
SUMMARIZED = 3  # NLWeb's number: the summary is of the best three
WITHOUT_MODEL = 3  # sources that an extractive answer takes a sentence from
ANSWER_KEY = "answer"

_CITATION = re.compile(r"\[(\d{1,3})\]")
_OPEN = re.compile(r"\[\d{0,3}$")


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
            "name": self.item.name,
            "text": self.candidate.text,
            "item": seen,
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
    """The answer in pieces while the model writes it, then once as a whole with its sources.

    Raises ModelError and its kinds; BadModelReply where the reply has no answer in it.
    """
    prompt = prompter.find(SYNTHESIZE, query)
    if prompt is None:
        raise BadModelReply(f"there is no `{SYNTHESIZE}` for this site")
    values = await prompter.values_for(prompt, query)
    filled = fill(prompt, {**values, "request.answers": [source.told for source in sources]})
    call = call_of(prompt, filled, query, tier="high")
    reader = AnswerReader(structured=prompt.reply is not None)
    citations = Citations({source.n for source in sources})
    raw: list[str] = []
    said: list[str] = []
    async with aclosing(prompter.model.stream(call, usage)) as pieces:
        async for piece in pieces:
            raw.append(piece)
            if text := citations.feed(reader.feed(piece)):
                said.append(text)
                yield AnswerDelta(text)
    if text := citations.close():
        said.append(text)
        yield AnswerDelta(text)
    if not "".join(said).strip() and prompt.reply is not None:
        # The reply was of another shape than a stream can be read in: repaired as a whole.
        text = citations.feed(str(prompt.reply.parse("".join(raw))[ANSWER_KEY])) + citations.close()
        said = [text]
        yield AnswerDelta(text)
    answer = "".join(said).strip()
    if not answer:
        raise BadModelReply("the model wrote no answer")
    yield whole(answer, sources)


def extract(query: Query, sources: Sequence[Source]) -> GeneratedAnswer:
    """An answer without a model: the best sentences of the best sources, each cited."""
    asked = query.decontextualized_query or " ".join([query.text, *query.prev[-1:]])
    said = []
    for source in sources[:WITHOUT_MODEL]:
        sentence = best_of([source.candidate.text], asked, source.candidate.document.language)
        if sentence:
            said.append(f"{sentence} [{source.n}]")
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


class Citations:
    """Lets `[n]` through only if source n was given; a model's invented number never reaches the client."""

    def __init__(self, known: set[int]) -> None:
        self._known = known
        self._held = ""

    def feed(self, text: str) -> str:
        """The text that can be shown now; a bracket that may become a citation is held back."""
        text = self._held + text
        opened = _OPEN.search(text)
        self._held = text[opened.start() :] if opened else ""
        ready = text[: opened.start()] if opened else text
        return _CITATION.sub(lambda found: found[0] if int(found[1]) in self._known else "", ready)

    def close(self) -> str:
        """What was held back and became nothing."""
        held, self._held = self._held, ""
        return held


class AnswerReader:
    """Takes the text of `"answer"` out of a JSON object while it streams; plain text passes as it is."""

    _START = re.compile(r'"' + ANSWER_KEY + r'"\s*:\s*"')

    def __init__(self, *, structured: bool) -> None:
        self._structured = structured
        self._seen = ""
        self._inside = False
        self._done = False

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
