"""`askable serve`: the server, with the sample sites on `--demo`."""

from __future__ import annotations

import asyncio
import gc
import logging
import secrets
import signal
import socket
from collections.abc import Iterator
from contextlib import aclosing

import click
from aiohttp import web

from core import resources
from core.access import EVERYTHING
from core.errors import ConfigError
from core.ingestion.items import Read
from core.ingestion.sources import discover, read_source
from core.settings import Settings
from server.app import create_app
from server.cli.client import remove_server_file, write_server_file
from server.cli.context import Context
from server.http import Runner
from server.keys import DOCUMENTS, LIBRARY, LOADER, PIPELINE, STATE
from server.logs import set_up_logging

log = logging.getLogger(__name__)

DEMO_SITES = ("trattoria", "liguria")
SHUTDOWN_S = 3.0
# So many new objects before the collector looks at them, about those of one question: Python's own 700 have
# it look at most of them several times while they are in use.
YOUNG_OBJECTS = 20_000


@click.command("serve")
@click.option("--demo", is_flag=True, help="Load the sample sites first, if nothing is loaded yet.")
@click.option("--host", help="Address to listen on.  [default: 127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65535), help="Port; 0 takes a free one.  [default: 8000]")
@click.option(
    "--workers",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Processes; more than 1 needs a Qdrant server and a shared database.",
)
@click.option("--json", "as_json", is_flag=True, help="Say where it listens as one JSON line.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
@click.pass_obj
def command(
    context: Context, demo: bool, host: str | None, port: int | None, workers: int, as_json: bool, quiet: bool
) -> None:
    """Start the server.

    Example: askable serve --demo --port 8080
    """
    settings = context.settings({"server.host": host, "server.port": port})
    if workers > 1:
        raise ConfigError(_why_one(settings))
    set_up_logging()
    asyncio.run(_serve(settings, demo=demo, as_json=as_json, quiet=quiet))


def _why_one(settings: Settings) -> str:
    """Why there is no more than one worker: what several need first, if it is not there."""
    missing = [
        what
        for what, there in (
            ("a Qdrant server (`qdrant.url`)", settings.qdrant.url),
            ("a shared database (`database.url`, PostgreSQL)", settings.database.shared),
        )
        if not there
    ]
    if missing:
        return f"--workers above 1 needs {' and '.join(missing)}"
    return (
        "this version runs one worker: start `askable serve` several times, each with a --data-dir and a"
        " --port of its own, all with the same `auth.secret`"
    )


async def _serve(settings: Settings, *, demo: bool, as_json: bool, quiet: bool) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(name, stop.set)
    listening = _listen(settings)
    token = secrets.token_urlsafe(32)
    app = create_app(settings, admin_token=token)
    runner = Runner(app, handler_cancellation=True, access_log=None, shutdown_timeout=SHUTDOWN_S)
    url = ""
    try:
        if demo:
            app[STATE].busy.add("loading the samples")
        await runner.setup()
        await web.SockSite(runner, listening).start()
        _settle_collector()
        url = _address(settings.server.host, listening)
        write_server_file(settings.data_dir, url, token)
        if not quiet:
            _tell(settings, app, url, token, as_json=as_json)
        loading = asyncio.create_task(_load_demo(app, quiet=quiet or as_json)) if demo else None
        await stop.wait()
        app[STATE].busy.add("draining")
        if loading is not None:
            loading.cancel()
            await asyncio.gather(loading, return_exceptions=True)
    finally:
        await runner.cleanup()
        listening.close()
        if url:
            remove_server_file(settings.data_dir)


def _settle_collector() -> None:
    """What is here once the server has started stays until its end: modules, statements, prompts. To look
    through it for garbage at every full collection held all answers up for a tenth of a second."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS)


def _listen(settings: Settings) -> socket.socket:
    """The port is taken first: a server that cannot listen should not start its services."""
    host, port = settings.server.host, settings.server.port
    try:
        family, kind, proto, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, proto)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
    except OSError as refused:
        raise ConfigError(
            f"cannot listen on {host} port {port}: {refused.strerror or refused}; choose another with --port"
        ) from None
    return listening


def _address(host: str, listening: socket.socket) -> str:
    port = listening.getsockname()[1]
    name = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104
    return f"http://{name}:{port}"


def _tell(settings: Settings, app: web.Application, url: str, token: str, *, as_json: bool) -> None:
    llm = app[PIPELINE].llm
    if as_json:
        click.echo(f'{{"url": "{url}", "llm": "{llm}"}}')
        return
    model = llm if settings.llm.configured else "none (set OPENAI_API_KEY, or llm.base_url in askable.toml)"
    legs = ", ".join(leg.name for leg in settings.retrieval.legs)
    store = "Qdrant server" if settings.qdrant.url else f"embedded in {settings.data_dir}"
    click.echo(
        f"askable is at {url}\n"
        f"  operator link   {url}/#operator={token}\n"
        f"  language model  {model}\n"
        f"  search          {legs}; store {store}\n"
        f"  memory          {settings.memory.mode}"
    )
    for problem in app[LIBRARY].problems:
        click.echo(f"  prompts         {problem}", err=True)


async def _load_demo(app: web.Application, *, quiet: bool) -> None:
    """The sample sites, where nothing is loaded yet; not ready until they are."""
    try:
        loaded = {site.name: site.documents for site in await app[DOCUMENTS].sites(EVERYTHING)}
        others = [name for name in loaded if name not in DEMO_SITES]
        for site in [] if others else DEMO_SITES:
            folder = resources.samples_dir() / site
            count = failed = 0
            async with aclosing(app[LOADER].load(site, _reads(str(folder)))) as outcomes:
                async for outcome in outcomes:
                    count += outcome.kind in ("added", "replaced", "unchanged")
                    failed += outcome.kind == "failed"
            if not quiet:
                click.echo(
                    f"  sample site     {site}: {count} items" + (f", {failed} failed" if failed else "")
                )
        if not quiet:
            if others:
                click.echo(f"  sample sites    not loaded, as there is {', '.join(others)} already")
            click.echo("ready")
    except Exception:
        log.exception("demo.failed")
    finally:
        app[STATE].busy.discard("loading the samples")


def _reads(folder: str) -> Iterator[Read]:
    for source in discover([folder]):
        yield from read_source(source)
