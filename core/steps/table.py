"""Which steps run for a question, with which prompt, in which order, and what each may change: one table.

`askable prompts steps` prints it, docs/prompts.md shows it, and a test holds it against the code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.prompting.library import PromptLibrary
from core.prompting.own import STEP_TIMEOUT_S, OwnStep, of_prompt
from core.prompting.parse import Prompt


@dataclass(frozen=True, slots=True)
class Row:
    """A step: `after` names those that must be done before it starts; what is at the same place in the order
    and not named there runs side by side."""

    name: str
    prompt: str
    when: str
    after: str
    changes: str


TABLE: Sequence[Row] = (
    Row(
        "decontextualize",
        "PrevQueryDecontextualizer",
        "there are earlier questions, and the client sends no question rewritten by itself",
        "",
        "the question that is searched, ranked and answered: `request.query`",
    ),
    Row(
        "decontextualize, on a page",
        "DecontextualizeContextPrompt",
        "the same, where a page is given and no earlier question",
        "",
        "`request.query`",
    ),
    Row(
        "decontextualize, from both",
        "FullDecontextualizePrompt",
        "the same, where a page and earlier questions are given",
        "",
        "`request.query`",
    ),
    Row(
        "memory",
        "DetectMemoryRequestPrompt",
        "memory is on, and the client doesn't send `remember=false`",
        "",
        "what is kept of the person; not the answer",
    ),
    Row(
        "required_info",
        "RequiredInfoPrompt",
        "the type has such a prompt (real estate has)",
        "decontextualize",
        "whether the person is asked back",
    ),
    Row(
        "item_type",
        "DetectItemTypePrompt",
        "the site has several kinds of items, and the client names none",
        "decontextualize",
        "the kind of items that is looked for",
    ),
    Row(
        "relevance",
        "DetectIrrelevantQueryPrompt",
        "one site is asked, and its description is known",
        "decontextualize",
        "whether the site has anything for the question at all",
    ),
    Row(
        "choosing details",
        "DetectQueryTypePrompt",
        "the question looks like one about an item that it names, or `tool=details`",
        "decontextualize",
        "the tool: `details`, or a search",
    ),
    Row(
        "choosing compare",
        "DetectComparisonPrompt",
        "the question looks like a comparison, or `tool=compare`",
        "decontextualize",
        "the tool: `compare`, or a search",
    ),
    Row(
        "choosing ensemble",
        "DetectMultiItemTypeQueryPrompt",
        "the question looks like one for things that go together, or `tool=ensemble`",
        "decontextualize",
        "the tool: `ensemble`, or a search",
    ),
    Row(
        "matching",
        "ItemMatchingPrompt",
        "`details` or `compare`, and no item found is called just as the question says",
        "choosing details, choosing compare",
        "which item is meant",
    ),
    Row(
        "details",
        "ExtractItemDetailsPrompt",
        "the tool is `details`, and the item was found",
        "matching",
        "what is told of the item",
    ),
    Row(
        "compare",
        "CompareItemsPrompt",
        "the tool is `compare`, and both items were found",
        "matching",
        "the comparison",
    ),
    Row(
        "ensemble",
        "EnsemblePrompt",
        "the tool is `ensemble`, and something was found for its parts",
        "choosing ensemble",
        "which items are put together",
    ),
    Row(
        "ranking",
        "RankingPrompt",
        "something was found, and the mode is `list` or `summarize`",
        "decontextualize",
        "score and description of each item; so their order, and which are shown",
    ),
    Row(
        "gathering",
        "RankingPromptForGenerate",
        "something was found, and the mode is `generate`",
        "decontextualize",
        "score of each item; so which are sources of the answer",
    ),
    Row(
        "summary",
        "SummarizeResultsPrompt",
        "the mode is `summarize`, and something is shown",
        "ranking",
        "a summary beside the results",
    ),
    Row(
        "answer",
        "SynthesizePromptForGenerate",
        "the mode is `generate`, and there are sources",
        "gathering",
        "the written answer, and which sources it cites",
    ),
    Row(
        "conflict",
        "MemoryConflictPrompt",
        "a fact is to be kept, and similar ones are known",
        "memory",
        "which of the kept facts hold",
    ),
    Row(
        "extraction",
        "MemoryExtractionPrompt",
        "`memory.mode` is `automatic`, or an agent hands over messages",
        "the answer",
        "what is kept of the person",
    ),
    Row(
        "whiteboard",
        "WhiteboardMaintenancePrompt",
        "the conversation is kept, and `whiteboard.enabled`",
        "the answer",
        "the whiteboard of the conversation",
    ),
)


@dataclass(frozen=True, slots=True)
class Planned:
    """A row for one site and type: `prompt` is the one that holds, None where it is switched off or code."""

    row: Row
    prompt: Prompt | None


def plan(library: PromptLibrary, site: str, item_type: str, installed: Sequence[OwnStep]) -> list[Planned]:
    """The steps of a question to this site: its own first, as they start first."""
    in_xml = [of_prompt(prompt) for prompt in library.steps(site, item_type)]
    taken = {step.sets for step in in_xml}
    own = [*in_xml, *(step for step in installed if step.sets not in taken)]
    rows = [Planned(own_row(step, own), step.prompt) for step in own]
    for row in TABLE:
        prompt = library.find(row.prompt, site, item_type)
        waits = [step.name for step in own if prompt is not None and step.needed_by(prompt)]
        after = ", ".join(one for one in (row.after, *waits) if one)
        rows.append(Planned(Row(row.name, row.prompt, row.when, after, row.changes), prompt))
    return rows


def own_row(step: OwnStep, all_own: Sequence[OwnStep]) -> Row:
    """The row of a step of a site's own."""
    prompt = step.prompt
    waits = [one.name for one in all_own if prompt is not None and one is not step and one.needed_by(prompt)]
    limit = "" if step.timeout_s == STEP_TIMEOUT_S else f", at most {step.timeout_s:g} s"
    kind = "always" if prompt is not None else "always; a step in Python"
    return Row(step.name, prompt.ref if prompt else "", kind + limit, ", ".join(waits), f"`{step.sets}`")
