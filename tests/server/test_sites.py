"""`/sites`: what can be asked, as NLWeb's clients read it."""

from __future__ import annotations

import json

from tests.conftest import KITCHEN, Serve, Served, recipe


async def both(server: Served) -> list[dict[str, object]]:
    await server.load("trattoria", KITCHEN)
    await server.load("garage", [recipe("tyre", "Changing a tyre", "Loosen the wheel nuts.")])
    async with server.session.get(f"{server.url}/sites?streaming=true") as response:
        assert response.status == 200
        assert response.content_type == "text/event-stream"
        assert response.headers["X-Accel-Buffering"] == "no"
        lines = (await response.text()).splitlines()
    return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]


async def test_streamed_it_is_one_event_that_says_the_same(serve: Serve) -> None:
    server = await serve()
    (event,) = await both(server)
    assert event["message-type"] == "sites"
    assert event["sites"] == ["garage", "trattoria"]
    for streaming in ("", "?streaming=false", "?streaming=0"):
        assert await server.json("GET", f"/sites{streaming}") == (200, event)


async def test_a_site_comes_with_its_description_and_examples(serve: Serve) -> None:
    server = await serve()
    (event,) = await both(server)
    garage, trattoria = event["details"]  # type: ignore[misc]
    assert trattoria["description"].startswith("Ligurian home cooking")
    assert "Which soup comes from La Spezia?" in trattoria["examples"]
    assert (garage["description"], garage["examples"], garage["documents"]) == ("", [], 1)


async def test_what_is_neither_yes_nor_no_is_refused(serve: Serve) -> None:
    server = await serve()
    status, told = await server.json("GET", "/sites?streaming=maybe")
    assert (status, told["error"]["field"]) == (400, "streaming")
