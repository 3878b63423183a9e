"""Which sites a caller may see: the one value by which every read of loaded documents is filtered."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Access = Literal["public", "private"]


@dataclass(frozen=True, slots=True)
class Scope:
    """The sites in `sites` (None: not limited by name), private ones only if `private`.

    Routes get theirs from `server.auth` and make none of their own (a test looks).
    """

    sites: frozenset[str] | None
    private: bool

    @classmethod
    def of(cls, sites: Iterable[str]) -> Scope:
        """Exactly these sites, which were checked before."""
        return cls(frozenset(sites), private=True)

    def allows(self, site: str) -> bool:
        """Whether the limit by name lets `site` pass; whether it is private is the database's to say."""
        return self.sites is None or site in self.sites


EVERYTHING = Scope(None, private=True)
