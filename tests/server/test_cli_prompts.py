"""`askable prompts`, as a person or a script runs it: a process of its own, without a server."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.fakes.openai_server import ScriptedModel
from tests.server.test_cli import askable

MEMORY = "DetectMemoryRequestPrompt"
OWN = f"""<root>
  <Site ref="shop" types="Product">
    <Thing>
      <Step ref="Season" sets="request.season">
        <promptString>Which season? {{request.query}}</promptString>
        <returnStruc>{{"season": "a season"}}</returnStruc>
      </Step>
      <Prompt ref="{MEMORY}">
        <promptString>Ours: {{request.rawQuery}} {{request.memory}} {{request.previousQueries}}</promptString>
        <returnStruc>{{"is_memory_request": "True or False", "memory_request": "what"}}</returnStruc>
        <example query="remember I am vegan"><expect>{{"is_memory_request": true}}</expect></example>
        <example query="vegan soups"><expect>{{"is_memory_request": false}}</expect></example>
      </Prompt>
    </Thing>
  </Site>
</root>
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    folder = tmp_path / "wording"
    folder.mkdir()
    path = folder / "shop.xml"
    path.write_text(OWN, encoding="utf-8")
    (tmp_path / "askable.toml").write_text('prompts_dir = "wording"\n')
    return path


def with_model(folder: Path, model: ScriptedModel) -> None:
    (folder / "askable.toml").write_text(f'prompts_dir = "wording"\n[llm]\nbase_url = "{model.url}"\n')


async def run(folder: Path, *argv: str) -> Any:
    """The verb in a thread: the model answers from this event loop."""
    return await asyncio.to_thread(askable, folder, "prompts", *argv)


def test_check_says_file_line_and_column_and_exits_1(own: Path, tmp_path: Path) -> None:
    good = askable(tmp_path, "prompts", "check")
    assert (good.returncode, good.stdout) == (0, "")
    own.write_text(OWN.replace("{request.rawQuery}", "{request.rawQuestion}").replace("Product", "Produkt"))
    bad = askable(tmp_path, "prompts", "check")
    assert bad.returncode == 1
    assert f"{own}:9:29: unknown variable `{{request.rawQuestion}}`" in bad.stdout
    assert f"{own}:2:3: warning: unknown type `Produkt` (did you mean `Product`?)" in bad.stdout
    assert bad.stderr.strip() == "1 error, 1 warning"
    told = json.loads(askable(tmp_path, "prompts", "check", "--json").stdout)
    assert [(one["line"], one["severity"]) for one in told] == [(2, "warning"), (9, "error")]
    quiet = askable(tmp_path, "prompts", "check", "-q")
    assert (quiet.stdout.count("\n"), quiet.stderr) == (1, "")


def test_check_of_named_files_says_nothing_of_others(own: Path, tmp_path: Path) -> None:
    own.write_text("<root>")
    lone = tmp_path / "lone.xml"
    lone.write_text(OWN.replace("shop", "lone"))
    assert askable(tmp_path, "prompts", "check", "lone.xml").returncode == 0
    lone.write_text("<root><Site/></root>")
    checked = askable(tmp_path, "prompts", "check", "lone.xml")
    assert (checked.returncode, checked.stdout.count("\n")) == (1, 1)
    assert checked.stdout.startswith("lone.xml:1:7: ")
    assert askable(tmp_path, "prompts", "check", "missing.xml").returncode == 2


def test_show_tells_which_line_holds_and_which_lost(own: Path, tmp_path: Path) -> None:
    shown = askable(tmp_path, "prompts", "show", MEMORY, "--site", "shop", "--type", "Recipe")
    first, second, third, *rest = shown.stdout.splitlines()
    assert first == f"holds\tshop\tThing\t{own}:8"
    assert second.startswith("lost\tevery site\tRecipe\t")
    assert third.startswith("lost\tevery site\tThing\t")
    assert any(line.startswith("Ours: {request.rawQuery}") for line in rest)
    assert '"is_memory_request":{"type":"boolean"' in shown.stdout
    told = json.loads(askable(tmp_path, "prompts", "show", MEMORY, "--json").stdout)
    assert told["holds"]["file"] == str(ROOT / "site_types.xml")
    assert told["lost"] == []
    step = json.loads(askable(tmp_path, "prompts", "show", "Season", "--site", "shop", "--json").stdout)
    assert (step["ref"], step["holds"]["sets"]) == ("step:Season", "request.season")


def test_show_of_nothing_is_wrong_usage_or_a_failure(own: Path, tmp_path: Path) -> None:
    unknown = askable(tmp_path, "prompts", "show", "DetectMemory")
    assert unknown.returncode == 2
    assert "did you mean `DetectMemoryRequestPrompt`?" in unknown.stderr
    assert askable(tmp_path, "prompts", "show", "RequiredInfoPrompt", "--type", "Movie").returncode == 1


def test_show_says_which_files_are_not_used(own: Path, tmp_path: Path) -> None:
    own.write_text("<root>")
    shown = askable(tmp_path, "prompts", "show", MEMORY, "--site", "shop")
    assert shown.returncode == 0
    assert f"not used: {own}:1:" in shown.stderr


def test_try_without_a_model_shows_what_would_be_asked(own: Path, tmp_path: Path) -> None:
    arguments = ("try", MEMORY, "--site", "shop", "--query", "no {request.memory} nuts", "--memory", "vegan")
    tried = askable(tmp_path, "prompts", *arguments, "--prev", "soups, stews")
    assert tried.returncode == 0
    assert 'name="request.rawQuery">no {request.memory} nuts</data-' in tried.stdout
    assert 'name="request.memory">["vegan"]</data-' in tried.stdout
    assert 'name="request.previousQueries">["soups, stews"]</data-' in tried.stdout
    assert "no language model is configured" in tried.stdout
    (told,) = json.loads(askable(tmp_path, "prompts", *arguments, "--json").stdout)
    assert (told["asked"], told["reply"], told["error"]) == (False, None, None)


def test_try_takes_an_item_as_json_or_as_a_file(own: Path, tmp_path: Path) -> None:
    item = '{"name": "Farinata"}'
    (tmp_path / "item.json").write_text(item)
    for given in (item, "item.json"):
        tried = askable(tmp_path, "prompts", "try", "RankingPrompt", "--query", "soup", "--item", given)
        assert '{"name":"Farinata"}</data-' in tried.stdout
    missing = askable(tmp_path, "prompts", "try", "RankingPrompt", "--query", "soup", "--item", "no.json")
    assert missing.returncode == 2


async def test_try_shows_reply_tokens_and_time(own: Path, tmp_path: Path, model: ScriptedModel) -> None:
    with_model(tmp_path, model)
    model.answer = lambda _: '```json\n{"is_memory_request": "yes", "memory_request": "vegan"}\n```'
    arguments = ("try", MEMORY, "--site", "shop", "--query", "remember I am vegan")
    (told,) = json.loads((await run(tmp_path, *arguments, "--json")).stdout)
    assert told["reply"] == {"is_memory_request": True, "memory_request": "vegan"}
    assert told["raw"].startswith("```json")
    assert told["prompt_tokens"] > 0
    assert told["ms"] > 0
    plain = await run(tmp_path, *arguments)
    assert "is_memory_request\ttrue\n" in plain.stdout
    model.answer = lambda _: "I would rather not say."
    failed = await run(tmp_path, *arguments)
    assert failed.returncode == 1
    assert "is_memory_request" in failed.stdout


async def test_try_against_another_file_is_side_by_side(
    own: Path, tmp_path: Path, model: ScriptedModel
) -> None:
    with_model(tmp_path, model)
    model.answer = lambda asked: {
        "is_memory_request": asked.prompt.startswith("Ours"),
        "memory_request": "vegan",
    }
    draft = tmp_path / "draft.xml"
    draft.write_text(OWN.replace("Ours:", "Draft:"))
    arguments = ("try", MEMORY, "--site", "shop", "--query", "x", "--against", "draft.xml")
    plain = await run(tmp_path, *arguments)
    assert "is_memory_request\ttrue\tfalse\n" in plain.stdout
    told = json.loads((await run(tmp_path, *arguments, "--json")).stdout)
    assert [one["prompt"]["file"] for one in told] == [str(own), "draft.xml"]
    other = await run(tmp_path, "try", "RankingPrompt", "--query", "x", "--against", "draft.xml")
    assert other.returncode == 2
    assert "changes nothing of `RankingPrompt`" in other.stderr


async def test_test_runs_examples_records_and_replays(
    own: Path, tmp_path: Path, model: ScriptedModel
) -> None:
    with_model(tmp_path, model)
    model.answer = lambda asked: {"is_memory_request": ">remember" in asked.prompt, "memory_request": "vegan"}
    arguments = ("test", str(own), "--json")
    recorded = await run(tmp_path, *arguments, "--record", "replies.json")
    assert recorded.returncode == 0, recorded.stderr
    assert [one["hit"] for one in json.loads(recorded.stdout)] == [True, True]
    assert len(model.requests) == 2
    (tmp_path / "askable.toml").write_text('prompts_dir = "wording"\n')
    replayed = await run(tmp_path, *arguments, "--replay", "replies.json")
    assert replayed.returncode == 0, replayed.stderr
    assert len(model.requests) == 2
    again = (tmp_path / "replies.json").read_bytes()
    with_model(tmp_path, model)
    await run(tmp_path, *arguments, "--record", "replies.json")
    assert (tmp_path / "replies.json").read_bytes() == again

    own.write_text(OWN.replace("Ours:", "Changed:"))
    stale = await run(tmp_path, *arguments, "--replay", "replies.json")
    assert stale.returncode == 1
    assert "not in the recording" in json.loads(stale.stdout)[0]["differs"][0]


async def test_a_miss_is_named_and_exits_1(own: Path, tmp_path: Path, model: ScriptedModel) -> None:
    with_model(tmp_path, model)
    model.answer = lambda _: {"is_memory_request": True, "memory_request": "vegan"}
    tested = await run(tmp_path, "test", str(own))
    assert tested.returncode == 1
    hit, miss = tested.stdout.splitlines()
    assert hit.split("\t")[:4] == ["hit", MEMORY, "shop", "Thing"]
    assert miss.split("\t")[-2:] == ["vegan soups", "is_memory_request: expected False, came True"]
    assert "1 of 2 examples hit" in tested.stderr


def test_test_without_model_or_recording_is_wrong_usage(own: Path, tmp_path: Path) -> None:
    tested = askable(tmp_path, "prompts", "test")
    assert tested.returncode == 2
    assert "--replay" in tested.stderr
    (tmp_path / "no.json").write_text("{}")
    assert askable(tmp_path, "prompts", "test", "--replay", "no.json").returncode == 2


def test_prompts_that_ask_nothing_are_tested_by_their_filled_text(own: Path, tmp_path: Path) -> None:
    (tmp_path / "none.json").write_text('{"format": "askable-prompt-replies/1", "replies": {}}')
    refs = ("MemoryContextPrompt", "WhiteboardContextPrompt", "WhiteboardEmptyPrompt")
    arguments = [word for ref in refs for word in ("--ref", ref)]
    tested = askable(tmp_path, "prompts", "test", *arguments, "--replay", "none.json", "--json")
    assert tested.returncode == 0, tested.stdout
    found = [one["ref"] for one in json.loads(tested.stdout)]
    assert all(found.count(ref) >= 3 for ref in refs)


def test_new_copies_checks_clean_and_refuses_a_second_time(own: Path, tmp_path: Path) -> None:
    before = own.read_text()
    made = askable(tmp_path, "prompts", "new", "SummarizeResultsPrompt", "--site", "shop", "--json")
    assert made.returncode == 0, made.stderr
    told = json.loads(made.stdout)
    assert (told["file"], told["created"]) == (str(own), False)
    assert all(line in own.read_text() for line in before.splitlines())
    assert askable(tmp_path, "prompts", "check").returncode == 0
    shown = askable(tmp_path, "prompts", "show", "SummarizeResultsPrompt", "--site", "shop", "--json")
    assert json.loads(shown.stdout)["holds"]["line"] == told["line"]
    again = askable(tmp_path, "prompts", "new", "SummarizeResultsPrompt", "--site", "shop")
    assert again.returncode == 2
    assert f"{own}:{told['line']}" in again.stderr


def test_new_makes_the_folder_that_the_settings_name(tmp_path: Path) -> None:
    (tmp_path / "askable.toml").write_text('prompts_dir = "mine"\n')
    made = askable(tmp_path, "prompts", "new", "RankingPrompt", "--site", "films", "--type", "Movie")
    assert made.returncode == 0, made.stderr
    path = tmp_path / "mine" / "films.xml"
    assert made.stdout.startswith(f"{path}:")
    assert 'types="Movie"' in path.read_text()


def test_steps_shows_the_sites_own_beside_the_built_in_ones(own: Path, tmp_path: Path) -> None:
    told = json.loads(askable(tmp_path, "prompts", "steps", "--site", "shop", "--json").stdout)
    assert told[0]["name"] == "Season"
    assert told[0]["changes"] == "`request.season`"
    assert {"decontextualize", "memory", "ranking"} <= {one["name"] for one in told}
    plain = askable(tmp_path, "prompts", "steps", "--site", "shop")
    assert f"step:Season ({own}:4)" in plain.stdout


@pytest.mark.parametrize("verb", ["check", "show", "try", "test", "new", "steps"])
def test_every_verb_has_help_with_an_example(tmp_path: Path, verb: str) -> None:
    shown = askable(tmp_path, "prompts", verb, "--help")
    assert shown.returncode == 0
    assert f"Example: askable prompts {verb}" in " ".join(shown.stdout.split())
    assert "--json" in shown.stdout
