"""Finding files, telling their kinds, and reading lines."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from core.ingestion import sources
from core.ingestion.items import NotLoaded, SourceItem
from core.ingestion.sources import discover, read_source
from tests.core.ingestion.support import items, page, read_bytes, rest

SOUP = json.dumps({"@type": "Recipe", "name": "Soup", "description": "Warm.", "url": "https://e.com/soup"})


def names(given: list[str]) -> list[str]:
    return [source.name for source in discover(given)]


def load(*given: str) -> list[SourceItem]:
    return items([read for source in discover(given) for read in read_source(source)])


# ---------------------------------------------------------------- finding


def test_folder_is_read_to_the_bottom_in_order_without_hidden_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("b.html", "a/z.html", "a/c.html", ".git/x.html", ".hidden.html", "a/style.css"):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text(page(body=f"<h1>{name}</h1><p>text</p>"))
    found = list(discover([str(tmp_path)]))
    assert [source.address for source in found] == [
        "file:b.html",
        "file:a/c.html",
        "file:a/style.css",
        "file:a/z.html",
    ]
    reads = [read for source in found for read in read_source(source)]
    assert [item.name for item in items(reads)] == ["b.html", "a/c.html", "a/z.html"]
    assert [(read.outcome, read.reason) for read in rest(reads)] == [("skipped", "not content (css)")]


def test_each_file_is_read_once_and_equal_names_stay_apart(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "index.html").write_text(page(body=f"<h1>{folder}</h1><p>text</p>"))
    given = [str(tmp_path / "one"), str(tmp_path / "*" / "index.html"), str(tmp_path / "two" / "index.html")]
    assert [item.name for item in load(*given)] == ["one", "two"]
    files = [str(tmp_path / folder / "index.html") for folder in ("one", "two")]
    assert len({item.key for item in load(*files)}) == 2


def test_pattern_finds_below_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x" / "y").mkdir(parents=True)
    (tmp_path / "x" / "y" / "soup.json").write_text(SOUP)
    assert [item.name for item in load(str(tmp_path / "**" / "*.json"))] == ["Soup"]
    assert [source.address for source in discover([str(tmp_path / "**" / "*.json")])] == [
        "file:x/y/soup.json"
    ]


def test_what_is_not_there_is_said_and_the_rest_loads(tmp_path: Path) -> None:
    (tmp_path / "soup.json").write_text(SOUP)
    (tmp_path / "empty").mkdir()
    missing, pattern, empty, web = (
        "no/such/file",
        str(tmp_path / "*.xyz"),
        str(tmp_path / "empty"),
        "https://e.com/a",
    )
    given = [missing, pattern, empty, web, str(tmp_path / "soup.json"), "bad\x00name"]
    reads = [read for source in discover(given) for read in read_source(source)]
    assert [item.name for item in items(reads)] == ["Soup"]
    problems = {read.source: read.reason for read in rest(reads)}
    assert set(problems) == {missing, pattern, empty, web, "bad\x00name"}
    assert "save the page and load the file" in problems[web]
    assert {read.outcome for read in rest(reads)} == {"failed"}


def test_standard_input_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = "\n".join(f'https://e.com/{n}\t{{"name": "N{n}"}}' for n in range(5000))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines.encode())))
    found = load("-")
    assert len(found) == 5000
    assert found[4999].source == "standard input:5000"


# ---------------------------------------------------------------- kinds


@pytest.mark.parametrize(
    ("name", "data", "count"),
    [
        ("page", "  \n<!DOCTYPE html><title>Soup</title><p>Warm.", 1),
        ("page.txt", "<html><title>Soup</title><p>Warm.", 1),
        ("soup", SOUP, 1),
        ("soup.json", json.dumps([json.loads(SOUP), {"@type": "Recipe", "name": "Stew"}], indent=2), 2),
        ("lines.json", f"{SOUP}\n{SOUP.replace('soup', 'stew')}\n", 2),
        ("lines.txt", f"https://e.com/soup\t{SOUP}", 1),
        ("bom.json", "\ufeff" + SOUP, 1),
        ("crlf.jsonl", f"{SOUP}\r\n\r\n{SOUP}\r\n", 2),
    ],
)
def test_kind_is_told_by_content_and_name(name: str, data: str, count: int) -> None:
    reads = read_bytes(name, data)
    assert len(items(reads)) == count
    assert rest(reads) == []


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("a.pdf", b"%PDF-1.7 ...", "PDF"),
        ("page.html", b"PK\x03\x04xxxx", "ZIP or Office"),
        ("a.jsonl", b"\x1f\x8b\x08\x00", "gzip"),
        ("a.bin", b"abc\x00def", "binary"),
        (
            "feed.xml",
            b"<?xml version='1.0'?><rss version='2.0'><channel><title>x</title></channel></rss>",
            "xml",
        ),
        ("a.csv", b"url,name\n1,2\n", "csv"),
        ("notes", b"just words", "plain text"),
    ],
)
def test_other_kinds_are_refused_by_name(name: str, data: bytes, words: str) -> None:
    (read,) = rest(read_bytes(name, data))
    assert read.outcome == "failed"
    assert read.reason.startswith("kind not supported yet")
    assert words in read.reason


@pytest.mark.parametrize("data", [b"", b" \r\n\t", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n"])
def test_empty_file_is_skipped(data: bytes) -> None:
    for name in ("a.html", "a.jsonl", "a.json", "a"):
        (read,) = rest(read_bytes(name, data))
        assert (read.reason, read.outcome) == ("the file is empty", "skipped")


def test_broken_json_file_names_the_place() -> None:
    (read,) = rest(read_bytes("a.json", '{\n "name": oops}'))
    assert (read.source, read.outcome) == ("a.json:2:10", "failed")


def test_file_over_the_limit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MAX_BYTES", 100_000)
    (tmp_path / "big.html").write_text("<html>" + "x" * 100_000)
    (tmp_path / "big.jsonl").write_text(f"{SOUP}\n" * 2000)
    reads = [read for source in discover([str(tmp_path)]) for read in read_source(source)]
    assert len(items(reads)) == 2000
    assert [read.reason.split()[0] for read in rest(reads)] == ["larger"]


# ---------------------------------------------------------------- lines


def test_lines_with_and_without_an_address_arrays_and_graphs() -> None:
    lines = [
        'https://e.com/1\t{"@type": "Recipe", "name": "One", "url": "https://other.com/x"}',
        '{"@type": "Recipe", "name": "Two", "url": "https://e.com/2"}',
        '{"name": "Three", "@id": "https://e.com/3"}',
        '{"name": "Four", "identifier": "https://e.com/4"}',
        'https://e.com/5\t[{"@type": "Recipe", "name": "Five"}, {"@type": "BreadcrumbList"}]',
        '{"@graph": [{"@type": "Recipe", "name": "Six", "url": "https://e.com/6"}]}',
        'https://e.com/7\t{"name": "Seven"}\t[0.1, 0.2]',
        '{"name": "Eight"}',
        '{"name": "Eight", "text": "another"}',
    ]
    reads = read_bytes("r.jsonl", "\n".join(lines))
    found = items(reads)
    assert [item.name for item in found] == [
        "One",
        "Two",
        "Three",
        "Four",
        "Five",
        "Six",
        "Seven",
        "Eight",
        "Eight",
    ]
    assert [item.url for item in found[:7]] == [f"https://e.com/{n}" for n in range(1, 8)]
    assert [item.url for item in found[7:]] == ["file:r.jsonl#eight", "file:r.jsonl#eight-2"]
    assert found[7].source == "r.jsonl:8"
    assert [read.reason for read in rest(reads)] == ["page furniture (BreadcrumbList)"]


def test_bad_lines_are_named_and_the_rest_loads() -> None:
    lines = [
        SOUP.encode(),
        b"{oops",
        b"https://e.com/x\tnot json",
        b'{"name": "\xff"}',
        b'javascript:x\t{"name": "N"}',
    ]
    lines += [
        b"12",
        '{"name": "Café", "url": "https://e.com/café"}'.encode(),
        SOUP.replace("soup", "stew").encode(),
    ]
    reads = read_bytes("r.jsonl", b"\n".join(lines))
    assert [item.url for item in items(reads)] == [
        "https://e.com/soup",
        "https://e.com/café",
        "https://e.com/stew",
    ]
    failed = {read.source: read.reason for read in rest(reads) if read.outcome == "failed"}
    assert set(failed) == {f"r.jsonl:{n}" for n in (2, 3, 4, 5, 6)}
    assert "not utf-8" in failed["r.jsonl:4"]
    assert "column 2" in failed["r.jsonl:2"]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
def test_lines_in_wide_charsets(encoding: str) -> None:
    text = "\n".join(f'{{"name": "Šaláda {n} 蓝 \\u0a0a"}}' for n in range(50))
    data = text.encode(encoding)
    data = b"\xff\xfe" + data if encoding == "utf-16-le" else data
    assert [item.name for item in items(read_bytes("w.jsonl", data))][49] == "Šaláda 49 蓝 \u0a0a"


def test_lines_of_an_old_charset_are_read() -> None:
    lines = "\n".join('{"name": "Курица с сыром пармезан, запечённая в духовке"}' for _ in range(20))
    found = items(read_bytes("w.jsonl", lines.encode("cp1251")))
    assert {item.name for item in found} == {"Курица с сыром пармезан, запечённая в духовке"}


def test_line_that_is_too_long_is_skipped_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.ingestion.jsonl.MAX_LINE", 1000)
    reads = read_bytes("r.jsonl", f'{{"name": "{"x" * 5000}"}}\n{SOUP}\n')
    assert [item.name for item in items(reads)] == ["Soup"]
    assert [read.source for read in rest(reads)] == ["r.jsonl:1"]


def test_a_file_has_one_address_and_its_namesake_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("pages", "other"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "plain.html").write_text(page(body="<h1>x</h1>"))
    ways = [["pages"], [str(tmp_path / "pages")], ["pages/plain.html"], ["page*/*.html"]]
    assert {source.address for way in ways for source in discover(way)} == {"file:pages/plain.html"}
    assert [source.address for source in discover(["."])] == [
        "file:other/plain.html",
        "file:pages/plain.html",
    ]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    (outside,) = discover([str(tmp_path / "pages")])
    assert outside.address == "file:pages/plain.html"


def test_what_lies_about_in_a_folder_is_passed_over_but_fails_when_named(tmp_path: Path) -> None:
    (tmp_path / "robots.txt").write_text("User-agent: *")
    (found,) = [read for source in discover([str(tmp_path)]) for read in read_source(source)]
    (named,) = [read for source in discover([str(tmp_path / "robots.txt")]) for read in read_source(source)]
    assert isinstance(found, NotLoaded)
    assert isinstance(named, NotLoaded)
    assert (found.outcome, named.outcome) == ("skipped", "failed")
