"""The server on PostgreSQL: killed and started again, its database away, and two beside each other."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from yarl import URL

from tests.conftest import ADMIN, KITCHEN, Serve, read_frames, recipe
from tests.fakes.openai_server import ScriptedModel
from tests.fakes.qdrant_server import fake_qdrant
from tests.fakes.sensible_model import SensibleModel
from tests.fakes.wire import wire_to
from tests.postgres import Postgres
from tests.server.test_cli import ENVIRON, askable, jsonl, server
from tests.server.test_memory_rest import ANNA, AUTH, BO, ask, keep, kitchen, texts

OPERATOR = {"Authorization": f"Bearer {ADMIN}"}
SECRET = "the-secret-that-all-servers-have"


@pytest.fixture
def postgres_url(postgres: Postgres) -> Iterator[str]:
    with postgres.database() as url:
        yield url


async def test_load_ask_remember_kill_restart_erase(
    postgres: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with postgres.database(empty=True) as url:
        monkeypatch.setitem(ENVIRON, "DATABASE_URL", url.replace("postgresql://", "postgres://"))
        monkeypatch.setitem(ENVIRON, "ASKABLE_AUTH__API_KEYS", json.dumps(AUTH["api_keys"]))
        monkeypatch.setitem(ENVIRON, "ASKABLE_AUTH__SECRET", SECRET)
        with server(tmp_path) as (process, said):
            done = askable(tmp_path, "load", str(jsonl(tmp_path, KITCHEN)), "--site", "kitchen")
            assert done.returncode == 0, done.stderr
            async with aiohttp.ClientSession(headers=ANNA) as session:
                frames = await _asked(session, said["url"], "remember that I love zanzibarquince")
                assert frames.one("remember")["item_to_remember"] == "I love zanzibarquince"
            process.send_signal(signal.SIGKILL)
            process.wait()
        assert not (tmp_path / "data" / "askable.db").exists()
        with server(tmp_path) as (_, said):
            async with aiohttp.ClientSession(said["url"], headers=ANNA) as session:
                async with session.get("/memory") as answer:
                    (fact,) = (await answer.json())["memories"]
                assert fact["text"] == "I love zanzibarquince"
                frames = await _asked(session, said["url"], "a vegan curry")
                assert frames.final[0]["name"] == "Tofu curry"
                assert frames.one("used_memories")
                async with session.get("/conversations/c1") as answer:
                    kept = await answer.json()
                asked = [turn["asked"] for turn in kept["turns"]]
                assert asked == ["remember that I love zanzibarquince", "a vegan curry"]
                assert _holds(postgres, url, tmp_path, b"zanzibarquince")
                async with session.delete("/memory?all=true") as answer:
                    assert answer.status == 200, await answer.text()
            assert not _holds(postgres, url, tmp_path, b"zanzibarquince")
        done = askable(tmp_path, "sites", "--json")
        assert json.loads(done.stdout)[0]["documents"] == len(KITCHEN)


async def _asked(session: aiohttp.ClientSession, url: str, query: str) -> Any:
    body = {"query": query, "site": "kitchen", "conversation_id": "c1"}
    async with session.post(f"{url}/ask", json=body) as response:
        return await read_frames(response)


def _holds(postgres: Postgres, url: str, folder: Path, text: bytes) -> list[Path]:
    files = [*postgres.files(url), *(folder / "data").rglob("*")]
    return [file for file in files if file.is_file() and text in file.read_bytes()]


async def test_server_is_not_ready_while_the_database_is_away_and_is_again(
    postgres: Postgres, postgres_url: str, serve: Serve
) -> None:
    async with wire_to(postgres.socket) as wire:
        running = await kitchen(serve, database={"url": wire.url(postgres_url)})
        assert (await running.json("GET", "/ready"))[0] == 200
        await wire.cut()
        status, body = await running.json("GET", "/ready")
        assert (status, body["checks"]["database"]) == (503, "down")
        status, body = await running.json("GET", "/sites")
        assert (status, body["error"]["code"]) == (503, "store_failed")
        # Where it is kept is nothing for whoever asks.
        told = body["error"]["message"]
        assert "does not answer" in told
        assert not {word for word in ("port", "socket", "127.", "/") if word in told}
        await wire.mend()
        assert (await running.json("GET", "/ready"))[0] == 200
        assert (await ask(running, "a vegan curry")).final[0]["name"] == "Tofu curry"
        await running.runner.cleanup()


async def test_two_servers_share_sites_conversations_and_memory(
    postgres_url: str, serve: Serve, model: ScriptedModel, tmp_path: Path
) -> None:
    model.answer = SensibleModel(rewrites={"a vegan one": "a vegan stew"})
    folder = tmp_path / "qdrant"
    folder.mkdir()
    async with fake_qdrant(folder) as qdrant:
        shared: dict[str, Any] = {
            "model": model,
            "auth": {**AUTH, "secret": SECRET},
            "database": {"url": postgres_url},
            "qdrant": {"url": qdrant.url},
        }
        one, other = [await serve(folder=folder, **shared) for folder in ("one", "other")]
        await one.load("kitchen", KITCHEN)
        frames = await ask(one, "stew", conversation_id="c1")
        assert frames.final
        await keep(one, "I am allergic to walnuts")
        frames = await ask(other, "a vegan one", conversation_id="c1")
        assert frames.one("decontextualized_query")["decontextualized_query"] == "a vegan stew"
        assert frames.one("used_memories")
        assert await texts(other) == ["I am allergic to walnuts"]
        assert await texts(other, BO) == []
        _, kept = await one.json("GET", "/conversations/c1", headers=ANNA)
        assert [turn["asked"] for turn in kept["turns"]] == ["stew", "a vegan one"]
        assert (await other.json("DELETE", "/memory?all=true", headers=ANNA))[0] == 200
        assert await texts(one) == []
        assert (await one.json("GET", "/conversations/c1", headers=ANNA))[0] == 404
        for running in (one, other):
            await running.runner.cleanup()


@pytest.mark.both_databases
async def test_characters_that_postgresql_does_not_hold_are_no_failure(serve: Serve) -> None:
    running = await kitchen(serve)
    nul = "a\x00b"
    item = recipe("nul", f"Zy{nul}", f"Zylo{nul} soup", author={nul: nul})
    report = await running.load("kitchen", [item])
    assert (report["added"], report["failed"]) == (1, 0)
    said = f"remember that I love {nul} soup"
    frames = await ask(running, said, conversation_id="c1", prev=[f"x {nul}"], query_id="q1")
    assert frames.kinds[-1] == "complete"
    assert not frames.of("error")
    _, kept = await running.json("GET", "/conversations/c1", headers=ANNA)
    assert len(kept["turns"]) == 1
    calls: list[tuple[str, str, Any]] = []
    for raw in ("a%00b", "a%F0%9F%98%80b", "%ED%A0%BD"):
        calls += [
            ("GET", f"/conversations/{raw}", None),
            ("GET", f"/memory/{raw}", None),
            ("GET", f"/memory?query={raw}", None),
            ("GET", f"/suggest?q={raw}", None),
            ("GET", f"/who?query={raw}", None),
            ("GET", f"/documents?site={raw}", None),
            ("DELETE", f"/documents?url={raw}", None),
            ("GET", f"/ask?query=soup&site={raw}&streaming=false", None),
            ("GET", f"/ask?query=soup&context_url={raw}&streaming=false", None),
            ("GET", f"/v1/memories/?user_id={raw}", None),
        ]
    said_by_an_agent = [{"role": "user", "content": nul, "id": nul}]
    calls += [
        ("POST", "/memory", {"text": f"I love {nul}", "metadata": {nul: nul}}),
        ("POST", "/context", {"conversation_id": "c2", "messages": said_by_an_agent}),
        ("POST", "/context", {"conversation_id": nul, "messages": said_by_an_agent}),
        ("POST", "/search", {"query": nul, "site": "kitchen"}),
        ("POST", "/conversations", {"id": nul, "title": nul}),
        ("POST", "/conversations", {"title": nul}),
        ("POST", "/feedback", {"query_id": "q1", "rating": "up", "comment": nul, "reasons": [nul]}),
        ("POST", "/feedback", {"query_id": nul, "document_id": nul, "rating": "up"}),
        ("POST", "/v1/memories/", {"messages": said_by_an_agent, "user_id": nul}),
        ("POST", "/v1/memories/", {"messages": said_by_an_agent, "user_id": "u", "metadata": {nul: nul}}),
        ("PATCH", "/conversations/c1", {"title": nul}),
    ]
    failed = []
    for method, path, body in calls:
        data = None if body is None else json.dumps(body)
        who = OPERATOR if path.startswith("/documents") else ANNA
        headers = {**who, "Content-Type": "application/json"}
        async with running.session.request(
            method, URL(running.url + path, encoded=True), data=data, headers=headers
        ) as answer:
            if answer.status >= 500:
                failed.append((method, path, body, await answer.text()))
    assert failed == []
