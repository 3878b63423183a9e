"""The published schemas are those of the code, and they refuse what is not on the wire."""

from __future__ import annotations

import json
from typing import Any, get_args

import jsonschema_rs
import pytest

from core.messages import Header, Message
from server.wire.request import PLACES
from server.wire.schemas import of_type, schemas, written
from tests.conftest import ROOT
from tests.events import check, validator

FOLDER = ROOT / "docs" / "schemas"


@pytest.mark.parametrize("name", schemas())
def test_published_schema_is_made_from_the_code(name: str) -> None:
    published = (FOLDER / name).read_text(encoding="utf-8")
    assert published == written(schemas()[name]), "run: python -m server.wire.schemas docs/schemas"
    jsonschema_rs.meta.validate(json.loads(published))


def test_nothing_else_is_published() -> None:
    assert {path.name for path in FOLDER.iterdir()} == set(schemas())


def test_every_message_has_its_definition() -> None:
    defined = schemas()["legacy.json"]["$defs"]
    assert {kind.type for kind in get_args(Message)} <= set(defined)
    assert Header.type in defined


@pytest.mark.parametrize(
    "wrong",
    [
        {"message_type": "summary", "query_id": "q"},
        {"message_type": "summary", "message": "x"},
        {"message_type": "summary", "message": 5, "query_id": "q"},
        {"message_type": "summary", "message": "x", "query_id": "q", "more": 1},
        {"message_type": "result_batch", "results": [{"url": "x"}], "query_id": "q"},
        {"message_type": "complete", "query_id": "q"},
        {"message": "x", "query_id": "q"},
        {"message_type": "no_results", "message": "x", "reason": "because", "query_id": "q"},
    ],
)
def test_wrong_frames_are_refused(wrong: dict[str, Any]) -> None:
    assert not validator("legacy").is_valid(wrong)


def test_a_configured_header_is_a_frame_of_its_own_name() -> None:
    check("legacy", {"message_type": "data_retention", "content": "none", "query_id": "q"})


def test_a_type_without_a_schema_is_an_error_and_not_a_gap() -> None:
    with pytest.raises(TypeError):
        of_type(complex)


def test_request_schema_has_every_place_and_refuses_unknown_keys_under_query() -> None:
    schema = schemas()["structured-request.json"]
    for place in PLACES:
        at = schema
        for step in place.split("."):
            at = at["properties"][step]
    request = jsonschema_rs.Draft202012Validator(schema)
    assert request.is_valid({"query": {"text": "soup", "max_results": 3}, "meta": {"anything": 1}})
    for wrong in (
        {},
        {"query": {}},
        {"query": {"text": ""}},
        {"query": {"text": "soup", "colour": "red"}},
        {"query": {"text": "soup"}, "prefer": {"response_format": "poem"}},
        {"query": {"text": "soup", "max_results": 101}},
    ):
        assert not request.is_valid(wrong), wrong
