"""The time that one answer may ask of the model: made at a question's start, passed down to all who wait."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment of the event loop's clock; `seconds` after the question came."""

    at: float
    seconds: float

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        """So many seconds from now. Needs a running event loop."""
        return cls(asyncio.get_running_loop().time() + seconds, seconds)

    @property
    def left(self) -> float:
        """Seconds until then; 0 once it is over."""
        return max(0.0, self.at - asyncio.get_running_loop().time())

    @property
    def over(self) -> bool:
        """Whether nothing more may be begun."""
        return self.left == 0.0

    def within(self, limit: float) -> float:
        """A step's own limit in seconds, or what is left where that is less."""
        return min(limit, self.left)
