"""`askable ask`: a question in the terminal, streamed by the same route as everywhere."""

from __future__ import annotations

import asyncio
from typing import Any

import click

from core.errors import AskError
from core.settings import Settings
from core.tags import read, shown
from server.cli.answer import Answer
from server.cli.client import connect
from server.cli.context import Context
from server.cli.output import Output, output_options

TERMINAL = "terminal"
TAG_HELP = "Only what has this tag; several names must all hold, of several values of one any."


@click.command("ask")
@click.argument("question")
@click.option("--site", help="Only in this site (or several, with commas).")
@click.option("--tag", "tags", multiple=True, metavar="NAME:VALUE", help=TAG_HELP)
@click.option("--near", metavar="LAT,LON", help="Where you are; counts at sites that say so.")
@click.option(
    "--mode", type=click.Choice(["list", "summarize", "generate"]), default="list", show_default=True
)
@click.option("--conversation", metavar="ID", help="The conversation it belongs to.")
@click.option("--prev", multiple=True, help="An earlier question; repeat it, oldest first.")
@output_options
@click.pass_obj
def command(
    context: Context,
    question: str,
    site: str | None,
    tags: tuple[str, ...],
    near: str | None,
    mode: str,
    conversation: str | None,
    prev: tuple[str, ...],
    quiet: bool,
) -> None:
    """Ask a question and see the answer as it comes.

    Example: askable ask "How many people live in Taggia?" --site liguria
    """
    body: dict[str, Any] = {"query": question, "mode": mode}
    if site:
        body["site"] = site
    if tags:
        body["tags"] = [shown(read(tags))]
    if near:
        body["near"] = near
    if conversation:
        body["conversation_id"] = conversation
    if prev:
        body["prev"] = list(prev)
    asyncio.run(_run(context.settings(), body, Output(quiet=quiet)))


async def _run(settings: Settings, body: dict[str, Any], output: Output) -> None:
    async with connect(settings) as api:
        if "conversation_id" in body:
            # The operator's token speaks for nobody, and nobody's conversation is kept.
            api.speak_for(TERMINAL)
        if output.as_json:
            answer = await api.json("POST", "/ask", body={**body, "streaming": False})
            output.json(answer)
            failed = answer.get("error")
        else:
            shown = Answer(output)
            async for _, frame in api.events("/ask", body):
                shown.show(frame)
            failed = shown.failed
    if failed is not None and not output.as_json:
        raise AskError(str(failed["message"]))
    if failed is not None:
        raise SystemExit(1)
