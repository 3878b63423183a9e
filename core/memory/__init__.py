"""Long-term memory: what a person asks to remember goes to a hook, and comes back with later questions.

`facts` are the values, `store` keeps and finds them, `hook` says where they go, `service` decides about
consent, `confirmations` gives out what is to be agreed to, `claims` and `judge` are about contradictions,
`erase` takes everything of a person out, `traces` says what of a fact that is gone is still in conversations.
"""

from __future__ import annotations

from core.memory.confirmations import CONFIRM_WITHIN_S, Confirmations
from core.memory.erase import LEDGER, Erased, Erasure, Ledger, erased_since
from core.memory.facts import (
    COOKIE_REALM,
    KINDS,
    MAX_FACT_CHARS,
    SCOPES,
    Asking,
    Change,
    Detected,
    Fact,
    Place,
    Reach,
    Request,
    Stored,
)
from core.memory.hook import (
    ENTRY_POINTS,
    Erases,
    Exports,
    Forgets,
    MemoryHook,
    Recalls,
    StoreMemory,
    load_hook,
)
from core.memory.judge import Extractor, PromptJudge, Sensitivity
from core.memory.service import Confirmed, Memory, erasers, page_of
from core.memory.store import COLLECTION, KEYWORDS, Facts, Judge, Verdict

__all__ = [
    "COLLECTION",
    "CONFIRM_WITHIN_S",
    "COOKIE_REALM",
    "ENTRY_POINTS",
    "KEYWORDS",
    "KINDS",
    "LEDGER",
    "MAX_FACT_CHARS",
    "SCOPES",
    "Asking",
    "Change",
    "Confirmations",
    "Confirmed",
    "Detected",
    "Erased",
    "Erases",
    "Erasure",
    "Exports",
    "Extractor",
    "Fact",
    "Facts",
    "Forgets",
    "Judge",
    "Ledger",
    "Memory",
    "MemoryHook",
    "Place",
    "PromptJudge",
    "Reach",
    "Recalls",
    "Request",
    "Sensitivity",
    "StoreMemory",
    "Stored",
    "Verdict",
    "erased_since",
    "erasers",
    "load_hook",
    "page_of",
]
