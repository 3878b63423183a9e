"""Where NLWeb's own files are, and a small way to write prompt files."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from core.prompting import ParsedFile, PromptLibrary, parse_bytes

# The machine may be busy: how long an example takes is no failure.
settings.register_profile("prompting", deadline=None)
settings.load_profile("prompting")

ROOT = Path(__file__).resolve().parents[3]
CASES = Path(os.environ.get("ASKABLE_CASES", ROOT.parent / "shared" / "cases"))


@pytest.fixture
def nlweb() -> Path:
    """NLWeb's published prompt files: third-party material, read where it stands."""
    folder = CASES / "nlweb"
    if not folder.is_dir():
        pytest.skip(f"no {folder}: set ASKABLE_CASES to the folder of cases")
    return folder


@pytest.fixture
def shipped() -> PromptLibrary:
    return PromptLibrary.load(ROOT / "site_types.xml", [ROOT / "prompts"])


@pytest.fixture
def parse() -> Callable[[str], ParsedFile]:
    return lambda text: parse_bytes(text.encode(), "p.xml")
