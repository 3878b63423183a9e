"""Which prompt holds: by site, by the class tree, by layer; and what a broken file does to the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.errors import ConfigError
from core.prompting import Prompt, PromptLibrary, check
from core.prompting.schema_types import ancestors, known, parents, version

SUMMARY = '<returnStruc>{"summary": "string"}</returnStruc>'


def prompt(text: str, ref: str = "SummarizeResultsPrompt", more: str = "") -> str:
    return f'<Prompt ref="{ref}" {more}><promptString>{text}</promptString>{SUMMARY}</Prompt>'


def write(path: Path, inside: str) -> Path:
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(f"<root>{inside}</root>", encoding="utf-8")
    return path


def text_of(found: Prompt | None) -> str:
    return found.text if found else "-"


@pytest.fixture
def base(tmp_path: Path) -> Path:
    inside = (
        f"<Thing>{prompt('thing')}</Thing><CreativeWork>{prompt('work')}</CreativeWork>"
        f"<HowTo>{prompt('howto')}</HowTo><Place>{prompt('place')}</Place>"
    )
    return write(tmp_path / "site_types.xml", inside)


def test_the_class_tree_is_whole_and_goes_nearest_first() -> None:
    assert version() == "30.0"
    assert len(parents()) > 900
    assert all(known(above) for one in parents() for above in parents()[one])
    assert ancestors("Recipe") == ("HowTo", "CreativeWork", "Thing")
    assert ancestors("Restaurant") == ("FoodEstablishment", "LocalBusiness", "Organization", "Place", "Thing")
    assert ancestors("Thing") == ()
    assert ancestors("NoSuchClass") == ("Thing",)
    assert all(
        ancestors(one)[-1] == "Thing" and one not in ancestors(one) for one in parents() if one != "Thing"
    )


@pytest.mark.parametrize(
    ("item_type", "text"),
    [
        ("Recipe", "howto"),
        ("http://schema.org/Recipe", "howto"),
        ("https://schema.org/Recipe", "howto"),
        ("schema:Recipe", "howto"),
        ("{http://nlweb.ai/base}Recipe", "howto"),
        ("Movie", "work"),
        ("Restaurant", "place"),
        ("Person", "thing"),
        ("Item", "thing"),
        ("Thing", "thing"),
        ("", "thing"),
        ("NoSuchClass", "thing"),
    ],
)
def test_the_nearest_ancestor_holds(base: Path, item_type: str, text: str) -> None:
    library = PromptLibrary.load(base, [])
    assert text_of(library.find("SummarizeResultsPrompt", "anysite", item_type)) == text


def test_the_site_goes_before_no_site_at_every_step_of_the_tree(base: Path, tmp_path: Path) -> None:
    inside = f"<Thing>{prompt('site thing')}</Thing><HowTo>{prompt('site howto')}</HowTo>"
    write(tmp_path / "prompts" / "a.xml", f'<Site ref="a">{inside}</Site>')
    library = PromptLibrary.load(base, [tmp_path / "prompts"])
    chain = [one.text for one in library.chain("SummarizeResultsPrompt", "a", "Recipe")]
    assert chain == ["site howto", "site thing", "howto", "work", "thing"]
    assert text_of(library.find("SummarizeResultsPrompt", "a", "Movie")) == "site thing"
    assert text_of(library.find("SummarizeResultsPrompt", "b", "Movie")) == "work"


def test_no_type_means_the_sites_first_type(base: Path, tmp_path: Path) -> None:
    write(tmp_path / "prompts" / "a.xml", '<Site ref="a" types="Recipe, Movie"/>')
    library = PromptLibrary.load(base, [tmp_path / "prompts"])
    assert library.site("a").types == ("Recipe", "Movie")
    assert text_of(library.find("SummarizeResultsPrompt", "a")) == "howto"
    assert library.site("never heard of").types == ("Thing",)


def test_a_site_builds_on_another(base: Path, tmp_path: Path) -> None:
    folder = tmp_path / "prompts"
    write(folder / "a.xml", f'<Site ref="a" extends="b"><Movie>{prompt("a movie")}</Movie></Site>')
    write(folder / "b.xml", f'<Site ref="b" extends="c"><Thing>{prompt("b thing")}</Thing></Site>')
    write(folder / "c.xml", f'<Site ref="c"><Movie>{prompt("c movie")}</Movie></Site>')
    library = PromptLibrary.load(base, [folder])
    chain = [one.text for one in library.chain("SummarizeResultsPrompt", "a", "Movie")]
    assert chain == ["a movie", "b thing", "c movie", "work", "thing"]


def test_sites_that_extend_in_a_circle_or_nobody_are_named_and_still_answer(
    base: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "prompts"
    write(folder / "a.xml", f'<Site ref="a" extends="b"><Thing>{prompt("a")}</Thing></Site>')
    write(folder / "b.xml", '<Site ref="b" extends="a"/><Site ref="kitchen" extends="kitchem"/>')
    library = PromptLibrary.load(base, [folder])
    said = "\n".join(str(problem) for problem in library.problems)
    assert "circle: a → b → a" in said
    assert 'extends="kitchem": no file has such a site (did you mean `kitchen`?)' in said
    assert text_of(library.find("SummarizeResultsPrompt", "b", "Movie")) == "a"


def test_a_later_folder_is_layered_over_an_earlier_one(base: Path, tmp_path: Path) -> None:
    write(tmp_path / "one" / "a.xml", f'<Site ref="a"><Thing>{prompt("shipped")}</Thing></Site>')
    write(tmp_path / "two" / "z.xml", f'<Site ref="a"><Thing>{prompt("own")}</Thing></Site>')
    write(tmp_path / "two" / "all.xml", f"<HowTo>{prompt('own howto')}</HowTo>")
    library = PromptLibrary.load(base, [tmp_path / "one", tmp_path / "two"])
    assert [one.text for one in library.chain("SummarizeResultsPrompt", "a", "Thing")] == [
        "own",
        "shipped",
        "thing",
    ]
    assert text_of(library.find("SummarizeResultsPrompt", "b", "Recipe")) == "own howto"
    assert library.problems == ()


def test_switched_off_means_none_and_not_the_next_one(base: Path, tmp_path: Path) -> None:
    off = prompt("off", more='enabled="false"')
    write(tmp_path / "prompts" / "a.xml", f'<Site ref="a"><Thing>{off}</Thing></Site>')
    library = PromptLibrary.load(base, [tmp_path / "prompts"])
    assert library.find("SummarizeResultsPrompt", "a", "Recipe") is None
    assert library.chain("SummarizeResultsPrompt", "a", "Recipe")[0].text == "off"
    assert text_of(library.find("SummarizeResultsPrompt", "b", "Recipe")) == "howto"


def test_of_two_equal_ones_the_last_holds_and_both_are_named(tmp_path: Path) -> None:
    base = write(tmp_path / "b.xml", f"<Thing>{prompt('first')}</Thing>\n<Item>{prompt('second')}</Item>")
    library = PromptLibrary.load(base, [])
    assert text_of(library.find("SummarizeResultsPrompt")) == "second"
    (problem,) = library.problems
    assert (problem.line, problem.severity) == (2, "warning")
    assert "duplicate `SummarizeResultsPrompt` for Thing: also in line 1" in problem.what


def test_equal_ones_in_two_files_of_a_folder_are_named(base: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        write(tmp_path / "prompts" / f"{name}.xml", f'<Site ref="s"><Thing>{prompt(name)}</Thing></Site>')
    library = PromptLibrary.load(base, [tmp_path / "prompts"])
    (problem,) = library.problems
    assert problem.file.endswith("b.xml")
    assert "a.xml:1" in problem.what
    assert text_of(library.find("SummarizeResultsPrompt", "s")) == "b"


def test_a_broken_site_file_is_reported_and_the_others_hold(base: Path, tmp_path: Path) -> None:
    folder = tmp_path / "prompts"
    write(folder / "good.xml", f'<Site ref="good"><Thing>{prompt("good")}</Thing></Site>')
    write(folder / "bad.xml", f'<Site ref="bad"><Thing>{prompt("{request.qurey}")}</Thing></Site>')
    (folder / "worse.xml").write_text("<root><Thing>", encoding="utf-8")
    library = PromptLibrary.load(base, [folder])
    assert text_of(library.find("SummarizeResultsPrompt", "good")) == "good"
    assert text_of(library.find("SummarizeResultsPrompt", "bad")) == "thing"
    errors = {Path(one.file).name: one for one in library.problems if one.severity == "error"}
    assert set(errors) == {"bad.xml", "worse.xml"}
    assert "(did you mean `request.query`?)" in errors["bad.xml"].what


def test_a_broken_base_file_is_refused_with_all_that_is_wrong(tmp_path: Path) -> None:
    base = write(
        tmp_path / "site_types.xml",
        f"<Thing>\n{prompt('{request.qurey}')}\n{prompt('', 'RankingPrompt')}</Thing>",
    )
    with pytest.raises(ConfigError) as caught:
        PromptLibrary.load(base, [])
    lines = caught.value.message.splitlines()
    assert [line.partition(f"{base}:")[2].partition(": ")[0] for line in lines] == [
        "2:53",  # the variable
        "3:30",  # the empty text
        "3:59",  # the returnStruc without a score
    ]


def test_missing_files_and_folders_are_problems_and_no_crash(base: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        PromptLibrary.load(tmp_path / "none.xml", [])
    library = PromptLibrary.load(base, [tmp_path / "no folder"])
    assert "cannot be read" in library.problems[0].what


def test_unused_files_are_named(base: Path, tmp_path: Path) -> None:
    folder = tmp_path / "prompts"
    write(folder / "empty.xml", "")
    write(folder / "a.xml", f'<Site ref="a"><Thing>{prompt("a")}</Thing></Site>')
    write(folder / "b.xml", f'<Site ref="b"><Thing>{prompt("b")}</Thing></Site>')
    (folder / "a.xml.bak").write_text("x", encoding="utf-8")
    found = {Path(one.file).name: one.what for one in check(base, [folder], sites=["a"])}
    assert set(found) == {"empty.xml", "b.xml", "a.xml.bak"}
    assert "no site `b` is loaded" in found["b.xml"]
    only = check(base, [folder], files=[folder / "empty.xml"])
    assert [Path(one.file).name for one in only] == ["empty.xml"]
