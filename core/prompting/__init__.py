"""The prompt language: parse, inherit along types, fill, reply schema."""

from core.prompting.examples import Example, misses
from core.prompting.fill import DEFAULT_BUDGET, Filled, fill, fill_batch
from core.prompting.library import PromptLibrary, SiteInfo, check
from core.prompting.parse import ParsedFile, Problem, Prompt, parse_bytes, parse_file
from core.prompting.refs import REFS, REQUIRED_KEYS
from core.prompting.replies import ReplySchema
from core.prompting.variables import VARIABLES, Value

__all__ = [
    "DEFAULT_BUDGET",
    "REFS",
    "REQUIRED_KEYS",
    "VARIABLES",
    "Example",
    "Filled",
    "ParsedFile",
    "Problem",
    "Prompt",
    "PromptLibrary",
    "ReplySchema",
    "SiteInfo",
    "Value",
    "check",
    "fill",
    "fill_batch",
    "misses",
    "parse_bytes",
    "parse_file",
]
