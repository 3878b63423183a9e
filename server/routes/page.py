"""The chat page and its files, under a strict content security policy."""

from __future__ import annotations

from pathlib import Path

from aiohttp import web

from core.resources import static_dir
from server.auth import caller_of
from server.keys import DOCUMENTS

routes = web.RouteTableDef()

IMAGE_HOSTS = 100
TYPES = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".json": "application/json",
    ".txt": "text/plain",
}


@routes.get("/")
async def page(request: web.Request) -> web.StreamResponse:
    return await _file(request, static_dir() / "index.html")


@routes.get("/static/{path:.+}")
async def static(request: web.Request) -> web.StreamResponse:
    return await _file(request, static_dir() / request.match_info["path"])


async def _file(request: web.Request, path: Path) -> web.StreamResponse:
    resolved = _inside(path)
    if resolved is None:
        raise web.HTTPNotFound
    headers = {"Content-Type": TYPES[resolved.suffix] + "; charset=utf-8", "Cache-Control": "no-cache"}
    if resolved.suffix == ".html":
        headers |= {
            "Content-Security-Policy": _policy(await _hosts(request)),
            "Referrer-Policy": "no-referrer",
            "X-Frame-Options": "DENY",
        }
    return web.FileResponse(resolved, headers=headers)


async def _hosts(request: web.Request) -> list[str]:
    """The hosts of what whoever opens the page may see: nothing of others', not even where it is."""
    caller = caller_of(request)
    return await request.app[DOCUMENTS].hosts(caller.scope, IMAGE_HOSTS) if caller.may("read") else []


def _inside(path: Path) -> Path | None:
    """The file if it lies in the folder once links and dots are followed, and is of a kind we serve."""
    try:
        resolved = path.resolve()
    except ValueError:  # a NUL in it
        return None
    inside = resolved.is_relative_to(static_dir().resolve())
    return resolved if inside and resolved.suffix in TYPES and resolved.is_file() else None


def _policy(hosts: list[str]) -> str:
    """Everything from here, but images, which may come from the hosts of loaded sites."""
    images = " ".join(f"{scheme}://{host}" for host in hosts for scheme in ("https", "http"))
    return (
        "default-src 'self'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        f"img-src 'self' data: {images}; font-src 'self'; object-src 'none'; base-uri 'none'; "
        "form-action 'self'; frame-ancestors 'none'"
    )
