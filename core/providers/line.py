"""The child's end of the line to a helper process, and what both ends agree on.

A frame is a length (4 bytes, big endian) and a JSON object: to the child `{id, verb, body, urgent}`, back
`{id, result}` or `{id, error: {kind, message}}`; id 0 says that it is ready. The child works on one request
at a time, urgent ones first, and stops when the line closes. Every child reads this at its start, so little
is imported here.
"""

from __future__ import annotations

import base64
import heapq
import os
import select
import signal
import socket
import struct
import sys
from array import array
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import orjson

LENGTH = struct.Struct("!I")
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


def frame(value: dict[str, Any]) -> bytes:
    """What goes over the line. Raises TypeError for what JSON cannot hold."""
    content = orjson.dumps(value)
    return LENGTH.pack(len(content)) + content


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

    def send(self, reply: dict[str, Any]) -> None:
        """Send a reply, or note that the parent is gone."""
        try:
            self._socket.sendall(frame(reply))
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


class Work(NamedTuple):
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
