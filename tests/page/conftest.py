"""A real browser for the page's tests: the system's Chromium, never a downloaded one."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web
from aiohttp.test_utils import TestServer
from playwright.async_api import Browser, Page, async_playwright

from tests.conftest import Serve, serving

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


NewPage = Callable[..., Awaitable[Page]]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    """One for all tests of a module, as its start takes longer than most of them. Tests ask for `page` or
    `new_page`: what those open is another visitor's each time, and closed behind the test."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("the page's tests need Chromium (Debian package: chromium)")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield browser
        await browser.close()


@asynccontextmanager
async def watched_page(browser: Browser, **options: Any) -> AsyncIterator[Page]:
    """A page in a context of its own (cookies, storage, cache), of desktop size unless the `options` of that
    say otherwise. An uncaught error in any script fails the test."""
    context = await browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
    try:
        page = await context.new_page()
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        yield page
    finally:
        await context.close()
    assert errors == []


@pytest_asyncio.fixture(loop_scope="module")
async def new_page(browser: Browser) -> AsyncIterator[NewPage]:
    """Opens pages, each as another visitor; keyword arguments are options of its context."""
    async with AsyncExitStack() as stack:

        async def opened(**options: Any) -> Page:
            return await stack.enter_async_context(watched_page(browser, **options))

        yield opened


@pytest_asyncio.fixture(loop_scope="module")
async def page(new_page: NewPage) -> Page:
    return await new_page()


@pytest_asyncio.fixture(loop_scope="module")
async def serve(tmp_path: Path) -> AsyncIterator[Serve]:
    """The `serve` of all tests, in the loop of the browser."""
    async with serving(tmp_path) as start:
        yield start


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shell(browser: Browser) -> AsyncIterator[Page]:
    """An empty document beside the page's modules, for tests of single modules; one for all of them."""

    async def empty(_: web.Request) -> web.Response:
        return web.Response(text="<!doctype html><title>modules</title>", content_type="text/html")

    app = web.Application()
    app.router.add_get("/", empty)
    app.router.add_static("/static", STATIC)
    async with TestServer(app) as server, watched_page(browser) as page:
        await page.goto(str(server.make_url("/")))
        yield page
