"""`askable memory`, beside a running server as the operator uses it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from server.cli.client import write_server_file
from server.keys import CLOCK
from tests.conftest import ADMIN, Serve, Served
from tests.server.test_cli import ENVIRON
from tests.server.test_memory_rest import AUTH, OTHER, keep, texts, user
from tests.zygote import command


@pytest.fixture
async def server(serve: Serve, tmp_path: Path) -> Served:
    server = await serve(auth=AUTH)
    write_server_file(tmp_path / "data", server.url, ADMIN)
    return server


async def askable(data: Path, *words: str) -> tuple[int, str]:
    argv = ("--data-dir", str(data), "memory", *words)
    done = await asyncio.to_thread(command, data.parent, *argv, env=ENVIRON)
    return done.returncode, done.stdout + done.stderr


async def test_the_operator_lists_exports_and_forgets(server: Served, tmp_path: Path) -> None:
    data = tmp_path / "data"
    kept = await keep(server, "I love coriander")
    await keep(server, "My oven is small")
    code, out = await askable(data, "list", "--user", "anna", "--json")
    listed: list[dict[str, Any]] = json.loads(out)
    assert (code, {one["text"] for one in listed}) == (0, {"I love coriander", "My oven is small"})
    code, out = await askable(data, "export", "--user", "anna", "--out", str(tmp_path / "anna.json"))
    assert (code, out.startswith("2 facts")) == (0, True)
    assert len(json.loads((tmp_path / "anna.json").read_bytes())["memories"]) == 2
    code, _ = await askable(data, "forget", "--user", "anna", "--id", kept["memory_id"])
    assert (code, await texts(server)) == (0, ["My oven is small"])
    code, out = await askable(data, "forget", "--user", "anna", "--all")
    assert (code, await texts(server)) == (0, [])
    assert "1 memories" in out


async def test_what_is_not_clear_or_not_there_is_said(server: Served, tmp_path: Path) -> None:
    data = tmp_path / "data"
    await keep(server, "My oven is small")
    await keep(server, "My oven is big", user("anna", OTHER))
    code, out = await askable(data, "list", "--user", "anna")
    assert code == 2
    assert "key:bank, key:shop" in out
    code, out = await askable(data, "list", "--user", "anna", "--realm", "key:bank")
    assert (code, "My oven is big" in out) == (0, True)
    assert (await askable(data, "list", "--user", "nobody"))[0] == 1
    assert (await askable(data, "forget", "--user", "anna"))[0] == 2


async def test_erasures_are_replayed_beside_a_server_and_without_one(server: Served, tmp_path: Path) -> None:
    data = tmp_path / "data"
    await keep(server, "I love coriander")
    before = server.app[CLOCK]()
    await server.json("DELETE", "/memory?all=true", headers=user("anna"))
    saved = tmp_path / "saved.jsonl"
    saved.write_bytes((data / "erasures.jsonl").read_bytes())
    await keep(server, "I love coriander")  # as if a backup had brought it back
    assert await askable(data, "replay-erasures") == (0, "erased again: 0\n")
    assert await texts(server) == ["I love coriander"]
    code, out = await askable(data, "replay-erasures", "--since", str(before), "--json")
    assert (code, json.loads(out)) == (0, {"erased": 1, "failed": 0, "unreadable": 0})
    assert await texts(server) == []
    await server.runner.cleanup()
    # The ledger was in the folder that was replaced; the one that was saved has a line of another server.
    (data / "erasures.jsonl").unlink()
    saved.write_bytes(saved.read_bytes() + b'{"number":"n9","at":1.0,"who":"of-another-server"}\n')
    code, out = await askable(
        data, "replay-erasures", "--ledger", str(saved), "--since", "2020-01-01T00:00", "-q"
    )
    assert (code, out) == (1, "erased again: 1\n")


@pytest.mark.parametrize("since", ["monday", "2026-13-01", ""])
async def test_time_that_is_none_is_a_usage_error(server: Served, tmp_path: Path, since: str) -> None:
    code, out = await askable(tmp_path / "data", "replay-erasures", "--since", since)
    assert code == 2
    assert "--since" in out
