"""The shipped prompt files are complete and without a problem, and docs/prompts.md says what is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from lxml import etree

from core.prompting import REFS, REQUIRED_KEYS, VARIABLES, Prompt, PromptLibrary, check, fill, misses
from core.prompting.examples import ATTRIBUTES
from core.prompting.fill import SHORTENED

ROOT = Path(__file__).resolve().parents[3]
FILES = sorted([ROOT / "site_types.xml", *(ROOT / "prompts").glob("*.xml")])
DOC = ROOT / "docs" / "prompts.md"

# The list of the product's contract.
PROMISED = """
DetectMemoryRequestPrompt PrevQueryDecontextualizer DecontextualizeContextPrompt
FullDecontextualizePrompt DetectIrrelevantQueryPrompt DetectItemTypePrompt DetectMultiItemTypeQueryPrompt
DetectQueryTypePrompt RankingPrompt RankingPromptForGenerate SynthesizePromptForGenerate
SummarizeResultsPrompt DescriptionPromptForGenerate ItemMatchingPrompt ExtractItemDetailsPrompt
CompareItemsPrompt EnsemblePrompt ConstraintPrompt MemoryExtractionPrompt MemoryConflictPrompt
MemoryContextPrompt WhiteboardContextPrompt WhiteboardEmptyPrompt WhiteboardMaintenancePrompt
"""


def test_checking_all_shipped_files_finds_nothing() -> None:
    assert [str(problem) for problem in check(ROOT / "site_types.xml", [ROOT / "prompts"])] == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_published_schema_describes_them(path: Path) -> None:
    etree.RelaxNG(etree.parse(ROOT / "docs" / "prompts.rng")).assertValid(etree.parse(path))


@pytest.mark.parametrize("ref", PROMISED.split())
def test_every_promised_prompt_is_there_for_any_type(shipped: PromptLibrary, ref: str) -> None:
    prompt = shipped.find(ref, "", "Periodical")
    assert prompt is not None
    assert prompt.item_type == "Thing"


def test_the_types_own_prompts_hold_for_the_types_below(shipped: PromptLibrary) -> None:
    found = {
        (ref, kind): prompt.item_type
        for ref, kind in (
            ("DetectMemoryRequestPrompt", "Recipe"),
            ("RankingPrompt", "Recipe"),
            ("RankingPrompt", "Restaurant"),
            ("RankingPrompt", "NewsArticle"),
            ("RankingPrompt", "MusicEvent"),
            ("RankingPrompt", "HowTo"),
            ("RankingPrompt", "Movie"),
            ("RankingPrompt", "Product"),
            ("RequiredInfoPrompt", "RealEstate"),
            ("RequiredInfoPrompt", "RealEstateListing"),
        )
        if (prompt := shipped.find(ref, "", kind)) is not None
    }
    assert found == {
        ("DetectMemoryRequestPrompt", "Recipe"): "Recipe",
        ("RankingPrompt", "Recipe"): "Recipe",
        ("RankingPrompt", "Restaurant"): "LocalBusiness",
        ("RankingPrompt", "NewsArticle"): "Article",
        ("RankingPrompt", "MusicEvent"): "Event",
        ("RankingPrompt", "HowTo"): "Thing",
        ("RankingPrompt", "Movie"): "Movie",
        ("RankingPrompt", "Product"): "Product",
        ("RequiredInfoPrompt", "RealEstate"): "RealEstate",
        ("RequiredInfoPrompt", "RealEstateListing"): "RealEstate",
    }
    assert shipped.find("RequiredInfoPrompt", "", "Recipe") is None


def test_trattoria_has_a_memory_prompt_of_its_own_and_shares_the_rest(shipped: PromptLibrary) -> None:
    own = shipped.find("DetectMemoryRequestPrompt", "trattoria")
    other = shipped.find("DetectMemoryRequestPrompt", "elsewhere", "Recipe")
    ranking = shipped.find("RankingPrompt", "trattoria")
    assert own is not None
    assert other is not None
    assert ranking is not None
    assert (own.site, other.site, ranking.site) == ("trattoria", None, None)
    assert ranking.item_type == "Recipe"
    assert shipped.site("trattoria").types == ("Recipe",)
    assert "Ligurian" in shipped.site("trattoria").description


def all_prompts() -> list[Prompt]:
    return PromptLibrary.load(ROOT / "site_types.xml", [ROOT / "prompts"]).prompts()


@pytest.mark.parametrize("prompt", all_prompts(), ids=lambda one: f"{one.item_type}-{one.ref}-{one.site}")
def test_each_has_the_keys_its_step_needs_and_three_examples_that_fit_it(prompt: Prompt) -> None:
    assert prompt.text
    assert prompt.enabled
    assert len(prompt.examples) >= 3
    if not REQUIRED_KEYS[prompt.ref]:
        assert prompt.reply is None
        for example in prompt.examples:
            assert example.expect
            assert misses(example.expect, {"text": fill(prompt, example.values).text}) == []
        return
    assert prompt.reply is not None
    assert set(REQUIRED_KEYS[prompt.ref]) <= set(prompt.reply.keys)
    for example in prompt.examples:
        assert example.expect
        fed = set(example.values) & set(prompt.variables)
        assert fed, f"the example in line {example.line} fills none of the prompt's variables"
        assert fill(prompt, example.values).text.count("<data-") == len(prompt.pieces) // 2


def table_names(heading: str) -> list[str]:
    """The first column of the table under a heading of docs/prompts.md."""
    part = DOC.read_text(encoding="utf-8").partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"^\| `([^`]+)` \|", part, re.M)


def test_the_documented_variables_are_those_of_the_code_in_kind_and_meaning() -> None:
    text = DOC.read_text(encoding="utf-8")
    assert table_names("Variables") == list(VARIABLES)
    for one in VARIABLES.values():
        assert f"| `{one.name}` | {one.kind} | {one.meaning} |" in text


def test_the_documented_refs_keys_examples_and_order_of_shortening_are_those_of_the_code() -> None:
    text = DOC.read_text(encoding="utf-8")
    assert table_names("Prompts") == list(REFS)
    for name, ref in REFS.items():
        keys = ", ".join(f"`{key}`" if one.must else f"`{key}`?" for key, one in ref.keys.items()) or "–"
        assert f"| `{name}` | {ref.purpose} | {keys} |" in text
    assert table_names("Examples") == list(ATTRIBUTES)
    assert ", ".join(f"`{name}`" for name, _ in SHORTENED) in " ".join(text.split())
