"""`askable load`: read sources here, store them through the server, report on every item."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import click
import orjson
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)

from core.ingestion.items import NotLoaded, SourceItem
from core.ingestion.sources import discover, read_source
from core.ingestion.urls import canonical
from core.names import check_site_name, document_id_of
from core.settings import Settings
from core.tags import read as read_tags
from server.cli.client import Api, connect
from server.cli.context import Context
from server.cli.documents import all_documents
from server.cli.output import Output, counted, output_options

BATCH_ITEMS = 100
BATCH_BYTES = 4_000_000
KINDS = ("added", "replaced", "unchanged", "skipped", "failed")
EVERY_S = 5.0


@dataclass
class Report:
    """What became of everything that was read."""

    counts: Counter[str] = field(default_factory=Counter)
    chunks: int = 0
    not_loaded: list[dict[str, Any]] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)  # of those replaced that are as they were else
    document_ids: set[str] = field(default_factory=set)
    deleted: int = 0
    would_go: list[str] = field(default_factory=list)

    def note(self, outcome: dict[str, Any]) -> None:
        kind = outcome["kind"]
        self.counts[kind] += 1
        if kind == "replaced" and outcome["reason"]:
            self.reasons[outcome["reason"]] += 1
        elif kind in ("added", "replaced"):
            self.chunks += outcome["chunks"]
        if outcome["document_id"] and kind != "failed":
            self.document_ids.add(outcome["document_id"])
        if kind in ("skipped", "failed"):
            self.not_loaded.append({key: outcome[key] for key in ("kind", "source", "name", "url", "reason")})


@click.command("load")
@click.argument("sources", nargs=-1, required=True)
@click.option("--site", required=True, help="The site they belong to: 1-64 of a-z 0-9 . _ -")
@click.option("--tag", "tags", multiple=True, metavar="NAME:VALUE", help="A tag they all get; repeat it.")
@click.option("--replace", is_flag=True, help="Delete what the site has and these sources have not.")
@click.option("--dry-run", is_flag=True, help="Read and report; store nothing.")
@output_options
@click.pass_obj
def command(
    context: Context,
    sources: tuple[str, ...],
    site: str,
    tags: tuple[str, ...],
    replace: bool,
    dry_run: bool,
    quiet: bool,
) -> None:
    """Load files, folders, patterns, or `-` (standard input): pages with schema.org JSON-LD, JSON, JSONL.

    What is loaded has the tags of this load and no others, also where it was there before.

    Example: askable load samples/trattoria --site trattoria --tag course:main
    """
    output = Output(quiet=quiet)
    check_site_name(site)
    given = read_tags(tags)
    if dry_run:
        report = _dry_run(sources, site, output)
        if replace:
            report.would_go = asyncio.run(_would_go(context.settings(), site, report))
    else:
        report = asyncio.run(_load(context.settings(), sources, site, given, replace, output))
    _tell(report, site, output, dry_run=dry_run)
    if report.counts["failed"]:
        raise SystemExit(1)


async def _load(
    settings: Settings,
    sources: tuple[str, ...],
    site: str,
    tags: tuple[str, ...],
    replace: bool,
    output: Output,
) -> Report:
    async with connect(settings, create=True) as api:
        with _Progress(output) as progress:
            report = await load_sources(api, sources, site, progress, tags)
        if replace and report.counts["failed"]:
            output.note("nothing was deleted (--replace), because something failed")
        elif replace:
            await _delete_others(api, site, report)
        known = (await api.json("GET", "/sites"))["details"]
        if any(one["name"] == site and one["access"] == "private" for one in known):
            output.note(f"{site} is private: only keys and people that may read it see it (docs/auth.md)")
    return report


async def load_sources(
    api: Api,
    sources: tuple[str, ...],
    site: str,
    progress: _Progress | None = None,
    tags: tuple[str, ...] = (),
) -> Report:
    """Read the sources here and store what they hold through the server."""
    report = Report()
    batches = _batches(sources, report, progress)
    while (batch := await asyncio.to_thread(next, batches, None)) is not None:
        async for outcome in _send(api, {"site": site, "items": batch, "tags": tags}):
            report.note(outcome)
            if progress is not None:
                progress.stored(report)
    return report


async def _send(api: Api, body: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
    async for name, data in api.events("/documents", body):
        if name == "item":
            yield data


async def _others(api: Api, site: str, report: Report) -> list[dict[str, Any]]:
    """What the site has and the report has not."""
    return [row async for row in all_documents(api, site) if row["document_id"] not in report.document_ids]


async def _would_go(settings: Settings, site: str, report: Report) -> list[str]:
    """The addresses that `--replace` would delete."""
    if not settings.data_dir.is_dir():
        return []
    async with connect(settings) as api:
        return [row["url"] for row in await _others(api, site, report)]


async def _delete_others(api: Api, site: str, report: Report) -> None:
    for document_id in [row["document_id"] for row in await _others(api, site, report)]:
        gone = await api.json("DELETE", f"/documents/{quote(document_id, safe='')}", params={"site": site})
        report.deleted += gone["documents"]


def _batches(
    sources: tuple[str, ...], report: Report, progress: _Progress | None
) -> Iterator[list[dict[str, Any]]]:
    """Items as the route takes them, in batches of bounded size; what gives none goes to the report."""
    batch: list[dict[str, Any]] = []
    size = 0
    for item in _read(sources, report, progress):
        batch.append(item)
        size += len(orjson.dumps(item["item"])) + len(item["text"])
        if len(batch) >= BATCH_ITEMS or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _read(sources: tuple[str, ...], report: Report, progress: _Progress | None) -> Iterator[dict[str, Any]]:
    for source in discover(sources):
        if progress is not None:
            progress.reading(source.name)
        for read in read_source(source):
            if isinstance(read, NotLoaded):
                report.note(_not_loaded(read))
            else:
                if progress is not None:
                    progress.read()
                yield _element(read)


def _element(item: SourceItem) -> dict[str, Any]:
    return {
        "url": item.url,
        "item": item.schema_object,
        "text": item.text,
        "name": item.name,
        "types": list(item.types),
        "language": item.language,
        "source": item.source,
    }


def _not_loaded(read: NotLoaded) -> dict[str, Any]:
    return {
        "kind": read.outcome,
        "source": read.source,
        "name": read.what,
        "url": "",
        "reason": read.reason,
        "document_id": "",
        "chunks": 0,
    }


def _dry_run(sources: tuple[str, ...], site: str, output: Output) -> Report:
    report = Report()
    with _Progress(output) as progress:
        for item in _read(sources, report, progress):
            report.counts["would load"] += 1
            report.document_ids.add(document_id_of(site, canonical(item["url"])))
            if not output.as_json:
                output.line(f"{'/'.join(item['types'])}\t{item['name']}\t{item['url']}")
    return report


def _tell(report: Report, site: str, output: Output, *, dry_run: bool) -> None:
    counts = {kind: report.counts[kind] for kind in KINDS}
    if dry_run:
        counts = {"would load": report.counts["would load"], **{k: counts[k] for k in ("skipped", "failed")}}
    if output.as_json:
        told: dict[str, Any] = {"site": site, **counts, "chunks": report.chunks, "deleted": report.deleted}
        told["replaced_reasons"] = dict(report.reasons)
        output.json({**told, "not_loaded": report.not_loaded, "would_delete": report.would_go})
        return
    for url in report.would_go:
        output.line(f"would delete\t{url}")
    for one in report.not_loaded:
        if one["kind"] == "failed" or not output.quiet:
            named = f" {one['name'] or one['url']}" if one["name"] or one["url"] else ""
            click.echo(f"{one['kind']}: {one['source']}{named}: {one['reason']}", err=True)
    why = "".join(f" ({reason}: {number})" for reason, number in report.reasons.items())
    summary = ", ".join(
        f"{number} {kind}{why if kind == 'replaced' else ''}" for kind, number in counts.items()
    )
    gone = f", {report.deleted} deleted" if report.deleted else ""
    output.line(
        f"{site}: {summary}{gone} ({counted(report.chunks, 'chunk')} stored)"
        if not dry_run
        else f"{site}: {summary}"
    )


class _Progress:
    """How far it is: bars on a terminal, elsewhere a line every few seconds."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._bars = Progress(
            SpinnerColumn(),
            TextColumn("{task.description:<9}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[what]}", markup=False),
            console=output.progress,
            transient=True,
            disable=output.quiet or not output.progress.is_terminal,
        )
        self._reading = self._bars.add_task("reading", total=None, what="")
        self._storing = self._bars.add_task("storing", total=None, what="")
        self._items = 0
        self._told = time.monotonic()

    def __enter__(self) -> _Progress:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def reading(self, name: str) -> None:
        self._bars.update(self._reading, what=name[-60:])

    def read(self) -> None:
        self._items += 1
        self._bars.update(self._reading, completed=self._items)

    def stored(self, report: Report) -> None:
        done = sum(report.counts[kind] for kind in ("added", "replaced", "unchanged"))
        self._bars.update(self._storing, completed=done, total=max(self._items, done))
        now = time.monotonic()
        if self._bars.disable and now - self._told >= EVERY_S:
            self._told = now
            self._output.note(f"read {self._items}, stored {done}, failed {report.counts['failed']}")
