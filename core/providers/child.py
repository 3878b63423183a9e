"""A helper process that owns an engine holding the interpreter's lock: asked by id, it never outlives us.

Both ends of the line are here. A frame is a length (4 bytes, big endian) and a JSON object: to the child
`{id, verb, body, urgent}`, back `{id, result}` or `{id, error: {kind, message}}`; id 0 says that it is ready.
The child works on one request at a time, urgent ones first, and stops when the line closes.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import heapq
import logging
import os
import select
import signal
import socket
import struct
import sys
import time
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from core.errors import AskError

log = logging.getLogger(__name__)

LENGTH = struct.Struct("!I")
RESTART_PAUSE_S = 3.0  # a child that dies at once must not be started in a tight loop
CLOSE_PATIENCE_S = 20.0  # for the last flush
_READ_BYTES = 1 << 20


def packed(vector: Sequence[float]) -> str:
    """A dense vector as base64 of float32: a third of its JSON list, and no number parsing at either end."""
    numbers = vector if isinstance(vector, array) and vector.typecode == "f" else array("f", vector)
    return packed_bytes(numbers.tobytes())


def packed_bytes(numbers: bytes) -> str:
    """The same for numbers that are float32 in memory already."""
    return base64.b64encode(numbers).decode("ascii")


def unpacked(text: str) -> array[float]:
    """The float32 numbers that `packed` wrote."""
    numbers = array("f")
    numbers.frombytes(base64.b64decode(text))
    return numbers


# ---------------------------------------------------------------- the parent's end


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
            frame = _frame({"id": number, "verb": verb, "body": body, "urgent": urgent})
        except TypeError as exc:  # half a surrogate pair in a text, for one
            raise self._failure(f"the {self._name} cannot be given this: {exc}") from exc
        return await (await self._ask(number, frame))

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

    async def _ask(self, number: int, frame: bytes) -> asyncio.Future[Any]:
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        answer.add_done_callback(_retrieved)
        self._waiting[number] = answer
        writer = self._writer
        try:
            if writer is None or not self._alive:
                raise ConnectionResetError
            writer.write(frame)
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


def _frame(value: dict[str, Any]) -> bytes:
    content = orjson.dumps(value)
    return LENGTH.pack(len(content)) + content


# ---------------------------------------------------------------- the child's end


class ChildFailure(Exception):
    """What a handler raises to answer with an error of this kind."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


class Line:
    """The child's end: takes requests, urgent ones first, one at a time, until the parent is gone."""

    def __init__(self, descriptor: int, parent: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._parent = parent
        self._received = bytearray()
        self._queue: list[tuple[int, int, dict[str, Any]]] = []
        self._arrived = 0
        self._open = True

    def serve(
        self, handle: Callable[[str, Any], Any], idle: Callable[[], None] | None = None, idle_s: float = 1.0
    ) -> None:
        """Answer requests with `handle(verb, body)` until the line closes; `idle` runs after `idle_s` seconds
        without work. Waiting requests are dropped when the line closes: nobody is left to hear of them."""
        self.send({"id": 0})
        while self._open:
            self._receive(0 if self._queue else idle_s)
            if not self._open:
                return
            if self._queue:
                self._answer(heapq.heappop(self._queue)[2], handle)
            elif idle is not None and self._arrived:
                idle()

    def send(self, frame: dict[str, Any]) -> None:
        """Send a frame, or note that the parent is gone."""
        try:
            self._socket.sendall(_frame(frame))
        except OSError:
            self._open = False

    def _answer(self, request: dict[str, Any], handle: Callable[[str, Any], Any]) -> None:
        number = request["id"]
        try:
            reply = {"id": number, "result": handle(request["verb"], request["body"])}
        except ChildFailure as exc:
            reply = {"id": number, "error": {"kind": exc.kind, "message": exc.message}}
        except Exception as exc:  # noqa: BLE001 - engines raise bare Exception; the caller must be told
            reply = {"id": number, "error": {"kind": "failed", "message": f"{type(exc).__name__}: {exc}"}}
        self.send(reply)

    def _receive(self, seconds: float) -> None:
        """Take in everything that has arrived, waiting for it at most `seconds`."""
        # A process forked by the parent may hold its end open after its death: then the new parent id tells.
        if os.getppid() != self._parent:
            self._open = False
            return
        while self._open and select.select([self._socket], [], [], seconds)[0]:
            seconds = 0
            try:
                piece = self._socket.recv(_READ_BYTES)
            except OSError:
                piece = b""
            if not piece:
                self._open = False
            self._received += piece
            self._unpack()

    def _unpack(self) -> None:
        start = 0
        while len(self._received) - start >= LENGTH.size:
            (length,) = LENGTH.unpack_from(self._received, start)
            end = start + LENGTH.size + length
            if len(self._received) < end:
                break
            request = orjson.loads(memoryview(self._received)[start + LENGTH.size : end])
            heapq.heappush(self._queue, (0 if request["urgent"] else 1, self._arrived, request))
            self._arrived += 1
            start = end
        del self._received[:start]


@dataclass(frozen=True, slots=True)
class Work:
    """What a child does: answer, use a pause, and put things away at the end."""

    handle: Callable[[str, Any], Any]
    idle: Callable[[], None] | None = None
    close: Callable[[], None] | None = None


def run_child(prepare: Callable[[Sequence[str]], Work]) -> None:
    """The child's main: `prepare(arguments)` opens the engine. Its failure is answered to the parent in place
    of the word that all is ready."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    line = Line(int(sys.argv[1]), int(sys.argv[2]))
    try:
        work = prepare(sys.argv[3:])
    except ChildFailure as exc:
        line.send({"id": 0, "error": {"kind": exc.kind, "message": exc.message}})
        return
    except Exception as exc:  # noqa: BLE001 - whatever it was, the parent waits for a word
        line.send({"id": 0, "error": {"kind": "failed", "message": f"{type(exc).__name__}: {exc}"}})
        return
    line.serve(work.handle, work.idle)
    if work.close is not None:
        work.close()
