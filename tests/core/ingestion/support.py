"""Reading in tests: from bytes or from the shared cases, and what came of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from core.ingestion.items import NotLoaded, Read, SourceItem
from core.ingestion.sources import discover, read_source, uploaded

CASES = Path(os.environ.get("ASKABLE_CASES", Path(__file__).resolve().parents[4] / "shared" / "cases"))


def case(path: str) -> Path:
    """A file of the shared cases; the test is skipped where they are not there."""
    file = CASES / path
    if not file.exists():
        pytest.skip(f"the shared cases are not at {CASES} (set ASKABLE_CASES)")
    return file


def read_file(path: Path) -> list[Read]:
    return [read for source in discover([str(path)]) for read in read_source(source)]


def read_bytes(name: str, data: bytes | str) -> list[Read]:
    return list(read_source(uploaded(name, data.encode() if isinstance(data, str) else data)))


def items(reads: list[Read]) -> list[SourceItem]:
    return [read for read in reads if isinstance(read, SourceItem)]


def rest(reads: list[Read]) -> list[NotLoaded]:
    return [read for read in reads if isinstance(read, NotLoaded)]


def page(*blocks: str, head: str = "", body: str = "") -> str:
    """An HTML page with these JSON-LD blocks."""
    scripts = "".join(f'<script type="application/ld+json">{block}</script>' for block in blocks)
    return f"<!doctype html><html lang='en'><head>{head}{scripts}</head><body>{body}</body></html>"
