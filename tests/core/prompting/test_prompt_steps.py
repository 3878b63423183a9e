"""Steps of a site's own: in XML, found by site and type, run once, waited for by what uses their variable."""

from __future__ import annotations

import ast
import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from core.errors import ConfigError
from core.prompting import REFS, PromptLibrary, check, fill
from core.prompting.ask import Prompter
from core.prompting.own import OwnStep, installed_steps, of_code
from core.prompting.parse import parse_bytes
from core.providers.base import ChatModel, Usage
from core.providers.chat import chat_model
from core.query import Query
from core.settings import LlmSettings
from core.steps import SIDE_STEPS, STEPS
from core.steps.table import TABLE, plan
from tests.fakes.openai_server import Fail, Hang, ModelRequest, ScriptedModel

ROOT = Path(__file__).resolve().parents[3]


def step(
    name: str = "Season", sets: str = "request.season", text: str = "When? {request.query}", more: str = ""
) -> str:
    key = sets.rpartition(".")[2]
    return (
        f'<Step ref="{name}" sets="{sets}" {more}><promptString>{text}</promptString>'
        f'<returnStruc>{{"{key}": "what it is"}}</returnStruc></Step>'
    )


def summary(text: str) -> str:
    return (
        f'<Prompt ref="SummarizeResultsPrompt"><promptString>{text}</promptString>'
        '<returnStruc>{"summary": "short"}</returnStruc></Prompt>'
    )


USES = summary("In {request.season}: {request.answers}")


def site(name: str, inside: str, more: str = "") -> str:
    return f'<Site ref="{name}" {more}><Thing>{inside}</Thing></Site>'


def library(tmp_path: Path, *files: str, own_variables: tuple[str, ...] = ()) -> PromptLibrary:
    folder = tmp_path / "own"
    folder.mkdir()
    for number, text in enumerate(files):
        (folder / f"{number}.xml").write_text(f"<root>{text}</root>", encoding="utf-8")
    return PromptLibrary.load(ROOT / "site_types.xml", [folder], own_variables=own_variables)


def errors(library: PromptLibrary) -> list[str]:
    return [problem.what for problem in library.problems if problem.severity == "error"]


# ---------------------------------------------------------------- known variables


def test_a_steps_variable_is_known_to_the_later_prompts_of_its_site(tmp_path: Path) -> None:
    found = library(tmp_path, site("shop", step() + USES))
    assert errors(found) == []
    prompt = found.find("SummarizeResultsPrompt", "shop")
    assert prompt is not None
    assert "request.season" in prompt.variables
    assert [one.sets for one in found.steps("shop")] == ["request.season"]
    assert found.steps("elsewhere") == ()


def test_it_is_unknown_to_another_site_and_that_touches_nobody_else(tmp_path: Path) -> None:
    found = library(tmp_path, site("shop", step() + USES), site("other", USES))
    (error,) = errors(found)
    assert error.startswith("unknown variable `{request.season}`")
    assert found.find("SummarizeResultsPrompt", "shop").site == "shop"
    assert found.find("SummarizeResultsPrompt", "other").site is None


@pytest.mark.parametrize(
    "files",
    [
        (site("shop", step()), site("outlet", USES, 'extends="shop"')),
        (f"<Thing>{step()}</Thing>", site("outlet", USES)),
        (site("outlet", step()), site("outlet", USES)),
    ],
    ids=["extends", "every site", "two files"],
)
def test_it_is_known_where_the_step_stands_in_another_file(tmp_path: Path, files: tuple[str, ...]) -> None:
    found = library(tmp_path, *files)
    assert errors(found) == []
    assert found.find("SummarizeResultsPrompt", "outlet").site == "outlet"
    assert len(found.steps("outlet")) == 1


def test_variables_of_steps_in_python_are_known_everywhere(tmp_path: Path) -> None:
    assert errors(library(tmp_path, site("shop", USES), own_variables=("request.season",))) == []


def test_check_knows_a_steps_variable_too(tmp_path: Path) -> None:
    path = tmp_path / "shop.xml"
    path.write_text(f"<root>{site('shop', step() + USES)}</root>")
    assert check(ROOT / "site_types.xml", [], files=[path]) == []
    path.write_text(f"<root>{site('shop', USES)}</root>")
    (problem,) = check(ROOT / "site_types.xml", [], files=[path])
    assert "unknown variable `{request.season}`" in problem.what


def test_examples_give_a_steps_variable_a_value(tmp_path: Path) -> None:
    value = '<value name="request.season">winter</value>'
    example = f'<example query="q">{value}<expect>{{"summary": "~x"}}</expect></example>'
    found = library(tmp_path, site("shop", step() + USES.replace("</Prompt>", f"{example}</Prompt>")))
    prompt = found.find("SummarizeResultsPrompt", "shop")
    assert errors(found) == []
    assert prompt is not None
    assert prompt.examples[0].values["request.season"] == "winter"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (step(sets=""), "sets a variable of its own"),
        (step(sets="season"), "sets a variable of its own"),
        (step(sets="request.query"), "has a value already"),
        (step(name="1 a"), "is no step name"),
        ('<Step ref="A" sets="request.a"><promptString>x</promptString></Step>', "needs a returnStruc"),
        (step().replace('"season":', '"x": "1", "y":'), "which of `x`, `y` is the value?"),
        (step(more='run="first"'), "unknown attribute `run`"),
        (step(more='timeout="0"'), "from 0.1 to 600"),
    ],
)
def test_what_is_wrong_with_a_step_is_said_in_a_line(text: str, what: str) -> None:
    problems = parse_bytes(f"<root><Thing>{text}</Thing></root>".encode(), "p.xml").problems
    assert any(what in problem.what for problem in problems), problems


@pytest.mark.parametrize(
    ("uses", "before"), [("{request.a}", ""), ("it", 'before="step:A"')], ids=["by variables", "by before"]
)
def test_steps_that_wait_for_each_other_never_run_and_are_reported(
    tmp_path: Path, uses: str, before: str
) -> None:
    first = step("A", "request.a", "{request.b}", 'before="step:B"' if before else "")
    circle = first + step("B", "request.b", uses, before)
    found = library(tmp_path, site("shop", step() + circle))
    assert [one.ref for one in found.steps("shop")] == ["step:Season"]
    said = [problem.what for problem in found.problems]
    assert len(said) == 2
    assert all("never runs" in one for one in said)


def test_a_step_runs_after_those_whose_variable_it_uses(tmp_path: Path) -> None:
    chain = step("A", "request.a", "{request.b}") + step("B", "request.b", "{request.season}") + step()
    found = library(tmp_path, site("shop", chain))
    assert [one.ref for one in found.steps("shop")] == ["step:Season", "step:B", "step:A"]
    assert found.problems == ()


def test_the_site_and_the_nearest_type_decide_which_step_holds(tmp_path: Path) -> None:
    files = (
        f"<Thing>{step(text='all')}</Thing><Recipe>{step(text='recipes')}</Recipe>",
        f'<Site ref="shop"><Recipe>{step(text="ours")}</Recipe></Site>',
        '<Site ref="quiet"><Thing>' + step(more='enabled="false"') + "</Thing></Site>",
    )
    found = library(tmp_path, *files)
    assert [one.text for one in found.steps("shop", "Recipe")] == ["ours"]
    assert [one.text for one in found.steps("shop", "Movie")] == ["all"]
    assert [one.text for one in found.steps("", "Recipe")] == ["recipes"]
    assert found.steps("quiet", "Recipe") == ()


def test_a_long_value_of_a_step_is_shortened_too(tmp_path: Path) -> None:
    prompt = library(tmp_path, site("shop", step() + USES)).find("SummarizeResultsPrompt", "shop")
    assert prompt is not None
    filled = fill(prompt, {"request.season": "x" * 90_000}, budget=2000)
    assert len(filled.text) < 2300


# ---------------------------------------------------------------- running


@pytest.fixture
async def chat(model: ScriptedModel) -> AsyncIterator[ChatModel]:
    found = chat_model(LlmSettings(base_url=model.url))
    assert found is not None
    yield found
    await found.close()


QUERY = Query(text="soups", query_id="q", conversation_id="c", sites=("shop",))


def by_step(**replies: Any) -> Any:
    """Answers a call by the name of its step."""

    def answer(request: ModelRequest) -> Any:
        reply = replies[request.schema_name.removeprefix("step_")]
        return reply(request) if callable(reply) else reply

    return answer


async def used(found: PromptLibrary, chat: ChatModel, steps: tuple[OwnStep, ...] = ()) -> dict[str, Any]:
    """The own variables that the site's summary is filled with."""
    prompter = Prompter(lambda: found, chat, steps=steps).for_question(Usage())
    prompt = found.find("SummarizeResultsPrompt", "shop")
    assert prompt is not None
    try:
        prompter.start_steps(QUERY)
        values = await prompter.values_for(prompt, QUERY)
    finally:
        await prompter.close()
    return {name: value for name, value in values.items() if name in prompt.variables}


async def test_the_one_key_of_the_reply_is_the_value(
    tmp_path: Path, model: ScriptedModel, chat: ChatModel
) -> None:
    model.answer = lambda _: {"season": "winter"}
    found = library(tmp_path, site("shop", step() + USES))
    assert await used(found, chat) == {"request.season": "winter"}
    (request,) = model.requests
    assert "soups" in request.prompt


async def test_it_is_asked_once_however_many_prompts_use_it(
    tmp_path: Path, model: ScriptedModel, chat: ChatModel
) -> None:
    model.answer = lambda _: {"season": "winter"}
    found = library(tmp_path, site("shop", step() + USES))
    prompter = Prompter(lambda: found, chat).for_question(Usage())
    prompt = found.find("SummarizeResultsPrompt", "shop")
    assert prompt is not None
    several = await asyncio.gather(*(prompter.values_for(prompt, QUERY) for _ in range(5)))
    await prompter.close()
    assert {values["request.season"] for values in several} == {"winter"}
    assert len(model.requests) == 1


@pytest.mark.parametrize("failure", [Fail(401), "no JSON at all", Hang()], ids=["refused", "reply", "late"])
async def test_a_step_that_fails_or_is_late_has_no_value(
    tmp_path: Path, model: ScriptedModel, chat: ChatModel, failure: Any
) -> None:
    model.answer = lambda _: failure
    number = step(more='timeout="0.2"').replace('"what it is"', '"integer between 1 and 12"')
    found = library(tmp_path, site("shop", number + USES))
    assert await used(found, chat) == {"request.season": None}


async def test_a_prompt_waits_for_no_other_step_than_those_it_uses(
    tmp_path: Path, model: ScriptedModel, chat: ChatModel
) -> None:
    def when_both_run(_: ModelRequest) -> Any:
        return {"season": "winter"} if len(model.requests) == 2 else 0.01

    model.answer = by_step(Season=when_both_run, Slow=Hang())
    slow = step("Slow", "request.slow", more='timeout="600"')
    found = library(tmp_path, site("shop", step() + slow + USES))
    async with asyncio.timeout(10):
        assert await used(found, chat) == {"request.season": "winter"}
    await model.left(1)  # the slow one is stopped with the question


async def test_before_makes_a_prompt_wait_that_does_not_use_the_variable(
    tmp_path: Path, model: ScriptedModel, chat: ChatModel
) -> None:
    model.answer = lambda _: {"season": "winter"}
    first = step(more='before="SummarizeResultsPrompt"')
    found = library(tmp_path, site("shop", first + summary("{request.answers}")))
    await used(found, chat)
    assert len(model.requests) == 1


class Weather:
    """A step in Python."""

    name = "weather"
    sets = "request.weather"

    def __init__(self, value: Any = "rain") -> None:
        self.value = value

    async def run(self, query: Query, prompter: Prompter, usage: Usage) -> Any:
        if isinstance(self.value, Exception):
            raise self.value
        return f"{self.value} on {query.text}"


async def test_a_step_in_python_gives_its_value_and_one_that_raises_none(
    tmp_path: Path, chat: ChatModel
) -> None:
    uses = summary("{request.weather}")
    found = library(tmp_path, site("shop", uses), own_variables=("request.weather",))
    assert await used(found, chat, (of_code(Weather()),)) == {"request.weather": "rain on soups"}
    assert await used(found, chat, (of_code(Weather(RuntimeError("x"))),)) == {"request.weather": None}


def offer(folder: Path, code: str, module: str) -> None:
    """A package on the path that offers a step, as an installed one does."""
    info = folder / "ownstep-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: ownstep\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[askable.steps]\nweather = " + module + ":Weather\n")
    (folder / f"{module}.py").write_text(code)


def test_steps_of_installed_packages_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert installed_steps() == []
    offer(
        tmp_path,
        "class Weather:\n    name, sets, timeout_s = 'weather', 'request.weather', 0.5\n",
        "own_weather",
    )
    monkeypatch.syspath_prepend(tmp_path)
    (found,) = installed_steps()
    assert (found.name, found.sets, found.timeout_s) == ("weather", "request.weather", 0.5)


def test_a_package_whose_step_cannot_be_loaded_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer(tmp_path, "raise RuntimeError('no forecast today')", "broken_weather")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigError, match=r"step `weather` .* cannot be loaded: no forecast today"):
        installed_steps()


def test_a_step_in_python_may_set_no_variable_of_ours() -> None:
    weather = Weather()
    weather.sets = "request.query"
    with pytest.raises(ConfigError, match=r"sets `request\.query`"):
        of_code(weather)


# ---------------------------------------------------------------- the table and the schema


def test_the_published_schema_describes_a_step() -> None:
    schema = etree.RelaxNG(etree.parse(ROOT / "docs" / "prompts.rng"))
    more = 'timeout="1.5" before="RankingPrompt"'
    assert schema.validate(etree.fromstring(f"<root>{site('shop', step(more=more) + USES)}</root>"))
    assert not schema.validate(etree.fromstring(f"<root><Thing>{step(sets='season')}</Thing></root>"))
    assert not schema.validate(
        etree.fromstring(f"<root><Thing>{step(more=more.replace('before', 'after'))}</Thing></root>")
    )


def asked_by_the_code() -> set[str]:
    """The refs that the code outside the prompt language names, and that ask a model something."""
    files = [path for path in (ROOT / "core").rglob("*.py") if path.parent.name != "prompting"]
    nodes = (
        node for path in files if path.name != "table.py" for node in ast.walk(ast.parse(path.read_text()))
    )
    strings = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return {ref for ref in strings & REFS.keys() if REFS[ref].keys}


def test_a_prompt_that_no_step_runs_is_marked_as_one() -> None:
    assert asked_by_the_code() == {name for name, ref in REFS.items() if ref.keys and ref.run}


@pytest.mark.parametrize("ref", [name for name, one in REFS.items() if not one.run])
def test_check_says_that_a_prompt_of_ones_own_is_run_by_no_step(tmp_path: Path, ref: str) -> None:
    file = tmp_path / "own.xml"
    (key,) = REFS[ref].keys
    inside = f'<promptString>x</promptString><returnStruc>{{"{key}": "x"}}</returnStruc>'
    text = f'<Prompt ref="{ref}">{inside}</Prompt>'
    file.write_text(f"<root><Thing>{text}</Thing></root>", encoding="utf-8")
    (problem,) = check(ROOT / "site_types.xml", [], files=[file])
    assert (problem.severity, problem.what) == ("warning", f"no step runs `{ref}` here: it changes no answer")
    assert check(ROOT / "site_types.xml", []) == []


def test_every_prompt_that_the_code_asks_has_a_row_in_the_table() -> None:
    assert asked_by_the_code() <= {row.prompt for row in TABLE}


def test_every_built_in_step_has_a_row_and_every_row_is_documented() -> None:
    rows = {row.name: row for row in TABLE}
    assert {*STEPS, *SIDE_STEPS} <= set(rows)
    text = (ROOT / "docs" / "prompts.md").read_text(encoding="utf-8")
    for row in TABLE:
        assert f"| {row.name} | `{row.prompt}` | {row.when} | {row.after or '–'} | {row.changes} |" in text


def test_the_plan_of_a_site_has_its_own_steps_and_what_waits_for_them(tmp_path: Path) -> None:
    uses = (
        '<Prompt ref="RankingPrompt"><promptString>{request.season} {item.description}</promptString>'
        '<returnStruc>{"score": "integer between 0 and 100", "description": "x"}</returnStruc></Prompt>'
    )
    found = library(tmp_path, site("shop", step() + uses))
    rows = {one.row.name: one.row for one in plan(found, "shop", "Thing", [of_code(Weather())])}
    assert rows["Season"].changes == "`request.season`"
    assert rows["weather"].changes == "`request.weather`"
    assert rows["ranking"].after == "decontextualize, Season"
    assert rows["memory"].after == ""
