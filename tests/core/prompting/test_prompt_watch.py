"""Files that change: the good ones hold at once, of the bad ones the old; none touches another."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from core import resources
from core.errors import ConfigError
from core.prompting.library import check
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


GOOD = (
    "<root><Site ref='{site}'><Thing><Prompt ref='SummarizeResultsPrompt'>"
    "<promptString>{text} {{request.answers}}</promptString>"
    '<returnStruc>{{"summary": "words"}}</returnStruc></Prompt></Thing></Site></root>'
)


def nested(levels: int) -> str:
    return '{"summary":' + '{"a":' * levels + "1" + "}" * levels + "}"


@pytest.mark.parametrize("levels", [20, 900, 5000])
def test_a_file_that_is_too_odd_touches_no_other(tmp_path: Path, levels: int) -> None:
    files = PromptFiles([resources.site_types()], [tmp_path])
    odd = GOOD.format(site="odd", text="x").replace('{"summary": "words"}', nested(levels))
    (tmp_path / "deep.xml").write_text(odd)
    files.look()
    assert len([line for line in files.errors if "deep.xml" in line]) == 1
    (tmp_path / "good.xml").write_text(GOOD.format(site="shop", text="Mine."))
    files.look()
    prompt = files.current.find("SummarizeResultsPrompt", "shop")
    assert prompt is not None
    assert prompt.text.startswith("Mine.")
    (tmp_path / "deep.xml").unlink()
    files.look()
    assert files.errors == []
    # And a start with it in place is no failure either.
    (tmp_path / "deep.xml").write_text(odd)
    again = PromptFiles([resources.site_types()], [tmp_path]).current
    assert again.find("SummarizeResultsPrompt", "shop") == prompt


def test_a_link_in_a_circle_freezes_no_folder(tmp_path: Path) -> None:
    (tmp_path / "good.xml").write_text(GOOD.format(site="shop", text="Old."))
    (tmp_path / "loop.xml").symlink_to("loop.xml")
    files = PromptFiles([resources.site_types()], [tmp_path])
    assert [line for line in files.errors if "loop.xml" in line]
    (tmp_path / "good.xml").write_text(GOOD.format(site="shop", text="A new text."))
    files.look()
    prompt = files.current.find("SummarizeResultsPrompt", "shop")
    assert prompt is not None
    assert prompt.text.startswith("A new text.")
    assert [problem for problem in check(resources.site_types(), [tmp_path]) if "loop.xml" in problem.file]


def test_a_name_that_is_no_text_is_told_as_text(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"bad\xff.xml")).write_text("<root>")
    (tmp_path / "two\nlines.xml").write_text("<root>")
    files = PromptFiles([resources.site_types()], [tmp_path])
    assert len(files.errors) == 2
    for line in files.errors:
        assert line.encode("utf-8").isascii()
        assert "\n" not in line


def test_a_site_that_builds_on_another_has_its_kinds_of_items(tmp_path: Path) -> None:
    base = GOOD.format(site="a", text="Of a.").replace("<Site ref='a'>", "<Site ref='a' types='Recipe'>")
    (tmp_path / "a.xml").write_text(base.replace("Thing>", "Recipe>"))
    other = "<root><Site ref='b' extends='a'><description>b</description></Site></root>"
    (tmp_path / "b.xml").write_text(other)
    library = PromptFiles([resources.site_types()], [tmp_path]).current
    assert library.site("b").types == ("Recipe",)
    prompt = library.find("SummarizeResultsPrompt", "b")
    assert prompt is not None
    assert prompt.text.startswith("Of a.")


def test_one_fault_in_a_structure_is_one_line(tmp_path: Path) -> None:
    broken = GOOD.format(site="a", text="x").replace('{"summary": "words"}', '{"summary": True}')
    example = '<example query="q"><expect>{"summary": "x"}</expect></example></Prompt>'
    (tmp_path / "a.xml").write_text(broken.replace("</Prompt>", example))
    (line,) = PromptFiles([resources.site_types()], [tmp_path]).errors
    assert "double quotes" in line
