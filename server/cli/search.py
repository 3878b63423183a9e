"""`askable search`: retrieval alone, with scores."""

from __future__ import annotations

import asyncio

import click

from core.settings import Settings
from server.cli.client import connect
from server.cli.context import Context
from server.cli.output import Output, output_options

PREVIEW = 160


@click.command("search")
@click.argument("question")
@click.option("--site", help="Only in this site (or several, with commas).")
@click.option("--limit", type=click.IntRange(1, 200), default=10, show_default=True)
@output_options
@click.pass_obj
def command(context: Context, question: str, site: str | None, limit: int, quiet: bool) -> None:
    """Search passages; no model is asked.

    Example: askable search "chestnut flour" --site trattoria
    """
    asyncio.run(_run(context.settings(), question, site, limit, Output(quiet=quiet)))


async def _run(settings: Settings, question: str, site: str | None, limit: int, output: Output) -> None:
    body = {"query": question, "limit": limit, **({"site": site} if site else {})}
    async with connect(settings) as api:
        answer = await api.json("POST", "/search", body=body)
    if output.as_json:
        output.json(answer)
        return
    for result in answer["results"]:
        legs = "  ".join(f"{leg} {score:.3f}" for leg, score in result["scores"].items())
        output.line(f"{result['score']:.3f}  {result['name']}  ({result['site']})", style="bold")
        output.line(f"       {result['url']}  #{result['chunk']}  {legs}")
        output.line(f"       {' '.join(result['text'].split())[:PREVIEW]}")
    if not answer["results"]:
        output.note("Nothing found.")
