"""A hook as site owners ship it: an installed package with an entry point, made of one module."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from core.memory import ENTRY_POINTS


def install(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    code: str,
    *,
    entry: str = "crm",
    value: str = "crm_hook:Hook",
) -> None:
    """Install a package with this module, as an installer lays it out, for the length of the test."""
    module, _, _ = value.partition(":")
    path = folder.joinpath(*module.split(".")).with_suffix(".py")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(code, encoding="utf-8")
    about = folder / "crm_for_askable-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: crm-for-askable\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[{ENTRY_POINTS}]\n{entry} = {value}\n")
    (about / "RECORD").write_text(f"{path.relative_to(folder)},,\n")
    monkeypatch.syspath_prepend(str(folder))
    # Another test's module of the same name is not this one.
    parts = module.split(".")
    for n in range(len(parts)):
        sys.modules.pop(".".join(parts[: n + 1]), None)


KEEPS_ALL = """
from core.memory import Fact, Stored


class Hook:
    name = "the shop's file"

    def __init__(self):
        self.got = []
        self.kept = {}

    async def persist(self, detected):
        self.got.append(detected)
        memory_id = f"crm-{detected.nonce}"
        self.kept[memory_id] = detected
        return Stored(memory_id, detected.text)

    def _of(self, identity):
        return {key: fact for key, fact in self.kept.items() if fact.identity == identity}

    async def recall(self, query):
        return [Fact(key, fact.text) for key, fact in self._of(query.identity).items()]

    async def forget(self, identity, memory_id):
        return memory_id in self._of(identity) and bool(self.kept.pop(memory_id))

    async def export(self, identity):
        return [{"memory_id": key, "text": fact.text} for key, fact in self._of(identity).items()]

    async def erase(self, identity):
        gone = self._of(identity)
        for key in gone:
            del self.kept[key]
        return {"facts": len(gone)}
"""
