"""NLWeb's published files load unchanged, with the texts that a plain reading of the XML gives."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from lxml import etree

from core.prompting import PromptLibrary, parse_file

ROOT = Path(__file__).resolve().parents[3]
PROMPT_FILES = ("site_type-2025-05.xml", "prompts-2025-08.xml", "query_analysis-2026-02.xml")
ALL_FILES = (*PROMPT_FILES, "sites-2025-08.xml", "tools-2025-08.xml")


def local(tag: str) -> str:
    return tag.rpartition("}")[2]


def plain_reading(path: Path) -> dict[tuple[str, str], str]:
    """(type, ref) -> text by the standard library's parser; the last of equal ones."""
    found: dict[tuple[str, str], str] = {}
    for child in ET.parse(path).getroot():
        prompts = [child] if "ref" in child.attrib else list(child)
        kind = "Thing" if "ref" in child.attrib or local(child.tag) == "Item" else local(child.tag)
        for prompt in prompts:
            (string,) = (one for one in prompt if local(one.tag) == "promptString")
            found[kind, prompt.attrib["ref"]] = "".join(string.itertext()).strip()
    return found


@pytest.mark.parametrize("name", PROMPT_FILES)
def test_each_type_and_ref_has_the_text_a_plain_reading_gives(nlweb: Path, name: str) -> None:
    library = PromptLibrary.load(nlweb / name, [])
    expected = plain_reading(nlweb / name)
    assert len(expected) >= 14
    for (kind, ref), text in expected.items():
        assert library.chain(ref, "", kind)[0].text == text, (kind, ref)


@pytest.mark.parametrize("name", PROMPT_FILES)
def test_text_after_a_comment_is_not_lost_and_the_comment_is_no_text(nlweb: Path, name: str) -> None:
    library = PromptLibrary.load(nlweb / name, [])
    assert all("<!--" not in prompt.text for prompt in library.prompts())
    with_comment = [prompt for prompt in library.prompts() if prompt.ref == "PrevQueryDecontextualizer"]
    assert with_comment
    assert "request.prevAnswers" not in with_comment[0].variables  # it stands in a comment there


@pytest.mark.parametrize("name", ALL_FILES)
def test_no_file_has_an_error(nlweb: Path, name: str) -> None:
    parsed = parse_file(nlweb / name)
    assert parsed.usable
    assert parsed.prompts or parsed.sites


@pytest.mark.parametrize("name", PROMPT_FILES)
def test_the_published_schema_describes_them(nlweb: Path, name: str) -> None:
    schema = etree.RelaxNG(etree.parse(ROOT / "docs" / "prompts.rng"))
    schema.assertValid(etree.parse(nlweb / name))


def test_a_type_that_only_an_ancestor_customises_gets_the_ancestors_prompt(nlweb: Path) -> None:
    library = PromptLibrary.load(nlweb / "prompts-2025-08.xml", [])
    recipe = library.find("RankingPrompt", "", "Recipe")
    base = library.find("RankingPrompt", "", "HowTo")
    assert recipe is not None
    assert base is not None
    assert (recipe.item_type, base.item_type) == ("Recipe", "Thing")
    listing = library.find("RequiredInfoPrompt", "", "http://schema.org/RealEstateListing")
    assert listing is not None
    assert listing.item_type == "RealEstate"
    assert library.find("RequiredInfoPrompt", "", "Movie") is None


def test_reply_structures_of_true_or_false_and_scores_are_typed(nlweb: Path) -> None:
    library = PromptLibrary.load(nlweb / "site_type-2025-05.xml", [])
    memory = library.find("DetectMemoryRequestPrompt", "", "Recipe")
    ranking = library.find("RankingPrompt")
    assert memory is not None
    assert memory.reply is not None
    assert ranking is not None
    assert ranking.reply is not None
    assert memory.reply.json_schema["properties"]["is_memory_request"]["type"] == "boolean"
    assert ranking.reply.json_schema["properties"]["score"] | {"description": ""} == {
        "type": "integer",
        "minimum": 0,
        "maximum": 100,
        "description": "",
    }


def test_a_class_named_in_place_of_a_reply_structure_gives_the_keys_of_the_step(nlweb: Path) -> None:
    library = PromptLibrary.load(nlweb / "query_analysis-2026-02.xml", [])
    prompt = library.find("PrevQueryDecontextualizer")
    assert prompt is not None
    assert prompt.reply is not None
    assert prompt.reply.keys == ("requires_decontextualization", "decontextualized_query")
    assert library.find("DetectMemoryRequestPrompt") is None  # enabled="false" there
    assert not library.chain("DetectMemoryRequestPrompt")[0].enabled


def test_sites_and_tools_are_read(nlweb: Path) -> None:
    library = PromptLibrary.load([nlweb / "sites-2025-08.xml", nlweb / "tools-2025-08.xml"], [])
    assert library.site("imdb").types == ("Movie", "Person", "TVSeries")
    tool = library.find("tool:search", "imdb")
    assert tool is not None
    assert tool.reply is not None
    assert tool.reply.parse('{"score": "95", "search_query": "heist films"}')["score"] == 95


@pytest.mark.parametrize(
    ("customised", "kind"),
    [("HowTo", "Recipe"), ("CreativeWork", "Recipe"), ("LocalBusiness", "Restaurant")],
)
def test_over_their_base_a_site_customises_an_ancestor_of_the_type(
    nlweb: Path, tmp_path: Path, customised: str, kind: str
) -> None:
    prompt = (
        '<Prompt ref="SummarizeResultsPrompt"><promptString>ours {request.answers}</promptString>'
        '<returnStruc>{"summary": "short"}</returnStruc></Prompt>'
    )
    inside = f'<Site ref="kitchen"><{customised}>{prompt}</{customised}></Site>'
    (tmp_path / "kitchen.xml").write_text(f"<root>{inside}</root>")
    library = PromptLibrary.load(nlweb / "prompts-2025-08.xml", [tmp_path])
    ours, *lost = library.chain("SummarizeResultsPrompt", "kitchen", kind)
    assert (ours.item_type, ours.text) == (customised, "ours {request.answers}")
    assert all(one.site is None for one in lost)
    elsewhere = library.find("SummarizeResultsPrompt", "elsewhere", kind)
    assert elsewhere is not None
    assert elsewhere.item_type == "Thing"
