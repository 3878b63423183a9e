"""Tags as they are read, kept and asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config

from core.database import documents, make_engine, migrate
from core.errors import BadQuery
from core.tags import MAX_TAGS, fits, groups, read, shown


@pytest.mark.parametrize(
    ("given", "tags"),
    [
        ((), ()),
        ([], ()),
        ({}, ()),
        ("course:main", ("course:main",)),
        ("url:https://e.example:80/", ("url:https://e.example:80/",)),
        (" course : main ", ("course:main",)),
        (["diet:vegan", "course:main", "diet:vegan"], ("course:main", "diet:vegan")),
        ({"course": "main"}, ("course:main",)),
        ({"course": ["side", "main"], "diet": "vegan"}, ("course:main", "course:side", "diet:vegan")),
        (
            [{"course": "main"}, "course:side", {"diet": ["vegan"]}],
            ("course:main", "course:side", "diet:vegan"),
        ),
        ({"course": []}, ()),
        ("Ort:Città", ("Ort:Città",)),
    ],
)
def test_every_form_is_read_to_the_same_sorted_tags(given: Any, tags: tuple[str, ...]) -> None:
    assert read(given) == tags
    assert read(shown(tags)) == tags


@pytest.mark.parametrize(
    "given",
    [
        "main",
        "course:",
        ":main",
        "__site:x",
        " __site:x",
        {"__document_id": "x"},
        {"a:b": "c"},
        {"": "c"},
        {"year": 2024},
        {"year": [None]},
        {"course": {"deep": "x"}},
        [["course:main"]],
        [5],
        5,
        None,
        "a:b\0c",
        "a\nb:c",
        "a:\udcff",
        "n" * 101 + ":x",
        "n:" + "x" * 501,
        [f"n:{value}" for value in range(MAX_TAGS + 1)],
    ],
)
def test_what_is_no_tag_is_refused(given: Any) -> None:
    with pytest.raises(BadQuery) as caught:
        read(given)
    assert caught.value.field == "tags"


@pytest.mark.parametrize(
    ("wanted", "passes"),
    [
        ([], True),
        ([{"course": ["main"]}], True),
        ([{"course": ["dessert", "main"]}], True),
        ([{"course": ["dessert"]}], False),
        ([{"course": ["main"], "diet": ["vegan"]}], True),
        ([{"course": ["main"], "diet": ["meat"]}], False),
        ([{"diet": ["meat"]}, {"course": ["side"]}], True),
        ([{"Course": ["main"]}], False),
        ([{"course": ["Main"]}], False),
        ([{}], False),
        ([{"course": []}], False),
    ],
)
def test_one_object_must_hold_whole_with_any_value_of_each_name(
    wanted: list[dict[str, list[str]]], passes: bool
) -> None:
    assert fits(("course:main", "course:side", "diet:vegan"), wanted) is passes


def test_without_tags_a_document_passes_no_filter_but_none() -> None:
    assert fits((), [])
    assert not fits((), [{"course": ["main"]}])


def test_the_stores_filter_has_a_group_for_each_object_and_a_condition_for_each_name() -> None:
    assert groups([{"course": ["main", "side"], "diet": ["vegan"]}, {"url": ["a:b"]}]) == [
        [("tags", ["course:main", "course:side"]), ("tags", ["diet:vegan"])],
        [("tags", ["url:a:b"])],
    ]
    assert groups([]) == []


@pytest.mark.both_databases
def test_a_database_of_before_gets_documents_without_tags(tmp_path: Path, database_url: str | None) -> None:
    engine = make_engine(database_url, tmp_path)
    migrate(engine)
    row = {"site": "s", "document_id": "d", "version": "v", "url": "u", "host": "h", "name": "n", "types": []}
    row |= {"language": "", "item": b"{}", "file": "", "chunks": 1, "updated_at": 0.0}
    config = Config()
    config.set_main_option("script_location", "core:migrations")
    with engine.begin() as connection:
        connection.execute(sa.insert(documents).values(**row, tags=["a:b"], tags_filed=False))
        config.attributes["connection"] = connection
        command.downgrade(config, "0004")
    assert "tags" not in {column["name"] for column in sa.inspect(engine).get_columns("documents")}
    migrate(engine)
    with engine.connect() as connection:
        kept = connection.execute(sa.select(documents)).one()
    engine.dispose()
    assert (kept.name, kept.tags, kept.tags_filed) == ("n", [], True)
