"""`askable ask`: a question in the terminal, streamed by the same route as everywhere."""

from __future__ import annotations

import asyncio
from typing import Any

import click

from core.errors import AskError
from core.settings import Settings
from server.cli.client import connect
from server.cli.context import Context
from server.cli.output import Output, output_options

TERMINAL = "terminal"


@click.command("ask")
@click.argument("question")
@click.option("--site", help="Only in this site (or several, with commas).")
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
            failed = None
            items: dict[str, dict[str, Any]] = {}
            async for _, frame in api.events("/ask", body):
                failed = _show(frame, items, output) or failed
    if failed is not None and not output.as_json:
        raise AskError(str(failed["message"]))
    if failed is not None:
        raise SystemExit(1)


def _show(frame: dict[str, Any], items: dict[str, dict[str, Any]], output: Output) -> dict[str, Any] | None:
    """Print a frame; returns it if it is an error."""
    kind = frame["message_type"]
    if kind == "api_version" and frame["llm"] == "none":
        output.note("(no language model is configured: results come straight from search)")
    elif kind == "decontextualized_query":
        output.note(f"Searched for: {frame['decontextualized_query']}")
    elif kind == "asking_sites":
        output.note(frame["message"])
    elif kind == "remember":
        kept = (
            frame["message"]
            if frame["memory_id"]
            else "(facts are remembered on the page, where you can agree)"
        )
        output.note(kept)
    elif kind == "result_batch":
        for item in frame["results"]:
            items[item["document_id"]] = item
            # A person sees results as they come; a program gets them once, in the final order.
            if output.terminal:
                _show_item(item, output)
    elif kind == "no_results":
        output.note(frame["message"])
    elif kind == "error":
        return frame
    elif kind == "complete":
        _show_order(frame["order"], items, output)
    return None


def _show_item(item: dict[str, Any], output: Output) -> None:
    score = f"{item['score']:5.1f}" if "score" in item else "     "
    output.line(f"{score}  {item['name']}", style="bold")
    output.line(f"       {item['url']}")
    output.line(f"       {' '.join(item['description'].split())}")


def _show_order(order: list[str], items: dict[str, dict[str, Any]], output: Output) -> None:
    final = [items[document_id] for document_id in order if document_id in items]
    if not output.terminal:
        for item in final:
            _show_item(item, output)
    elif list(items) != order:
        output.note("Best first:")
        for place, item in enumerate(final, 1):
            output.note(f"{place:3}. {item['name']}")
