"""A process that has read the product's modules already and forks for every command line that is to be run.

A command then starts at once, and is all the same a process of its own: own working folder, environment and
standard files, signals and exit code. (`python -m tests.zygote FD`; tests use `command` below.)
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO

READ = ("server.cli.app", "server.app", "core.providers.openai", "server.mcp", "rich.progress")
VERBS = ("serve", "load", "ask", "search", "sites", "documents", "delete", "prompts", "mcp", "memory")
_MOST_BYTES = 1 << 17
_START_S = 120


class Command:
    """A command line that runs; `stdin`, `stdout` and `stderr` are its files."""

    def __init__(
        self, argv: Sequence[str], folder: Path, env: Mapping[str, str], files: Sequence[IO[str]]
    ) -> None:
        self.args = ["askable", *argv]
        self.returncode: int | None = None
        job = json.dumps({"argv": self.args, "folder": str(folder), "env": dict(env)}).encode()
        self._told, theirs = socket.socketpair()
        with theirs:
            descriptors = [theirs.fileno(), *(file.fileno() for file in files)]
            socket.send_fds(_zygote(), [job], descriptors)
        self._told.settimeout(_START_S)
        self.pid = int.from_bytes(self._told.recv(4), "big")

    def poll(self, timeout: float = 0) -> int | None:
        """The exit code, negative for a signal; None if it still runs after so many seconds."""
        if self.returncode is None and select.select([self._told], [], [], timeout)[0]:
            self.returncode = int.from_bytes(self._told.recv(4), "big", signed=True)
            self._told.close()
        return self.returncode

    def wait(self, timeout: float = 60) -> int:
        """The exit code. Raises TimeoutError after so many seconds."""
        code = self.poll(timeout)
        if code is None:
            raise TimeoutError(f"{self.args} still runs after {timeout:g} s")
        return code

    def send_signal(self, number: int) -> None:
        """Send it, if it still runs."""
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)


def command(
    folder: Path, *argv: str, env: Mapping[str, str], stdin: str = "", timeout: float = 120
) -> subprocess.CompletedProcess[str]:
    """Run a command line to its end."""
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as given,
        tempfile.TemporaryFile("w+", encoding="utf-8") as out,
        tempfile.TemporaryFile("w+", encoding="utf-8") as err,
    ):
        given.write(stdin)
        given.seek(0)
        running = Command(argv, folder, env, (given, out, err))
        try:
            code = running.wait(timeout)
        except TimeoutError:
            running.send_signal(signal.SIGKILL)
            raise
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(running.args, code, out.read(), err.read())


@cache
def _zygote() -> socket.socket:
    """The line to the process that forks; it ends with this one."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.zygote", str(theirs.fileno())],
            cwd=Path(__file__).resolve().parent.parent,
            pass_fds=(theirs.fileno(),),
            stdin=subprocess.DEVNULL,
        )

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours


# ---------------------------------------------------------------- in the process that forks


def _fork_for_all(line: socket.socket) -> bool:
    """Fork for each job. True in a process that is to run a command; False once nobody asks any more."""
    while True:
        content, descriptors, _, _ = socket.recv_fds(line, _MOST_BYTES, 4)
        if not content:
            return False
        minder = os.fork()
        if minder == 0:
            line.close()
            _mind(descriptors[0])
            _become(json.loads(content), descriptors[1:])
            return True
        for descriptor in descriptors:
            os.close(descriptor)


def _mind(told: int) -> None:
    """Fork once more: it goes on in the command's process, and its parent waits to tell the exit code."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    pid = os.fork()
    if pid == 0:
        os.close(told)
        return
    os.write(told, pid.to_bytes(4, "big"))
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.write(told, code.to_bytes(4, "big", signed=True))
    os._exit(0)


def _become(job: dict[str, object], files: Sequence[int]) -> None:
    for number, descriptor in enumerate(files):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.chdir(str(job["folder"]))
    os.environ.clear()
    env, argv = job["env"], job["argv"]
    assert isinstance(env, dict)
    assert isinstance(argv, list)
    os.environ.update(env)
    sys.argv = argv


def _main() -> None:
    for name in (*READ, *(f"server.cli.{verb}" for verb in VERBS)):
        importlib.import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # who waits for a command is not waited for
    if _fork_for_all(socket.socket(fileno=int(sys.argv[1]))):
        importlib.import_module("server.cli.app").main()


if __name__ == "__main__":
    _main()
