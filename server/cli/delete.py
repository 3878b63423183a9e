"""`askable delete`: take a site, a document or an address out, and say that nothing is left."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import quote

import click

from core.errors import NotFound, StoreError
from core.settings import Settings
from server.cli.client import Api, connect
from server.cli.context import Context
from server.cli.documents import all_documents
from server.cli.output import Output, counted, output_options


@click.command("delete")
@click.option("--site", help="The whole site; with --document or --url: where it is.")
@click.option("--document", help="A document's id (askable documents).")
@click.option("--url", help="Whatever was loaded from this address.")
@output_options
@click.pass_obj
def command(context: Context, site: str | None, document: str | None, url: str | None, quiet: bool) -> None:
    """Delete a site, a document, or what was loaded from an address.

    Example: askable delete --site trattoria
    """
    if document and url:
        raise click.UsageError("give --document or --url, not both")
    if not (site or document or url):
        raise click.UsageError("say what: --site NAME, --document ID or --url ADDRESS")
    asyncio.run(_run(context.settings(), site, document, url, Output(quiet=quiet)))


async def _run(
    settings: Settings, site: str | None, document: str | None, url: str | None, output: Output
) -> None:
    async with connect(settings) as api:
        if url:
            params = {"url": url, **({"site": site} if site else {})}
            gone = await api.json("DELETE", "/documents", params=params)
        elif document:
            where = {"site": site or await _site_of(api, document)}
            gone = await api.json("DELETE", f"/documents/{quote(document, safe='')}", params=where)
        else:
            gone = await api.json("DELETE", f"/sites/{quote(site or '', safe='')}")
    _report(gone, output)
    if gone["left"]:
        raise StoreError(f"{gone['left']} chunks are still there: try again")


async def _site_of(api: Api, document: str) -> str:
    sites = {row["site"] async for row in all_documents(api, None) if row["document_id"] == document}
    if len(sites) != 1:
        if sites:
            raise click.UsageError(f"--document {document} is in {', '.join(sorted(sites))}: say --site")
        raise NotFound(f"there is no document `{document}`")
    return str(sites.pop())


def _report(gone: dict[str, Any], output: Output) -> None:
    if output.as_json:
        output.json(gone)
    else:
        output.line(
            f"deleted {counted(gone['documents'], 'document')} ({counted(gone['chunks'], 'chunk')}); "
            f"{counted(gone['left'], 'chunk')} left"
        )
