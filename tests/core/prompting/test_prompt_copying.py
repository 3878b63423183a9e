"""A default copied into a site's file: added, never in the way of what is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.errors import BadQuery, ConfigError
from core.prompting import PromptLibrary, check, parse_file
from core.prompting.copying import Copied, copy_prompt
from core.prompting.refs import REFS

ROOT = Path(__file__).resolve().parents[3]
MEMORY = "DetectMemoryRequestPrompt"


def copy(folder: Path, ref: str = MEMORY, site: str = "shop", item_type: str = "") -> Copied:
    library = PromptLibrary.load(ROOT / "site_types.xml", [ROOT / "prompts", folder])
    return copy_prompt(library, ref, folder, site=site, item_type=item_type)


def problems(folder: Path) -> list[str]:
    return [str(problem) for problem in check(ROOT / "site_types.xml", [ROOT / "prompts", folder])]


def test_a_new_file_holds_the_default_for_the_site_and_says_how_to_change_it(tmp_path: Path) -> None:
    copied = copy(tmp_path, item_type="Recipe")
    assert (copied.path, copied.created, copied.source.item_type) == (tmp_path / "shop.xml", True, "Recipe")
    assert problems(tmp_path) == []
    (prompt,) = parse_file(copied.path).prompts
    assert (prompt.site, prompt.item_type, prompt.line) == ("shop", "Recipe", copied.line)
    assert prompt.text.split() == copied.source.text.split()
    assert prompt.reply == copied.source.reply
    assert [one.expect for one in prompt.examples] == [one.expect for one in copied.source.examples]
    written = copied.path.read_text(encoding="utf-8")
    assert "<!-- A copy of site_types.xml" in written
    assert "Keep the keys of returnStruc (is_memory_request" in written.replace("\n           ", " ")


def test_every_shipped_prompt_can_be_copied_into_one_file(tmp_path: Path) -> None:
    library = PromptLibrary.load(ROOT / "site_types.xml", [])
    # the base last: of a site's own prompts the base's would hold for the types, and be what is copied
    for prompt in sorted(library.prompts(), key=lambda one: one.item_type == "Thing"):
        copy(tmp_path, prompt.ref, item_type=prompt.item_type)
    idle = [prompt.ref for prompt in library.prompts() if not REFS[prompt.ref].run]
    told = problems(tmp_path)
    assert len(told) == len(idle) > 0
    assert all(any(f"no step runs `{ref}`" in one for one in told) for ref in idle)
    copies = {(p.item_type, p.ref): p.text.split() for p in parse_file(tmp_path / "shop.xml").prompts}
    assert copies == {(p.item_type, p.ref): p.text.split() for p in library.prompts()}


def test_it_refuses_to_overwrite(tmp_path: Path) -> None:
    first = copy(tmp_path)
    before = first.path.read_bytes()
    with pytest.raises(
        BadQuery, match=rf"has its own `{MEMORY}` for Thing already: .*shop\.xml:{first.line}"
    ):
        copy(tmp_path)
    assert first.path.read_bytes() == before
    with pytest.raises(BadQuery, match=r"trattoria\.xml"):
        copy(tmp_path, site="trattoria")


FILES = {
    "site and type": '<root>\n<!-- a -->\n<Site ref="shop">\n<Thing>\n  </Thing> <!-- b -->\n</Site></root>',
    "site alone": '<root>\n\t<Site id="shop" types="Product"/>\n</root>\n',
    "empty type": '<root><Site ref="shop"><Thing/><Recipe></Recipe></Site></root>',
    "another site": '<root>\n  <Site ref="other"><!-- theirs --></Site></root>',
    "nothing": "<root/>",
    "in one line": '<r:root xmlns:r="urn:x"><r:Site ref="shop"><r:Thing></r:Thing></r:Site></r:root>',
    "lines end in two": '<root>\r\n  <Site ref="shop">\r\n  <!-- à\r\nla -->\r\n  </Site>\r\n</root>\r\n',
}


def same(one: str, other: str) -> int:
    """How many characters two texts begin with alike."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


@pytest.mark.parametrize("name", FILES)
def test_what_stands_in_the_file_stays(tmp_path: Path, name: str) -> None:
    path = tmp_path / "shop.xml"
    path.write_bytes(FILES[name].encode())
    copied = copy(tmp_path)
    assert not copied.created
    assert problems(tmp_path) == []
    before, after = FILES[name], path.read_bytes().decode()
    start = same(before, after)
    end = same(before[:start:-1], after[::-1])
    # All but the end of an empty tag is there, in front of the copy and behind it.
    assert before[start : len(before) - end] in ("", "/", "/>", ">", "\n", "<")
    assert [p.ref for p in parse_file(path).prompts if p.site == "shop"] == [MEMORY]
    if "\r\n" in FILES[name]:
        assert after.count("\n") == after.count("\r\n")
        assert after.startswith(FILES[name].partition("  </Site>")[0])


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "iso-8859-1"])
def test_the_file_keeps_its_encoding(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "shop.xml"
    declared = "utf-8" if encoding == "utf-8-sig" else encoding
    text = f'<?xml version="1.0" encoding="{declared}"?>\n<root><!-- perché -->\n</root>'
    path.write_bytes(text.encode(encoding))
    copy(tmp_path)
    assert problems(tmp_path) == []
    assert "perché" in path.read_bytes().decode(encoding)
    assert "请记住" in parse_file(path).prompts[0].examples[-1].query


def test_a_file_with_an_error_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "shop.xml"
    path.write_text('<root><Site ref="shop"><Thing></Site></root>')
    with pytest.raises(ConfigError, match=r"shop\.xml:1:"):
        copy(tmp_path)
    assert path.read_text() == '<root><Site ref="shop"><Thing></Site></root>'


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ({"site": "My Shop"}, "is no site name"),
        ({"item_type": "Moovie"}, "did you mean `Movie`"),
        ({"ref": "RequiredInfoPrompt", "item_type": "Recipe"}, "there is no `RequiredInfoPrompt` for Recipe"),
    ],
)
def test_what_cannot_be_copied_is_said(tmp_path: Path, arguments: dict[str, str], what: str) -> None:
    with pytest.raises(BadQuery, match=what):
        copy(tmp_path, **arguments)
    assert list(tmp_path.iterdir()) == []
