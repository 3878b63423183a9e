"""What an operator is told of an answer: every step with its time, and what it asked of which model."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.conftest import ADMIN, KITCHEN, Frames, Serve, Served
from tests.events import check
from tests.fakes.openai_server import Fail, Hang, ModelRequest, Say, ScriptedModel
from tests.fakes.sensible_model import SensibleModel
from tests.server.test_ask import answering
from tests.server.test_steps import DESCRIBED, RELEVANCE_KEYS, limited, prompts

__all__ = ["prompts"]
OPERATOR = {"Authorization": f"Bearer {ADMIN}", "X-User-Id": "anna"}
BIG, SMALL = "gpt-4.1", "gpt-4.1-mini"  # the settings' own
FIELDS = {"step", "start_ms", "ms", "outcome", "model", "tokens_in", "tokens_out", "cache", "prompt"}
PLACE = re.compile(r"\.xml:\d+$")
SEASON = """
<Site ref="kitchen" types="Recipe"/>
<Thing>
  <Step ref="Season" sets="request.season">
    <promptString>Which season? {request.query}</promptString>
    <returnStruc>{"season": "a season"}</returnStruc>
  </Step>
</Thing>
"""


async def kitchen(serve: Serve, **settings: Any) -> Served:
    server = await serve(**settings)
    await server.load("kitchen", KITCHEN)
    return server


async def traced(server: Served, query: str, **more: Any) -> tuple[list[dict[str, Any]], Frames]:
    """The timeline, whose rows are whole and in order; and the answer."""
    frames = await server.ask(query, debug=True, headers=OPERATOR, site="kitchen", **more)
    told = frames.one("debug")
    rows: list[dict[str, Any]] = told["timeline"]
    total = told["steps"]["total"]
    for row in rows:
        assert row.keys() == FIELDS
        assert 0 <= row["start_ms"] <= total
        assert row["start_ms"] + row["ms"] <= total + 1
        assert row["outcome"] in ("done", "failed", "late", "stopped")
        assert (row["model"] is None) == (row["prompt"] is None)
        if row["model"] is None:
            assert (row["tokens_in"], row["tokens_out"], row["cache"]) == (0, 0, None)
        else:
            assert PLACE.search(row["prompt"])
    assert [row["start_ms"] for row in rows] == sorted(row["start_ms"] for row in rows)
    # No call and no token is told twice, or left out.
    calls = told["model_calls"]
    assert sorted(row["prompt"] for row in rows if row["prompt"]) == sorted(call["prompt"] for call in calls)
    for name in ("tokens_in", "tokens_out"):
        assert sum(row[name] for row in rows) == sum(call[name] for call in calls)
    return rows, frames


def of(rows: list[dict[str, Any]], step: str) -> list[dict[str, Any]]:
    return [row for row in rows if row["step"] == step]


def outcomes(rows: list[dict[str, Any]], *, but: str = "memory") -> dict[str, str]:
    return {row["step"]: row["outcome"] for row in rows if row["step"] != but}


@pytest.mark.parametrize(
    ("mode", "last"), [("list", {}), ("summarize", {"summary": SMALL}), ("generate", {"answer": BIG})]
)
async def test_every_step_has_its_time_and_its_model(
    serve: Serve, model: ScriptedModel, mode: str, last: dict[str, str]
) -> None:
    server = await kitchen(serve, model=model, ranking={"batch_size": 1})
    model.answer = SensibleModel(rewrites={"a vegan one": "vegan stew"})
    more = {"mode": mode, "prev": ["beef stew"], "context_url": "https://kitchen.example/x"}
    rows, _ = await traced(server, "a vegan one", **more)
    steps = {row["step"] for row in rows}
    assert {
        "history",
        "context",
        "recall",
        "memory",
        "decontextualize",
        "retrieval",
        "ranking",
    } | last.keys() <= steps
    (rewriting,) = of(rows, "decontextualize")
    assert (rewriting["model"], rewriting["cache"], rewriting["outcome"]) == (BIG, None, "done")
    assert rewriting["tokens_in"] > 0
    assert rewriting["tokens_out"] > 0
    # The search for the question as typed was given up for the one for what it means.
    assert {row["outcome"] for row in of(rows, "retrieval")} <= {"done", "stopped"}
    assert of(rows, "retrieval")[-1]["outcome"] == "done"
    batches = of(rows, "ranking batch")
    assert len(batches) > 1
    # None: a batch that was asked about twice, whose calls stand beside it.
    assert {row["model"] for row in batches} - {None} == {SMALL}
    (ranking,) = of(rows, "ranking")
    for batch in batches:
        assert ranking["start_ms"] <= batch["start_ms"]
        assert batch["start_ms"] + batch["ms"] <= ranking["start_ms"] + ranking["ms"] + 0.2
    for step, name in last.items():
        assert [row["model"] for row in of(rows, step)] == [name]


@pytest.mark.parametrize(
    ("mode", "last"), [("list", []), ("summarize", ["summary"]), ("generate", ["answer"])]
)
async def test_without_a_model_the_steps_have_their_times_all_the_same(
    serve: Serve, mode: str, last: list[str]
) -> None:
    rows, frames = await traced(await kitchen(serve), "beef stew", mode=mode)
    assert frames.one("debug")["model_calls"] == []
    # In which order those begin that run side by side is left to them.
    assert sorted(row["step"] for row in rows) == sorted(
        ["history", "retrieval", "recall", "memory", "ranking", *last]
    )
    assert {row["outcome"] for row in rows} == {"done"}
    assert of(rows, "retrieval")[0]["ms"] > 0


@pytest.mark.parametrize("dialect", ["legacy", "structured-0.55"])
async def test_a_whole_answer_has_it_as_the_schema_says(serve: Serve, dialect: str) -> None:
    server = await kitchen(serve)
    protocol, _, version = dialect.partition("-")
    asked = {"protocol": protocol, **({"version": version} if version else {})}
    body = {"query": "stew", "debug": True, "streaming": False, **asked}
    _, whole = await server.json("POST", "/ask", json=body, headers=OPERATOR)
    check(dialect, whole, "whole")
    messages = [whole["debug"]] if dialect == "legacy" else whole["_meta"]["messages"]
    (rows,) = [one["timeline"] for one in messages if "timeline" in one]
    assert [row["cache"] for row in rows] == [None] * len(rows)


async def test_a_tool_and_the_choice_of_it_are_steps(serve: Serve, model: ScriptedModel) -> None:
    server = await kitchen(serve, model=model)
    details = {"item_name": "Beef stew", "requested_details": "An hour.", "additional_context": ""}
    title = {"item_details_query": True, "item_title": "Beef stew", "details_being_asked": "time"}
    model.answer = SensibleModel(
        replies={"DetectQueryTypePrompt": title, "ExtractItemDetailsPrompt": details}
    )
    rows, frames = await traced(server, "how long does the beef stew take?")
    tool = frames.of("tool_selection")[0]["selected_tool"]
    assert [row["model"] for row in of(rows, "tool_choice")] == [SMALL]
    assert [row["model"] for row in of(rows, f"tool {tool}")] == [SMALL]
    assert of(rows, "ranking") == []


async def test_a_sites_own_step_and_what_is_remembered_are_steps(
    serve: Serve, model: ScriptedModel, prompts: Callable[[str], Path]
) -> None:
    server = await kitchen(serve, model=model, prompts_dir=prompts(SEASON))
    model.answer = SensibleModel(
        replies={"Step:Season": {"season": "winter"}, "Season": {"season": "winter"}}
    )
    rows, _ = await traced(server, "Remember that I love stew. A beef stew?")
    (season,) = of(rows, "step Season")
    assert season["prompt"].split(":")[0].endswith("site.xml")
    assert of(rows, "remember")


async def test_a_step_that_fails_and_one_that_is_late_say_so(
    serve: Serve, model: ScriptedModel, prompts: Callable[[str], Path]
) -> None:
    folder = prompts(DESCRIBED + limited("DetectIrrelevantQueryPrompt", RELEVANCE_KEYS, limit=30))
    server = await kitchen(serve, model=model, prompts_dir=folder, llm={"max_retries": 0})
    model.answer = answering(DetectIrrelevantQueryPrompt=Fail(500), DetectMemoryRequestPrompt=Fail(500))
    rows, _ = await traced(server, "beef stew")
    assert outcomes(rows)["relevance"] == "failed"
    model.answer = answering(DetectIrrelevantQueryPrompt=Hang())
    rows, frames = await traced(server, "beef stew")
    (late,) = of(rows, "relevance")
    assert (late["outcome"], late["model"]) == ("late", BIG)
    assert "relevance_late" in frames.one("complete")["timings"]
    model.answer = answering(RankingPrompt=Fail(500))
    rows, _ = await traced(server, "beef stew")
    assert {row["outcome"] for row in of(rows, "ranking batch")} == {"failed"}


async def test_an_answer_that_the_model_did_not_write_says_that_its_call_failed(
    serve: Serve, model: ScriptedModel
) -> None:
    server = await kitchen(serve, model=model, llm={"max_retries": 0})
    model.answer = answering(SynthesizePromptForGenerate=Fail(500))
    rows, frames = await traced(server, "beef stew", mode="generate")
    assert [row["outcome"] for row in of(rows, "answer")] == ["failed"]
    assert frames.one("nlws")["extractive"]


async def test_what_the_endpoint_had_cached_is_told(serve: Serve, model: ScriptedModel) -> None:
    server = await kitchen(serve, model=model)
    answer = answering()

    def cached(request: ModelRequest) -> Any:
        return Say(orjson.dumps(answer(request)).decode(), cached=7)

    model.answer = cached
    rows, frames = await traced(server, "beef stew", mode="summarize")
    assert {row["cache"] for row in rows if row["model"]} == {7}
    for call in frames.one("debug")["model_calls"]:
        assert (call["cache"], bool(call["model"])) == (7, True)


async def test_nothing_is_noted_for_others(serve: Serve, model: ScriptedModel) -> None:
    server = await kitchen(serve, model=model)
    model.answer = SensibleModel()
    assert (await server.ask("beef stew", headers=OPERATOR)).of("debug") == []
