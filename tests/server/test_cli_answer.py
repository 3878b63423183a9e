"""`askable ask`: every kind of answer is told in the terminal."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

import click
import pytest

from core import messages as m
from server.cli.answer import Answer
from server.cli.client import write_server_file
from server.cli.output import Output
from server.wire.base import message_body
from tests.conftest import ADMIN, KITCHEN, Serve
from tests.fakes.openai_server import ScriptedModel
from tests.fakes.sensible_model import SensibleModel
from tests.server.test_cli import ENVIRON
from tests.server.test_wire import ASKED, COMPLETE, EVERY, SIDE, item
from tests.zygote import Command, command


async def ask(folder: Path, *words: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of `askable ask`, beside a server of `folder`."""
    argv = ("--data-dir", str(folder / "data"), "ask", *words)
    done = await asyncio.to_thread(command, folder, *argv, env=ENVIRON)
    return done.returncode, done.stdout, done.stderr


async def test_written_answers_and_summaries_are_printed(
    serve: Serve, model: ScriptedModel, tmp_path: Path
) -> None:
    server = await serve(model=model)
    await server.load("kitchen", KITCHEN)
    write_server_file(tmp_path / "data", server.url, ADMIN)
    written = {"answer": "Chickpeas are in it [1].", "found": "all"}
    model.answer = SensibleModel(
        replies={"SynthesizePromptForGenerate": written, "SummarizeResultsPrompt": {"summary": "Two stews."}}
    )
    code, out, err = await ask(tmp_path, "vegan stew with chickpeas", "--mode", "generate")
    assert (code, err) == (0, "Asking kitchen\n")
    assert out.splitlines()[:2] == [
        "Chickpeas are in it [1].",
        "[1] Chickpea stew  https://kitchen.example/chickpea-stew",
    ]
    code, out, _ = await ask(tmp_path, "vegan stew with chickpeas", "--mode", "summarize")
    assert code == 0
    assert "Two stews." in out.splitlines()
    assert "Chickpea stew" in out


async def test_in_a_terminal_the_answer_is_written_out_once_as_it_comes(
    serve: Serve, model: ScriptedModel, tmp_path: Path
) -> None:
    server = await serve(model=model)
    await server.load("kitchen", KITCHEN)
    write_server_file(tmp_path / "data", server.url, ADMIN)
    written = {"answer": "Chickpeas [1] are in it, and [b]tomatoes[/b].", "found": "all"}
    model.answer = SensibleModel(replies={"SynthesizePromptForGenerate": written})
    screen, terminal = os.openpty()
    argv = ("--data-dir", "data", "ask", "vegan stew with chickpeas", "--mode", "generate")
    with open(os.devnull, "r+", encoding="utf-8") as nothing, open(terminal, "w", encoding="utf-8") as shown:
        asking = Command(argv, tmp_path, ENVIRON, (nothing, shown, nothing))
        code = await asyncio.to_thread(asking.wait, 120)
    lines = os.read(screen, 100_000).decode().splitlines()
    os.close(screen)
    assert code == 0
    assert lines[0] == "Chickpeas [1] are in it, and [b]tomatoes[/b]."
    assert lines[1].startswith("[1] Chickpea stew")


def told(messages: Sequence[m.Message], capsys: pytest.CaptureFixture[str]) -> str:
    """What is printed of an answer in the legacy dialect, on stdout and stderr."""
    with click.Context(click.Command("ask")):
        answer = Answer(Output(quiet=False))
        for message in messages:
            answer.show({"message_type": message.type, **message_body(message)})
    out, err = capsys.readouterr()
    return out + err


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (m.Remember("I am vegan", "I will remember that", "m1", "user"), ["I will remember that"]),
        (m.Remember("I am vegan", "Agree?", None, "user", "token"), ["on the page"]),
        (m.Forgotten(({"text": "I am vegan"},), "Forgotten: I am vegan"), ["Forgotten: I am vegan"]),
        (m.Memories(({"text": "I am vegan"},), "What I know:"), ["What I know:", "- I am vegan"]),
        (m.Irrelevant("This is a kitchen."), ["This is a kitchen."]),
        (ASKED, [ASKED.message, *(one.text for one in ASKED.questions)]),
        (
            m.ItemDetails("Soup", {"cook_time": "2 h", "steps": ["cut", "boil"]}, 90, "", SIDE.url, "k", {}),
            ["Soup  " + SIDE.url, "cook time: 2 h", "steps:", "  - cut", "  - boil"],
        ),
        (m.CompareItems("Both are hot.", SIDE, SIDE), [SIDE.name, "Both are hot."]),
        (
            m.EnsembleResult(
                {"recommendations": {"theme": "dinner", "items": [{"name": "Soup", "category": "first"}]}}
            ),
            ["theme: dinner", "items:", "  - name: Soup", "    category: first"],
        ),
        (m.Summary("Two soups."), ["Two soups."]),
        (m.NoResults("Nothing here.", "filters"), ["Nothing here."]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_kind_of_answer_is_told(
    message: m.Message, said: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    printed = told([message], capsys)
    for one in said:
        assert one in printed


def test_a_program_gets_the_written_answer_and_the_items_once(capsys: pytest.CaptureFixture[str]) -> None:
    found = m.Results((item("soup", 90.0),))
    written = m.GeneratedAnswer("Soup is hot [1].", ({"n": 1, "url": SIDE.url, "name": "Soup"},))
    end = m.Complete(order=(found.items[0].document_id,))
    printed = told([m.AnswerDelta("Soup is "), m.AnswerDelta("hot [1]."), written, found, end], capsys)
    assert printed.count("Soup is hot [1].") == 1
    assert f"[1] Soup  {SIDE.url}" in printed
    assert printed.count(found.items[0].url) == 1 + (found.items[0].url == SIDE.url)


def test_no_message_is_too_much(capsys: pytest.CaptureFixture[str]) -> None:
    assert "Two soups." in told([*EVERY, COMPLETE], capsys)
