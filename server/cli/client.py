"""The way every verb reaches the product: the public routes of the running server, or of one for the moment.

Whichever it is, a verb speaks the same requests; so what the command line does is what the API does.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import tempfile
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import click
import orjson

from core.datadir import FolderInUse
from core.errors import AskError, StoreError
from core.settings import Settings

log = logging.getLogger(__name__)

SERVER_FILE = "server.json"
WAIT_S = 600.0  # for another command that has the data folder
WAIT_STEP_S = 0.3
Given = Mapping[str, str] | Sequence[tuple[str, str]]  # parameters, some perhaps repeated
TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=5)


class Refused(AskError):
    """The server's own error, as its code, status and message."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class Api:
    """Requests to a server whose address and admin token are known."""

    def __init__(self, session: aiohttp.ClientSession, base: str, token: str, *, own: bool) -> None:
        self._session = session
        self._base = base.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}"}
        self.own = own  # whether the server runs for this command alone

    def speak_for(self, user: str) -> None:
        """Ask in this user's name: an identity of the operator's own, apart from keys' and visitors'."""
        self._headers["X-User-Id"] = user

    async def json(self, method: str, path: str, *, body: object = None, params: Given | None = None) -> Any:
        """The JSON answer. Raises Refused with the server's message."""
        async with self._request(method, path, body, params, "application/json") as response:
            return orjson.loads(await response.read())

    async def events(self, path: str, body: object) -> AsyncGenerator[tuple[str, dict[str, Any]], None]:
        """The events of a streamed answer as (name, data); `message` where they have no name."""
        async with self._request("POST", path, body, None, "text/event-stream") as response:
            name = "message"
            async for line in _lines(response.content):
                if line.startswith(b"event: "):
                    name = line[7:].decode()
                elif line.startswith(b"data: "):
                    yield name, orjson.loads(line[6:])
                elif not line:
                    name = "message"

    @asynccontextmanager
    async def _request(
        self, method: str, path: str, body: object, params: Given | None, accept: str
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        headers = {**self._headers, "Accept": accept, "Content-Type": "application/json"}
        data = orjson.dumps(body) if body is not None else None
        try:
            async with self._session.request(
                method, self._base + path, data=data, params=params, headers=headers
            ) as response:
                if response.status >= 400:
                    raise await _refusal(response)
                yield response
        except aiohttp.ClientError as failed:
            raise StoreError(f"the server at {self._base} did not answer: {failed}") from None


async def _lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """Lines of any length: a frame may be longer than the reader's own limit."""
    rest = b""
    async for block in content.iter_any():
        *whole, rest = (rest + block).split(b"\n")
        for line in whole:
            yield line
    if rest:
        yield rest


async def _refusal(response: aiohttp.ClientResponse) -> Refused:
    raw = await response.read()
    try:
        error = orjson.loads(raw)["error"]
        return Refused(response.status, str(error["code"]), str(error["message"]))
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return Refused(response.status, "http", f"the server answered {response.status}")


@asynccontextmanager
async def connect(settings: Settings, *, create: bool = False) -> AsyncIterator[Api]:
    """The server that has the data folder, else one of our own for as long as the block runs.

    While another command has the folder, this one waits for its turn. Raises StoreError where there is no
    data folder and none is to be made (`create`).
    """
    deadline = time.monotonic() + WAIT_S
    told = False
    while True:
        async with AsyncExitStack() as stack:
            try:
                api = await stack.enter_async_context(_reach(settings, create=create))
            except FolderInUse as busy:
                if time.monotonic() > deadline:
                    raise
                if not told:
                    click.echo(f"waiting: {busy.message.partition(':')[0]}", err=True)
                told = True
            else:
                yield api
                return
        await asyncio.sleep(WAIT_STEP_S)


@asynccontextmanager
async def _reach(settings: Settings, *, create: bool) -> AsyncIterator[Api]:
    if (running := _running(settings.data_dir)) is not None:
        async with aiohttp.ClientSession(timeout=TIMEOUT) as session:
            api = Api(session, running["url"], running["token"], own=False)
            try:
                await api.json("GET", "/health")
            except (StoreError, Refused):
                log.info("server.gone", extra={"url": running["url"]})
            else:
                yield api
                return
    if not create and not settings.data_dir.is_dir():
        raise StoreError(
            f"nothing is loaded: there is no data folder {settings.data_dir} "
            "(askable load makes it; --data-dir names another)"
        )
    async with _own_server(settings) as api:
        yield api


@asynccontextmanager
async def _own_server(settings: Settings) -> AsyncIterator[Api]:
    """An application on a socket file that only this user can reach."""
    # Imported here: a command that finds a server running needs none of its parts.
    from aiohttp import web

    from server.app import create_app

    if (task := asyncio.current_task()) is not None:
        # A command that is told to stop tidies up as one that is interrupted.
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    token = os.urandom(24).hex()
    runner = web.AppRunner(
        create_app(settings, admin_token=token), handler_cancellation=True, access_log=None
    )
    with tempfile.TemporaryDirectory(prefix="askable-") as folder:
        path = str(Path(folder) / "s")
        try:
            await runner.setup()
            await web.UnixSite(runner, path).start()
            connector = aiohttp.UnixConnector(path)
            async with aiohttp.ClientSession(connector=connector, timeout=TIMEOUT) as session:
                yield Api(session, "http://localhost", token, own=True)
        finally:
            await runner.cleanup()


def _running(data_dir: Path) -> dict[str, str] | None:
    """What `data_dir/server.json` says, if its process still lives."""
    try:
        told = orjson.loads((data_dir / SERVER_FILE).read_bytes())
        os.kill(int(told["pid"]), 0)
        return {"url": str(told["url"]), "token": str(told["token"])}
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return None


def write_server_file(data_dir: Path, url: str, token: str) -> None:
    """Tell other commands where the server is; readable by its user only."""
    path = data_dir / SERVER_FILE
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(orjson.dumps({"url": url, "token": token, "pid": os.getpid()}))


def remove_server_file(data_dir: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        (data_dir / SERVER_FILE).unlink()
