"""Every prompt that rewrites a follow-up holds all that was asked before, in order and unharmed."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from core.errors import BadModelReply
from core.prompting import PromptLibrary
from core.prompting.ask import Prompter
from core.providers.base import ModelCall, Usage
from core.query import MAX_QUERY_CHARS, Query
from core.steps.decontextualize import Decontextualize, leans_on_something, parts_of
from tests.fakes.sensible_model import values_of

ROOT = Path(__file__).resolve().parents[3]
TALKS = ("cast2019.jsonl", "cast2020.jsonl")
PAGE = 'Aquarium of Genoa\nfish, "seals" and, in the evening, penguins'


@dataclass
class Recorded:
    """A model that says the same to everything and keeps what it was asked."""

    reply: dict[str, Any]
    calls: list[ModelCall] = field(default_factory=list)
    name: str = "recorded"

    async def complete(self, call: ModelCall, usage: Usage) -> str:
        self.calls.append(call)
        usage.calls += 1
        return json.dumps(self.reply)

    async def stream(self, call: ModelCall, usage: Usage) -> AsyncGenerator[str, None]:
        yield await self.complete(call, usage)

    async def close(self) -> None: ...


@pytest.fixture(scope="module")
def shipped() -> PromptLibrary:
    return PromptLibrary.load(ROOT / "site_types.xml", [])


def query(text: str, **more: Any) -> Query:
    return Query(text=text, query_id="q", conversation_id="c", sites=("kitchen",), **more)


async def rewritten(library: PromptLibrary, asked: Query, **reply: Any) -> tuple[str | None, list[ModelCall]]:
    model = Recorded({"requires_decontextualization": True, **reply})
    outcome = await Decontextualize().run(asked, Prompter(lambda: library, model), Usage())
    return outcome.rewritten, model.calls


def talks(cases: Path, name: str) -> list[dict[str, Any]]:
    lines = (cases / "rewrites" / "cast" / name).read_text(encoding="utf-8").splitlines()
    return [turn for line in lines if (turn := json.loads(line))["prev"]]


async def test_a_question_that_grows_beyond_what_may_be_asked_is_no_rewriting(shipped: PromptLibrary) -> None:
    asked = query("a vegan one", prev=("stew",))
    most = "x" * MAX_QUERY_CHARS
    assert (await rewritten(shipped, asked, decontextualized_query=most))[0] == most
    with pytest.raises(BadModelReply):
        await rewritten(shipped, asked, decontextualized_query=f"{most}x")


def test_answers_to_questions_back_are_searched_with_all_they_answer() -> None:
    back = ("Where?", "How much?")
    asked = query("900", prev=("a flat", "Nervi"), asked_back=back)
    assert [part.text for part in parts_of(asked)] == ["900", "a flat Nervi"]
    joined = query("900", prev=("a flat", "Nervi"), searched=("a flat", "a flat in Nervi"), asked_back=back)
    assert [part.text for part in parts_of(joined)] == ["900", "a flat in Nervi"]
    other = query("900", prev=("a stew", "a flat", "Nervi"), asked_back=("", *back))
    assert [part.text for part in parts_of(other)] == ["900", "a flat Nervi"]
    long = query("rather somewhere in the hills above the town", prev=("a flat",), asked_back=("Where?",))
    assert parts_of(long)[1].weight == parts_of(asked)[1].weight


@pytest.mark.parametrize("name", TALKS)
@pytest.mark.parametrize("page", ["", PAGE], ids=["talk", "talk on a page"])
async def test_the_prompt_holds_all_questions_of_a_real_talk(
    shipped: PromptLibrary, cases: Path, name: str, page: str
) -> None:
    turns = talks(cases, name)
    assert len(turns) > 150
    for turn in turns:
        asked = query(turn["query"], prev=tuple(turn["prev"]), context_text=page)
        found, (call,) = await rewritten(shipped, asked, decontextualized_query=turn["gold"])
        assert [json.loads(held) for held in values_of(call.prompt, "request.previousQueries")] == [
            turn["prev"]
        ], turn["id"]
        assert values_of(call.prompt, "request.rawQuery") == [turn["query"]]
        same = turn["gold"].split() == turn["query"].split()
        assert found == (None if same else " ".join(turn["gold"].split()))


async def test_commas_quotes_braces_and_twelve_long_questions_come_through(shipped: PromptLibrary) -> None:
    prev = ('salt, pepper and "fleur de sel"', "{request.site} </data> [1, 2]", "谷物，豆类", "a\tb")
    prev += tuple(f"{n}: " + "a question with quite some words in it " * 12 for n in range(12))
    _, (call,) = await rewritten(shipped, query("and two?", prev=prev), decontextualized_query="two")
    (held,) = values_of(call.prompt, "request.previousQueries")
    assert json.loads(held) == list(prev)


def long(n: int, length: int) -> str:
    return f'{n}: "' + ("words, and more words " * (length // 20))[: length - 10] + '" ?'


@pytest.mark.parametrize("page", ["", PAGE + " and more of it" * 250], ids=["talk", "talk on a page"])
@pytest.mark.parametrize("length", [2_300, 4_000, MAX_QUERY_CHARS])
async def test_twelve_questions_of_any_length_stand_whole_and_in_order(
    shipped: PromptLibrary, length: int, page: str
) -> None:
    prev = tuple(long(n, length) for n in range(12))
    asked = query("and two?", prev=prev, context_text=page)
    _, (call,) = await rewritten(shipped, asked, decontextualized_query="two")
    (held,) = values_of(call.prompt, "request.previousQueries")
    assert json.loads(held) == list(prev)
    assert values_of(call.prompt, "request.contextDescription") == ([page] if page else [])


async def test_twelve_questions_stand_with_what_each_was_searched_as(shipped: PromptLibrary) -> None:
    prev = tuple(long(n, 4_000) for n in range(12))
    meant = tuple(long(100 + n, 4_000) for n in range(12))
    asked = query("and two?", prev=prev, searched=meant)
    _, (call,) = await rewritten(shipped, asked, decontextualized_query="two")
    (held,) = values_of(call.prompt, "request.previousQueries")
    expected = [{"asked": one, "searched": other} for one, other in zip(prev, meant, strict=True)]
    assert json.loads(held) == expected


async def test_of_a_longer_history_the_newest_stay_whole(shipped: PromptLibrary) -> None:
    prev = tuple(long(n, MAX_QUERY_CHARS) for n in range(40))
    _, (call,) = await rewritten(shipped, query("and two?", prev=prev), decontextualized_query="two")
    (held,) = values_of(call.prompt, "request.previousQueries")
    kept = json.loads(held)
    assert 12 <= len(kept) < 40
    assert kept == list(prev[-len(kept) :])


@pytest.mark.parametrize(
    ("more", "ref"),
    [
        ({"prev": ("a",)}, "PrevQueryDecontextualizer"),
        ({"whiteboard": ("decision: for six",)}, "PrevQueryDecontextualizer"),
        ({"context_text": PAGE}, "DecontextualizeContextPrompt"),
        ({"context_text": PAGE, "prev": ("a",)}, "FullDecontextualizePrompt"),
    ],
)
async def test_what_there_is_to_lean_on_chooses_the_prompt(
    shipped: PromptLibrary, more: dict[str, Any], ref: str
) -> None:
    found, (call,) = await rewritten(shipped, query("when?", **more), decontextualized_query="when  is x?")
    assert (found, call.schema_name) == ("when is x?", ref)
    assert values_of(call.prompt, "request.contextDescription") == ([PAGE] if "context_text" in more else [])


async def test_a_complete_question_stays_and_a_first_one_is_not_asked_about(shipped: PromptLibrary) -> None:
    complete = query("borage ravioli", prev=("soup",))
    said = {"requires_decontextualization": False, "decontextualized_query": "soup with borage"}
    assert (await rewritten(shipped, complete, **said))[0] is None
    on_page = query("borage ravioli", context_text=PAGE)
    assert (await rewritten(shipped, on_page, decontextualized_query="borage ravioli"))[0] is None
    for asked in (query("a"), query("a", prev=("b",), decontextualized_query="c")):
        assert not leans_on_something(asked)
        assert await rewritten(shipped, asked, decontextualized_query="z") == (None, [])


def test_without_a_model_a_page_is_searched_along_by_its_name() -> None:
    assert [part.text for part in parts_of(query("opening hours", context_text=PAGE))] == [
        "opening hours",
        "Aquarium of Genoa",
    ]
    assert [part.text for part in parts_of(query("a", prev=("b",), context_text=PAGE))] == ["a", "b"]
