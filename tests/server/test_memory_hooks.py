"""A hook that an installed package offers: it gets every fact whole, and whatever it does stops no answer."""

from __future__ import annotations

import logging
import re
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from core.errors import ConfigError
from core.memory import ENTRY_POINTS, Detected
from core.query import Identity
from server.keys import CLOCK, MEMORY
from tests.conftest import ADMIN, ROOT, Serve, Served
from tests.core.memory.package import KEEPS_ALL, install
from tests.fakes.openai_server import ScriptedModel
from tests.fakes.sensible_model import SensibleModel
from tests.server.test_mcp_memory import speaking
from tests.server.test_memory_rest import ANNA, BO, KEY, ask, keep, kitchen

SAID = "Remember that I love zanzibarquince"


async def with_hook(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, **more: Any
) -> tuple[Served, Any]:
    """A server whose facts go to this package's hook, and the hook."""
    install(tmp_path / "site-packages", monkeypatch, code)
    server = await kitchen(serve, memory={"hook": "crm"}, **more)
    return server, server.app[MEMORY].hook


async def test_detected_facts_arrive_with_all_their_fields(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: ScriptedModel
) -> None:
    server, hook = await with_hook(serve, tmp_path, monkeypatch, KEEPS_ALL, model=model)
    reply = {
        "is_memory_request": True,
        "memory_request": "I love zanzibarquince",
        "kind": "preference",
        "sensitive": False,
        "action": "remember",
        "subject": "user",
        "attribute": "taste",
    }
    model.answer = SensibleModel(replies={"DetectMemoryRequestPrompt": reply})
    before = server.app[CLOCK]()
    frames = await ask(server, SAID, conversation_id="c7")
    told = frames.one("remember")
    (got,) = hook.got
    assert isinstance(got, Detected)
    assert got.text == told["item_to_remember"] == "I love zanzibarquince"
    assert (got.kind, got.scope, got.site, got.conversation_id) == ("preference", "user", "kitchen", "c7")
    assert (got.subject, got.attribute) == ("user", "taste")
    assert got.identity == Identity("key:shop", "anna")
    assert got.query_id == frames.all[0]["query_id"]
    assert got.source_turn == SAID
    assert got.expires_at is not None
    assert got.expires_at > before + 364 * 86_400
    assert got.nonce
    assert {one.name for one in fields(got)} == set(_named_in_docs())
    assert told["memory_id"] == f"crm-{got.nonce}"


async def test_facts_of_a_package_are_recalled_shown_exported_and_erased(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, hook = await with_hook(serve, tmp_path, monkeypatch, KEEPS_ALL)
    told = (await ask(server, SAID)).one("remember")
    await keep(server, "My oven is small", BO)
    used = (await ask(server, "a curry")).one("used_memories")["items"]
    assert used == [{"memory_id": told["memory_id"], "text": "I love zanzibarquince"}]
    shown = (await ask(server, "what do you know about me?")).one("memories")["items"]
    assert [one["text"] for one in shown] == ["I love zanzibarquince"]
    _, exported = await server.json("GET", "/memory/export", headers=ANNA)
    assert [one["text"] for one in exported["memories"]] == ["I love zanzibarquince"]
    assert (await server.json("DELETE", f"/memory/{told['memory_id']}", headers=BO))[0] == 404
    assert (await server.json("DELETE", f"/memory/{told['memory_id']}", headers=ANNA))[0] == 200
    await ask(server, SAID)
    _, gone = await server.json("DELETE", "/memory?all=true", headers=ANNA)
    assert gone["erased"]["the shop's file"] == {"facts": 1}
    assert [one.identity.user for one in hook.kept.values()] == ["bo"]


async def test_facts_of_a_package_are_meant_counted_and_given_to_agents_like_our_own(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, hook = await with_hook(serve, tmp_path, monkeypatch, KEEPS_ALL)
    memory_id = (await ask(server, SAID)).one("remember")["memory_id"]
    await keep(server, "My oven is small")
    await keep(server, "I love Bo's cakes", BO)
    body = {"messages": [{"role": "user", "content": "dessert?"}]}
    status, told = await server.json("POST", "/context", json=body, headers=ANNA)
    assert status == 200
    assert sorted(one["text"] for one in told["memories"]) == ["I love zanzibarquince", "My oven is small"]
    assert "I love zanzibarquince" in told["text"]
    async with speaking(server, ANNA) as anna:
        recalled = (await anna.call_tool("recall", {})).structured_content
        assert {"memory_id": memory_id, "text": "I love zanzibarquince", "kind": "fact"} in recalled[
            "memories"
        ]
    _, listed = await server.json("GET", "/memory", headers=ANNA)
    assert ({one["text"] for one in listed["memories"]}, listed["total"]) == (
        {"I love zanzibarquince", "My oven is small"},
        2,
    )
    _, shown = await server.json("GET", f"/memory/{memory_id}", headers=ANNA)
    assert shown["text"] == "I love zanzibarquince"
    assert (await server.json("GET", f"/memory/{memory_id}", headers=BO))[0] == 404
    operator = {"Authorization": f"Bearer {ADMIN}"}
    _, seen = await server.json("GET", "/admin/memory?user=anna&realm=key:shop", headers=operator)
    assert seen["total"] == 2
    status, told = await server.json("GET", "/admin/memory?user=nobody", headers=operator)
    assert (status, told["error"]["field"]) == (400, "realm")
    asked = (await ask(server, "forget everything about me")).one("forgotten")
    assert "(2 facts" in asked["message"]
    gone = (await ask(server, "forget that I love zanzibarquince")).one("forgotten")
    assert gone["items"] == [{"memory_id": memory_id, "text": "I love zanzibarquince"}]
    assert "confirm" not in gone
    path = f"/admin/memory?user=anna&realm=key:shop&id={next(iter(hook.kept))}"
    assert (await server.json("DELETE", path, headers=operator))[0] == 200
    assert [one.text for one in hook.kept.values()] == ["I love Bo's cakes"]
    assert (await ask(server, "forget that I love Bo's cakes")).one("forgotten")["items"] == []


RECALLS_AND_FORGETS = """
from core.memory import Fact


class Hook:
    name = "the shop's file"

    def __init__(self):
        self.kept = {}

    async def persist(self, detected):
        self.kept[f"crm-{len(self.kept)}"] = detected.text

    async def recall(self, query):
        return [Fact(key, text) for key, text in self.kept.items()]

    async def forget(self, identity, memory_id):
        return bool(self.kept.pop(memory_id, None))
"""


async def test_what_a_hook_only_recalls_is_told_and_forgotten(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, hook = await with_hook(serve, tmp_path, monkeypatch, RECALLS_AND_FORGETS)
    await ask(server, SAID)
    shown = (await ask(server, "what do you know about me?")).one("memories")["items"]
    assert shown == [{"memory_id": "crm-0", "text": "I love zanzibarquince"}]
    gone = (await ask(server, "forget that I love zanzibarquince")).one("forgotten")
    assert [one["memory_id"] for one in gone["items"]] == ["crm-0"]
    assert hook.kept == {}


ONLY_PERSISTS = """
class Hook:
    name = "the shop's file"

    async def persist(self, detected):
        pass
"""

ONLY_TELLS = """
class Hook:
    name = "the shop's file"

    def __init__(self):
        self.kept = []

    async def persist(self, detected):
        self.kept.append({"memory_id": detected.nonce, "text": detected.text})

    async def export(self, identity):
        return self.kept
"""


@pytest.mark.parametrize("code", [ONLY_PERSISTS, ONLY_TELLS])
async def test_what_a_hook_cannot_forget_is_said_to_be_there_still(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    server, _ = await with_hook(serve, tmp_path, monkeypatch, code)
    await ask(server, SAID)
    told = (await ask(server, "forget that I love zanzibarquince")).one("forgotten")
    assert told["items"] == []
    assert "sent to the shop's file, and cannot be taken back here" in told["message"]
    told = (await ask(server, "forget everything about me")).one("forgotten")
    assert "What was sent to the shop's file stays there." in told["message"]
    _, listed = await server.json("GET", "/memory", headers=ANNA)
    assert [one["memory_id"] for one in listed["memories"]] == [None] * listed["total"]


async def test_facts_of_our_own_store_stay_within_reach_beside_a_hook(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, _ = await with_hook(serve, tmp_path, monkeypatch, ONLY_PERSISTS)
    body = {"messages": [{"role": "user", "content": "I own a boat"}], "user_id": "anna"}
    program = {"Authorization": f"Bearer {KEY}"}
    assert (await server.json("POST", "/v3/memories/add/", json=body, headers=program))[0] == 200
    shown = (await ask(server, "what do you know about me?")).one("memories")
    assert [one["text"] for one in shown["items"]] == ["I own a boat"]
    assert "cannot be read here" in shown["message"]
    gone = (await ask(server, "forget that I own a boat")).one("forgotten")
    assert [one["text"] for one in gone["items"]] == ["I own a boat"]


async def test_facts_that_the_hook_cannot_forget_are_listed_without_an_id(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, _ = await with_hook(serve, tmp_path, monkeypatch, ONLY_TELLS)
    await ask(server, SAID)
    shown = (await ask(server, "what do you know about me?")).one("memories")["items"]
    assert shown == [{"text": "I love zanzibarquince"}]


RAISES = """
class Hook:
    name = "the shop's file"

    async def persist(self, detected):
        raise ValueError(f"cannot keep {detected.text}")

    async def recall(self, query):
        raise KeyError(query.text)

    async def erase(self, identity):
        raise RuntimeError("away")
"""
HANGS = """
import asyncio


class Hook:
    name = "the shop's file"
    timeout_s = 0.1

    async def persist(self, detected):
        await asyncio.Event().wait()

    async def recall(self, query):
        await asyncio.Event().wait()

    async def erase(self, identity):
        await asyncio.Event().wait()
"""


@pytest.mark.parametrize("code", [RAISES, HANGS], ids=["raises", "hangs"])
async def test_hook_that_fails_stops_no_answer_and_is_told(
    serve: Serve,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    code: str,
) -> None:
    server, _ = await with_hook(serve, tmp_path, monkeypatch, code)
    frames = await ask(server, f"{SAID}. A curry?")
    assert frames.final
    assert frames.of("remember") == []
    (error,) = frames.of("error")
    assert error["code"] == "memory_failed"
    assert "the shop's file" in error["message"]
    assert frames.kinds[-1] == "complete"
    assert "recall_skipped" in frames.one("complete")["timings"]
    body = {"messages": [{"role": "user", "content": "a curry"}]}
    status, told = await server.json("POST", "/context", json=body, headers=ANNA)
    assert (status, told["memories"]) == (200, [])
    assert (await ask(server, "forget everything about me")).one("forgotten")["confirm"]
    status, failed = await server.json("POST", "/memory", json={"text": "I love rice"}, headers=ANNA)
    assert (status, failed["error"]["code"]) == (502, "memory_failed")
    status, failed = await server.json("DELETE", "/memory?all=true", headers=ANNA)
    assert (status, failed["error"]["code"]) == (502, "memory_failed")
    records = [str(record.__dict__) for record in caplog.records if record.levelno >= logging.WARNING]
    assert any("the shop's file" in one for one in records)
    assert [one for one in records if "zanzibarquince" in one or "I love rice" in one] == []


NONSENSE = """
class Hook:
    name = "the shop's file"

    async def persist(self, detected):
        return {NONSENSE}

    async def recall(self, query):
        return {NONSENSE}

    async def forget(self, identity, memory_id):
        return {NONSENSE}

    async def export(self, identity):
        return {NONSENSE}

    async def erase(self, identity):
        return {NONSENSE}
"""


@pytest.mark.parametrize(
    "value",
    [
        "7",
        "'yes'",
        "[1, None, 'a fact']",
        "{'memory_id': 5, 'text': []}",
        "[{'memory_id': '5', 'text': 5, 'at': object()}]",
        "[__import__('core.memory').memory.Fact(5, ['a'], kind='rumour')]",
        "object()",
    ],
)
async def test_hook_that_returns_nonsense_stops_no_answer(
    serve: Serve,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    value: str,
) -> None:
    server, _ = await with_hook(serve, tmp_path, monkeypatch, NONSENSE.replace("{NONSENSE}", value))
    frames = await ask(server, f"{SAID}. A curry?")
    assert frames.final
    assert frames.of("error") == frames.of("used_memories") == []
    told = frames.one("remember")
    assert told["memory_id"] is None
    assert told["message"].startswith("Sent to the shop's file")
    assert "memory.hook_nonsense" in caplog.text
    shown = (await ask(server, "what do you know about me?")).one("memories")
    assert shown["items"] == []
    assert (await server.json("GET", "/memory/export", headers=ANNA))[1]["memories"] == []
    assert (await server.json("GET", "/memory", headers=ANNA))[1]["total"] == 0
    body = {"messages": [{"role": "user", "content": "a curry"}]}
    assert (await server.json("POST", "/context", json=body, headers=ANNA))[1]["memories"] == []
    status, gone = await server.json("DELETE", "/memory?all=true", headers=ANNA)
    assert status == 200
    assert all(isinstance(n, int) for n in gone["erased"]["the shop's file"].values())


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("raise RuntimeError('no licence')", "no licence"),
        ("class Other: pass", "Hook"),
        ("class Hook:\n    def __init__(self, url): ...", "url"),
        ("class Hook:\n    async def persist(self, detected): ...", "name"),
        ("class Hook:\n    name = 'x'", "persist"),
        ("class Hook:\n    name = 'x'\n    def persist(self, detected): ...", "async def"),
        (
            "class Hook:\n    name = 'x'\n    async def persist(self, d): ...\n    def erase(self, i): ...",
            "erase",
        ),
        (
            "class Hook:\n    name = 'x'\n    timeout_s = 'soon'\n    async def persist(self, d): ...",
            "timeout_s",
        ),
    ],
)
async def test_package_that_is_no_hook_is_an_error_at_the_start(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, told: str
) -> None:
    install(tmp_path / "site-packages", monkeypatch, code)
    with pytest.raises(ConfigError, match="memory hook `crm`") as wrong:
        await serve(memory={"hook": "crm"})
    assert told in wrong.value.message


# ---------------------------------------------------------------- the example in the documentation


def _section() -> str:
    text = (ROOT / "docs" / "memory.md").read_text(encoding="utf-8")
    return text.split("## A hook of your own", 1)[1].split("\n### ", 1)[0]


def _blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", _section(), re.DOTALL)


def _named_in_docs() -> list[str]:
    """The fields that the example says there are."""
    (listed,) = re.findall(r'"""detected: (.*?)\."""', _section(), re.DOTALL)
    return [name.strip() for name in listed.split(",")]


async def test_example_of_the_documentation_works_as_it_stands(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package, settings = (tomllib.loads(block) for block in _blocks("toml"))
    (code,) = _blocks("python")
    ((entry, value),) = package["project"]["entry-points"][ENTRY_POINTS].items()
    install(tmp_path / "site-packages", monkeypatch, code, entry=entry, value=value)
    got: list[tuple[str, Any]] = []

    async def take(request: web.Request) -> web.Response:
        got.append((request.headers["Idempotency-Key"], await request.json()))
        return web.Response(status=500 if len(got) > 1 else 200)

    crm = web.Application()
    crm.router.add_post("/facts", take)
    async with TestServer(crm) as receiver:
        monkeypatch.setenv("CRM_URL", str(receiver.make_url("/facts")))
        server = await kitchen(serve, **settings)
        told = (await ask(server, SAID)).one("remember")
        assert told["message"] == "Sent to the shop's customer file: I love zanzibarquince"
        assert told["memory_id"] is None
        assert (await ask(server, "Remember that I love rice")).one("error")["code"] == "memory_failed"
    nonces, facts = zip(*got, strict=True)
    assert len(set(nonces)) == 2
    assert facts[0]["text"] == "I love zanzibarquince"
    assert facts[0]["site"] == "kitchen"
    assert "anna" in facts[0]["customer"]
