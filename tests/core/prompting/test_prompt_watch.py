"""Files that change: the good ones hold at once, of the bad ones the old; none touches another."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from core.errors import ConfigError
from core.prompting.watch import PromptFiles, places

ROOT = Path(__file__).resolve().parents[3]


def text(words: str, site: str = "shop", more: str = "") -> str:
    return (
        f'<root><Site ref="{site}"><Thing><Prompt ref="SummarizeResultsPrompt">'
        f"<promptString>{words} {{request.answers}}</promptString>"
        f'<returnStruc>{{"summary": "short"}}</returnStruc></Prompt>{more}</Thing></Site></root>'
    )


def write(path: Path, content: str) -> None:
    """As editors do that save in one step: a new file in the place of the old one."""
    beside = path.with_name(f".{path.name}")
    beside.write_text(content, encoding="utf-8")
    os.replace(beside, path)


def words(files: PromptFiles, site: str = "shop") -> str:
    prompt = files.current.find("SummarizeResultsPrompt", site)
    assert prompt is not None
    return prompt.text.split(" ")[0]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "prompts"
    folder.mkdir()
    write(folder / "shop.xml", text("first"))
    write(folder / "other.xml", text("other", "other"))
    return folder


@pytest.fixture
def base(tmp_path: Path) -> Path:
    path = tmp_path / "base.xml"
    path.write_text(
        '<root><Thing><Prompt ref="SummarizeResultsPrompt"><promptString>base {request.answers}'
        '</promptString><returnStruc>{"summary": "short"}</returnStruc></Prompt></Thing></root>'
    )
    return path


@pytest.fixture
def files(base: Path, folder: Path) -> PromptFiles:
    return PromptFiles([base], [folder])


def test_nothing_is_read_again_where_nothing_changed(files: PromptFiles) -> None:
    before = files.current
    assert files.look() == []
    assert files.current is before


@pytest.mark.parametrize("in_place", [True, False])
def test_a_good_change_holds_and_the_library_of_before_is_as_it_was(
    files: PromptFiles, folder: Path, in_place: bool
) -> None:
    before = files.current
    if in_place:
        (folder / "shop.xml").write_text(text("secnd"))  # of the same length
    else:
        write(folder / "shop.xml", text("secnd"))
    assert files.look() == [folder / "shop.xml"]
    assert words(files) == "secnd"
    old = before.find("SummarizeResultsPrompt", "shop")
    assert old is not None
    assert old.text.startswith("first")
    assert files.problems == ()


def test_a_bad_change_is_named_and_the_old_text_holds_until_it_is_mended(
    files: PromptFiles, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(folder / "shop.xml", text("second {request.qurey}"))
    files.look()
    assert words(files) == "first"
    (error,) = files.errors
    assert error.startswith(f"{folder / 'shop.xml'}:1:")
    assert "`{request.qurey}` (did you mean `request.query`?)" in error
    (record,) = [one for one in caplog.records if one.message == "prompts.refused"]
    assert error.startswith(record.where)
    files.look()
    assert len([one for one in caplog.records if one.message == "prompts.refused"]) == 1
    write(folder / "shop.xml", text("third"))
    files.look()
    assert (words(files), files.errors) == ("third", [])


def test_one_sites_bad_file_never_touches_another_site(files: PromptFiles, folder: Path) -> None:
    write(folder / "shop.xml", "<root><Site")
    write(folder / "other.xml", text("newer", "other"))
    files.look()
    assert (words(files, "shop"), words(files, "other")) == ("first", "newer")


def test_new_files_hold_and_deleted_ones_no_more(files: PromptFiles, folder: Path) -> None:
    write(folder / "third.xml", text("third", "third"))
    (folder / "other.xml").unlink()
    assert len(files.look()) == 2
    assert (words(files, "third"), words(files, "other")) == ("third", "base")


def test_a_bad_file_that_was_never_good_is_left_out_and_reported(base: Path, folder: Path) -> None:
    write(folder / "shop.xml", "<root>")
    files = PromptFiles([base], [folder])
    assert (words(files), words(files, "other")) == ("base", "other")
    assert len(files.errors) == 1


def test_the_base_file_can_change_but_not_break(files: PromptFiles, base: Path) -> None:
    write(base, base.read_text().replace(">base", ">basic"))
    files.look()
    assert words(files, "nobody") == "basic"
    write(base, "<root><Thing>")
    files.look()
    assert words(files, "nobody") == "basic"
    assert files.errors[0].startswith(f"{base}:1:")
    base.unlink()
    files.look()
    assert words(files, "nobody") == "basic"
    assert "cannot be read" in files.errors[0]


def test_a_base_file_that_is_bad_at_the_start_stops_it(base: Path, folder: Path) -> None:
    base.write_text("<root><Thing>")
    with pytest.raises(ConfigError, match=r"base\.xml:1:"):
        PromptFiles([base], [folder])


def test_a_folder_that_goes_away_takes_no_prompt_with_it(files: PromptFiles, folder: Path) -> None:
    gone = folder.rename(folder.with_name("elsewhere"))
    files.look()
    assert words(files) == "first"
    assert files.errors == [f"{folder}:1:1: cannot be read: No such file or directory"]
    gone.rename(folder)
    files.look()
    assert files.errors == []


def test_a_file_that_lost_its_variable_by_anothers_change_stays_in_force_and_is_named(
    base: Path, folder: Path
) -> None:
    step = (
        '<Step ref="Season" sets="request.season"><promptString>x</promptString>'
        '<returnStruc>{"season": "s"}</returnStruc></Step>'
    )
    write(folder / "all.xml", f"<root><Thing>{step}</Thing></root>")
    write(folder / "shop.xml", text("uses {request.season}"))
    files = PromptFiles([base], [folder])
    assert (words(files), files.errors) == ("uses", [])
    (folder / "all.xml").unlink()
    files.look()
    assert words(files) == "uses"
    assert "unknown variable `{request.season}`" in files.errors[0]


def test_hidden_files_and_other_endings_are_no_prompts(files: PromptFiles, folder: Path) -> None:
    (folder / ".shop.xml.swp").write_text("x")
    (folder / ".hidden.xml").write_text("<root>")
    (folder / "notes.txt").write_text("x")
    files.look()
    assert files.errors == []
    assert ["notes.txt" in str(problem) for problem in files.problems] == [True]


def test_places_are_the_shipped_files_then_the_operators(tmp_path: Path) -> None:
    own = tmp_path / "own.xml"
    with pytest.raises(ConfigError, match=r"there is no .*own\.xml"):
        places(own, None)
    own.write_text("<root/>")
    base, folders = places(own, tmp_path)
    assert (base[-1], folders[-1]) == (own, tmp_path)
    assert base[0].name == "site_types.xml"
