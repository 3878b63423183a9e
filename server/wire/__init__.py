"""The wire dialects: one module each, and the table that names them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from server.wire.base import Asking, Body, Dialect, Frame, Promised, ResponseFormat, Sent, stopped
from server.wire.legacy import Legacy
from server.wire.legacy_2025 import Legacy2025
from server.wire.legacy_2026 import Legacy2026
from server.wire.structured import Structured
from server.wire.structured_054 import Structured054

DIALECTS: Final[Mapping[str, type[Dialect]]] = {
    "legacy": Legacy,
    "legacy-2025": Legacy2025,
    "legacy-2026": Legacy2026,
    "structured-0.55": Structured,
    "structured-0.54": Structured054,
}
# The newest version of each protocol that a client can name.
PROTOCOLS: Final[Mapping[str, str]] = {
    "legacy": "legacy",
    "legacy-2025": "legacy-2025",
    "legacy-2026": "legacy-2026",
    "structured": "structured-0.55",
}
# The dialects that can say that an answer comes later.
PROMISING: Final = frozenset({"structured-0.55", "structured-0.54"})

__all__ = [
    "DIALECTS",
    "PROMISING",
    "PROTOCOLS",
    "Asking",
    "Body",
    "Dialect",
    "Frame",
    "Promised",
    "ResponseFormat",
    "Sent",
    "stopped",
]
