"""`askable prompts`: check, show, try, test and copy the wording, without a server."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import orjson

from core.errors import BadQuery, ConfigError
from core.prompting import schema_types
from core.prompting.library import PromptLibrary, check
from core.prompting.own import OwnStep, installed_steps
from core.prompting.parse import Problem, Prompt
from core.prompting.tools import (
    Recording,
    Tested,
    Trial,
    against,
    described,
    named,
    place_of,
    question,
    run_examples,
    tried,
)
from core.prompting.watch import places
from core.query import Query
from core.settings import Settings
from server.cli.context import Context
from server.cli.output import Output, counted, output_options

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from core.prompting.variables import Value
    from core.providers.base import ChatModel

NO_MODEL = "no language model is configured (set OPENAI_API_KEY, or llm.base_url in askable.toml)"
FILES = click.Path(exists=True, path_type=Path)
SITE = click.option("--site", default="", help="As this site has it.")
TYPE = click.option("--type", "item_type", default="", help="For this schema.org type.")


@click.group("prompts")
def command() -> None:
    """Write prompts: what the model is asked, in your own words.

    Example: askable prompts show DetectMemoryRequestPrompt --site trattoria
    """


# ---------------------------------------------------------------- check


@command.command("check")
@click.argument("files", nargs=-1, type=FILES)
@output_options
@click.pass_obj
def check_command(context: Context, files: tuple[Path, ...], quiet: bool) -> None:
    """Check all prompt files, or FILE…: a line `file:line:col: what` for each thing that is wrong.

    Errors keep a file from being used, and make the exit code 1; warnings don't.

    Example: askable prompts check prompts/trattoria.xml
    """
    output = Output(quiet=quiet)
    base, folders = places_of(context.settings())
    problems = check(base, folders, files=expanded(files), own_variables=own_variables(installed_steps()))
    errors = [problem for problem in problems if problem.severity == "error"]
    if output.as_json:
        output.json([asdict(problem) for problem in problems])
    else:
        for problem in problems if not quiet else errors:
            output.line(said(problem), style="red" if problem.severity == "error" else "yellow")
        warnings = counted(len(problems) - len(errors), "warning")
        output.note(f"{counted(len(errors), 'error')}, {warnings}")
    if errors:
        raise SystemExit(1)


def said(problem: Problem) -> str:
    """A problem as a line; a warning says that it is one."""
    kind = "warning: " if problem.severity == "warning" else ""
    return f"{problem.file}:{problem.line}:{problem.col}: {kind}{problem.what}"


def expanded(files: Sequence[Path]) -> list[Path]:
    """The files, folders as the `*.xml` in them."""
    return [one for path in files for one in (sorted(path.glob("*.xml")) if path.is_dir() else [path])]


# ---------------------------------------------------------------- show


@command.command("show")
@click.argument("name")
@SITE
@TYPE
@output_options
@click.pass_obj
def show_command(context: Context, name: str, site: str, item_type: str, quiet: bool) -> None:
    """Show which prompt holds for NAME, in which file and line, and which it goes before.

    Example: askable prompts show RankingPrompt --site trattoria --type Recipe
    """
    output = Output(quiet=quiet)
    library = read(context.settings(), output)
    ref = named(library, name)
    chain = library.chain(ref, site, item_type)
    if output.as_json:
        output.json(shown(ref, site, item_type, chain))
    elif chain:
        print_chain(chain, output)
    else:
        output.note(f"there is no `{ref}` for this site and type: its step doesn't run")
    if not chain:
        raise SystemExit(1)


def shown(ref: str, site: str, item_type: str, chain: Sequence[Prompt]) -> dict[str, Any]:
    """What `show` tells, for JSON."""
    holds = chain[0] if chain else None
    told = holds and {
        **described(holds),
        "text": holds.text,
        "reply": holds.reply.json_schema if holds.reply else None,
        "variables": list(holds.variables),
        "examples": len(holds.examples),
        **({"sets": holds.sets} if holds.sets else {}),
    }
    return {
        "ref": ref,
        "site": site,
        "type": item_type,
        "holds": told,
        "lost": [described(prompt) for prompt in chain[1:]],
    }


def print_chain(chain: Sequence[Prompt], output: Output) -> None:
    holds = chain[0]
    rows = [
        (
            "holds" if prompt is holds else "lost",
            prompt.site or "every site",
            prompt.item_type,
            place_of(prompt),
        )
        for prompt in chain
    ]
    output.table(("", "site", "type", "where"), rows)
    if not holds.enabled:
        output.line('It is switched off (enabled="false"): its step doesn\'t run.', style="yellow")
    output.line()
    output.line(holds.text)
    output.line()
    schema = holds.reply.json_schema if holds.reply else None
    output.line(f"reply  {orjson.dumps(schema).decode()}" if schema else "reply  none: it asks nothing")


# ---------------------------------------------------------------- try


@command.command("try")
@click.argument("name")
@click.option("--query", required=True, help="The question.")
@click.option("--prev", multiple=True, help="An earlier question; repeat it, oldest first.")
@click.option("--item", metavar="FILE|JSON", help="The item at hand (for ranking).")
@click.option("--answers", metavar="FILE|JSON", help="The items found (for summaries and answers).")
@click.option("--memory", multiple=True, help="Something known about the person; repeat it.")
@click.option("--set", "given", multiple=True, metavar="VARIABLE=VALUE", help="Any other variable.")
@click.option("--against", "other", type=FILES, help="Side by side with this file's wording.")
@SITE
@TYPE
@output_options
@click.pass_obj
def try_command(
    context: Context,
    name: str,
    query: str,
    prev: tuple[str, ...],
    item: str | None,
    answers: str | None,
    memory: tuple[str, ...],
    given: tuple[str, ...],
    other: Path | None,
    site: str,
    item_type: str,
    quiet: bool,
) -> None:
    """Fill a prompt and ask the model; without one, show what would be asked.

    Example: askable prompts try DetectMemoryRequestPrompt --query "remember I am vegan" --site trattoria
    """
    output = Output(quiet=quiet)
    settings = context.settings()
    library = read(settings, output)
    values = dict(one_value(pair) for pair in given)
    for variable, text in (("item.description", item), ("request.answers", answers)):
        if text is not None:
            values[variable] = json_or_file(text)
    if memory:
        values["request.memory"] = list(memory)
    ref = named(library, name)
    chain = library.chain(ref, site, item_type)
    if not chain:
        raise BadQuery(f"there is no `{ref}` for this site and type", field="name")
    prompts = [chain[0]]
    libraries = [library]
    if other is not None:
        libraries.append(read(settings, output, files=[other]))
        prompts.append(against(libraries[1], chain[0], site, item_type))
    asked = question(query, site=site, item_type=item_type, prev=prev)
    trials = asyncio.run(try_all(settings, libraries, prompts, asked, values))
    if output.as_json:
        output.json([trial_as_json(trial) for trial in trials])
    else:
        print_trials(trials, output)
    if any(trial.failed for trial in trials):
        raise SystemExit(1)


async def try_all(
    settings: Settings,
    libraries: Sequence[PromptLibrary],
    prompts: Sequence[Prompt],
    query: Query,
    given: dict[str, Value],
) -> list[Trial]:
    from core.prompting.ask import values_of

    trials = []
    async with chat(settings) as model:
        for library, prompt in zip(libraries, prompts, strict=True):
            values = {**values_of(library, query, item_type=query.item_type or ""), **given}
            trials.append(await tried(prompt, values, query, model))
    return trials


def one_value(pair: str) -> tuple[str, Value]:
    variable, equals, value = pair.partition("=")
    if not equals:
        raise click.UsageError(f"--set {pair}: write VARIABLE=VALUE, such as request.season=summer")
    return variable.strip(), json_or_text_of(value)


def json_or_file(text: str) -> Value:
    """JSON, or a file that holds it."""
    try:
        return json_of(text) if text.lstrip()[:1] in ("{", "[") else json_of(Path(text).read_text("utf-8"))
    except OSError as missing:
        raise click.UsageError(
            f"{text}: neither JSON nor a file that can be read ({missing.strerror})"
        ) from None
    except orjson.JSONDecodeError as wrong:
        raise click.UsageError(f"{text[:80]}: no JSON ({wrong})") from None


def json_or_text_of(text: str) -> Value:
    try:
        return json_of(text) if text[:1] in ("{", "[") else text
    except orjson.JSONDecodeError:
        return text


def json_of(text: str) -> Value:
    value: Value = orjson.loads(text)
    return value


def trial_as_json(trial: Trial) -> dict[str, Any]:
    return {
        "prompt": described(trial.prompt),
        "system": trial.filled.system,
        "filled": trial.filled.text,
        "asked": trial.asked,
        "raw": trial.raw,
        "reply": trial.reply,
        "error": trial.failed or None,
        "prompt_tokens": trial.usage.prompt_tokens,
        "completion_tokens": trial.usage.completion_tokens,
        "ms": trial.ms,
    }


def print_trials(trials: Sequence[Trial], output: Output) -> None:
    for trial in trials:
        output.line(place_of(trial.prompt), style="bold")
        if not output.quiet:
            output.line(f"{trial.filled.system}\n\n{trial.filled.text}\n")
            output.line(f"raw    {trial.raw}" if trial.asked else not_asked(trial))
    if any(trial.asked for trial in trials):
        output.table(("", *(place_of(trial.prompt) for trial in trials)), compared(trials))


def not_asked(trial: Trial) -> str:
    if trial.prompt.reply is None:
        return "Nobody is asked: this prompt is put in front of another model."
    return f"Nobody was asked: {NO_MODEL}."


def compared(trials: Sequence[Trial]) -> list[tuple[str, ...]]:
    """What came, a row a key and a column a trial."""
    keys = dict.fromkeys(key for trial in trials for key in trial.reply or ())
    rows = [(key, *(cell((trial.reply or {}).get(key, "")) for trial in trials)) for key in keys]
    if any(trial.failed for trial in trials):
        rows.append(("error", *(trial.failed for trial in trials)))
    usages = [trial.usage for trial in trials]
    rows.append(("tokens", *(f"{one.prompt_tokens} + {one.completion_tokens}" for one in usages)))
    rows.append(("ms", *(f"{trial.ms:.0f}" for trial in trials)))
    return rows


def cell(value: object) -> str:
    return value if isinstance(value, str) else orjson.dumps(value, default=str).decode()


# ---------------------------------------------------------------- test


@command.command("test")
@click.argument("files", nargs=-1, type=FILES)
@click.option("--ref", "refs", multiple=True, metavar="NAME", help="Only this prompt's; repeat it.")
@click.option("--record", type=click.Path(path_type=Path, dir_okay=False), help="Keep the replies here.")
@click.option("--replay", type=FILES, help="Take the replies from here: no model is asked.")
@output_options
@click.pass_obj
def test_command(
    context: Context,
    files: tuple[Path, ...],
    refs: tuple[str, ...],
    record: Path | None,
    replay: Path | None,
    quiet: bool,
) -> None:
    """Run the examples of all prompts, or of those in FILE…; exit 1 on a miss.

    Example: askable prompts test prompts/trattoria.xml --replay replies.json
    """
    output = Output(quiet=quiet)
    settings = context.settings()
    if replay is None and not settings.llm.configured:
        raise ConfigError(f"{NO_MODEL}; or test against a recording: --replay FILE")
    chosen = expanded(files)
    library = read(settings, output, files=chosen)
    wanted = {named(library, name) for name in refs}
    inside = {str(path) for path in chosen}
    prompts = [
        prompt
        for prompt in library.in_force()
        if (not wanted or prompt.ref in wanted) and (not inside or prompt.file in inside)
    ]
    kept = None if record is None else Recording.read(record) if record.exists() else Recording()
    results = asyncio.run(test_all(settings, library, prompts, replay, kept))
    if record is not None and kept is not None:
        kept.write(record)
    missed = [one for one in results if not one.hit]
    if output.as_json:
        output.json([tested_as_json(one) for one in results])
    else:
        output.table(
            ("", "prompt", "site", "type", "line", "question", "what differs"), rows_of(results, quiet)
        )
        output.note(f"{len(results) - len(missed)} of {len(results)} examples hit")
    if missed:
        raise SystemExit(1)


async def test_all(
    settings: Settings,
    library: PromptLibrary,
    prompts: Sequence[Prompt],
    replay: Path | None,
    record: Recording | None,
) -> list[Tested]:
    if replay is not None:
        return await run_examples(library, prompts, None, replay=Recording.read(replay))
    async with chat(settings) as model:
        return await run_examples(library, prompts, model, record=record)


def rows_of(results: Sequence[Tested], quiet: bool) -> list[tuple[object, ...]]:
    return [
        (
            "hit" if one.hit else "miss",
            one.prompt.ref,
            one.prompt.site or "",
            one.prompt.item_type,
            f"{one.prompt.file}:{one.example.line}",
            one.example.query,
            "; ".join(one.differs),
        )
        for one in results
        if not (quiet and one.hit)
    ]


def tested_as_json(one: Tested) -> dict[str, Any]:
    return {
        **described(one.prompt),
        "line": one.example.line,
        "query": one.example.query,
        "hit": one.hit,
        "differs": list(one.differs),
        "tokens": one.tokens,
        "ms": one.ms,
    }


# ---------------------------------------------------------------- new


@command.command("new")
@click.argument("name")
@click.option("--site", required=True, help="The site whose own it becomes.")
@TYPE
@output_options
@click.pass_obj
def new_command(context: Context, name: str, site: str, item_type: str, quiet: bool) -> None:
    """Copy the prompt that holds into the site's own file, for you to change.

    Example: askable prompts new SummarizeResultsPrompt --site trattoria
    """
    from core.prompting.copying import copy_prompt

    output = Output(quiet=quiet)
    settings = context.settings()
    folder = folder_of(settings)
    folder.mkdir(parents=True, exist_ok=True)
    library = read(settings, output)
    copied = copy_prompt(library, named(library, name), folder, site=site, item_type=item_type)
    if output.as_json:
        told = {"file": str(copied.path), "line": copied.line, "created": copied.created}
        output.json({**told, "source": described(copied.source)})
        return
    output.line(f"{copied.path}:{copied.line}")
    output.note(f"a copy of {place_of(copied.source)}: change its words, then askable prompts check")


def folder_of(settings: Settings) -> Path:
    """Where a site's own files go: the operator's folder, or in a checkout the one in it."""
    from core import resources

    if settings.prompts_dir is not None:
        return settings.prompts_dir
    folder = resources.prompts_dir()
    if folder.parent.name == "_shipped":
        raise ConfigError('set `prompts_dir` in askable.toml to a folder of yours (prompts_dir = "prompts")')
    return folder


# ---------------------------------------------------------------- steps


@command.command("steps")
@SITE
@TYPE
@output_options
@click.pass_obj
def steps_command(context: Context, site: str, item_type: str, quiet: bool) -> None:
    """Show which steps run for a question, with which prompts, in which order, and what they may change.

    Example: askable prompts steps --site trattoria
    """
    from core.steps.table import plan

    output = Output(quiet=quiet)
    library = read(context.settings(), output)
    kind = schema_types.local_name(item_type or library.site(site).types[0])
    planned = plan(library, site, kind, installed_steps())
    if output.as_json:
        output.json(
            [{**asdict(one.row), "holds": described(one.prompt) if one.prompt else None} for one in planned]
        )
        return
    rows = [
        (one.row.name, where_of(one.prompt), one.row.when, one.row.after or "–", one.row.changes)
        for one in planned
    ]
    output.table(("step", "prompt", "runs when", "after", "may change"), rows)


def where_of(prompt: Prompt | None) -> str:
    return f"{prompt.ref} ({place_of(prompt)})" if prompt else "none holds"


# ---------------------------------------------------------------- shared


def places_of(settings: Settings) -> tuple[list[Path], list[Path]]:
    return places(settings.site_types, settings.prompts_dir)


def own_variables(steps: Sequence[OwnStep]) -> set[str]:
    return {step.sets for step in steps}


def read(settings: Settings, output: Output, *, files: Sequence[Path] = ()) -> PromptLibrary:
    """The prompts as the server has them, with `files` over them; says which files are not used. Raises
    ConfigError."""
    base, folders = places_of(settings)
    variables = own_variables(installed_steps())
    library = PromptLibrary.load(base, folders, files=files, own_variables=variables)
    for problem in library.problems:
        if problem.severity == "error":
            output.note(f"not used: {problem}")
    return library


@asynccontextmanager
async def chat(settings: Settings) -> AsyncIterator[ChatModel | None]:
    """The model of the settings, or None."""
    if not settings.llm.configured:
        yield None
        return
    from core.providers.chat import chat_model

    model = chat_model(settings.llm)
    try:
        yield model
    finally:
        if model is not None:
            await model.close()
