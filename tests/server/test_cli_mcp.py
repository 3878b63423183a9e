"""`askable mcp config`: what is printed is what each client reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from server.cli.app import cli


def printed(tmp_path: Path, *argv: str) -> tuple[dict[str, Any], str]:
    done = CliRunner().invoke(cli, ["--data-dir", str(tmp_path), "mcp", "config", *argv])
    assert done.exit_code == 0, done.output
    body: dict[str, Any] = json.loads(done.stdout)
    return body, done.stderr


@pytest.mark.parametrize(
    ("client", "key", "variable"),
    [
        ("claude", "mcpServers", "${ASK_KEY}"),
        ("vscode", "servers", "${env:ASK_KEY}"),
        ("cursor", "mcpServers", "${env:ASK_KEY}"),
    ],
)
def test_each_client_gets_its_own_shape(tmp_path: Path, client: str, key: str, variable: str) -> None:
    argv = ("--client", client, "--url", "https://ask.example.org/", "--key-variable", "ASK_KEY")
    body, told = printed(tmp_path, *argv)
    entry = body[key]["askable"]
    assert entry["url"] == "https://ask.example.org/mcp"
    assert entry["headers"] == {"Authorization": f"Bearer {variable}"}
    assert ".json" in told
    assert printed(tmp_path, *argv, "-q") == (body, "")


def test_the_address_is_the_running_servers_else_that_of_the_settings(tmp_path: Path) -> None:
    body, _ = printed(tmp_path, "--client", "cursor")
    assert body == {"mcpServers": {"askable": {"url": "http://127.0.0.1:8000/mcp"}}}
    told = {"url": "http://127.0.0.1:4711", "token": "secret", "pid": 1}
    (tmp_path / "server.json").write_text(json.dumps(told))
    body, _ = printed(tmp_path, "--client", "cursor")
    assert body["mcpServers"]["askable"]["url"] == "http://127.0.0.1:4711/mcp"
    assert "secret" not in json.dumps(body)


def test_an_unknown_client_is_wrong_usage(tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["mcp", "config", "--client", "nothing"])
    assert done.exit_code == 2
