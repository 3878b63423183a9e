"""Score candidates in batches whose replies are read while they stream; lose none of them.

A prompt is filled once for a batch and the reply is an array of scores, each carrying its item's random tag.
Items of different sites never share a batch (nor do items whose type has a prompt of its own), so that no
site's text stands beside another's. What a reply leaves out is asked for once more; what is missing then is
placed by its retrieval score and marked so.

Within a site an item's text may still tell the model how to score the others. So items that speak to the
model (`core/screening.py`) are scored alone, batches are dealt out so that none holds more than its share of
the likeliest items, a reply that looks ordered is asked for again without the items that gained by it, and
no two items of a batch are told of in the same words.
What that guarantees, and what not: docs/security.md.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from statistics import median

from core.documents import Candidate, Document, Version
from core.errors import BadModelReply, ConfigError, ModelError
from core.ingestion.text import MAX_TRIMMED, shortened, trimmed
from core.jsonstream import ObjectReader
from core.kept import Kept
from core.pace import Pace
from core.prompting.ask import Prompter, call_of
from core.prompting.fill import fill_batch
from core.prompting.library import Prompt
from core.prompting.variables import Value
from core.providers.base import Usage
from core.query import Query
from core.screening import Screen
from core.timeline import as_step

log = logging.getLogger(__name__)

TAG = "tag"
# Of one batch's reply: a hundred times what ten scores with descriptions take.
MAX_REPLY_CHARS = 256_000
RANKING = "RankingPrompt"
RANKING_FOR_GENERATE = "RankingPromptForGenerate"
# The calls of a question with fifty candidates: what the batches and the steps leave of them may be spent on
# items scored alone and on replies asked for again.
MAX_CALLS = 8
# As many of the likeliest candidates are told of at full length; of the others, which are rarely shown, the
# model sees an abstract: that saves up to half the tokens of a question.
AT_LENGTH = 10
ABSTRACT = 600
# Of items as prompts show them: the same few are candidates again and again, and trimming one takes longer
# than all else that is done for it.
TRIMMED_BYTES = 32 * 2**20
# A reply looks ordered where one item stands above LOW, or two at TOP or above, and all the others, at least
# two, have one and the same score, though retrieval held one of them for likely: at ALIKE of what is the
# middle of the best ten, or above. (The best alone is no measure: who gives orders also writes keywords.) Of
# TINY or fewer items one low one is enough, whatever retrieval held of it.
LOW = 50
TOP = 90
ALIKE = 0.8
TINY = 3
# Two descriptions say the same if so many of their triples of letters are in both.
SAME = 0.8


@dataclass(frozen=True, slots=True)
class Scored:
    """A candidate with the model's score (0..100) and description; score None if the model gave none."""

    candidate: Candidate
    score: int | None
    description: str = ""


@dataclass(frozen=True, slots=True)
class BatchFailed:
    """A batch (or a part of one) that got no scores, also not at the second try."""

    error: ModelError
    items: int


@dataclass(frozen=True, slots=True)
class Batch:
    """Items scored by one call, in the order of retrieval."""

    site: str
    item_type: str
    prompt: Prompt
    candidates: tuple[Candidate, ...]
    at_length: frozenset[Version]
    likely: float  # a retrieval score that makes an item one of those that may be shown

    def of(self, candidates: Sequence[Candidate]) -> Batch:
        """The same call for these."""
        return replace(self, candidates=tuple(candidates))


@dataclass(slots=True)
class Room:
    """How many more calls than one for each batch there may be."""

    calls: int

    def take(self) -> bool:
        """Whether there is one left, which is then gone."""
        self.calls -= 1
        return self.calls >= 0


class Replies:
    """The scores of one batch as they come in, and which of them may be told already."""

    def __init__(self) -> None:
        self._waiting: dict[Version, Scored] = {}
        self._all: list[Scored] = []
        self._letters: dict[Version, frozenset[str]] = {}
        self._echoes: set[Version] = set()

    def add(self, one: Scored) -> list[Scored]:
        """Take a score in; returns those that may be told now.

        A high one waits for the next, which might be described in the same words. Low ones, which are hardly
        ever shown, wait for the end: only then is it known whether the reply looks ordered.
        """
        key, letters = one.candidate.document.key, _letters(one)
        twins = {other for other, known in self._letters.items() if _same(known, letters)}
        if twins:
            self._echoes |= {key, *twins}
        self._letters[key] = letters
        self._all.append(one)
        waiting, self._waiting = {**self._waiting, key: one}, {}
        ready = []
        for other, each in waiting.items():
            if (each.score or 0) > LOW and (other != key or twins):
                ready.append(self._without_echo(each))
            else:
                self._waiting[other] = each
        return ready

    def low(self) -> list[Scored]:
        """Those that were scored low."""
        return [one for one in self._all if (one.score or 0) <= LOW]

    def rest(self) -> list[Scored]:
        """Those not told yet."""
        return [self._without_echo(one) for one in self._waiting.values()]

    def look_ordered(self, likely: float) -> bool:
        """Whether one or two items got all and the others one and the same low score, though one of these is
        as likely as that."""
        high = [one.score or 0 for one in self._all if (one.score or 0) > LOW]
        low = self.low()
        if len({one.score for one in low}) != 1:
            return False
        if len(high) != 1 and not (len(high) == 2 and min(high) >= TOP):
            return False
        if len(self._all) <= TINY:
            return True
        return len(low) > 1 and any(one.candidate.score >= likely for one in low)

    def _without_echo(self, one: Scored) -> Scored:
        """What was said of several items in the same words is dropped: an order may have put it there."""
        return replace(one, description="") if one.candidate.document.key in self._echoes else one


def _letters(one: Scored) -> frozenset[str]:
    """The description's triples of letters, without the item's own name."""
    said = " ".join(one.description.casefold().replace(one.candidate.document.name.casefold(), " ").split())
    return frozenset(said[at : at + 3] for at in range(max(1, len(said) - 2)) if said)


def _same(one: frozenset[str], other: frozenset[str]) -> bool:
    few, many = sorted((len(one), len(other)))
    # Sets of such different sizes cannot have enough in common: most are told apart by that.
    if not few or few < SAME * many:
        return False
    both = len(one & other)
    return both >= SAME * (few + many - both)


class Ranker:
    """Scores candidates with the site's and type's `RankingPrompt`."""

    def __init__(self, prompter: Prompter, *, batch_size: int, screen: Screen | None = None) -> None:
        self._prompter = prompter
        self._batch_size = batch_size
        self._screen = screen or Screen()

    def using(self, prompter: Prompter) -> Ranker:
        """This ranker with the prompter of one question."""
        return Ranker(prompter, batch_size=self._batch_size, screen=self._screen)

    def likeliest(self, query: Query, candidates: Sequence[Candidate]) -> Sequence[Candidate]:
        """The best candidates by retrieval that one call can score: of the first one's site and prompt.
        Raises ConfigError if there is no prompt."""
        return self._groups(query, candidates)[0].candidates[: self._batch_size] if candidates else ()

    def batches(self, query: Query, candidates: Sequence[Candidate]) -> list[Batch]:
        """The candidates in batches. Each is dealt every n-th of its group, so that all have their share of
        the likeliest: one item's text then stands beside few of those that may be shown, and the first
        replies are about the best. Raises ConfigError if there is no prompt.
        """
        dealt: list[Batch] = []
        for group in self._groups(query, candidates):
            piles = -(-len(group.candidates) // self._batch_size)
            dealt += [group.of(group.candidates[start::piles]) for start in range(piles)]
        return dealt

    def _groups(self, query: Query, candidates: Sequence[Candidate]) -> list[Batch]:
        """What may stand in one prompt together, whatever its size."""
        ref = RANKING_FOR_GENERATE if query.mode == "generate" else RANKING
        groups: dict[tuple[str, int], tuple[str, Prompt, list[Candidate]]] = {}
        for candidate in candidates:
            site = candidate.document.site
            item_type = candidate.document.types[0] if candidate.document.types else ""
            prompt = self._prompter.find(ref, query, site=site, item_type=item_type)
            if prompt is None or prompt.reply is None:
                raise ConfigError(f"there is no `{ref}` with a returnStruc for site `{site}`")
            _, _, members = groups.setdefault((site, id(prompt)), (item_type, prompt, []))
            members.append(candidate)
        at_length = frozenset(candidate.document.key for candidate in candidates[:AT_LENGTH])
        best = [candidate.score for candidate in candidates[:AT_LENGTH]]
        likely = ALIKE * median(best) if best else 0.0
        return [
            Batch(site, item_type, prompt, tuple(members), at_length, likely)
            for (site, _), (item_type, prompt, members) in groups.items()
        ]

    async def rank(
        self, query: Query, candidates: Sequence[Candidate], usage: Usage
    ) -> AsyncGenerator[Scored | BatchFailed, None]:
        """Every candidate once, as its score comes in; failures as they are known.

        An item that speaks to the model is scored alone, as far as the calls of a question go (`usage` has
        those begun); it gets no more than its place in retrieval is worth, or that place where no call is
        left. Close the iterator to stop all calls.
        """
        arrived: asyncio.Queue[Scored | BatchFailed | None] = asyncio.Queue()
        suspected = await suspects(self._screen, candidates)
        batches = self.batches(query, [c for c in candidates if c.document.key not in suspected])
        writes = query.mode != "list"
        # Never fewer than if nothing had been held back.
        calls = max(MAX_CALLS - usage.calls - writes, len(self.batches(query, candidates)))
        room = Room(max(0, calls - len(batches)))
        best = max((candidate.score for candidate in candidates), default=0.0)
        tasks = [
            asyncio.create_task(self._alone(query, candidate, usage, arrived, room, best))
            for candidate in candidates
            if candidate.document.key in suspected
        ]
        tasks += [asyncio.create_task(self._score(query, batch, usage, arrived, room)) for batch in batches]
        whole = asyncio.gather(*tasks)

        def ended(done: asyncio.Future[list[None]]) -> None:
            if not done.cancelled():
                done.exception()  # looked at here: whoever reads may have left
            arrived.put_nowait(None)

        whole.add_done_callback(ended)
        try:
            while (scored := await arrived.get()) is not None:
                yield scored
            await whole
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _alone(
        self,
        query: Query,
        candidate: Candidate,
        usage: Usage,
        arrived: asyncio.Queue[Scored | BatchFailed | None],
        room: Room,
        best: float,
    ) -> None:
        """Score an item that speaks to the model in a prompt where it can speak of no other."""
        told = {"query_id": query.query_id, "site": candidate.document.site, "item": candidate.document.url}
        if not room.take():
            log.warning("ranking.unjudged", extra=told)
            arrived.put_nowait(Scored(candidate, None))
            return
        log.warning("ranking.alone", extra=told)
        own: asyncio.Queue[Scored | BatchFailed | None] = asyncio.Queue()
        (group,) = self._groups(query, [candidate])
        await self._score(query, group, usage, own, Room(0))
        most = round(100 * candidate.score / best) if best > 0 else 0
        while not own.empty():
            one = own.get_nowait()
            if isinstance(one, Scored) and one.score is not None:
                one = replace(one, score=min(one.score, most))
            arrived.put_nowait(one)

    @as_step("ranking batch")
    async def _score(
        self,
        query: Query,
        batch: Batch,
        usage: Usage,
        arrived: asyncio.Queue[Scored | BatchFailed | None],
        room: Room,
    ) -> None:
        """Every candidate of the batch with its score."""
        replies = Replies()
        async for one in self._scores(query, batch, usage):
            if isinstance(one, Scored) and one.score is not None:
                for ready in replies.add(one):
                    arrived.put_nowait(ready)
            else:
                arrived.put_nowait(one)
        while replies.look_ordered(batch.likely) and room.take():
            log.warning("ranking.ordered", extra={"query_id": query.query_id, "site": batch.site})
            low = {one.candidate.document.key: one for one in replies.low()}
            for one in replies.rest():
                if one.candidate.document.key not in low:
                    arrived.put_nowait(one)
            replies = Replies()
            again = batch.of([each.candidate for each in low.values()])
            async for one in self._scores(query, again, usage):
                if isinstance(one, Scored) and one.score is not None:
                    del low[one.candidate.document.key]
                    for ready in replies.add(one):
                        arrived.put_nowait(ready)
            for one in low.values():
                for ready in replies.add(one):
                    arrived.put_nowait(ready)
        for one in replies.rest():
            arrived.put_nowait(one)

    async def _scores(
        self, query: Query, batch: Batch, usage: Usage
    ) -> AsyncGenerator[Scored | BatchFailed, None]:
        """Every candidate of the batch once; those that two replies left out without a score."""
        waiting = {secrets.token_hex(3): candidate for candidate in batch.candidates}
        failure: ModelError | None = None
        for attempt in (1, 2):
            try:
                # The client makes the second try where no reply began; where one did it is made here.
                async with aclosing(self._ask(query, batch, waiting, usage, retries=2 - attempt)) as asked:
                    async for scored in asked:
                        yield scored
                failure = None
            except ModelError as failed:
                failure = failed
                # Where the client has spent its retries, or its time, another round would only be later.
                if not (failed.broke_off or isinstance(failed, BadModelReply)):
                    break
            except Exception:
                # Whatever one reply does to us, the items of this batch are placed and the others go on.
                log.exception("ranking.failed", extra={"query_id": query.query_id})
                failure = ModelError("the server failed on a reply of the model")
                break
            if not waiting:
                return
            log.info(
                "ranking.incomplete",
                extra={
                    "query_id": query.query_id,
                    "attempt": attempt,
                    "missing": len(waiting),
                    "reason": failure.message if failure else "",
                },
            )
        for candidate in waiting.values():
            yield Scored(candidate, None)
        missing = failure or BadModelReply(f"the model left {len(waiting)} items without a score")
        yield BatchFailed(missing, len(waiting))

    async def _ask(
        self, query: Query, batch: Batch, waiting: dict[str, Candidate], usage: Usage, *, retries: int
    ) -> AsyncGenerator[Scored, None]:
        """Scores of `waiting`, which are taken out of it as they come."""
        reply = batch.prompt.reply
        if reply is None:
            raise ConfigError(f"`{batch.prompt.ref}` has no returnStruc")
        items = [
            (tag, as_prompted(one) if one.document.key in batch.at_length else in_short(one))
            for tag, one in waiting.items()
        ]
        # A reply without the tag can only mean the one item that was asked about (NLWeb's own prompts).
        only = next(iter(waiting)) if len(waiting) == 1 else ""
        values = await self._prompter.values_for(
            batch.prompt, query, site=batch.site, item_type=batch.item_type
        )
        filled = fill_batch(batch.prompt, values, items)
        schema = reply.batch_schema(TAG)
        call = replace(call_of(batch.prompt, filled, query, tier="low", schema=schema), retries=retries)
        reader = ObjectReader(TAG)
        room = MAX_REPLY_CHARS
        async with aclosing(self._prompter.model.stream(call, usage)) as pieces:
            async for piece in pieces:
                room -= len(piece)
                if room < 0:
                    raise BadModelReply(f"the model's reply is longer than {MAX_REPLY_CHARS} characters")
                for found in reader.feed(piece):
                    if scored := _scored(found, waiting, batch.prompt, only):
                        yield scored
        for found in reader.close():
            if scored := _scored(found, waiting, batch.prompt, only):
                yield scored


def _scored(
    found: dict[str, object], waiting: dict[str, Candidate], prompt: Prompt, only: str
) -> Scored | None:
    """The score in one object of a reply; None if its tag is unknown (or seen before) or it has no score."""
    tag = str(found.get(TAG, only))
    if tag not in waiting or prompt.reply is None:
        return None
    try:
        values = prompt.reply.coerce({key: value for key, value in found.items() if key != TAG})
    except BadModelReply:
        return None
    return Scored(waiting.pop(tag), int(values["score"]), str(values.get("description") or ""))


async def suspects(screen: Screen, candidates: Sequence[Candidate]) -> set[Version]:
    """Those that speak to the model. Each is looked through when it is met first, which takes a while."""
    pace = Pace()
    found = set()
    for candidate in candidates:
        if screen.suspects(candidate, as_prompted):
            found.add(candidate.document.key)
        await pace.turn()
    return found


def as_prompted(candidate: Candidate) -> Value:
    """What the model sees of an item: its trimmed object, and the passage that was found in a long page.
    Shared with other questions: not to be changed."""
    seen = _trimmed(candidate.document, MAX_TRIMMED)
    if candidate.document.chunks > 1 and isinstance(seen, dict):
        return {**seen, "passage": candidate.text}
    return seen


def in_short(candidate: Candidate) -> Value:
    """The same in about `ABSTRACT` characters; half of them for the passage, where there is one."""
    document = candidate.document
    in_passages = document.chunks > 1
    seen = _trimmed(document, ABSTRACT // 2 if in_passages else ABSTRACT)
    if in_passages and isinstance(seen, dict):
        return {**seen, "passage": shortened(candidate.text, ABSTRACT // 2)}
    return seen


_TRIMMED: Kept[tuple[bytes, int], Value] = Kept(TRIMMED_BYTES)


def _trimmed(document: Document, limit: int) -> Value:
    """The document's object in at most `limit` characters, kept by its whole content: another version of it
    is another one."""
    key = document.item, limit
    seen = _TRIMMED.get(key)
    if seen is None:
        seen = _TRIMMED.put(key, trimmed(document.schema_object, limit), len(document.item) + 3 * limit)
    return seen
