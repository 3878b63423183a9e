"""Whether it lives, whether it can answer, whom it answers, and the page's headers."""

from __future__ import annotations

from pathlib import Path

import pytest

from server.keys import STATE
from tests.conftest import ADMIN, KITCHEN, Serve


async def test_health_and_ready(serve: Serve) -> None:
    server = await serve()
    assert await server.json("GET", "/health") == (200, {"status": "ok"})
    status, told = await server.json("GET", "/ready")
    assert status == 200
    assert told["status"] == "ready"
    assert told["checks"] == {"store": "ok", "database": "ok", "llm": "none", "prompts": "ok"}


async def test_busy_server_is_not_ready_and_says_why(serve: Serve) -> None:
    server = await serve()
    server.app[STATE].busy.add("loading the samples")
    status, told = await server.json("GET", "/ready")
    assert (status, told["status"]) == (503, "loading the samples")


async def test_prompt_trouble_is_degraded_and_named(serve: Serve, tmp_path: Path) -> None:
    folder = tmp_path / "wording"
    folder.mkdir()
    (folder / "kitchen.xml").write_text("<root><Site ref='kitchen'><Thing></root>")
    server = await serve(prompts_dir=folder)
    status, told = await server.json("GET", "/ready", headers={"Authorization": f"Bearer {ADMIN}"})
    assert (status, told["status"]) == (200, "degraded")
    assert "kitchen.xml:1" in told["checks"]["prompts"][0]
    status, told = await server.json("GET", "/ready")
    assert (status, told["status"]) == (200, "degraded")
    assert "kitchen.xml" not in told["checks"]["prompts"]


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", ""])
async def test_foreign_host_is_misdirected(serve: Serve, host: str) -> None:
    server = await serve()
    status, answer = await server.json("GET", "/sites", headers={"Host": host})
    assert (status, answer["error"]["code"]) == (421, "misdirected")


@pytest.mark.parametrize("host", ["localhost", "localhost:1234", "127.0.0.1:80", "[::1]:8000", "ask.example"])
async def test_local_and_allowed_hosts_are_answered(serve: Serve, host: str) -> None:
    server = await serve(server={"allowed_hosts": ["ask.example"]})
    assert (await server.json("GET", "/sites", headers={"Host": host}))[0] == 200


async def test_allowed_origin_gets_the_same_headers_on_preflight_call_and_error(serve: Serve) -> None:
    server = await serve(server={"cors_origins": ["https://shop.example"]})
    await server.load("kitchen", KITCHEN)
    origin = {"Origin": "https://shop.example"}
    asked = {
        **origin,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type",
    }
    async with server.session.options(f"{server.url}/ask", headers=asked) as response:
        assert response.status == 204
        preflight = response.headers["Access-Control-Allow-Origin"]
        assert "content-type" in response.headers["Access-Control-Allow-Headers"]
    for query in ("curry", ""):
        async with server.session.get(
            f"{server.url}/ask", params={"query": query}, headers=origin
        ) as response:
            assert response.headers["Access-Control-Allow-Origin"] == preflight == "https://shop.example"
            assert "Access-Control-Allow-Credentials" not in response.headers


async def test_foreign_origin_is_not_echoed(serve: Serve) -> None:
    server = await serve(server={"cors_origins": ["https://shop.example"]})
    async with server.session.get(
        f"{server.url}/sites", headers={"Origin": "https://evil.example"}
    ) as response:
        assert "Access-Control-Allow-Origin" not in response.headers


async def test_page_has_a_strict_policy_with_the_sites_image_hosts(serve: Serve) -> None:
    server = await serve()
    await server.load("kitchen", KITCHEN)
    async with server.session.get(f"{server.url}/") as response:
        policy = response.headers["Content-Security-Policy"]
        assert response.content_type == "text/html"
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy
    assert "https://kitchen.example" in policy.split("img-src", 1)[1].split(";", 1)[0]


@pytest.mark.parametrize(
    "path",
    ["/static/../core/app.py", "/static/%2e%2e/README.md", "/static/..%2f..%2fetc/passwd", "/static/none.js"],
)
async def test_nothing_outside_the_pages_folder_is_served(serve: Serve, path: str) -> None:
    server = await serve()
    status, answer = await server.json("GET", path)
    assert (status, answer["error"]["code"]) == (404, "not_found")


async def test_wrong_method_and_unknown_path_are_json(serve: Serve) -> None:
    server = await serve()
    assert (await server.json("DELETE", "/ask"))[0] == 405
    status, answer = await server.json("GET", "/nowhere")
    assert (status, answer["error"]["code"]) == (404, "not_found")


async def test_body_that_is_too_large_is_refused(serve: Serve) -> None:
    server = await serve(server={"max_body_mb": 0.01})
    status, answer = await server.json("POST", "/ask", json={"query": "a", "prev": ["x" * 7000] * 3})
    assert (status, answer["error"]["code"]) == (413, "too_large")
