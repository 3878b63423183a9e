"""`askable search`: retrieval alone, with scores."""

from __future__ import annotations

import asyncio
from typing import Any

import click

from core.settings import Settings
from core.tags import read, shown
from server.cli.ask import TAG_HELP
from server.cli.client import connect
from server.cli.context import Context
from server.cli.output import Output, output_options

PREVIEW = 160


@click.command("search")
@click.argument("question")
@click.option("--site", help="Only in this site (or several, with commas).")
@click.option("--tag", "tags", multiple=True, metavar="NAME:VALUE", help=TAG_HELP)
@click.option("--limit", type=click.IntRange(1, 200), default=10, show_default=True)
@output_options
@click.pass_obj
def command(
    context: Context, question: str, site: str | None, tags: tuple[str, ...], limit: int, quiet: bool
) -> None:
    """Search passages; no model is asked.

    Example: askable search "chestnut flour" --site trattoria
    """
    body: dict[str, Any] = {"query": question, "limit": limit}
    if site:
        body["site"] = site
    if tags:
        body["tags"] = [shown(read(tags))]
    asyncio.run(_run(context.settings(), body, Output(quiet=quiet)))


async def _run(settings: Settings, body: dict[str, Any], output: Output) -> None:
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
