"""The protocol's own conformance suite against `/mcp`, with what only the suite calls beside our own tools.

Two releases, pinned: the latest, and the one that knows 2026-07-28. They are programs for Node 22 of the
public package registry, which `npx` fetches once; where it cannot, the tests are skipped.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from asyncio.subprocess import PIPE, STDOUT
from pathlib import Path

import pytest

from server.mcp.endpoint import ENDPOINT
from tests.conftest import KITCHEN, Serve
from tests.fakes import mcp_fixtures

pytestmark = pytest.mark.slow

NODE = "node@22.23.3"
SUITE = "@modelcontextprotocol/conformance"
LIMIT_S = 300  # the first time it is fetched

UNRESUMED = "an answer is not taken up again: a client that goes away stops the work on it"
UNCHANGING = "nothing is told of changes: there is no `subscriptions/listen`"
# What the suite warns of or passes over, and why that is so here. Whatever else is no success fails the test.
DOES_NOT_APPLY = {
    "server-sse-priming-event": UNRESUMED,
    "server-sse-retry-field": UNRESUMED,
    "sep-2575-server-sends-subscription-ack": UNCHANGING,
    "sep-2575-server-tags-subscription-id": UNCHANGING,
    "sep-2575-server-honors-notification-filter": UNCHANGING,
    "sep-2575-server-sends-prompts-list-changed-on-subscription": UNCHANGING,
    "sep-2575-server-sends-tools-list-changed-on-subscription": UNCHANGING,
}


@pytest.mark.parametrize(
    ("version", "revision", "scenarios"),
    [
        ("0.1.16", None, 32),
        ("0.2.0-alpha.12", "2025-11-25", 33),
        ("0.2.0-alpha.12", "2026-07-28", 40),
    ],
)
async def test_the_conformance_suite_passes(
    serve: Serve, tmp_path: Path, version: str, revision: str | None, scenarios: int
) -> None:
    suite = await fetched(version)
    server = await serve()
    server.app[ENDPOINT].extend(mcp_fixtures.extend)
    await server.load("kitchen", KITCHEN)
    results = tmp_path / "results"
    wanted = ["--spec-version", revision] if revision else []
    said = await run(
        *suite, "server", "--url", f"{server.url}/mcp", "--suite", "all", *wanted, "-o", str(results)
    )
    checks = [json.loads(path.read_text()) for path in sorted(results.glob("*/checks.json"))]
    assert len(checks) == scenarios, said[-4000:]
    other = {
        one["id"]: (one["status"], one.get("errorMessage"))
        for one in (one for scenario in checks for one in scenario)
        if one["status"] not in ("SUCCESS", "INFO")
    }
    assert {name: why for name, why in other.items() if name not in DOES_NOT_APPLY} == {}
    assert not any(status == "FAILURE" for status, _ in other.values())


async def fetched(version: str) -> list[str]:
    """The command of this release of the suite."""
    if shutil.which("npx") is None:
        pytest.skip("the conformance suite needs npx, which is not here")
    command = ["npx", "-y", "-p", NODE, "-p", f"{SUITE}@{version}", "conformance"]
    try:
        said = await run(*command, "list")
    except TimeoutError:
        pytest.skip(f"{SUITE}@{version} could not be fetched in {LIMIT_S} s")
    if "server-initialize" not in said:
        pytest.skip(f"{SUITE}@{version} cannot be fetched here: {said[-300:]}")
    return command


async def run(*command: str) -> str:
    """What the command says. A failing one is seen by its results."""
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=STDOUT)
    try:
        async with asyncio.timeout(LIMIT_S):
            said, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return said.decode(errors="replace")
