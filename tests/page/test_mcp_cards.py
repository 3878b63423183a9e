"""The page of cards inside a host, as MCP clients show it: in a sandboxed frame, under the host's policy."""

from __future__ import annotations

import html
from typing import Any

import pytest
from playwright.async_api import Page, expect

from server.mcp import cards

pytestmark = pytest.mark.asyncio(loop_scope="module")  # the browser's

POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; media-src 'self' data:; connect-src 'none'"
)
# A host: it answers `ui/initialize`, keeps what else the frame says, and can tell it something.
HOST = """
<!doctype html><title>host</title>
<iframe sandbox="allow-scripts" style="width: 600px; height: 400px" srcdoc="{page}"></iframe>
<script>
  const frame = document.querySelector("iframe").contentWindow;
  window.said = [];
  window.tell = (message) => frame.postMessage({{ jsonrpc: "2.0", ...message }}, "*");
  window.addEventListener("message", (event) => {{
    said.push(event.data);
    if (event.data.method === "ui/initialize")
      tell({{ id: event.data.id, result: {{ protocolVersion: "2026-01-26", hostCapabilities: {{}},
        hostInfo: {{ name: "host", version: "1" }},
        hostContext: {{ theme: "dark",
          styles: {{ variables: {{ "--color-text-primary": "rgb(1, 2, 3)" }} }} }}
      }} }});
    if (event.data.method === "ui/open-link") tell({{ id: event.data.id, result: {{}} }});
  }});
</script>
"""
EVIL = "<img src=x onerror=\"document.title='owned'\"><b>bold</b>"


async def hosted(page: Page) -> None:
    policy = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    document = cards.page().replace("<head>", f"<head>{policy}")
    await page.set_content(HOST.format(page=html.escape(document)))
    await page.wait_for_function("said.some((one) => one.method === 'ui/notifications/initialized')")


async def tell(page: Page, method: str, params: dict[str, Any]) -> None:
    await page.evaluate("([method, params]) => tell({ method, params })", [method, params])


async def test_results_become_cards_whose_texts_are_only_text(page: Page) -> None:
    await hosted(page)
    results = [
        {"id": "kitchen/a", "title": "Beef stew", "url": "https://k.example/a", "text": "Fits.", "score": 80},
        {"id": "kitchen/b", "title": EVIL, "url": "javascript:alert(1)", "text": EVIL, "site": "kitchen"},
        "no object",
    ]
    await tell(
        page, "ui/notifications/tool-result", {"content": [], "structuredContent": {"results": results}}
    )
    frame = page.frame_locator("iframe")
    await expect(frame.locator("article")).to_have_count(2)
    await expect(frame.locator("article").nth(0).locator(".site")).to_have_text("kitchen")
    await expect(frame.locator("article").nth(1).locator("h2")).to_have_text(EVIL)
    await expect(frame.locator("article").nth(1).locator("a")).to_have_count(0)
    await expect(frame.locator("article b, article img")).to_have_count(0)
    await expect(frame.locator("#state")).to_be_hidden()


async def test_a_link_is_opened_by_the_host(page: Page) -> None:
    await hosted(page)
    result = {"id": "k/a", "title": "Stew", "url": "https://k.example/a", "text": ""}
    await tell(page, "ui/notifications/tool-result", {"structuredContent": {"results": [result]}})
    await page.frame_locator("iframe").get_by_role("link", name="Stew").click()
    await page.wait_for_function("said.some((one) => one.method === 'ui/open-link')")
    asked = await page.evaluate("said.find((one) => one.method === 'ui/open-link').params")
    assert asked == {"url": "https://k.example/a"}


async def test_failures_nothing_found_and_waiting_are_said(page: Page) -> None:
    await hosted(page)
    state = page.frame_locator("iframe").get_by_role("status")
    await expect(state).to_have_text("Waiting for results…")
    await tell(page, "ui/notifications/tool-input", {"arguments": {"query": "stew"}})
    await expect(state).to_have_text("Searching…")
    failed = {"isError": True, "content": [{"type": "text", "text": "the model is busy"}]}
    await tell(page, "ui/notifications/tool-result", failed)
    await expect(state).to_have_text("the model is busy")
    await tell(page, "ui/notifications/tool-result", {"structuredContent": {"results": []}})
    await expect(state).to_have_text("Nothing was found.")


async def test_it_takes_the_hosts_colours_and_tells_its_size_and_end(page: Page) -> None:
    await hosted(page)
    body = page.frame_locator("iframe").locator("body")
    await expect(body).to_have_css("color", "rgb(1, 2, 3)")
    await page.wait_for_function("said.some((one) => one.method === 'ui/notifications/size-changed')")
    await page.evaluate("tell({ id: 77, method: 'ui/resource-teardown', params: { reason: 'done' } })")
    await page.wait_for_function("said.some((one) => one.id === 77 && one.result)")
