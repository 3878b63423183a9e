"""What memory has promised holds over restarts, kills, erasures and restored backups, down to the files."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import socket
import sqlite3
import struct
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from core.memory import COLLECTION
from core.providers.base import SparseVector, Where
from core.providers.bm25 import Bm25Embedder
from core.query import Identity
from server import remembering
from server.keys import CLOCK, CONVERSATIONS, DATABASE, ERASURE, FACTS
from tests.conftest import ADMIN, KITCHEN, ROOT, Serve, Served
from tests.core.memory.support import held
from tests.fakes.openai_server import Hang, ModelRequest, ScriptedModel
from tests.fakes.qdrant_server import fake_qdrant
from tests.fakes.sensible_model import SensibleModel
from tests.postgres import Postgres
from tests.server.test_memory_rest import ANNA, AUTH, BO, ask, keep, kitchen, texts
from tests.zygote import Command

OPERATOR = {"Authorization": f"Bearer {ADMIN}"}
WAIT_S = 30.0


async def asked(server: Served, said: str = "Remember that I have diabetes") -> str:
    """The token that stands for this sensitive fact."""
    return str((await ask(server, said)).one("remember")["confirm"])


async def confirm(server: Served, token: str) -> tuple[int, Any]:
    return await server.json("POST", "/memory/confirm", json={"token": token}, headers=ANNA)


# ---------------------------------------------------------------- tokens


@pytest.mark.both_databases
async def test_token_that_was_used_is_refused_after_a_restart(serve: Serve) -> None:
    server = await kitchen(serve)
    token = await asked(server)
    assert (await confirm(server, token))[0] == 200
    await server.runner.cleanup()
    again = await serve(auth=AUTH)
    status, refused = await confirm(again, token)
    assert (status, refused["error"]["field"]) == (400, "token")
    assert "used already" in refused["error"]["message"]
    assert await texts(again) == ["I have diabetes"]


@pytest.mark.both_databases
@pytest.mark.parametrize("restarted", [False, True])
async def test_token_from_before_an_erasure_brings_nothing_back(serve: Serve, restarted: bool) -> None:
    server = await kitchen(serve)
    used, unused = await asked(server), await asked(server, "Remember that I have diabetes and a dog")
    everything = (await ask(server, "forget everything about me")).one("forgotten")["confirm"]
    assert (await confirm(server, used))[0] == 200
    assert (await confirm(server, everything))[1]["erased"]["memory"]["memories"] == 1
    if restarted:
        await server.runner.cleanup()
        server = await serve(auth=AUTH)
    for token in (used, unused):
        status, refused = await confirm(server, token)
        assert status == 400
        assert "erased" in refused["error"]["message"]
    assert await texts(server) == []
    await keep(server, "I love coriander")
    await confirm(server, everything)
    assert await texts(server) == ["I love coriander"]


@pytest.mark.both_databases
async def test_confirmations_at_once_keep_one_fact(serve: Serve) -> None:
    server = await kitchen(serve)
    token = await asked(server)
    done = await asyncio.gather(*(confirm(server, token) for _ in range(8)))
    assert {(status, told["text"]) for status, told in done} == {(200, "I have diabetes")}
    assert len({told["memory_id"] for _, told in done}) == 1
    assert await texts(server) == ["I have diabetes"]


# ---------------------------------------------------------------- what is on its way


@pytest.fixture
def postgres_url(postgres: Postgres) -> Iterator[str]:
    with postgres.database() as url:
        yield url


class Slow:
    """A model that answers like a sensible one, but the next question for `prompt` only when it may."""

    def __init__(self, prompt: str) -> None:
        self.prompt = prompt
        self.asked, self.may = asyncio.Event(), asyncio.Event()
        self._sensible = SensibleModel()

    def __call__(self, request: ModelRequest) -> Any:
        if request.schema_name == self.prompt and not self.may.is_set():
            self.asked.set()
            return 0.005  # asked again then
        return self._sensible(request)


async def by_question(server: Served) -> None:
    await ask(server, "Remember that I own a zanzibarboat", conversation_id="c1")


async def by_mere_question(server: Served) -> None:
    await ask(server, "stew", conversation_id="c1")


async def by_context(server: Served) -> None:
    said = [{"role": "user", "content": "Remember that I own a zanzibarboat"}]
    body = {"conversation_id": "c1", "messages": said}
    await server.json("POST", "/context", json=body, headers=ANNA)


async def by_tool(server: Served) -> None:
    called = {"name": "remember", "arguments": {"text": "I own a zanzibarboat"}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": called}
    accept = {"Accept": "application/json, text/event-stream"}
    async with server.session.post(f"{server.url}/mcp", json=body, headers=ANNA | accept) as response:
        await response.read()


async def by_mem0(server: Served) -> None:
    body = {"messages": "I own a zanzibarboat", "user_id": "anna"}
    key = {"Authorization": ANNA["Authorization"]}
    await server.json("POST", "/v3/memories/add/", json=body, headers=key)


async def by_hand(server: Served) -> None:
    await server.json("POST", "/memory", json={"text": "I own a zanzibarboat"}, headers=ANNA)


WAYS = [
    (by_question, "DetectMemoryRequestPrompt"),
    (by_mere_question, "RankingPrompt"),
    (by_context, "DetectMemoryRequestPrompt"),
    (by_tool, "DetectMemoryRequestPrompt"),
    (by_mem0, "MemoryExtractionPrompt"),
    (by_hand, "MemoryConflictPrompt"),
]


async def has_nothing(server: Served) -> None:
    """The person has no fact, no conversation, and nothing in the search engine."""
    assert await texts(server) == []
    assert (await server.json("GET", "/conversations", headers=ANNA))[1]["conversations"] == []
    held_of_anna = Where({"identity": Identity("key:shop", "anna").key})
    assert await server.app[FACTS]._store.count(COLLECTION, held_of_anna) == 0


@pytest.mark.both_databases
@pytest.mark.parametrize(("way", "prompt"), WAYS)
async def test_what_is_on_its_way_is_not_kept_after_an_erasure(
    serve: Serve, model: ScriptedModel, way: Callable[[Served], Any], prompt: str
) -> None:
    server = await kitchen(serve, model=model)
    model.answer = slow = Slow(prompt)
    await keep(server, "I own a bicycle")
    on_its_way = asyncio.create_task(way(server))
    await asyncio.wait_for(slow.asked.wait(), WAIT_S)
    erasing = asyncio.create_task(server.json("DELETE", "/memory?all=true", headers=ANNA))
    # What is being kept at this moment is waited for.
    await asyncio.wait({erasing}, timeout=0 if prompt == "MemoryConflictPrompt" else None)
    slow.may.set()
    await on_its_way
    assert (await erasing)[0] == 200
    await has_nothing(server)
    await keep(server, "I own a kayak")
    assert await texts(server) == ["I own a kayak"]


@pytest.fixture
async def two_servers(
    postgres_url: str, serve: Serve, model: ScriptedModel, tmp_path: Path
) -> AsyncIterator[tuple[Served, Served]]:
    """Two servers on one database and one vector store, the kitchen loaded."""
    folder = tmp_path / "qdrant"
    folder.mkdir()
    async with fake_qdrant(folder) as qdrant:
        shared: dict[str, Any] = {
            "model": model,
            "auth": {**AUTH, "secret": "a-secret-of-two-servers"},
            "database": {"url": postgres_url},
            "qdrant": {"url": qdrant.url},
        }
        one, other = [await serve(folder=name, **shared) for name in ("one", "other")]
        await one.load("kitchen", KITCHEN)
        yield one, other
        for running in (one, other):
            await running.runner.cleanup()


async def test_what_another_server_has_on_its_way_is_not_kept_after_an_erasure(
    two_servers: tuple[Served, Served], model: ScriptedModel
) -> None:
    one, other = two_servers
    for way, prompt in WAYS:
        await keep(one, "I own a bicycle")
        model.answer = slow = Slow(prompt)
        on_its_way = asyncio.create_task(way(one))
        await asyncio.wait_for(slow.asked.wait(), WAIT_S)
        assert (await other.json("DELETE", "/memory?all=true", headers=ANNA))[0] == 200
        slow.may.set()
        await on_its_way
        await one.app[CONVERSATIONS].stored()
        await has_nothing(one)


async def test_answer_on_its_way_does_not_bring_back_a_conversation_that_another_server_deleted(
    two_servers: tuple[Served, Served], model: ScriptedModel
) -> None:
    one, other = two_servers
    model.answer = SensibleModel()
    await ask(one, "stew", conversation_id="c1")
    model.answer = slow = Slow("RankingPrompt")
    on_its_way = asyncio.create_task(ask(one, "curry", conversation_id="c1"))
    await asyncio.wait_for(slow.asked.wait(), WAIT_S)
    assert (await other.json("DELETE", "/conversations/c1", headers=ANNA))[0] == 200
    slow.may.set()
    await on_its_way
    await one.app[CONVERSATIONS].stored()
    assert (await other.json("GET", "/conversations/c1", headers=ANNA))[0] == 404


# ---------------------------------------------------------------- erasures again


@pytest.mark.both_databases
async def test_operator_replays_erasures_after_a_restored_backup(serve: Serve, tmp_path: Path) -> None:
    server = await kitchen(serve)
    await keep(server, "I love coriander")
    await keep(server, "I love coriander", BO)
    backed_up_at = server.app[CLOCK]()
    await server.json("DELETE", "/memory?all=true", headers=ANNA)
    ledger = (tmp_path / "data" / "erasures.jsonl").read_text()
    assert "coriander" not in ledger
    assert "anna" not in ledger
    await keep(server, "I love basil")  # as if it had come back with the backup
    path = "/admin/memory/replay-erasures"
    assert (await server.json("POST", path, json={}, headers=ANNA))[0] == 403
    nothing = {"erased": 0, "failed": 0, "unreadable": 0}
    assert await server.json("POST", path, json={}, headers=OPERATOR) == (200, nothing)
    assert await texts(server) == ["I love basil"]
    for _ in range(2):
        body: dict[str, Any] = {"since": backed_up_at, "ledger": [*ledger.splitlines(), "cut short"]}
        assert await server.json("POST", path, json=body, headers=OPERATOR) == (
            200,
            {"erased": 1, "failed": 0, "unreadable": 1},
        )
        assert await texts(server) == []
    assert await texts(server, BO) == ["I love coriander"]
    for body in ({"since": "monday"}, {"since": True}, {"ledger": "x"}, {"ledger": [1]}, {"who": "anna"}):
        status, refused = await server.json("POST", path, json=body, headers=OPERATOR)
        assert (status, refused["error"]["field"]) == (400, next(iter(body)))


async def test_data_folder_that_was_put_back_is_brought_up_to_date_at_the_start(
    serve: Serve, tmp_path: Path
) -> None:
    ledger = tmp_path / "elsewhere" / "erasures.jsonl"
    more: dict[str, Any] = {"auth": AUTH, "memory": {"erasure_ledger": ledger}}
    server = await serve(**more)
    await keep(server, "I love coriander")
    await keep(server, "I love rice", BO)
    await server.runner.cleanup()
    backup = {path: path.read_bytes() for path in (tmp_path / "data").glob("askable.db*")}
    server = await serve(**more)
    await server.json("DELETE", "/memory?all=true", headers=ANNA)
    await server.runner.cleanup()
    assert ledger.exists()
    for path in (tmp_path / "data").glob("askable.db*"):
        path.unlink()
    for path, content in backup.items():
        path.write_bytes(content)
    again = await serve(**more)
    await until(lambda: _nothing_of(again))
    assert await texts(again, BO) == ["I love rice"]

    async def nothing_left() -> bool:
        return await again.app[ERASURE].resume() == 0

    await until(nothing_left)


async def _nothing_of(server: Served) -> bool:
    return await texts(server) == []


async def until(holds: Callable[[], Any]) -> None:
    """Look until it is so."""
    async with asyncio.timeout(WAIT_S):
        while not await holds():
            await asyncio.sleep(0.05)


# ---------------------------------------------------------------- no byte of it


async def words_of(text: str) -> list[bytes]:
    """The word hashes of a text, as the search engine's files have them."""
    (vector,) = await Bm25Embedder().documents([text], [""])
    assert isinstance(vector, SparseVector)
    return [struct.pack(order, word) for word in vector.indices for order in (">I", "<I")]


async def traces(folder: Path, text: str) -> set[bytes]:
    """The word hashes of the text that are in any file."""
    return held(folder, await words_of(text))


@pytest.mark.parametrize("how", ["all", "one", "superseded"])
async def test_no_file_holds_text_or_word_hashes_of_what_is_gone(
    serve: Serve, tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remembering, "COMPACT_AFTER_S", WAIT_S)  # here it is done by hand
    server = await serve(auth=AUTH)
    data = tmp_path / "data"
    await keep(server, "I love rice", BO)
    told = await keep(server, "I love zanzibarquince")
    if how == "superseded":
        await keep(server, "I can't stand zanzibarquince")
    assert held(data, [b"zanzibarquince"])
    assert await traces(data, "zanzibarquince")
    if how == "one":
        assert (await server.json("DELETE", f"/memory/{told['memory_id']}", headers=ANNA))[0] == 200
    else:
        assert (await server.json("DELETE", "/memory?all=true", headers=ANNA))[0] == 200

    assert await traces(data, "zanzibarquince")
    assert await server.app[FACTS].compact()
    assert await traces(data, "zanzibarquince") == set()
    await server.app[FACTS].tidy()
    assert held(data, [b"zanzibarquince"]) == set()
    _, found = await server.json("GET", "/memory?query=rice", headers=BO)
    assert [fact["text"] for fact in found["memories"]] == ["I love rice"]


async def forget_all_by_mem0(server: Served) -> None:
    body = {"messages": "My zanzibarquince is red", "user_id": "anna", "infer": False}
    key = {"Authorization": ANNA["Authorization"]}
    await server.json("POST", "/v3/memories/add/", json=body, headers=key)
    assert (await server.json("DELETE", "/v1/memories/?user_id=anna", headers=key))[0] == 200


async def forget_an_entity(server: Served) -> None:
    body = {"messages": "My zanzibarquince is red", "user_id": "anna", "infer": False}
    key = {"Authorization": ANNA["Authorization"]}
    await server.json("POST", "/v3/memories/add/", json=body, headers=key)
    assert (await server.json("DELETE", "/v2/entities/user/anna/", headers=key))[0] == 200


async def delete_a_conversation(server: Served) -> None:
    await ask(server, "pesto with zanzibarquince", conversation_id="c1")
    assert (await server.json("DELETE", "/conversations/c1", headers=ANNA))[0] == 200


async def change_a_fact(server: Served) -> None:
    told = await keep(server, "I love zanzibarquince")
    body = {"text": "I love rice"}
    await server.json("PATCH", f"/memory/{told['memory_id']}", json=body, headers=ANNA)
    history = await server.json("DELETE", f"/memory/{told['memory_id']}", headers=ANNA)
    assert history[0] == 200


@pytest.mark.parametrize("way", [forget_all_by_mem0, forget_an_entity, delete_a_conversation, change_a_fact])
async def test_upkeep_leaves_no_text_of_what_was_deleted_in_any_way(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: Callable[[Served], Any]
) -> None:
    server = await kitchen(serve)

    async def tidied() -> bool:
        return not server.app[DATABASE].untidy

    await until(tidied)  # what a stop may have left is done at the start
    await way(server)
    assert held(tmp_path / "data", [b"zanzibarquince"])
    await server.app[FACTS].tidy()  # as the upkeep does every hour
    assert held(tmp_path / "data", [b"zanzibarquince"]) == set()


async def test_erasing_beside_a_reader_of_the_file_is_answered_and_tidied_by_the_upkeep(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.database.TIDY_PAUSES_S", (0.0, 0.0))
    server = await serve(auth=AUTH)

    async def tidied() -> bool:
        return not server.app[DATABASE].untidy

    await until(tidied)  # what a stop may have left is done at the start
    await keep(server, "I love zanzibarquince")
    with closing(sqlite3.connect(tmp_path / "data" / "askable.db", isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM memories").fetchall()
        async with asyncio.timeout(WAIT_S):
            assert (await server.json("DELETE", "/memory?all=true", headers=ANNA))[0] == 200
            await keep(server, "I love rice", BO)
        assert not await tidied()
        reader.execute("COMMIT")
        await server.app[FACTS].compact()
        await server.app[FACTS].tidy()
        assert held(tmp_path / "data", [b"zanzibarquince"]) == set()


async def test_files_are_rewritten_soon_after_something_was_taken_out(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remembering, "COMPACT_AFTER_S", 0.0)
    monkeypatch.setattr(remembering, "COMPACT_EVERY_S", 0.0)
    collection = tmp_path / "data" / "vectors" / "memories"
    server = await serve(auth=AUTH)
    for text in ("I love rice", "I love basil"):
        made = collection.stat().st_ino
        told = await keep(server, text)
        await server.json("DELETE", f"/memory/{told['memory_id']}", headers=ANNA)

        async def rewritten(made: int = made) -> bool:
            return collection.exists() and collection.stat().st_ino != made

        await until(rewritten)


async def test_no_log_holds_a_fact(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    server = await kitchen(serve)
    told = (await ask(server, "Remember that I love zanzibarquince")).one("remember")
    await confirm(server, await asked(server, "Remember that I have zanzibarquince diabetes"))
    await ask(server, "a curry with zanzibarquince")
    await ask(server, "forget what you know about zanzibarquince")
    await keep(server, "I can't stand zanzibarquince")
    await server.json("GET", f"/memory/{told['memory_id']}/history", headers=ANNA)
    await server.json("POST", "/memory", json={"text": "zanzibarquince " * 200}, headers=ANNA)
    await server.app[FACTS]._store.close()
    await keep(server, "My parrot is called Zanzibarquince")  # the vector store is away
    await server.json("DELETE", "/memory?all=true", headers=ANNA)
    assert "memory.not_indexed" in caplog.text
    shown = [(record.getMessage(), str(record.__dict__)) for record in caplog.records]
    assert [one for one in shown if "anzibarquince" in str(one)] == []


# ---------------------------------------------------------------- kill -9


@dataclass
class Killable:
    """A server in a process of its own."""

    url: str
    process: Command
    session: aiohttp.ClientSession

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    async def post(self, path: str, body: Any) -> tuple[int, Any]:
        async with self.session.post(f"{self.url}{path}", json=body, headers=ANNA) as answer:
            return answer.status, await answer.json()

    async def facts(self, query: str = "") -> list[str]:
        async with self.session.get(f"{self.url}/memory?query={query}", headers=ANNA) as answer:
            return [fact["text"] for fact in (await answer.json())["memories"]]


@asynccontextmanager
async def process(data: Path, model: ScriptedModel | None = None) -> AsyncIterator[Killable]:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = int(one.getsockname()[1])
    keys = [*AUTH["api_keys"], {"key": ADMIN, "name": "operator", "roles": ["admin"]}]
    settings = {
        "ASKABLE_DATA_DIR": str(data),
        "ASKABLE_SERVER__PORT": str(port),
        "ASKABLE_RETRIEVAL__LEGS": '["bm25"]',
        "ASKABLE_AUTH__API_KEYS": orjson.dumps(keys).decode(),
        **({"ASKABLE_LLM__BASE_URL": model.url, "ASKABLE_LLM__TIMEOUT_S": "20"} if model else {}),
    }
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("ASKABLE_", "OPENAI_"))}
    with open(os.devnull, "r+", encoding="utf-8") as nothing:
        started = Command(["serve"], ROOT, {**kept, **settings}, [nothing] * 3)
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(aiohttp.ClientSession())
        server = Killable(f"http://127.0.0.1:{port}", started, session)
        stack.callback(server.kill)

        async def ready() -> bool:
            assert started.poll() is None
            try:
                async with session.get(f"{server.url}/ready") as answer:
                    return answer.status == 200
            except aiohttp.ClientError:
                return False

        await until(ready)
        yield server


SAID = "remember that my kettle is red"


async def frames_of(server: Killable, until_kind: str, query: str = SAID) -> list[dict[str, Any]]:
    """The answer's frames, up to the first of this kind."""
    frames: list[dict[str, Any]] = []
    body = {"query": query, "site": "kitchen"}
    async with server.session.post(f"{server.url}/ask", json=body, headers=ANNA) as answer:
        async for line in answer.content:
            if line.startswith(b"data: "):
                frames.append(json.loads(line[6:]))
                if frames[-1]["message_type"] == until_kind:
                    break
    return frames


def rows(data: Path) -> int:
    """How many facts are committed, as another process sees it."""
    with sqlite3.connect(f"file:{data / 'askable.db'}?mode=ro", uri=True) as connection:
        (count,) = connection.execute("SELECT count(*) FROM memories WHERE status = 'active'").fetchone()
    connection.close()
    return int(count)


@pytest.mark.parametrize("point", ["before it is detected", "row committed", "remember read"])
async def test_kill_leaves_the_fact_once_or_not_at_all(
    tmp_path: Path, model: ScriptedModel, point: str
) -> None:
    data = tmp_path / "data"
    sensible = SensibleModel()

    def answer(request: ModelRequest) -> Any:
        held = "DetectMemoryRequestPrompt" if point == "before it is detected" else "RankingPrompt"
        return Hang() if request.schema_name == held else sensible(request)

    model.answer = answer
    async with process(data, model) as server:
        await _load(server)
        if point == "remember read":
            frames = await frames_of(server, "remember")
            assert "complete" not in [frame["message_type"] for frame in frames]
            server.kill()
        else:
            asking = asyncio.create_task(frames_of(server, "complete"))
            if point == "row committed":

                async def committed() -> bool:
                    return await asyncio.to_thread(rows, data) == 1

                await until(committed)
            else:
                await model.until(
                    lambda: any(r.schema_name == "DetectMemoryRequestPrompt" for r in model.requests)
                )
            server.kill()
            await asyncio.gather(asking, return_exceptions=True)
    expected = [] if point == "before it is detected" else ["my kettle is red"]
    async with process(data) as again:
        assert await again.facts() == expected

        async def found() -> bool:
            return await again.facts("kettle") == expected

        await until(found)


@pytest.mark.parametrize("point", ["row committed", "answered"])
async def test_kill_in_a_confirmation_keeps_the_fact_once(tmp_path: Path, point: str) -> None:
    data = tmp_path / "data"
    async with process(data) as server:
        await _load(server)
        token = (await frames_of(server, "remember", "remember that I have diabetes"))[-1]["confirm"]
        confirming = asyncio.create_task(server.post("/memory/confirm", {"token": token}))
        if point == "answered":
            assert (await confirming)[0] == 200
        else:

            async def committed() -> bool:
                return await asyncio.to_thread(rows, data) == 1

            await until(committed)
        server.kill()
        await asyncio.gather(confirming, return_exceptions=True)
    async with process(data) as again:
        status, _ = await again.post("/memory/confirm", {"token": token})
        # Before it was marked as used the same person may go on; afterwards not.
        assert status == 400 if point == "answered" else status in (200, 400)
        assert await again.facts() == ["I have diabetes"]


async def _load(server: Killable) -> None:
    items = [{**item, "name": f"red kettle {item['name']}"} for item in KITCHEN]
    body = {"site": "kitchen", "items": items}
    async with server.session.post(f"{server.url}/documents", json=body, headers=OPERATOR) as loaded:
        assert loaded.status == 200


async def test_kill_in_an_erasure_is_made_good_at_the_next_start(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with process(data) as server:
        for n in range(20):
            assert (await server.post("/memory", {"text": f"I own boat {n}"}))[0] == 201
        erasing = asyncio.create_task(server.session.delete(f"{server.url}/memory?all=true", headers=ANNA))

        async def begun() -> bool:
            return (data / "erasures.jsonl").exists()

        await until(begun)
        server.kill()
        await asyncio.gather(erasing, return_exceptions=True)
    async with process(data) as again:

        async def gone() -> bool:
            return await again.facts() == []

        await until(gone)
