"""A PostgreSQL server of the tests' own: started when the first test asks for it, gone with the last.

It is Debian's (package `postgresql`) or one on the PATH, keeps nothing, and listens on a socket in its
temporary folder alone. The server refuses to be root: where the tests are, it is the user `postgres`.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from core.database import make_engine, migrate

USER = "askable"
TEMPLATE = "migrated"
USERS = ("postgres", "nobody")
# Nothing has to survive a power cut, and two workers share two cores.
TUNED = (
    "fsync=off",
    "synchronous_commit=off",
    "full_page_writes=off",
    "autovacuum=off",
    "listen_addresses=",
    "port=5432",
    "shared_buffers=32MB",
    "max_connections=60",
)
# A locale that sorts unlike bytes do, as most servers have one.
INITDB = (
    "--auth=trust",
    "--no-sync",
    "--encoding=UTF8",
    "--locale=C.UTF-8",
    "--locale-provider=icu",
    "--icu-locale=en-US",
)
PR_SET_PDEATHSIG = 1
START_S = 60.0


def binaries() -> Path | None:
    """The folder of `initdb` and `postgres`: the newest of Debian's, else the PATH's."""
    debian = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda p: float(p.parent.parent.name)
    )
    if debian:
        return debian[-1].parent
    found = shutil.which("initdb")
    return Path(found).resolve().parent if found else None


@dataclass
class Postgres:
    """A running server; `database` gives a new database in it."""

    folder: Path
    process: subprocess.Popen[bytes]
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    templates: set[str] = field(default_factory=set)

    @classmethod
    def start(cls, programs: Path) -> Postgres:
        """Raises RuntimeError, with what the server said, if it does not come up."""
        folder = Path(tempfile.mkdtemp(prefix="askable-postgres-"))
        run_as = _other_user()
        if run_as is not None:
            os.chown(folder, run_as.pw_uid, run_as.pw_gid)
        data, log = folder / "data", folder / "log"
        made: list[str | Path] = [programs / "initdb", "-D", data, "-U", USER, *INITDB]
        done = subprocess.run(made, cwd=folder, capture_output=True, text=True, **_as(run_as))
        if done.returncode:
            raise RuntimeError(f"initdb: {done.stderr or done.stdout}")
        options = [part for one in (*TUNED, f"unix_socket_directories={folder}") for part in ("-c", one)]
        with log.open("wb") as said:
            process = subprocess.Popen(
                [programs / "postgres", "-D", data, *options],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                preexec_fn=_end_with_parent,
                **_as(run_as),
            )
        server = cls(folder, process)
        until = time.monotonic() + START_S
        while not server._answers():
            if process.poll() is not None or time.monotonic() > until:
                server.stop()
                raise RuntimeError(f"postgres does not start: {log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.02)
        return server

    def stop(self) -> None:
        """At once: nothing in it is wanted any more."""
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def socket(self) -> Path:
        return self.folder / ".s.PGSQL.5432"

    def url(self, name: str) -> str:
        return f"postgresql://{USER}@:5432/{name}?host={self.folder}"

    @contextmanager
    def database(self, *, empty: bool = False, more: str = "") -> Iterator[str]:
        """The address of a new database, with all tables unless it is to be `empty`; dropped at the end."""
        name = f"test{next(self.numbers)}"
        self._run(f"CREATE DATABASE {name} TEMPLATE {'template0' if empty else self._migrated()} {more}")
        yield self.url(name)
        self._run(f"DROP DATABASE {name} WITH (FORCE)")

    def files(self, url: str) -> Iterator[Path]:
        """The files of this database, with all in them that was written so far."""
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CHECKPOINT")
            row = connection.execute(
                "SELECT oid FROM pg_database WHERE datname = current_database()"
            ).fetchone()
        assert row is not None
        return (self.folder / "data" / "base" / str(row[0])).iterdir()

    def _migrated(self) -> str:
        """A database to copy: copying is ten times as fast as migrating."""
        if TEMPLATE not in self.templates:
            self._run(f"CREATE DATABASE {TEMPLATE}")
            engine = make_engine(self.url(TEMPLATE), self.folder)
            migrate(engine)
            engine.dispose()
            self.templates.add(TEMPLATE)
        return TEMPLATE

    def _run(self, statement: str) -> None:
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(statement.encode())

    def _answers(self) -> bool:
        try:
            self._run("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True


def _other_user() -> pwd.struct_passwd | None:
    """Who runs the server, where the tests are root."""
    if os.geteuid() != 0:
        return None
    known = {one.pw_name: one for one in pwd.getpwall()}
    return next(known[name] for name in USERS if name in known)


def _as(user: pwd.struct_passwd | None) -> dict[str, Any]:
    return {} if user is None else {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _end_with_parent() -> None:
    """A worker that is killed leaves no server behind (Linux)."""
    libc = ctypes.CDLL(None, use_errno=True)
    if hasattr(libc, "prctl"):
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGQUIT)
