"""The page that shows results as cards inside an MCP client (MCP Apps, SEP-1865, revision 2026-01-26)."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Final

URI: Final = "ui://askable/results.html"
MIME_TYPE: Final = "text/html;profile=mcp-app"
# No `csp`: the page loads nothing and connects to nothing, which is what a host then enforces.
META: Final[dict[str, Any]] = {"ui": {"prefersBorder": False}}


@cache
def page() -> str:
    """The HTML document, which is whole in itself."""
    return Path(__file__).with_name("cards.html").read_text(encoding="utf-8")
