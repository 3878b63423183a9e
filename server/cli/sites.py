"""`askable sites`: what can be asked."""

from __future__ import annotations

import asyncio

import click

from core.settings import Settings
from server.cli.client import connect
from server.cli.context import Context
from server.cli.output import Output, output_options


@click.command("sites")
@output_options
@click.pass_obj
def command(context: Context, quiet: bool) -> None:
    """List the sites with their documents and chunks.

    Example: askable sites --json
    """
    asyncio.run(_run(context.settings(), Output(quiet=quiet)))


async def _run(settings: Settings, output: Output) -> None:
    async with connect(settings) as api:
        answer = await api.json("GET", "/sites")
    columns = ("name", "access", "documents", "chunks")
    rows = [{column: site[column] for column in columns} for site in answer["details"]]
    if output.as_json:
        output.json(rows)
    elif rows:
        output.table(columns, [list(row.values()) for row in rows])
    else:
        output.note("No site is loaded yet: askable load FILE --site NAME")
