"""Which sites can answer a question: their best passages decide; no model is asked."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from core.access import Scope
from core.documents import Documents
from core.retrieval import Part, Retriever

# Documents looked at, over all sites together.
CANDIDATES = 200
# What a site's best documents count: one that fits well is an answer, several are a better one.
WEIGHTS = (1.0, 0.5, 0.25)
# A site that is this much worse than the best only happened to be the next one.
LEAST_SHARE = 0.3


@dataclass(frozen=True, slots=True)
class SiteMatch:
    """A site that has something on the question. `score` is 0..100 within this question."""

    name: str
    score: float
    description: str
    documents: int


async def who(
    text: str,
    *,
    sites: Sequence[str],
    documents: Documents,
    retriever: Retriever,
    describe: Callable[[str], str],
    limit: int,
) -> list[SiteMatch]:
    """At most `limit` of these sites, the best first; of equal ones, by name. Raises StoreError.

    `describe` tells what a site says of itself.
    """
    found = await retriever.search(
        [Part(text)], sites=sites, limit=CANDIDATES, languages=await documents.languages(sites)
    )
    scope = Scope.of(sites)
    scores: dict[str, list[float]] = defaultdict(list)
    for candidate in await documents.live(scope, found):
        scores[candidate.document.site].append(candidate.score)
    rated = {site: _rating(of_site) for site, of_site in scores.items()}
    least = LEAST_SHARE * max(rated.values(), default=0.0)
    best = sorted((site for site in rated if rated[site] >= least), key=lambda site: (-rated[site], site))
    counts = {site.name: site.documents for site in await documents.sites(scope)}
    return [
        SiteMatch(site, round(100 * rated[site], 1), describe(site), counts.get(site, 0))
        for site in best[:limit]
    ]


def _rating(scores: Sequence[float]) -> float:
    best = sorted(scores, reverse=True)
    return sum(weight * score for weight, score in zip(WEIGHTS, best, strict=False)) / sum(WEIGHTS)
