"""What each prompt is for: the keys its step reads from the reply, and the variables it has values for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

KeyKind = Literal["boolean", "score", "text", "list", "any"]


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a reply that a step reads. `must`: without it the reply is a miss; else it may be empty.
    `kind` is what the step gets, whatever the prompt's author wrote; "any" leaves it to the author. A prompt
    need not ask for an `optional` one: the step can do without."""

    kind: KeyKind
    must: bool = False
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Ref:
    """`variables` are those with a value in this prompt's place beside the ones every prompt has. `run`:
    whether a step here runs it."""

    keys: Mapping[str, Key]
    variables: frozenset[str] = frozenset()
    purpose: str = ""
    run: bool = True


# Filled for every prompt that is run for a question.
COMMON = frozenset(
    {
        "request.site",
        "request.query",
        "request.rawQuery",
        "request.previousQueries",
        "request.prevAnswers",
        "request.contextUrl",
        "request.contextDescription",
        "request.itemType",
        "request.language",
        "request.memory",
        "request.whiteboard",
        "request.top_k",
        "site.itemType",
        "site.description",
    }
)
ITEM = frozenset({"item.name", "item.description"})
ANSWERS = frozenset({"request.answers"})
DETAILS = frozenset({"request.item_name", "request.details_requested"})
TOOLS = frozenset({"tool.description", "tools.description"})
WHITEBOARD = frozenset({"whiteboard.max", "whiteboard.current", "whiteboard.messages"})

YES_NO = Key("boolean", must=True)
SCORE = Key("score", must=True)
MUST = Key("text", must=True)
MAY = Key("text")
OPTIONAL = Key("text", optional=True)

# The keys are NLWeb's for its prompts (a site's file written for it works), ours for the rest.
REFS: Mapping[str, Ref] = {
    "DetectMemoryRequestPrompt": Ref(
        {"is_memory_request": YES_NO, "memory_request": MAY},
        purpose="is the person asking to remember, forget or list something?",
    ),
    "PrevQueryDecontextualizer": Ref(
        {"requires_decontextualization": YES_NO, "decontextualized_query": MAY},
        purpose="make a follow-up self-contained from the conversation",
    ),
    "DecontextualizeContextPrompt": Ref(
        {"decontextualized_query": MUST},
        purpose="make a question about the page it is asked on self-contained",
    ),
    "FullDecontextualizePrompt": Ref(
        {"decontextualized_query": MUST}, purpose="the same, from the conversation and the page"
    ),
    "DetectIrrelevantQueryPrompt": Ref(
        {"site_is_irrelevant_to_query": YES_NO, "explanation_for_irrelevance": MAY},
        purpose="has the site nothing at all for this question?",
    ),
    "DetectItemTypePrompt": Ref({"item_type": MUST}, purpose="which kind of item is wanted"),
    "DetectMultiItemTypeQueryPrompt": Ref(
        {"single_item_type_query": YES_NO, "item_queries": Key("any")},
        purpose="one kind of item, or several with a question each",
    ),
    "DetectQueryTypePrompt": Ref(
        {"item_details_query": YES_NO, "item_title": MAY, "details_being_asked": MAY},
        purpose="a list of items, or details of one",
    ),
    "DetectComparisonPrompt": Ref(
        {"comparison_query": YES_NO, "item1_name": MAY, "item2_name": MAY, "details_requested": MAY},
        purpose="are two items to be compared, and which",
    ),
    "RequiredInfoPrompt": Ref(
        {"required_info_found": YES_NO, "user_question": MAY},
        purpose="is there enough to search with; else what to ask back",
    ),
    "RankingPrompt": Ref({"score": SCORE, "description": MAY}, ITEM, "how well an item fits, and why"),
    "RankingPromptForGenerate": Ref(
        {"score": SCORE, "description": MAY}, ITEM, "how useful an item is as a source of a written answer"
    ),
    "SynthesizePromptForGenerate": Ref(
        {"answer": MUST, "urls": Key("list")}, ANSWERS, "write the answer from the sources"
    ),
    "SummarizeResultsPrompt": Ref({"summary": MUST}, ANSWERS, "say in short what was found"),
    "DescriptionPromptForGenerate": Ref(
        {"description": MUST},
        ITEM | ANSWERS,
        "describe a cited item in the light of the answer; no step runs it",
        run=False,
    ),
    "ItemMatchingPrompt": Ref(
        {"score": SCORE, "item_details": Key("any")}, ITEM | DETAILS, "is this the item meant; its details"
    ),
    "ExtractItemDetailsPrompt": Ref(
        {"item_name": MAY, "requested_details": Key("any", must=True)},
        ITEM | DETAILS,
        "take the details asked for out of an item",
    ),
    "CompareItemsPrompt": Ref({"comparison": MUST}, ANSWERS | DETAILS | ITEM, "compare the items"),
    "EnsemblePrompt": Ref(
        {"theme": MAY, "items": Key("list", must=True)},
        ANSWERS | TOOLS,
        "put a set together (menu, trip, outfit)",
    ),
    "ConstraintPrompt": Ref(
        {"constraints": Key("list", must=True)},
        ITEM,
        "hard conditions in the question (price, time, diet, place); no step runs it",
        run=False,
    ),
    "MemoryExtractionPrompt": Ref(
        {"facts": Key("list", must=True)},
        frozenset({"whiteboard.messages"}),
        "lasting facts in a conversation",
    ),
    "MemoryConflictPrompt": Ref(
        {
            "relation": MUST,
            "memory_id": MAY,
            **dict.fromkeys(("subject", "attribute", "older_subject", "older_attribute"), OPTIONAL),
        },
        frozenset({"whiteboard.messages", "whiteboard.current"}),
        "does a new fact repeat, replace or add to a stored one?",
    ),
    "MemoryContextPrompt": Ref({}, purpose="puts stored facts in front of another model"),
    "WhiteboardContextPrompt": Ref({}, WHITEBOARD, "puts the whiteboard in front of another model"),
    "WhiteboardEmptyPrompt": Ref({}, WHITEBOARD, "says that the whiteboard is empty"),
    "WhiteboardMaintenancePrompt": Ref(
        {"entries": Key("list", must=True)}, WHITEBOARD, "bring the whiteboard up to date"
    ),
}

# NLWeb's other prompts: they load and can be filled, no step here runs them.
OLDER_REFS: Mapping[str, Ref] = {
    name: Ref(keys, ITEM | ANSWERS | DETAILS | TOOLS, run=False)
    for name, keys in {
        "RankingPromptWithExplanation": {"score": SCORE},
        "FindItemPrompt": {"score": SCORE},
        "EnsembleItemRankingPrompt": {"score": SCORE},
        "CompareItemDetailsPrompt": {"comparison": MUST},
        "QueryRewrite": {"rewritten_queries": Key("list", must=True)},
        "EnsembleBasePrompt": {},
        "EnsembleMealPlanningPrompt": {},
        "EnsembleTravelItineraryPrompt": {},
        "EnsembleOutfitPrompt": {},
        "EnsembleGenericPrompt": {},
        "ContextDecontextualizer": {"decontextualized_query": MUST},
        "FullContextDecontextualizer": {"decontextualized_query": MUST},
        "FullContextDecontextualizerHindi": {"decontextualized_query": MUST},
        "FullContextDecontextualizerHindiWithRecency": {"decontextualized_query": MUST},
        "PrevQueryDecontextualizerHindi": {"decontextualized_query": MUST},
        "PrevQueryDecontextualizerHindiWithRecency": {"decontextualized_query": MUST},
        "NoContextTransliterator": {"decontextualized_query": MUST},
        "NoContextTransliteratorWithRecency": {"decontextualized_query": MUST},
        "DetectItemTypesQueryPrompt": {"item_queries": Key("list", must=True)},
        "DetectItemDetailPrompt": {"item_details_query": YES_NO},
    }.items()
}

REQUIRED_KEYS: Mapping[str, tuple[str, ...]] = {
    name: tuple(key for key, one in ref.keys.items() if not one.optional) for name, ref in REFS.items()
}


def lookup(ref: str) -> Ref | None:
    """What is known of `ref`, ours or NLWeb's; a tool's prompt (`tool:NAME`) needs its score, a step of a
    site's own (`step:NAME`) has the keys its author gives it."""
    if ref.startswith(TOOL_PREFIX):
        return TOOL
    if ref.startswith(STEP_PREFIX):
        return STEP
    return REFS.get(ref) or OLDER_REFS.get(ref)


TOOL_PREFIX = "tool:"
STEP_PREFIX = "step:"
TOOL = Ref({"score": SCORE}, TOOLS | DETAILS, "does this tool suit the question?")
STEP = Ref({}, purpose="a step of the site's own: sets a variable for later prompts")
