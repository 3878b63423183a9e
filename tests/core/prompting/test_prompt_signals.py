"""`<Recency>` and `<Distance>`: where they may stand, which one holds, and what is said of a wrong one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from lxml import etree

from core.prompting import ParsedFile, PromptLibrary, check
from core.signals import Signal
from tests.core.prompting.conftest import ROOT

Parse = Callable[[str], ParsedFile]
DAY = 86_400.0
RECENCY = '<Recency property="datePublished" halfLife="30d" weight="0.2"/>'
DISTANCE = '<Distance property="geo location" halfDistance="10km" weight="0.3"/>'
NEWS = Signal("Recency", ("datePublished",), 30 * DAY, 0.2)
NEAR = Signal("Distance", ("geo", "location"), 10.0, 0.3)


def in_site(inside: str, site: str = "news", more: str = "") -> str:
    return f'<root>\n<Site ref="{site}"{more}>\n{inside}\n</Site>\n</root>'


def library(*texts: str, tmp_path: Path) -> PromptLibrary:
    """A file a text, each in a folder of its own, over an empty base."""
    (tmp_path / "base.xml").write_text("<root/>")
    folders = []
    for number, text in enumerate(texts):
        folders.append(tmp_path / str(number))
        folders[-1].mkdir()
        (folders[-1] / "p.xml").write_text(text, encoding="utf-8")
    return PromptLibrary.load(tmp_path / "base.xml", folders)


def test_they_stand_in_a_site_in_a_type_and_in_the_open(parse: Parse) -> None:
    parsed = parse(
        f'<root xmlns="http://nlweb.ai/base">{RECENCY}<Event>{DISTANCE}</Event>'
        f'<Site ref="news">{DISTANCE}<NewsArticle>{RECENCY}</NewsArticle></Site></root>'
    )
    assert parsed.problems == ()
    assert [(one.site, one.item_type, one.signal) for one in parsed.signals] == [
        (None, "Thing", NEWS),
        (None, "Event", NEAR),
        ("news", "Thing", NEAR),
        ("news", "NewsArticle", NEWS),
    ]


@pytest.mark.parametrize(
    ("inside", "col", "what"),
    [
        ('<Recency halfLife="30d" weight="0.2"/>', 1, "needs a property"),
        (' <Recency property="datePublished" weight="0.2"/>', 2, 'halfLife="": a number'),
        ('<Recency property="datePublished" halfLife="30d"/>', 1, "needs a weight"),
        ('<Recency property="datePublisht" halfLife="30d" weight="1"/>', 1, "mean `datePublished`?"),
        ('<Recency property="name" halfLife="30d" weight="0.2"/>', 1, "no property that holds a date"),
        ('<Recency property="geo" halfLife="30d" weight="0.2"/>', 1, "no property that holds a date"),
        ('<Distance property="datePublished" halfDistance="1km" weight="0.2"/>', 1, "that holds a place"),
        ('<Distance property="a..geo" halfDistance="1km" weight="0.2"/>', 1, "that holds a place"),
        ('<Recency property="datePublished" halfLife="30" weight="0.2"/>', 1, 'halfLife="30": a number'),
        ('<Recency property="datePublished" halfLife="0d" weight="0.2"/>', 1, 'halfLife="0d": a number'),
        ('<Recency property="datePublished" halfLife="30km" weight="0.2"/>', 1, "h, d, w or y"),
        ('<Distance property="geo" halfDistance="30d" weight="0.2"/>', 1, "m, km or mi"),
        ('<Recency property="datePublished" halfLife="30d" weight="1"/>', 1, "from 0 to 0.9"),
        ('<Recency property="datePublished" halfLife="30d" weight="much"/>', 1, "from 0 to 0.9"),
        ('<Recency property="datePublished" halflife="30d" weight="0.2"/>', 1, "mean `halfLife`?"),
        ('<Distance property="geo" halfLife="30d" weight="0.2"/>', 1, "unknown attribute `halfLife`"),
        ('<Recency property="datePublished" halfLife="30d" weight="0.2">x</Recency>', 1, "stands directly"),
        (
            '<Recency property="datePublished" halfLife="30d" weight="0.2"><a/></Recency>',
            63,
            "nothing stands",
        ),
    ],
)
def test_a_wrong_one_is_named_with_its_place(parse: Parse, inside: str, col: int, what: str) -> None:
    parsed = parse(in_site(inside))
    assert not parsed.usable
    found = [p for p in parsed.problems if what in p.what]
    assert [(p.file, p.line, p.col, p.severity) for p in found] == [("p.xml", 3, col, "error")]


def test_a_second_one_at_one_place_is_named_and_holds(parse: Parse) -> None:
    other = RECENCY.replace("0.2", "0.4")
    parsed = parse(in_site(f"{RECENCY}\n{other}{DISTANCE}"))
    (problem,) = parsed.problems
    assert (problem.line, problem.severity) == (4, "warning")
    assert "also in line 3; the last one holds" in problem.what


def test_the_nearest_one_holds_for_a_type_and_each_kind_by_itself(tmp_path: Path) -> None:
    strong = RECENCY.replace("0.2", "0.5")
    held = library(
        in_site(f"{DISTANCE}<Article>{strong}</Article><Movie>{RECENCY}</Movie>"),
        f"<root>{RECENCY}</root>",
        tmp_path=tmp_path,
    )
    of_article = Signal("Recency", ("datePublished",), 30 * DAY, 0.5)
    assert set(held.signals("news", ["NewsArticle"])) == {of_article, NEAR}
    assert set(held.signals("news", ["Event"])) == {NEWS, NEAR}
    assert set(held.signals("news", ["Event", "Article"])) == {of_article, NEAR}
    assert set(held.signals("news", [])) == {NEWS, NEAR}
    assert held.signals("other", ["NewsArticle"]) == (NEWS,)


def test_a_site_takes_them_from_the_one_it_builds_on_and_can_switch_them_off(tmp_path: Path) -> None:
    held = library(
        in_site(RECENCY + DISTANCE),
        in_site("", "local", ' extends="news"'),
        in_site(RECENCY.replace("0.2", "0"), "archive", ' extends="news"'),
        tmp_path=tmp_path,
    )
    assert set(held.signals("local", ["Article"])) == {NEWS, NEAR}
    assert held.signals("archive", ["Article"]) == (NEAR,)
    assert held.signals("elsewhere", ["Article"]) == ()
    assert held.has_signals(["elsewhere", "local"])
    assert not held.has_signals(["elsewhere"])
    assert not held.has_signals([])


def test_a_later_layer_goes_before_an_earlier_one(tmp_path: Path) -> None:
    held = library(in_site(RECENCY), in_site(RECENCY.replace("30d", "1w")), tmp_path=tmp_path)
    assert held.signals("news", ["Article"]) == (Signal("Recency", ("datePublished",), 7 * DAY, 0.2),)


def test_a_file_with_nothing_else_is_used(tmp_path: Path) -> None:
    (tmp_path / "all.xml").write_text(f"<root>{RECENCY}</root>")
    (tmp_path / "news.xml").write_text(in_site(RECENCY))
    assert check([], [tmp_path], sites=["news"]) == []


def test_nlwebs_files_and_the_shipped_ones_have_none(shipped: PromptLibrary, nlweb: Path) -> None:
    assert not shipped.has_signals(["trattoria"])
    for path in sorted(nlweb.glob("*.xml")):
        assert not PromptLibrary.load(path, []).has_signals([""]), path.name


def test_the_schema_takes_what_is_read_and_refuses_what_is_not(parse: Parse) -> None:
    schema = etree.RelaxNG(etree.parse(ROOT / "docs" / "prompts.rng"))
    for good in (in_site(f"{RECENCY}<Event>{DISTANCE}</Event>{DISTANCE}"), f"<root>{RECENCY}</root>"):
        assert parse(good).problems == ()
        assert schema.validate(etree.fromstring(good)), schema.error_log
    for bad in (
        in_site('<Recency property="datePublished" halfLife="30" weight="0.2"/>'),
        in_site('<Recency property="datePublished" halfLife="30d" weight="1"/>'),
        in_site('<Distance property="geo" halfDistance="3d" weight="0.2"/>'),
        in_site('<Recency halfLife="30d" weight="0.2"/>'),
    ):
        assert not parse(bad).usable
        assert not schema.validate(etree.fromstring(bad))
