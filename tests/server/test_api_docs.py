"""What `docs/` says of the wire is what the code does: names, places, and every example."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import get_args

import pytest
from aiohttp.web import RouteDef

from core.errors import AskError
from core.messages import Message
from server.app import ROUTES
from server.wire import DIALECTS
from server.wire.request import PLACES
from tests.conftest import ROOT
from tests.events import check

API = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
NLWEB = (ROOT / "docs" / "nlweb.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```json (\S+)( whole)?\n(.*?)```", API, re.DOTALL)


@pytest.mark.parametrize(("dialect", "kind", "text"), EXAMPLES, ids=[a + b for a, b, _ in EXAMPLES])
def test_every_example_is_as_the_schema_says(dialect: str, kind: str, text: str) -> None:
    for line in text.strip().splitlines():
        check(dialect, json.loads(line), kind.strip() or None)


def test_every_dialect_has_its_example() -> None:
    assert {dialect for dialect, _, _ in EXAMPLES} == set(DIALECTS)


def test_every_parameter_is_documented_with_its_place() -> None:
    assert [name for name in PLACES.values() if f"`{name}`" not in API] == []
    assert [place for place in PLACES if f"`{place}`" not in API] == []


def test_no_message_is_described_twice() -> None:
    rows = re.findall(r"^\| `(\w+)` \| .*\|$", API[API.index("### Messages") : API.index("### Legacy")], re.M)
    assert [name for name, count in Counter(rows).items() if count > 1] == []


def test_every_path_is_documented() -> None:
    paths = {route.path for module in ROUTES for route in module.routes if isinstance(route, RouteDef)}
    words = {word for path in paths for word in path.strip("/").split("/") if word and "{" not in word}
    assert [word for word in sorted(words) if word not in API] == []
    whole = {path for path in paths if "{" not in path and path.count("/") == 1}
    assert [path for path in sorted(whole) if f"{path}" not in API] == []


def test_every_message_is_documented_and_compared() -> None:
    types = {kind.type for kind in get_args(Message)} - {"header"}
    assert [name for name in types if f"\n| `{name}` |" not in API] == []
    ours = {"used_memories", "nlws_delta", "forgotten", "debug"}
    assert [name for name in types - ours - {"memories"} if f"`{name}`" not in NLWEB] == []


def test_every_code_of_an_error_in_an_answer_is_documented() -> None:
    def codes(kind: type[AskError]) -> set[str]:
        return {kind.code}.union(*(codes(below) for below in kind.__subclasses__()))

    named = {code for code in codes(AskError) if code.startswith(("model_", "bad_", "site_", "not_"))}
    assert [code for code in named if f"`{code}`" not in API] == []
