"""How verbs speak: tables on a terminal, plain lines elsewhere, JSON with `--json`, little with `-q`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click
import orjson
from rich.console import Console
from rich.markup import escape
from rich.table import Table

F = TypeVar("F", bound=Callable[..., Any])


def output_options(function: F) -> F:
    """`--json` and `-q` for a verb, handed to it as `output`."""

    def combine(ctx: click.Context, _param: click.Parameter, as_json: bool) -> bool:
        ctx.meta["askable.json"] = as_json
        return as_json

    function = click.option(
        "--json", "as_json", is_flag=True, expose_value=False, callback=combine, help="Answer in JSON."
    )(function)
    return click.option("-q", "--quiet", is_flag=True, help="Say only what was asked for.")(function)


class Output:
    """Where a verb's answer goes. stdout is for the answer, stderr for how it is going."""

    def __init__(self, *, quiet: bool) -> None:
        self.as_json: bool = click.get_current_context().meta.get("askable.json", False)
        self.quiet = quiet
        self.console = Console(soft_wrap=True, highlight=False)
        self.progress = Console(stderr=True, soft_wrap=True, highlight=False, quiet=quiet)

    @property
    def terminal(self) -> bool:
        return self.console.is_terminal and not self.as_json

    def json(self, value: object) -> None:
        click.echo(orjson.dumps(value, option=orjson.OPT_INDENT_2))

    def line(self, text: str = "", style: str | None = None) -> None:
        """A line of the answer; text from sites is never taken for markup."""
        if self.terminal:
            self.console.print(escape(text), style=style)
        else:
            click.echo(text)

    def piece(self, text: str) -> None:
        """A part of a line that is still being written, at once."""
        click.echo(text, nl=False)

    def note(self, text: str) -> None:
        """A line on how it is going, on stderr; silent with `-q`."""
        if not self.quiet:
            click.echo(text, err=True)

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """A table on a terminal, tab-separated lines elsewhere."""
        if not self.terminal:
            for row in rows:
                click.echo("\t".join(str(cell) for cell in row))
            return
        table = Table(*columns, box=None, pad_edge=False, header_style="bold")
        for row in rows:
            table.add_row(*(escape(str(cell)) for cell in row))
        self.console.print(table)


def counted(number: int, what: str) -> str:
    """`1 document`, `2 documents`: for nouns that take an s."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
