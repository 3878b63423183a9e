"""Everything a client can receive from a question, as frozen values; the wire dialects render them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, get_args

RankingType = Literal["FAST_TRACK", "REGULAR_TRACK", "PROVISIONAL", "RETRIEVAL"]
NoResultsReason = Literal["site_empty", "below_min_score", "filters", "retrieval_failed"]

# How much of what was asked the sources of a written answer say.
Found = Literal["all", "part", "nothing"]
FOUND: tuple[Found, ...] = get_args(Found)

# How a step ended: `failed` is also one that took longer than it may, `late` one that was still at work when
# the answer stood without it, `stopped` one whose result was not wanted any more.
StepOutcome = Literal["done", "failed", "late", "stopped"]


@dataclass(frozen=True, slots=True)
class Started:
    """First of every answer."""

    type: ClassVar[str] = "api_version"
    api_version: str
    llm: str


@dataclass(frozen=True, slots=True)
class Header:
    """One per configured header (`license`, `data_retention`, ...): the name is the message type."""

    type: ClassVar[str] = "header"
    name: str
    content: str


@dataclass(frozen=True, slots=True)
class AskingSites:
    type: ClassVar[str] = "asking_sites"
    message: str
    sites: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Decontextualized:
    type: ClassVar[str] = "decontextualized_query"
    decontextualized_query: str
    original_query: str


@dataclass(frozen=True, slots=True)
class Remember:
    """`memory_id` is None and `confirm` a token where the person has to agree first. Without either there is
    nothing to take back: it was known already, or goes where nothing can be taken back."""

    type: ClassVar[str] = "remember"
    item_to_remember: str
    message: str
    memory_id: str | None
    scope: str
    confirm: str | None = None


@dataclass(frozen=True, slots=True)
class Forgotten:
    """Facts that were forgotten; with a `confirm` token those that will be once the person agrees."""

    type: ClassVar[str] = "forgotten"
    items: tuple[dict[str, Any], ...]
    message: str
    confirm: str | None = None


@dataclass(frozen=True, slots=True)
class Memories:
    """What is kept about the person who asked for it."""

    type: ClassVar[str] = "memories"
    items: tuple[dict[str, Any], ...]
    message: str


@dataclass(frozen=True, slots=True)
class Citation:
    """A passage by which an item was found: the item's chunk `chunk` (from 0), in short where it is long;
    `page` and `section` are None where the item's source has none."""

    chunk: int
    text: str
    page: int | None = None
    section: str | None = None


@dataclass(frozen=True, slots=True)
class Item:
    """A stored item as shown. `schema_object` is the item's schema.org object as it was loaded."""

    url: str
    name: str
    site: str
    score: float | None
    description: str
    schema_object: Any
    ranking_type: RankingType
    document_id: str
    citations: tuple[Citation, ...] = ()


@dataclass(frozen=True, slots=True)
class Results:
    type: ClassVar[str] = "result_batch"
    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class UsedMemories:
    """Long-term facts that this answer was made with, shown to the person they are of."""

    type: ClassVar[str] = "used_memories"
    items: tuple[dict[str, str], ...]


@dataclass(frozen=True, slots=True)
class ToolSelection:
    """How the question is answered: the tool, how sure the choice is (0..100), what it was given."""

    type: ClassVar[str] = "tool_selection"
    selected_tool: str
    score: int
    parameters: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Irrelevant:
    """The question has nothing to do with what the site holds; `message` says why."""

    type: ClassVar[str] = "site_is_irrelevant_to_query"
    message: str


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked back. `type` is `text` (free) or `choice` (one of `options`)."""

    id: str
    text: str
    type: Literal["text", "choice"] = "text"
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AskUser:
    """Something is missing before the question can be answered; the answer ends with this."""

    type: ClassVar[str] = "ask_user"
    message: str
    questions: tuple[Question, ...] = ()


@dataclass(frozen=True, slots=True)
class ItemDetails:
    """What was asked about one stored item; `details` is text or an object by what was asked for."""

    type: ClassVar[str] = "item_details"
    name: str
    details: str | dict[str, Any]
    score: int
    explanation: str
    url: str
    site: str
    schema_object: Any
    document_id: str = ""


@dataclass(frozen=True, slots=True)
class Compared:
    """One side of a comparison."""

    name: str
    url: str
    schema_object: Any
    site: str = ""
    document_id: str = ""


@dataclass(frozen=True, slots=True)
class CompareItems:
    """`comparison` is text, or an object by what the prompt's reply asks for."""

    type: ClassVar[str] = "compare_items"
    comparison: str | dict[str, Any]
    item1: Compared
    item2: Compared


@dataclass(frozen=True, slots=True)
class EnsembleResult:
    """Several kinds of item put together: a menu, a day trip. `result` holds `recommendations`."""

    type: ClassVar[str] = "ensemble_result"
    result: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Summary:
    """`extractive`: no model wrote it, it is put together from the items' own words."""

    type: ClassVar[str] = "summary"
    message: str
    extractive: bool = False


@dataclass(frozen=True, slots=True)
class AnswerDelta:
    """The next piece of a generated answer, while the model writes it."""

    type: ClassVar[str] = "nlws_delta"
    text: str


@dataclass(frozen=True, slots=True)
class GeneratedAnswer:
    """The whole generated answer, once. `items` are its sources in the order of their `[n]`:
    `{n, url, name, description, site, schema_object, document_id}`; `considered` those not cited. `found` is
    how much of the question the model says they answer (`nothing`: the answer says just that), and absent
    where nobody judged it. `extractive`: no model wrote it, it is the sources' own sentences."""

    type: ClassVar[str] = "nlws"
    answer: str
    items: tuple[dict[str, Any], ...] = ()
    considered: tuple[dict[str, Any], ...] = ()
    found: Found | None = None
    extractive: bool = False


@dataclass(frozen=True, slots=True)
class NoResults:
    type: ClassVar[str] = "no_results"
    message: str
    reason: NoResultsReason


@dataclass(frozen=True, slots=True)
class StepTime:
    """A step of a question, or one of several model calls in a step. Milliseconds; `start_ms` counts from the
    question. `model`, `cache` (prompt tokens that the endpoint had cached) and `prompt` (file:line) are None
    where no model was asked, `cache` also where the endpoint does not tell."""

    step: str
    start_ms: float
    ms: float
    outcome: StepOutcome = "done"
    model: str | None = None
    tokens_in: int = 0
    tokens_out: int = 0
    cache: int | None = None
    prompt: str | None = None


@dataclass(frozen=True, slots=True)
class Debug:
    """For an operator who asked: when each step ended (milliseconds since the question), every step from its
    start, and every model call with its filled prompt, the file and line it comes from, its tokens, time and
    reply."""

    type: ClassVar[str] = "debug"
    steps: dict[str, float] = field(default_factory=dict)
    timeline: tuple[StepTime, ...] = ()
    model_calls: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Failure:
    """Something failed; what was had stays. Never the last message: `Complete` is."""

    type: ClassVar[str] = "error"
    code: str
    message: str
    retryable: bool


@dataclass(frozen=True, slots=True)
class Complete:
    """Always the last. `order` are the final items' document ids, best first."""

    type: ClassVar[str] = "complete"
    order: tuple[str, ...]
    degraded: bool = False
    timings: dict[str, float] = field(default_factory=dict)
    usage: dict[str, int] = field(default_factory=dict)


Message = (
    Started
    | Header
    | AskingSites
    | Decontextualized
    | Remember
    | Forgotten
    | Memories
    | Results
    | UsedMemories
    | ToolSelection
    | Irrelevant
    | AskUser
    | ItemDetails
    | CompareItems
    | EnsembleResult
    | Summary
    | AnswerDelta
    | GeneratedAnswer
    | NoResults
    | Debug
    | Failure
    | Complete
)
