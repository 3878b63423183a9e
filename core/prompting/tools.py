"""What a person who writes prompts needs: what a model makes of one, and whether its examples hold.

The command line (`askable prompts …`) prints what these functions give. They need the prompt files and, to
ask, a model: no server and no store.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson

from core.errors import BadModelReply, BadQuery, ConfigError, ModelError
from core.prompting.ask import call_of, values_of
from core.prompting.examples import Example, misses
from core.prompting.fill import Filled, fill
from core.prompting.library import PromptLibrary
from core.prompting.parse import Prompt
from core.prompting.refs import REFS, STEP_PREFIX, TOOL_PREFIX
from core.prompting.schema_types import did_you_mean
from core.prompting.variables import Value
from core.providers.base import ChatModel, Usage
from core.query import Query

# Examples asked at a time: a model of one's own rarely takes more, a rented one is quick enough with these.
AT_A_TIME = 4
# The fences' tag is the same at every run, so that a filled prompt is what it was when it was recorded.
SEED = 1
RECORDING = "askable-prompt-replies/1"


def named(library: PromptLibrary, name: str) -> str:
    """The ref a person means: `Season` is the step `step:Season` where no prompt is called so. Raises
    BadQuery with the nearest name."""
    known = dict.fromkeys((*library.refs(), *REFS))
    for ref in (name, STEP_PREFIX + name, TOOL_PREFIX + name):
        if ref in known:
            return ref
    raise BadQuery(f"there is no prompt `{name}`{did_you_mean(name, list(known))}", field="name")


def place_of(prompt: Prompt) -> str:
    """Which file and line a prompt stands in."""
    return f"{prompt.file}:{prompt.line}"


def described(prompt: Prompt) -> dict[str, Any]:
    """A prompt's place and particulars, for JSON."""
    return {
        "ref": prompt.ref,
        "site": prompt.site,
        "type": prompt.item_type,
        "file": prompt.file,
        "line": prompt.line,
        "enabled": prompt.enabled,
    }


# ---------------------------------------------------------------- trying


@dataclass(frozen=True, slots=True)
class Trial:
    """A prompt filled, and what came of it. `reply` None with `failed` empty: nobody was asked."""

    prompt: Prompt
    filled: Filled
    raw: str = ""
    reply: Mapping[str, Any] | None = None
    failed: str = ""
    usage: Usage = field(default_factory=Usage)
    ms: float = 0.0

    @property
    def asked(self) -> bool:
        return bool(self.usage.calls or self.raw or self.failed)


def question(text: str, *, site: str = "", item_type: str = "", prev: Sequence[str] = ()) -> Query:
    """A question as the server makes one."""
    return Query(
        text=text,
        query_id="try",
        conversation_id="try",
        sites=(site,) if site else (),
        prev=tuple(prev),
        item_type=item_type or None,
    )


async def tried(
    prompt: Prompt,
    values: Mapping[str, Value],
    query: Query,
    model: ChatModel | None,
    *,
    seed: int | None = None,
) -> Trial:
    """Fill the prompt and ask the model, if there is one and the prompt asks something. Raises nothing of a
    model's failure: it is told in the trial."""
    filled = fill(prompt, values, seed=seed)
    if model is None or prompt.reply is None:
        return Trial(prompt, filled)
    usage = Usage()
    began = time.monotonic()
    raw, failed = "", ""
    try:
        raw = await model.complete(call_of(prompt, filled, query, tier="high"), usage)
    except ModelError as error:
        failed = error.message
    ms = (time.monotonic() - began) * 1000
    return read_reply(Trial(prompt, filled, raw, None, failed, usage, round(ms, 1)))


def read_reply(trial: Trial) -> Trial:
    """The trial with its raw reply parsed."""
    if trial.failed or trial.prompt.reply is None:
        return trial
    try:
        return replace(trial, reply=trial.prompt.reply.parse(trial.raw))
    except BadModelReply as error:
        return replace(trial, failed=error.message)


def against(library: PromptLibrary, trial: Prompt, site: str, item_type: str) -> Prompt:
    """What holds in `library` for the ref of `trial`. Raises BadQuery where that is the same prompt."""
    other = next(iter(library.chain(trial.ref, site, item_type)), None)
    if other is None or place_of(other) == place_of(trial):
        raise BadQuery(
            f"the other file changes nothing of `{trial.ref}` for this site and type", field="against"
        )
    return other


# ---------------------------------------------------------------- testing


class Recording:
    """Replies by the digest of the filled prompt they answer: examples can be tested without a model."""

    def __init__(self, replies: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        self._replies = dict(replies or {})

    @classmethod
    def read(cls, path: Path) -> Recording:
        """Raises ConfigError for a file that is none."""
        try:
            told = orjson.loads(path.read_bytes())
            if told["format"] != RECORDING:
                raise ValueError(f"its format is not {RECORDING}")
            return cls(told["replies"])
        except (OSError, ValueError, KeyError, TypeError) as wrong:
            raise ConfigError(f"{path} is no recording of prompt replies: {wrong}") from None

    def write(self, path: Path) -> None:
        """All replies, sorted, so that two recordings can be compared."""
        told = {"format": RECORDING, "replies": self._replies}
        path.write_bytes(orjson.dumps(told, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n")

    def find(self, filled: Filled) -> str | None:
        """The reply to this prompt, filled just so."""
        found = self._replies.get(digest(filled))
        return None if found is None else str(found["reply"])

    def keep(self, trial: Trial, query: str) -> None:
        """Keep the reply of a trial, with what it is one to."""
        self._replies[digest(trial.filled)] = {
            "ref": trial.prompt.ref,
            "site": trial.prompt.site,
            "type": trial.prompt.item_type,
            "query": query,
            "reply": trial.raw,
        }


def digest(filled: Filled) -> str:
    """What tells filled prompts apart: everything the model is told."""
    return hashlib.sha256(f"{filled.system}\0{filled.text}".encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Tested:
    """An example and what came of it; `differs` is empty for a hit."""

    prompt: Prompt
    example: Example
    differs: tuple[str, ...]
    tokens: int = 0
    ms: float = 0.0

    @property
    def hit(self) -> bool:
        return not self.differs


async def run_examples(
    library: PromptLibrary,
    prompts: Sequence[Prompt],
    model: ChatModel | None,
    *,
    replay: Recording | None = None,
    record: Recording | None = None,
) -> list[Tested]:
    """Every example of `prompts`, in order: asked of `model`, or looked up in `replay`. What was asked is
    kept in `record`. Raises nothing of a model's failure: it is a miss that says so."""
    places = asyncio.Semaphore(AT_A_TIME)

    async def one(prompt: Prompt, example: Example) -> Tested:
        async with places:
            return await run_example(library, prompt, example, model, replay, record)

    return await asyncio.gather(*(one(prompt, example) for prompt in prompts for example in prompt.examples))


async def run_example(
    library: PromptLibrary,
    prompt: Prompt,
    example: Example,
    model: ChatModel | None,
    replay: Recording | None,
    record: Recording | None,
) -> Tested:
    """One example; of a prompt that asks nothing its filled text is what counts."""
    query = question(example.query, site=prompt.site or "")
    values = values_of(library, query, item_type=prompt.item_type) | dict(example.values)
    trial = await tried(prompt, values, query, model if replay is None else None, seed=SEED)
    expect = example.expect or {}
    if prompt.reply is None:
        return Tested(prompt, example, tuple(misses(expect, {"text": trial.filled.text})))
    if replay is not None:
        raw = replay.find(trial.filled)
        if raw is None:
            return Tested(
                prompt, example, ("not in the recording: the prompt has changed since, record again",)
            )
        trial = read_reply(replace(trial, raw=raw))
    if record is not None and trial.raw:
        record.keep(trial, example.query)
    differs = (trial.failed,) if trial.failed else tuple(misses(expect, trial.reply or {}))
    tokens = trial.usage.prompt_tokens + trial.usage.completion_tokens
    return Tested(prompt, example, differs, tokens, trial.ms)
