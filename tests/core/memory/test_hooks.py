"""The shipped hooks keep the contract of hooks; the webhook's requests can be checked by who gets them."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from core.errors import ConfigError, MemoryFailed
from core.memory import MemoryHook, StoreMemory, load_hook
from core.providers.webhook import SIGNATURE, TIMESTAMP, WebhookMemory
from core.query import Identity
from tests.core.memory.hook_contract import HookContract, detected
from tests.core.memory.package import KEEPS_ALL, install
from tests.core.memory.support import memory_in

SECRET = "a secret of the tests"


@dataclass
class Receiver:
    """A program that gets webhooks: it answers with these statuses in turn, then with 200."""

    url: str = ""
    statuses: list[int] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    got: list[tuple[dict[str, str], bytes]] = field(default_factory=list)

    async def take(self, request: web.Request) -> web.Response:
        self.got.append((dict(request.headers), await request.read()))
        status = self.statuses.pop(0) if self.statuses else 200
        return web.Response(status=status, headers=self.headers if status != 200 else {})


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    app = web.Application()
    app.router.add_post("/facts", receiver.take)
    async with TestServer(app) as server:
        receiver.url = str(server.make_url("/facts"))
        yield receiver


def webhook(url: str, **more: float) -> WebhookMemory:
    return WebhookMemory(url, SECRET, **{"timeout_s": 5, "retries": 2, "pause_s": 0.001, **more})  # type: ignore[arg-type]


class TestDefault(HookContract):
    @pytest.fixture
    async def hook(self, tmp_path: Path) -> AsyncIterator[MemoryHook]:
        async with memory_in(tmp_path) as kept:
            yield StoreMemory(kept.facts)


class TestWebhook(HookContract):
    @pytest.fixture
    async def hook(self) -> AsyncIterator[MemoryHook]:
        async with receiving() as receiver:
            yield webhook(receiver.url)


class TestPackage(HookContract):
    @pytest.fixture
    def hook(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MemoryHook:
        install(tmp_path, monkeypatch, KEEPS_ALL)
        return load_hook("crm", {})


async def test_webhook_signs_time_and_body() -> None:
    async with receiving() as receiver:
        assert await webhook(receiver.url).persist(detected("I love coriander", "n1")) is None
    ((headers, body),) = receiver.got
    told = orjson.loads(body)
    assert told["event"] == "memory.detected"
    assert told["detected"]["text"] == "I love coriander"
    assert told["detected"]["identity"] == {"realm": "key:shop", "user": "anna"}
    assert told["id"] == headers["Idempotency-Key"] == "n1"
    signed = headers[TIMESTAMP].encode() + b"." + body
    assert headers[SIGNATURE] == "sha256=" + hmac.new(SECRET.encode(), signed, "sha256").hexdigest()
    assert SECRET not in body.decode() + str(headers)


async def test_webhook_tries_again_with_the_same_id_while_it_may_help() -> None:
    async with receiving() as receiver:
        receiver.statuses = [503, 429]
        await webhook(receiver.url).persist(detected("I love coriander", "n1"))
    assert [headers["Idempotency-Key"] for headers, _ in receiver.got] == ["n1"] * 3


@pytest.mark.parametrize(("statuses", "tries"), [([400], 1), ([302], 1), ([500] * 9, 3)])
async def test_webhook_that_is_refused_says_so(statuses: list[int], tries: int) -> None:
    async with receiving() as receiver:
        receiver.statuses = list(statuses)
        receiver.headers = {"Location": receiver.url}
        with pytest.raises(MemoryFailed, match=str(statuses[0])):
            await webhook(receiver.url).persist(detected("I love coriander", "n1"))
    assert len(receiver.got) == tries


async def test_webhook_nobody_answers_fails_in_time() -> None:
    async with receiving() as receiver:
        url = receiver.url
    with pytest.raises(MemoryFailed, match="cannot be reached"):
        await webhook(url).persist(detected("I love coriander", "n1"))


async def test_erasing_is_told_to_the_webhook() -> None:
    async with receiving() as receiver:
        await webhook(receiver.url).erase(Identity("key:shop", "anna"))
    ((_, body),) = receiver.got
    assert orjson.loads(body)["event"] == "memory.erase"
    assert orjson.loads(body)["identity"] == {"realm": "key:shop", "user": "anna"}


async def test_each_erasure_has_an_id_of_its_own_for_all_its_tries() -> None:
    people = [Identity("key:shop", f"user{n}") for n in range(20)]
    async with receiving() as receiver:
        receiver.statuses = [503] * 5
        hook = webhook(receiver.url, retries=9)
        await asyncio.gather(*(hook.erase(who) for who in people))
        await hook.erase(people[0])
    ids: dict[str, list[str]] = {}
    for headers, body in receiver.got:
        told = orjson.loads(body)
        assert headers["Idempotency-Key"] == told["id"]
        ids.setdefault(told["identity"]["user"], []).append(told["id"])
    assert len(receiver.got) == 26
    assert len({one for given in ids.values() for one in given}) == 21
    assert len(set(ids["user0"])) == 2


def test_unknown_hook_is_an_error_that_names_those_there_are() -> None:
    with pytest.raises(ConfigError, match="default, webhook"):
        load_hook("nope", {"default": webhook("http://127.0.0.1/"), "webhook": webhook("http://127.0.0.1/")})
