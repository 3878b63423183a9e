"""A real browser for the page's tests: the system's Chromium, never a downloaded one."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio
from aiohttp import web
from aiohttp.test_utils import TestServer
from playwright.async_api import Browser, Page, async_playwright

STATIC = Path(__file__).parents[2] / "static"
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # Names that a page's content brings along must not leave the machine.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
)


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("the page's tests need Chromium (Debian package: chromium)")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield browser
        await browser.close()


@asynccontextmanager
async def watched_page(browser: Browser) -> AsyncIterator[Page]:
    """A page of desktop size; an uncaught error in any script fails the test."""
    page = await browser.new_page(viewport={"width": 1280, "height": 800})
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield page
    await page.close()
    assert errors == []


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    async with chromium() as browser:
        yield browser


@pytest.fixture
async def page(browser: Browser) -> AsyncIterator[Page]:
    async with watched_page(browser) as page:
        yield page


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shell() -> AsyncIterator[Page]:
    """An empty document beside the page's modules, for tests of single modules; one for all of them."""

    async def empty(_: web.Request) -> web.Response:
        return web.Response(text="<!doctype html><title>modules</title>", content_type="text/html")

    app = web.Application()
    app.router.add_get("/", empty)
    app.router.add_static("/static", STATIC)
    async with TestServer(app) as server, chromium() as browser, watched_page(browser) as page:
        await page.goto(str(server.make_url("/")))
        yield page
