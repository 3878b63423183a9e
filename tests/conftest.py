"""Real parts for every test: a server on loopback over an embedded store, and a scripted model beside it."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from core.settings import Settings
from server.app import create_app
from server.http import Runner
from tests.events import check_legacy
from tests.fakes.openai_server import ScriptedModel, scripted_model
from tests.postgres import Postgres, binaries
from tests.steady_loop import SteadyLoop

ADMIN = "admin-token-of-the-tests"
ROOT = Path(__file__).resolve().parent.parent
CASES = ROOT.parent / "shared" / "cases"
# A developer's own database and model are nothing to test on.
for _name in ("DATABASE_URL", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
    os.environ.pop(_name, None)


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], SteadyLoop]]:
    """No test fails because the machine stood still for a moment."""
    return {"steady": SteadyLoop}


@pytest.fixture(autouse=True)
def _quiet_libraries() -> None:
    logging.getLogger("aiohttp.access").setLevel(logging.WARNING)


@pytest.fixture
def cases() -> Path:
    """Real material; it is not part of the repository."""
    if not CASES.is_dir():
        pytest.skip(f"the material for this test is not at {CASES}")
    return CASES


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Tests marked `both_databases` run on each."""
    if "database_url" in metafunc.fixturenames and metafunc.definition.get_closest_marker("both_databases"):
        metafunc.parametrize("database_url", ["sqlite", "postgresql"], indirect=True)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """The PostgreSQL server of this run. CI has to have one; who has none is told."""
    programs = binaries()
    if programs is None:
        told = "PostgreSQL is not installed (Debian, Ubuntu: apt install postgresql)"
        if os.environ.get("CI"):
            pytest.fail(told)
        pytest.skip(told)
    server = Postgres.start(programs)
    yield server
    server.stop()


@pytest.fixture
def database_url(request: pytest.FixtureRequest) -> Iterator[str | None]:
    """What `database.url` is in this test: nothing for SQLite, or the address of a new database."""
    if getattr(request, "param", "sqlite") == "sqlite":
        yield None
        return
    server: Postgres = request.getfixturevalue("postgres")
    with server.database() as url:
        yield url


@pytest.fixture
def database_bytes(
    request: pytest.FixtureRequest, tmp_path: Path, database_url: str | None
) -> Callable[[], bytes]:
    """All that the database's files hold at the moment (of PostgreSQL's without its log)."""

    def read() -> bytes:
        if database_url is None:
            files = tmp_path.rglob("askable.db*")
        else:
            server: Postgres = request.getfixturevalue("postgres")
            files = server.files(database_url)
        return b"".join(file.read_bytes() for file in files)

    return read


@pytest.fixture
async def model() -> AsyncIterator[ScriptedModel]:
    async with scripted_model() as scripted:
        yield scripted


@dataclass
class Frames:
    """The frames of one streamed answer, as the client read them."""

    all: list[dict[str, Any]] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [frame for frame in self.all if frame["message_type"] == kind]

    def one(self, kind: str) -> dict[str, Any]:
        (found,) = self.of(kind)
        return found

    @property
    def items(self) -> list[dict[str, Any]]:
        return [item for frame in self.of("result_batch") for item in frame["results"]]

    @property
    def final(self) -> list[dict[str, Any]]:
        """The items that `complete` names, in its order."""
        latest = {item["document_id"]: item for item in self.items}
        return [latest[document_id] for document_id in self.one("complete")["order"]]

    @property
    def kinds(self) -> list[str]:
        return [frame["message_type"] for frame in self.all]


@dataclass
class Served:
    """A running server and a client with a cookie jar of its own."""

    url: str
    session: aiohttp.ClientSession
    app: web.Application
    runner: web.AppRunner

    async def ask(self, query: str, *, headers: dict[str, str] | None = None, **more: Any) -> Frames:
        """The streamed answer to a POST."""
        async with self.session.post(
            f"{self.url}/ask", json={"query": query, **more}, headers=headers or {}
        ) as response:
            assert response.status == 200, await response.text()
            return await read_frames(response)

    async def json(self, method: str, path: str, **more: Any) -> tuple[int, Any]:
        async with self.session.request(method, self.url + path, **more) as response:
            return response.status, await response.json()

    async def load(self, site: str, items: list[dict[str, Any]]) -> dict[str, Any]:
        status, report = await self.json(
            "POST",
            "/documents",
            json={"site": site, "items": items},
            headers={"Authorization": f"Bearer {ADMIN}"},
        )
        assert status == 200, report
        assert isinstance(report, dict)
        return report

    async def browser(self) -> aiohttp.ClientSession:
        """Another visitor: a client without this one's cookies. The caller closes it."""
        return aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True))


async def read_frames(response: aiohttp.ClientResponse, *, most: int | None = None) -> Frames:
    """Read events to the end of the stream, or `most` of them."""
    frames = Frames()
    buffer = b""
    async for block in response.content.iter_any():
        buffer += block
        *whole, buffer = buffer.split(b"\n\n")
        for event in whole:
            lines = event.decode().split("\n")
            data = [line[6:] for line in lines if line.startswith("data: ")]
            if data:
                frames.all.append(json.loads("\n".join(data)))
                check_legacy(frames.all[-1])
                frames.ids += [line[4:] for line in lines if line.startswith("id: ")]
            if most is not None and len(frames.all) >= most:
                return frames
    return frames


Serve = Callable[..., Awaitable[Served]]


@asynccontextmanager
async def running(settings: Settings, clock: Callable[[], float] = time.time) -> AsyncIterator[Served]:
    """A server with these settings on a free port; `clock` tells it the time."""
    runner = Runner(
        create_app(settings, admin_token=ADMIN, clock=clock),
        handler_cancellation=True,
        access_log=None,
        shutdown_timeout=1,
    )
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
            yield Served(f"http://127.0.0.1:{port}", session, runner.app, runner)
    finally:
        await runner.cleanup()


@asynccontextmanager
async def serving(data: Path, database_url: str | None = None) -> AsyncIterator[Serve]:
    """Starts servers with their data in a folder of `data`; keyword arguments are settings (tables as dicts).
    One leg, without a model to load, unless the test asks for more."""
    async with AsyncExitStack() as stack:

        async def start(
            *,
            model: ScriptedModel | None = None,
            folder: str = "data",
            clock: Callable[[], float] = time.time,
            **tables: Any,
        ) -> Served:
            tables.setdefault("retrieval", {"legs": ["bm25"]})
            tables.setdefault("database", {"url": database_url})
            if model is not None:
                tables["llm"] = {"base_url": model.url, "timeout_s": 5, **tables.get("llm", {})}
            settings = Settings.model_validate({"data_dir": data / folder, **tables})
            return await stack.enter_async_context(running(settings, clock))

        yield start


@pytest.fixture
async def serve(tmp_path: Path, database_url: str | None) -> AsyncIterator[Serve]:
    """Starts servers that stop with the test: see `serving`."""
    async with serving(tmp_path, database_url) as start:
        yield start


def recipe(slug: str, name: str, text: str, **more: Any) -> dict[str, Any]:
    """A small schema.org Recipe."""
    return {
        "@context": "https://schema.org",
        "@type": "Recipe",
        "url": f"https://kitchen.example/{slug}",
        "name": name,
        "description": text,
        **more,
    }


KITCHEN = [
    recipe("tofu-curry", "Tofu curry", "A mild vegan curry with tofu, coconut milk and rice."),
    recipe("beef-stew", "Beef stew", "Beef and carrots braised slowly in red wine."),
    recipe("chickpea-stew", "Chickpea stew", "A vegan stew of chickpeas, tomatoes and spinach."),
    recipe("lemon-tart", "Lemon tart", "A sharp lemon cream in a short crust."),
    recipe("minestrone", "Minestrone", "Vegetable soup with beans and pasta, finished with pesto."),
]
