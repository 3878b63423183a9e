"""A model that fails in each way at each step, and in each mode: the answer ends in time, whole, and says so.

Questions of many rows run side by side, as most of their time is spent waiting; each row looks at its own
answer. Rows of `CALLS` end by what one call may take, rows of `ANSWER` by what the answer may; only where the
model is late is there little time, so that a slow machine makes no other row late.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import pytest
import pytest_asyncio

from core.settings import Settings
from tests.conftest import Frames, Serve, Served, running
from tests.fakes.openai_server import Cut, Drip, Fail, Hang, ModelRequest, ScriptedModel, scripted_model
from tests.fakes.sensible_model import SensibleModel, tagged_items

SLOW = 0.1  # seconds of a model that is slow and good
SLACK = 30.0  # seconds that are not the model's: a busy machine's search
AHEAD = 48  # rows


@dataclass(frozen=True)
class Times:
    """Seconds that a call and an answer may take."""

    call: float
    answer: float


AMPLE = Times(60, 180)
SHORT_CALL = Times(3, 9)
SHORT_ANSWER = Times(60, 8)

NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
HOMES = [
    {
        "@type": "RealEstateListing",
        "url": f"https://homes.example/{n}",
        "name": f"Flat {number}",
        "description": f"A flat with {n + 1} rooms by the sea.",
    }
    for n, number in enumerate(NUMBERS)
]
SITE = '<Site ref="homes" types="RealEstate Movie"><description>flats by the sea</description></Site>'
NAMED = ("Flat one", "Flat two")
ODD = "Flat seven"  # the item whose batch fails where one does

# What the model says where nothing is wrong.
GOOD: Mapping[str, Any] = {
    "DetectItemTypePrompt": {"item_type": "RealEstate"},
    "RequiredInfoPrompt": {"required_info_found": True, "user_question": ""},
    "PrevQueryDecontextualizer": {
        "requires_decontextualization": True,
        "decontextualized_query": "flat rooms",
    },
    "DetectComparisonPrompt": {
        "comparison_query": True,
        "item1_name": NAMED[0],
        "item2_name": NAMED[1],
        "details_requested": "rooms",
    },
    "CompareItemsPrompt": {"comparison": "Flat one and Flat two have rooms."},
    "DetectQueryTypePrompt": {
        "item_details_query": True,
        "item_title": NAMED[0],
        "details_being_asked": "rooms",
    },
    "ExtractItemDetailsPrompt": {
        "item_name": NAMED[0],
        "requested_details": "1 room",
        "additional_context": "",
    },
    "DetectMultiItemTypeQueryPrompt": {
        "single_item_type_query": False,
        "item_queries": ["flat rooms", "flat sea"],
    },
    "EnsemblePrompt": {"theme": "A flat", "items": [], "overall_tips": []},
    "SummarizeResultsPrompt": {"summary": "Flat one and others have rooms."},
    "SynthesizePromptForGenerate": {
        "found": "all",
        "answer": "Flats with rooms [1], and more [2].",
        "urls": [],
    },
}


@dataclass(frozen=True)
class Kind:
    """A way to fail: the error it is told by, "" where the reply comes in the end."""

    name: str
    code: str

    @property
    def is_late(self) -> bool:
        """Whether it fails by the time it takes."""
        return self.code == "model_timeout"

    def step(self, good: Any, tries: int) -> Any:
        """What the model does at the `tries`-th call of a case, which it would answer with `good`."""
        match self.name:
            case "slow":
                return good if tries > 1 else SLOW
            case "429, then good":
                return good if tries > 1 else Fail(429, retry_after=0.05)
            case "429, too long":
                return Fail(429, retry_after=3600)
            case "500":
                return Fail(500)
            case "cut":
                return Cut(15, good)
            case "cut once":
                return good if tries > 1 else Cut(15, good)
            case "garbage":
                return "lorem ipsum dolor"
            case "late":
                return good if tries > 1 else 3600.0
            case "drips":
                return Drip(good, 0.3)
            case _:
                return Hang()


KINDS = [
    Kind("slow", ""),
    Kind("429, then good", ""),
    Kind("429, too long", "model_busy"),
    Kind("500", "model_failed"),
    Kind("cut", "model_failed"),
    Kind("cut once", ""),
    Kind("garbage", "model_reply"),
    Kind("late", "model_timeout"),
    Kind("drips", "model_timeout"),
    Kind("never", "model_timeout"),
]


@dataclass(frozen=True, eq=False)
class At:
    """A model step of a question: `skipped` is how timings name it where it fails, and `error` whether that
    is told as an error; `tool` is what answers where nothing fails."""

    name: str
    ref: str
    mode: str = "list"
    question: str = "flat rooms"
    more: Mapping[str, Any] = field(default_factory=dict)
    skipped: str = ""
    error: bool = True
    one_batch: bool = False
    tool: str = ""

    def hit(self, request: ModelRequest) -> bool:
        return request.schema_name == self.ref and (not self.one_batch or ODD in request.prompt)


PREV = {"prev": ["a home by the sea"]}
PAGE = {"context_description": "a home by the sea"}
QUIET = {"remember": False}
COMPARED = f"compare {NAMED[0]} and {NAMED[1]}"
REWRITING = "decontextualize"
CHOICE = "tool choice"
STEPS = [
    At("memory", "DetectMemoryRequestPrompt", skipped="memory"),
    At(REWRITING, "PrevQueryDecontextualizer", more=PREV, skipped=REWRITING),
    At(f"{REWRITING}, page", "DecontextualizeContextPrompt", "summarize", more=PAGE, skipped=REWRITING),
    At(
        f"{REWRITING}, both",
        "FullDecontextualizePrompt",
        "generate",
        more={**PREV, **PAGE},
        skipped=REWRITING,
    ),
    At("required_info", "RequiredInfoPrompt", more=QUIET, skipped="required_info", error=False),
    At("item_type", "DetectItemTypePrompt", more=QUIET, skipped="item_type", error=False),
    At("relevance", "DetectIrrelevantQueryPrompt", "generate", more=QUIET, skipped="relevance", error=False),
    At(
        CHOICE,
        "DetectComparisonPrompt",
        question=COMPARED,
        skipped="tool_choice",
        error=False,
        tool="compare",
    ),
    At(
        f"{CHOICE}, details",
        "DetectQueryTypePrompt",
        question=f"tell me more about {NAMED[0]}",
        skipped="tool_choice",
        error=False,
        tool="details",
    ),
    At(
        f"{CHOICE}, ensemble",
        "DetectMultiItemTypeQueryPrompt",
        question="a menu of flats",
        skipped="tool_choice",
        error=False,
        tool="ensemble",
    ),
    At("compare", "CompareItemsPrompt", question=COMPARED, tool="compare"),
    At("details", "ExtractItemDetailsPrompt", question=f"tell me more about {NAMED[0]}", tool="details"),
    At("matching", "ItemMatchingPrompt", question="tell me more about the first flat", tool="details"),
    At("ensemble", "EnsemblePrompt", question="a menu of flats", tool="ensemble"),
    At("ranking in a tool", "RankingPrompt", question="a menu of flats", tool="ensemble"),
    At("one batch", "RankingPrompt", one_batch=True),
    At("all batches", "RankingPrompt", "summarize"),
    At("gathering, one batch", "RankingPromptForGenerate", "generate", one_batch=True),
    At("gathering, all", "RankingPromptForGenerate", "generate"),
    At("summary", "SummarizeResultsPrompt", "summarize"),
    At("answer", "SynthesizePromptForGenerate", "generate"),
]


@dataclass(frozen=True, eq=False)
class Row:
    """One case: what fails how, and in what time."""

    kind: Kind
    at: At
    times: Times

    @property
    def id(self) -> str:
        return f"{self.kind.name} | {self.at.name} | {self.at.mode}"

    @property
    def code(self) -> str:
        """The error it is told by. What is written for a reader is not written twice."""
        return "model_failed" if self.kind.name == "cut once" and self.at.name == "answer" else self.kind.code


CALLS = [Row(kind, at, SHORT_CALL if kind.is_late else AMPLE) for at in STEPS for kind in KINDS]
ANSWER = [Row(kind, at, SHORT_ANSWER) for at in STEPS for kind in KINDS if kind.is_late]


@dataclass
class Table:
    """The model of all rows: it knows by a word in the question which row's it is."""

    rows: dict[str, Row] = field(default_factory=dict)
    tries: Counter[str] = field(default_factory=Counter)  # by prompt: a retry sends the same one again
    hit: set[str] = field(default_factory=set)
    last: dict[str, float] = field(default_factory=dict)
    sensible: SensibleModel = field(default_factory=lambda: SensibleModel(scores={"": 80}, replies=GOOD))

    def __call__(self, request: ModelRequest) -> Any:
        found = re.search(r"\brow\d+x\b", request.prompt)
        if found is None:
            return Fail(400)
        word = found[0]
        row = self.rows.get(word)
        if row is None:
            return self.sensible(request)  # a server is being warmed up
        self.last[word] = time.monotonic()
        good = self._good(request, word, row)
        if not row.at.hit(request):
            return good
        self.hit.add(word)
        asked = re.sub(r"\bdata-\w+", "", request.prompt)  # the fences of a second prompt are others
        self.tries[asked] += 1
        return row.kind.step(good, self.tries[asked])

    def _good(self, request: ModelRequest, word: str, row: Row) -> Any:
        said = self.sensible(request)
        match request.schema_name:
            case "PrevQueryDecontextualizer" | "DecontextualizeContextPrompt" | "FullDecontextualizePrompt":
                return {**said, "decontextualized_query": f"flat rooms {word}"}
            case "DetectQueryTypePrompt" if row.at.name == "matching":
                return {**said, "item_title": f"the first flat {word}"}
            case "DetectMultiItemTypeQueryPrompt":
                return {**said, "item_queries": [f"flat rooms {word}", f"flat sea {word}"]}
            case "ItemMatchingPrompt":
                items, _ = tagged_items(request.prompt)
                return [{"tag": one["tag"], "score": 10 if n else 90} for n, one in enumerate(items)]
            case "EnsemblePrompt":
                return {**said, "items": [{"name": re.findall(r'"name": ?"(Flat \w+)"', request.prompt)[0]}]}
        return said


@dataclass(frozen=True)
class Outcome:
    """What a row's question came to."""

    frames: Frames
    hit: bool
    last_call_s: float  # from the question to the last call that the model saw


@dataclass
class Asking:
    """The questions of the rows: when one row is looked at, those after it are under way already."""

    rows: Sequence[Row]
    table: Table
    servers: Mapping[Times, Served]
    tasks: dict[Row, asyncio.Task[Outcome]] = field(default_factory=dict)
    # Most rows are busy, the others wait for what never comes.
    busy: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(3))
    waiting: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(16))

    async def outcome(self, row: Row) -> Outcome:
        """What the row's question came to."""
        at = self.rows.index(row)
        for n, one in enumerate(self.rows[at : at + AHEAD], at):
            if one not in self.tasks:
                self.tasks[one] = asyncio.create_task(self._ask(f"row{n}x", one))
        return await self.tasks[row]

    async def close(self) -> None:
        """Stop what was begun for rows that are looked at elsewhere."""
        for task in self.tasks.values():
            task.cancel()
        await asyncio.gather(*self.tasks.values(), return_exceptions=True)

    async def _ask(self, word: str, row: Row) -> Outcome:
        self.table.rows[word] = row
        async with self.waiting if row.kind.is_late else self.busy:
            began = time.monotonic()
            frames = await self.servers[row.times].ask(
                f"{row.at.question} {word}", site="homes", mode=row.at.mode, max_results=50, **row.at.more
            )
        return Outcome(frames, word in self.table.hit, self.table.last[word] - began)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def asking(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Asking]:
    """A server for each of the times, with the same items and the same model."""
    folder = tmp_path_factory.mktemp("failures")
    (folder / "prompts").mkdir()
    (folder / "prompts" / "site.xml").write_text(f"<root>{SITE}</root>", encoding="utf-8")
    table = Table()
    async with scripted_model(answer=table) as model, AsyncExitStack() as stack:
        servers = {}
        for times in (AMPLE, SHORT_CALL, SHORT_ANSWER):
            settings = Settings.model_validate(
                {
                    "data_dir": folder / f"{times.call:g}-{times.answer:g}",
                    "prompts_dir": folder / "prompts",
                    "retrieval": {"legs": ["bm25"]},
                    "ranking": {"batch_size": 4},
                    "llm": {
                        "base_url": model.url,
                        "max_retries": 1,
                        "timeout_s": times.call,
                        "answer_timeout_s": times.answer,
                    },
                }
            )
            servers[times] = await stack.enter_async_context(running(settings))
            await servers[times].load("homes", HOMES)
            # What only the first question of a server takes is in no row's time.
            await servers[times].ask("flat rooms row0x", site="homes", mode="generate", max_results=50)
        asking = Asking([*CALLS, *ANSWER], table, servers)
        yield asking
        await asking.close()


def told(frames: Frames) -> dict[str, str]:
    """How `complete.timings` names the steps that did not come through."""
    endings = ("_skipped", "_late")
    timings = frames.one("complete")["timings"]
    return {name.rpartition("_")[0]: name.rpartition("_")[2] for name in timings if name.endswith(endings)}


def shown(frames: Frames, mode: str) -> set[str]:
    """The items that the answer has: in a written one those it cites and those it only read."""
    if mode != "generate":
        return {item["name"] for item in frames.final}
    written = frames.one("nlws")
    assert written["answer"]
    cited = {item["document_id"] for item in written["items"]}
    assert set(frames.one("complete")["order"]) == cited
    assert {int(n) for n in re.findall(r"\[(\d+)\]", written["answer"])} == {i["n"] for i in written["items"]}
    return {item["name"] for item in [*written["items"], *written["considered"]]}


def check(row: Row, outcome: Outcome) -> None:
    frames, at, failed = outcome.frames, row.at, row.code
    assert outcome.hit, "the model was never asked what it was to fail at"
    # It ends, in time.
    complete = frames.one("complete")
    assert frames.kinds[-1] == "complete"
    assert complete["timings"]["total"] <= 1000 * (row.times.answer + SLACK)
    assert outcome.last_call_s <= row.times.answer + SLACK
    # What failed is named.
    codes = [error["code"] for error in frames.of("error")]
    error = bool(failed) and at.error
    assert codes == ([failed] if error else [])
    assert complete["degraded"] == error
    if failed and at.skipped:
        ending = {"skipped", "late"} if at.name == "relevance" else {"skipped"}
        assert told(frames)[at.skipped] in ending
    else:
        assert "skipped" not in told(frames).values()
    # Nothing is lost.
    answered_by = [one["selected_tool"] for one in frames.of("tool_selection")]
    if at.tool and not failed:
        assert answered_by == [at.tool]
        assert shown(frames, at.mode)
        return
    assert answered_by in ([], [at.tool, "search"])
    assert not [kind for kind in frames.kinds if kind in ("compare_items", "item_details", "ensemble_result")]
    assert shown(frames, at.mode) == {home["name"] for home in HOMES}
    if failed and at.ref == "RankingPrompt":
        assert "RETRIEVAL" in {item["ranking_type"] for item in frames.final}


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("row", CALLS, ids=lambda row: row.id)
async def test_a_failing_call_costs_its_own_time_and_no_item(row: Row, asking: Asking) -> None:
    check(row, await asking.outcome(row))


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("row", ANSWER, ids=lambda row: row.id)
async def test_an_answer_ends_when_its_time_is_up_whatever_it_waits_for(row: Row, asking: Asking) -> None:
    check(row, await asking.outcome(row))


def test_the_table_has_its_rows() -> None:
    assert len(CALLS) + len(ANSWER) >= 60
    assert len({row.id for row in CALLS}) == len(CALLS)
    modes = ("list", "summarize", "generate")
    assert {(row.at.mode, row.kind.name) for row in CALLS} == {
        (m, kind.name) for m in modes for kind in KINDS
    }


FIRST_TRIES = [
    Fail(500),
    Fail(429),
    Fail(429, retry_after=0.01),
    Cut(0),
    *(lambda request, at=at: Cut(at, SensibleModel(scores={"": 80})(request)) for at in (5, 40, 200)),
]
FIRST_IDS = ["500", "429", "429 with a wait", "cut at 0", "cut at 5", "cut at 40", "cut at 200"]


@pytest.mark.parametrize("first", FIRST_TRIES, ids=FIRST_IDS)
@pytest.mark.parametrize("retries", [0, 2])
async def test_a_batch_that_fails_once_is_scored_at_the_second_try(
    serve: Serve, model: ScriptedModel, first: Any, retries: int
) -> None:
    server = await serve(model=model, ranking={"batch_size": 4}, llm={"max_retries": retries})
    await server.load("homes", HOMES)
    good = SensibleModel(scores={"": 80})
    failed: list[str] = []

    def answer(request: ModelRequest) -> Any:
        if request.schema_name == "RankingPrompt" and ODD in request.prompt and not failed:
            failed.append(request.prompt)
            return first
        return good(request)

    model.answer = answer
    frames = await server.ask("flat rooms", site="homes", max_results=50)
    assert failed
    asked = [one for one in model.requests if one.schema_name == "RankingPrompt"]
    assert len(asked) == 3 + 1
    assert not frames.of("error")
    assert [item["score"] for item in frames.final] == [80] * len(HOMES)
    assert not frames.one("complete")["degraded"]


@pytest.mark.parametrize("every", FIRST_TRIES, ids=FIRST_IDS)
async def test_a_batch_that_always_fails_is_tried_twice_and_no_more(
    serve: Serve, model: ScriptedModel, every: Any
) -> None:
    server = await serve(model=model, ranking={"batch_size": 50}, llm={"max_retries": 0})
    await server.load("homes", HOMES)
    good = SensibleModel()
    model.answer = lambda request: every if request.schema_name == "RankingPrompt" else good(request)
    frames = await server.ask("flat rooms", site="homes", max_results=50)
    assert [one.schema_name for one in model.requests].count("RankingPrompt") == 2
    assert len(frames.of("error")) == 1
    assert {item["name"] for item in frames.final} == {home["name"] for home in HOMES}
    assert frames.one("complete")["degraded"]


async def test_a_second_try_has_to_begin_before_the_answers_time_is_up(
    serve: Serve, model: ScriptedModel
) -> None:
    server = await serve(model=model, llm={"max_retries": 0, "answer_timeout_s": 3})
    await server.load("homes", HOMES)
    good = SensibleModel()
    # What the endpoint wants waited for reaches beyond the answer's time: there is no second try.
    late = Fail(429, retry_after=30)
    model.answer = lambda request: late if request.schema_name == "RankingPrompt" else good(request)
    frames = await server.ask("flat rooms", site="homes", max_results=50)
    batches = {one.prompt for one in model.requests if one.schema_name == "RankingPrompt"}
    assert [one.schema_name for one in model.requests].count("RankingPrompt") == len(batches)
    assert frames.one("error")["code"] == "model_busy"
    assert {item["name"] for item in frames.final} == {home["name"] for home in HOMES}


async def test_remembering_that_takes_longer_than_the_answer_goes_on_behind_it(
    serve: Serve, model: ScriptedModel
) -> None:
    server = await serve(model=model, llm={"timeout_s": 5, "answer_timeout_s": 2, "max_retries": 0})
    await server.load("homes", HOMES)
    model.answer = SensibleModel(replies={"MemoryConflictPrompt": Hang()})
    told = (await server.ask("Please remember that I love coriander")).one("remember")
    status, _ = await server.json("POST", "/memory/confirm", json={"token": told["confirm"]})
    assert status == 200
    frames = await server.ask("Please remember that I love coriander soup")
    assert [request.schema_name for request in model.requests].count("MemoryConflictPrompt") == 1
    assert [error["code"] for error in frames.of("error")] == ["memory_failed"]
    assert frames.kinds[-1] == "complete"
    assert not frames.one("complete")["degraded"]
    await model.left(1)  # the judge has given up, and the fact is kept without its word
    async with asyncio.timeout(10):
        facts: set[str] = set()
        while "I love coriander soup" not in facts:
            _, listed = await server.json("GET", "/memory")
            facts = {fact["text"] for fact in listed["memories"]}
