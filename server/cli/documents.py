"""`askable documents`: what is loaded, one line a document."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import click

from core.settings import Settings
from core.tags import read
from server.cli.client import Api, connect
from server.cli.context import Context
from server.cli.output import Output, output_options

FIELDS = ("document_id", "name", "url", "file", "site", "state", "chunks", "tags", "error")


@click.command("documents")
@click.option("--site", help="Only this site's.")
@click.option(
    "--tag", "tags", multiple=True, metavar="NAME:VALUE", help="Only those that have it; repeat it."
)
@output_options
@click.pass_obj
def command(context: Context, site: str | None, tags: tuple[str, ...], quiet: bool) -> None:
    """List loaded documents.

    Example: askable documents --site trattoria
    """
    asyncio.run(_run(context.settings(), site, read(tags), Output(quiet=quiet)))


async def _run(settings: Settings, site: str | None, tags: Sequence[str], output: Output) -> None:
    async with connect(settings) as api:
        rows = [row async for row in all_documents(api, site, tags)]
    if output.as_json:
        output.json([{field: row[field] for field in FIELDS} for row in rows])
    else:
        output.table(
            ("site", "name", "url", "chunks", "document_id"),
            [[row[f] for f in ("site", "name", "url", "chunks", "document_id")] for row in rows],
        )


async def all_documents(
    api: Api, site: str | None, tags: Sequence[str] = ()
) -> AsyncIterator[dict[str, Any]]:
    """Every document of a site (None: of all) that has these tags, page by page."""
    chosen = [*([("site", site)] if site else []), *(("tag", tag) for tag in tags)]
    cursor: str | None = ""
    while cursor is not None:
        params = [*chosen, *([("cursor", cursor)] if cursor else [])]
        page = await api.json("GET", "/documents", params=params)
        for row in page["documents"]:
            yield row
        cursor = page["cursor"]
