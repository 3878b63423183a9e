"""Real pages and JSON-LD files, against what is known of each."""

from __future__ import annotations

import csv
from collections.abc import Mapping

import pytest

from core.ingestion import urls
from core.ingestion.items import NotLoaded, Read, SourceItem
from core.ingestion.text import plain
from tests.core.ingestion.support import CASES, case, items, read_file, rest


def _rows(kind: str) -> list[dict[str, str]]:
    index = CASES / "pages" / "index.csv"
    if not index.exists():
        return []
    with index.open(encoding="utf-8", newline="") as lines:
        return [row for row in csv.DictReader(lines) if row["file"].startswith(f"{kind}/")]


def _params(kind: str) -> list[object]:
    rows = [pytest.param(row, id=row["file"]) for row in _rows(kind)]
    missing = pytest.param({}, marks=pytest.mark.skip(reason=f"the shared cases are not at {CASES}"))
    return list(rows or [missing])


def _is_node(read: Read) -> bool:
    """Whether a read stands for a top-level node, not for a broken block or a page without content."""
    if isinstance(read, SourceItem):
        return True
    return bool(read.what) and not read.what.startswith("JSON-LD block")


def _first_type(read: Read) -> str:
    if isinstance(read, SourceItem):
        return read.types[0]
    return read.what.split(":")[0].split(",")[0]


@pytest.mark.parametrize("row", _params("recipes"))
def test_recipe_page_gives_the_expected_items_and_no_others(row: Mapping[str, str]) -> None:
    found = items(read_file(case(f"pages/{row['file']}")))
    kind = row["expect_type"].split()[0]
    assert len(found) == int(row["expect_count"])
    assert all(kind in item.types for item in found)
    assert [item.name for item in found] == [row["expect_name"]] * len(found)
    assert len({item.key for item in found}) == len(found)
    if row["expect_url"].startswith("http"):
        assert found[0].url == row["expect_url"]
    else:  # the page's own address is the full one, the table's a host
        assert row["expect_url"] in found[0].url
    assert all(item.text for item in found)
    assert found[0].language in {"", row["lang"]} or row["lang"] == "??"


@pytest.mark.parametrize("row", _params("recipes"))
def test_every_ingredient_of_a_recipe_is_in_its_text(row: Mapping[str, str]) -> None:
    first = items(read_file(case(f"pages/{row['file']}")))[0]
    given = first.schema_object.get("recipeIngredient", [])
    ingredients = given if isinstance(given, list) else [given]
    if row["expect_ingredients"]:
        assert len(ingredients) == int(row["expect_ingredients"])
    for ingredient in ingredients:
        for line in plain(ingredient).split("\n"):
            assert line in first.text


@pytest.mark.parametrize("row", _params("jsonld"))
def test_every_top_level_node_is_an_item_or_has_a_reason(row: Mapping[str, str]) -> None:
    reads = [read for read in read_file(case(f"pages/{row['file']}")) if _is_node(read)]
    assert len(reads) == int(row["expect_count"])
    if row["expect_type"] not in {"None", "microdata items 1"}:  # these name no type
        expected = row["expect_type"].split(";") if row["expect_type"] else []
        assert [_first_type(read) for read in reads] == expected
    assert all(read.reason for read in rest(reads))
    if row["expect_name"]:
        assert row["expect_name"] in {item.name for item in items(reads)}
    if row["expect_url"]:
        assert any(urls.same_page(item.url, row["expect_url"]) for item in items(reads))


def test_broken_block_is_reported_with_its_place_and_the_page_stays() -> None:
    reads = read_file(case("pages/recipes/bodybuilding.com.html"))
    (problem,) = [read for read in rest(reads) if read.what == "JSON-LD block 1"]
    assert problem.outcome == "skipped"
    assert "no valid JSON" in problem.reason
    assert problem.source.rsplit(":", 2)[1:] == ["366", "284"]
    (page,) = items(reads)
    assert page.types == ("WebPage",)
    assert "wild rice" in page.text


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("xiachufang-gb18030.html", "蓝莓慕斯巴斯克"),
        ("cookpad-shift_jis.html", "30分で簡単"),
        ("cook-talk-windows-1251.html", "Курица с сыром пармезан"),
    ],
)
def test_text_in_an_old_charset_has_no_replacement_characters(file: str, words: str) -> None:
    (item,) = items(read_file(case(f"docs/{file}")))
    assert words in item.name
    assert "\ufffd" not in item.name + item.text + repr(item.schema_object)


@pytest.mark.parametrize(
    ("file", "outcome", "words"),
    [
        ("empty.txt", "skipped", "empty"),
        ("password.pdf", "failed", "kind not supported yet: PDF"),
        ("stanley-cups.xlsx", "failed", "kind not supported yet"),
        ("protectedFile.xlsx", "failed", "kind not supported yet"),
        ("codeblock.md", "failed", "kind not supported yet: md"),
    ],
)
def test_file_of_another_kind_is_named_with_its_reason(file: str, outcome: str, words: str) -> None:
    (read,) = read_file(case(f"docs/{file}"))
    assert isinstance(read, NotLoaded)
    assert read.source.endswith(file)
    assert read.outcome == outcome
    assert words in read.reason
