"""The legs that can be searched: what a name in `retrieval.legs` stands for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from core.errors import ConfigError
from core.providers.base import Embedder, LegSpec
from core.providers.bm25 import SPEC as BM25_SPEC
from core.providers.bm25 import Bm25Embedder
from core.providers.use import SPEC as USE_SPEC
from core.providers.use import UseEmbedder


@dataclass(frozen=True, slots=True)
class Unrelated:
    """Mean and spread (standard deviation) of a dense leg's cosines between questions and passages that have
    nothing to do with each other, as measured: `python -m bench.cutoff`."""

    mean: float
    spread: float


@dataclass(frozen=True, slots=True)
class LegKind:
    """A row of the table. `weight` is the leg's share in the fused score where the settings name none: a weak
    dense leg at full weight makes search worse than words alone, at a third it helps. Of a dense leg that
    has no `unrelated` it is not known from where on a cosine says something."""

    spec: LegSpec
    weight: float
    open: Callable[[], Awaitable[Embedder]]
    unrelated: Unrelated | None = None


async def _bm25() -> Embedder:
    return Bm25Embedder()


LEGS: Mapping[str, LegKind] = {
    "bm25": LegKind(BM25_SPEC, 1.0, _bm25),
    "use": LegKind(USE_SPEC, 0.3, UseEmbedder.open, Unrelated(0.03, 0.04)),
}
PLANNED = ("e5", "openai")


def leg_kind(name: str) -> LegKind:
    """The table's row. Raises ConfigError naming what there is."""
    kind = LEGS.get(name)
    if kind is None:
        what = "is not available yet" if name in PLANNED else "is unknown"
        raise ConfigError(f"the leg `{name}` {what}; available: {', '.join(LEGS)}", field="retrieval.legs")
    return kind
