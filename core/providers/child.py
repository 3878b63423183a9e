"""A helper process that owns an engine holding the interpreter's lock: asked by id, it never outlives us.

The child's end of the line, and what goes over it, is `core.providers.line`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from core.errors import AskError
from core.providers.line import LENGTH, frame

log = logging.getLogger(__name__)

RESTART_PAUSE_S = 3.0  # a child that dies at once must not be started in a tight loop
CLOSE_PATIENCE_S = 20.0  # for the last flush


class Child:
    """A helper process seen from the event loop. It starts with the first call and again after a death,
    not more than once in `restart_pause_s`. `errors` maps a kind the child answers with to the error raised;
    `failure` is the one for everything else, the child's death included."""

    def __init__(
        self,
        module: str,
        arguments: Sequence[str],
        *,
        name: str,
        failure: type[AskError],
        errors: Mapping[str, type[AskError]] | None = None,
        environment: Mapping[str, str] | None = None,
        restart_pause_s: float = RESTART_PAUSE_S,
    ) -> None:
        self._module = module
        self._arguments = tuple(arguments)
        self._name = name
        self._failure = failure
        self._errors = dict(errors or {})
        self._environment = dict(environment or {})
        self._restart_pause_s = restart_pause_s
        self._process: asyncio.subprocess.Process | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._listening: asyncio.Task[None] | None = None
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._next_id = 1
        self._started_at = float("-inf")
        self._death = ""
        self._starting = asyncio.Lock()
        self._closed = False

    @property
    def pid(self) -> int | None:
        """The process id while it runs."""
        return self._process.pid if self._process is not None and self._alive else None

    async def call(self, verb: str, body: Any = None, *, urgent: bool = False) -> Any:
        """The child's answer. Raises what the child answered with, or `failure` if it died."""
        await self._ensure_started()
        number = self._next_id
        self._next_id += 1
        try:
            request = frame({"id": number, "verb": verb, "body": body, "urgent": urgent})
        except TypeError as exc:  # half a surrogate pair in a text, for one
            raise self._failure(f"the {self._name} cannot be given this: {exc}") from exc
        return await (await self._ask(number, request))

    async def start(self) -> None:
        """Start it now and wait until it says that it is ready."""
        ready = await self._ensure_started()
        await asyncio.shield(ready)

    async def launch(self) -> None:
        """Start it now without waiting: requests are answered once it is ready."""
        await self._ensure_started()

    async def answers(self, seconds: float) -> bool:
        """Whether it answers `ping` within so many seconds; never raises."""
        try:
            return await asyncio.wait_for(self.call("ping", urgent=True), seconds) is True
        except (AskError, TimeoutError, OSError):
            return False

    async def close(self) -> None:
        """Close the line, which ends the child; it is killed if it has not ended after CLOSE_PATIENCE_S."""
        self._closed = True
        async with self._starting:
            await self._stop()

    @property
    def _alive(self) -> bool:
        return self._listening is not None and not self._listening.done()

    async def _ensure_started(self) -> asyncio.Future[Any]:
        async with self._starting:
            if self._closed:
                raise self._failure(f"the {self._name} is closed")
            if not self._alive:
                await self._start()
            return self._ready

    async def _start(self) -> None:
        now = time.monotonic()
        if now - self._started_at < self._restart_pause_s:
            raise self._failure(self._death)
        self._started_at = now
        await self._stop()
        ours, theirs = socket.socketpair()
        with theirs, contextlib.ExitStack() as undo:
            undo.callback(ours.close)
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", self._module, str(theirs.fileno()), str(os.getpid())),
                *self._arguments,
                pass_fds=(theirs.fileno(),),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                start_new_session=True,  # the terminal's signals are for the parent, who closes the line
                env={**os.environ, "PYTHONPATH": _import_path(), **self._environment},
            )
            undo.pop_all()
        reader, self._writer = await asyncio.open_connection(sock=ours)
        self._ready: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._ready.add_done_callback(_retrieved)
        self._waiting = {0: self._ready}
        self._listening = asyncio.create_task(self._listen(reader, self._waiting))

    async def _stop(self) -> None:
        if self._writer is not None:
            self._writer.close()
            with contextlib.suppress(OSError):
                await self._writer.wait_closed()
            self._writer = None
        if self._process is not None:
            try:
                await asyncio.wait_for(self._process.wait(), CLOSE_PATIENCE_S)
            except TimeoutError:
                self._process.kill()
                await self._process.wait()
            self._process = None
        if self._listening is not None:
            await self._listening
            self._listening = None

    async def _ask(self, number: int, request: bytes) -> asyncio.Future[Any]:
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        answer.add_done_callback(_retrieved)
        self._waiting[number] = answer
        writer = self._writer
        try:
            if writer is None or not self._alive:
                raise ConnectionResetError
            writer.write(request)
            await writer.drain()
        except OSError as exc:
            self._waiting.pop(number, None)
            if not answer.done():
                raise self._failure(self._death) from exc
        return answer

    async def _listen(self, reader: asyncio.StreamReader, waiting: dict[int, asyncio.Future[Any]]) -> None:
        self._death = f"the {self._name} ended unexpectedly; it is started again within seconds"
        try:
            while True:
                (length,) = LENGTH.unpack(await reader.readexactly(LENGTH.size))
                reply = orjson.loads(await reader.readexactly(length))
                answer = waiting.pop(reply["id"], None)
                if answer is None or answer.done():
                    continue
                if "error" not in reply:
                    answer.set_result(reply.get("result"))
                    continue
                error = reply["error"]
                if reply["id"] == 0:
                    self._death = error["message"]  # it could not start: whoever waits is told why
                answer.set_exception(self._errors.get(error["kind"], self._failure)(error["message"]))
        except (asyncio.IncompleteReadError, OSError):
            if not self._closed:
                log.warning("child_ended", extra={"child": self._name, "in_flight": len(waiting)})
        finally:
            for answer in waiting.values():
                if not answer.done():
                    answer.set_exception(self._failure(self._death))
            waiting.clear()


def _retrieved(answer: asyncio.Future[Any]) -> None:
    """An answer nobody waits for any more (its caller was cancelled) is not worth a warning."""
    if not answer.cancelled():
        answer.exception()


def _import_path() -> str:
    """Where the child finds `core`: in a checkout that has to be said. The working folder is not searched
    (`-P`), as it may hold a `core` of somebody else's."""
    home = Path(__file__).resolve().parents[2]
    ours = [] if home.name in ("site-packages", "dist-packages") else [str(home)]
    return os.pathsep.join([*ours, *filter(None, [os.environ.get("PYTHONPATH")])])
