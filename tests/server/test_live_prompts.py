"""Prompt files that change under a running server: questions, `/ready`, the command line."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from server.keys import LIBRARY
from tests.conftest import ADMIN, KITCHEN, Serve, Served
from tests.core.prompting.test_prompt_parse import BROKEN
from tests.fakes.openai_server import Fail, Hang, ModelRequest, ScriptedModel
from tests.fakes.sensible_model import tagged_items
from tests.server.test_cli import askable

MEMORY = "DetectMemoryRequestPrompt"


def prompt_file(words: str, *, site: str = "kitchen", more: str = "") -> str:
    """A site's own memory and ranking prompts, each with these words."""
    return f"""<root><Site ref="{site}"><Thing>
      <Prompt ref="{MEMORY}"><promptString>{words} remember? {{request.rawQuery}}</promptString>
        <returnStruc>{{"is_memory_request": "True or False", "memory_request": "what"}}</returnStruc>
        <example query="remember I am vegan"><expect>{{"is_memory_request": true}}</expect></example>
      </Prompt>
      <Prompt ref="RankingPrompt"><promptString>{words} fits? {{item.description}}</promptString>
        <returnStruc>{{"score": "integer between 0 and 100", "description": "why"}}</returnStruc>
      </Prompt>{more}
    </Thing></Site></root>"""


def write(path: Path, content: str) -> None:
    beside = path.with_name(f".{path.name}")
    beside.write_text(content, encoding="utf-8")
    os.replace(beside, path)


def ranked(request: ModelRequest) -> Any:
    items, _ = tagged_items(request.prompt)
    return [{"tag": item["tag"], "score": 80, "description": "It fits."} for item in items]


def answering(**by_ref: Any) -> Callable[[ModelRequest], Any]:
    """Answers by ref; memory requests are none, everything fits."""

    def answer(request: ModelRequest) -> Any:
        if request.schema_name == MEMORY and MEMORY not in by_ref:
            return {"is_memory_request": False, "memory_request": ""}
        reply = by_ref.get(request.schema_name, ranked)
        return reply(request) if callable(reply) else reply

    return answer


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "wording"
    folder.mkdir()
    write(folder / "kitchen.xml", prompt_file("OLD"))
    return folder


async def look(server: Served) -> None:
    """What the watcher does at its next look."""
    await asyncio.to_thread(server.app[LIBRARY].look)


async def as_operator(server: Served) -> tuple[int, Any]:
    """`/ready` with the lines that only the operator sees."""
    return await server.json("GET", "/ready", headers={"Authorization": f"Bearer {ADMIN}"})


def asked(model: ScriptedModel, ref: str) -> list[str]:
    return [request.prompt for request in model.requests if request.schema_name == ref]


async def test_a_changed_file_is_live_for_new_questions_by_itself(
    serve: Serve, model: ScriptedModel, folder: Path
) -> None:
    server = await serve(model=model, prompts_dir=folder)
    model.answer = answering()
    await server.load("kitchen", KITCHEN)
    before = server.app[LIBRARY].current
    write(folder / "kitchen.xml", prompt_file("NEW"))
    async with asyncio.timeout(10):
        while server.app[LIBRARY].current is before:
            await asyncio.sleep(0.01)
    await server.ask("stew", site="kitchen")
    assert asked(model, MEMORY)[0].startswith("NEW remember?")


async def test_twenty_running_questions_keep_their_prompts_and_none_fails(
    serve: Serve, model: ScriptedModel, folder: Path, tmp_path: Path
) -> None:
    server = await serve(model=model, prompts_dir=folder)
    await server.load("kitchen", KITCHEN)
    await server.load("bakery", KITCHEN)
    changed = asyncio.Event()
    held: set[int] = set()

    def when_changed(request: ModelRequest) -> Any:
        """The rewriting ends only after the change: ranking begins when the new prompts are in force."""
        if not changed.is_set() or id(request) not in held:
            held.add(id(request))
            return 0.01
        return {"requires_decontextualization": True, "decontextualized_query": "vegan stew"}

    model.piece_delay = 0.002
    model.answer = answering(PrevQueryDecontextualizer=when_changed)
    running = [
        asyncio.create_task(server.ask("a vegan one", site=site, prev=["stew"]))
        for site in ("kitchen", "bakery")
        for _ in range(10)
    ]
    await model.until(
        lambda: len(asked(model, "PrevQueryDecontextualizer")) == 20 and len(asked(model, MEMORY)) == 20
    )
    write(folder / "kitchen.xml", prompt_file("NEW"))
    await look(server)
    changed.set()
    answers = await asyncio.gather(*running)
    assert all(not frames.of("error") for frames in answers)
    assert all(frames.final for frames in answers)
    assert len(asked(model, "RankingPrompt")) == 20
    assert sum("OLD fits?" in prompt for prompt in asked(model, "RankingPrompt")) == 10
    assert not any("NEW" in request.prompt for request in model.requests)

    model.requests.clear()
    await server.ask("stew", site="kitchen")
    await server.ask("stew", site="bakery")
    assert [prompt.startswith("NEW") for prompt in asked(model, MEMORY)] == [True, False]
    assert not any("OLD" in request.prompt for request in model.requests)

    (tmp_path / "askable.toml").write_text(f'prompts_dir = "{folder}"\n[llm]\nbase_url = "{model.url}"\n')
    shown = await asyncio.to_thread(
        askable, tmp_path, "prompts", "show", MEMORY, "--site", "kitchen", "--json"
    )
    holds = json.loads(shown.stdout)["holds"]
    assert (holds["file"], holds["line"]) == (str(folder / "kitchen.xml"), 2)
    model.answer = answering(DetectMemoryRequestPrompt={"is_memory_request": True, "memory_request": "vegan"})
    path = str(folder / "kitchen.xml")
    recorded = await asyncio.to_thread(askable, tmp_path, "prompts", "test", path, "--record", "replies.json")
    assert recorded.returncode == 0, recorded.stderr
    (tmp_path / "askable.toml").write_text(f'prompts_dir = "{folder}"\n')
    replayed = await asyncio.to_thread(askable, tmp_path, "prompts", "test", path, "--replay", "replies.json")
    assert replayed.returncode == 0, replayed.stderr
    assert "1 of 1 examples hit" in replayed.stderr


async def test_no_broken_file_stops_the_server_or_its_site(
    serve: Serve, model: ScriptedModel, folder: Path
) -> None:
    server = await serve(model=model, prompts_dir=folder)
    model.answer = answering()
    await server.load("kitchen", KITCHEN)
    path = folder / "kitchen.xml"
    assert len(BROKEN) >= 40
    for name, text, line, col, what in BROKEN:
        write(path, text)
        await look(server)
        status, ready = await as_operator(server)
        assert (status, ready["status"]) == (200, "degraded"), name
        (told,) = ready["checks"]["prompts"]
        assert told.startswith(f"{path}:{line}:{col}: "), name
        assert what in told, name
        prompt = server.app[LIBRARY].current.find(MEMORY, "kitchen")
        assert prompt is not None
        assert prompt.text.startswith("OLD"), name
    frames = await server.ask("stew", site="kitchen")
    assert not frames.of("error")
    assert asked(model, MEMORY)[0].startswith("OLD")
    write(path, prompt_file("NEW"))
    await look(server)
    assert (await server.json("GET", "/ready"))[1]["status"] == "ready"


async def test_a_base_file_that_breaks_while_the_server_runs_stays_as_it_was(
    serve: Serve, model: ScriptedModel, tmp_path: Path
) -> None:
    base = tmp_path / "site_types.xml"
    write(base, prompt_file("BASE").replace('<Site ref="kitchen">', "").replace("</Site>", ""))
    server = await serve(model=model, site_types=base)
    model.answer = answering()
    await server.load("kitchen", KITCHEN)
    write(base, '<!DOCTYPE root [<!ENTITY a "b">]><root>&a;</root>')
    await look(server)
    _, ready = await as_operator(server)
    assert ready["checks"]["prompts"][0].startswith(f"{base}:1:1: ")
    await server.ask("stew", site="kitchen")
    assert asked(model, MEMORY)[0].startswith("BASE")


async def test_a_warning_is_no_trouble_for_ready(serve: Serve, folder: Path) -> None:
    server = await serve(prompts_dir=folder)
    (folder / "notes.txt").write_text("mine")
    await look(server)
    assert (await server.json("GET", "/ready"))[1]["checks"]["prompts"] == "ok"


# ---------------------------------------------------------------- steps of a site's own

SEASON = """<Step ref="Season" sets="request.season" timeout="{timeout}">
  <promptString>Which season? {{request.query}}</promptString>
  <returnStruc>{{"season": "a season"}}</returnStruc></Step>"""


def seasonal(timeout: float) -> str:
    text = prompt_file("IN {request.season}", more=SEASON.format(timeout=timeout))
    return text.replace("IN {request.season} remember?", "plain remember?")


async def test_ranking_waits_for_the_step_it_uses_and_memory_does_not(
    serve: Serve, model: ScriptedModel, folder: Path
) -> None:
    write(folder / "kitchen.xml", seasonal(30))
    server = await serve(model=model, prompts_dir=folder)
    await server.load("kitchen", KITCHEN)
    asked_memory = asyncio.Event()

    def season(request: ModelRequest) -> Any:
        return {"season": "late winter"} if asked_memory.is_set() else 0.01

    def memory(request: ModelRequest) -> Any:
        asked_memory.set()
        return {"is_memory_request": False, "memory_request": ""}

    model.answer = answering(step_Season=season, DetectMemoryRequestPrompt=memory)
    frames = await server.ask("stew", site="kitchen")
    (prompt,) = asked(model, "RankingPrompt")
    assert ">late winter</data-" in prompt
    assert frames.final
    assert "step Season" in frames.one("complete")["timings"]
    assert len(asked(model, "step_Season")) == 1


async def test_another_site_knows_nothing_of_the_step(
    serve: Serve, model: ScriptedModel, folder: Path
) -> None:
    write(folder / "kitchen.xml", seasonal(30))
    server = await serve(model=model, prompts_dir=folder)
    model.answer = answering(step_Season={"season": "winter"})
    await server.load("kitchen", KITCHEN[:1])
    await server.load("bakery", KITCHEN[:1])
    await server.ask("curry", site="bakery")
    assert asked(model, "step_Season") == []
    await server.ask("curry")  # of both: asked for the batch of the site that has the step
    assert len(asked(model, "step_Season")) == 1
    assert sorted("winter" in prompt for prompt in asked(model, "RankingPrompt")[1:]) == [False, True]


@pytest.mark.parametrize("failure", [Fail(401), Hang()], ids=["fails", "late"])
async def test_a_step_that_fails_or_is_late_is_skipped(
    serve: Serve, model: ScriptedModel, folder: Path, failure: Any
) -> None:
    write(folder / "kitchen.xml", seasonal(0.2))
    server = await serve(model=model, prompts_dir=folder)
    model.answer = answering(step_Season=failure)
    await server.load("kitchen", KITCHEN)
    frames = await server.ask("stew", site="kitchen")
    assert '"request.season">(none)</data-' in asked(model, "RankingPrompt")[0]
    assert frames.final
    assert not frames.of("error")
