"""Score candidates in batches whose replies are read while they stream; lose none of them.

A prompt is filled once for a batch and the reply is an array of scores, each carrying its item's random tag.
Items of different sites never share a batch (nor do items whose type has a prompt of its own), so that no
site's text stands beside another's. What a reply leaves out is asked for once more; what is missing then is
placed by its retrieval score and marked so.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from core.documents import Candidate
from core.errors import BadModelReply, ConfigError, ModelError, ModelTimeout
from core.ingestion.text import trimmed
from core.jsonstream import ObjectReader
from core.prompting.ask import Prompter, call_of
from core.prompting.fill import fill_batch
from core.prompting.library import Prompt
from core.prompting.variables import Value
from core.providers.base import Usage
from core.query import Query

log = logging.getLogger(__name__)

TAG = "tag"
# Of one batch's reply: a hundred times what ten scores with descriptions take.
MAX_REPLY_CHARS = 256_000
RANKING = "RankingPrompt"
RANKING_FOR_GENERATE = "RankingPromptForGenerate"


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
    """Items scored by one call."""

    site: str
    item_type: str
    prompt: Prompt
    candidates: tuple[Candidate, ...]


class Ranker:
    """Scores candidates with the site's and type's `RankingPrompt`."""

    def __init__(self, prompter: Prompter, *, batch_size: int) -> None:
        self._prompter = prompter
        self._batch_size = batch_size

    def using(self, prompter: Prompter) -> Ranker:
        """This ranker with the prompter of one question."""
        return Ranker(prompter, batch_size=self._batch_size)

    def batches(self, query: Query, candidates: Sequence[Candidate]) -> list[Batch]:
        """The candidates in batches, in the order of retrieval. Raises ConfigError if there is no prompt."""
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
        size = self._batch_size
        return [
            Batch(site, item_type, prompt, tuple(members[start : start + size]))
            for (site, _), (item_type, prompt, members) in groups.items()
            for start in range(0, len(members), size)
        ]

    async def rank(
        self, query: Query, candidates: Sequence[Candidate], usage: Usage
    ) -> AsyncGenerator[Scored | BatchFailed, None]:
        """Every candidate once, as its score comes in; failures as they are known.

        Close the iterator to stop all calls.
        """
        arrived: asyncio.Queue[Scored | BatchFailed | None] = asyncio.Queue()
        tasks = [
            asyncio.create_task(self._score(query, batch, usage, arrived))
            for batch in self.batches(query, candidates)
        ]
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

    async def _score(
        self, query: Query, batch: Batch, usage: Usage, arrived: asyncio.Queue[Scored | BatchFailed | None]
    ) -> None:
        waiting = {secrets.token_hex(3): candidate for candidate in batch.candidates}
        failure: ModelError | None = None
        for attempt in (1, 2):
            before = len(waiting)
            try:
                async for scored in self._ask(query, batch, waiting, usage):
                    arrived.put_nowait(scored)
                failure = None
            except ModelError as failed:
                failure = failed
                # Where no reply came the client has spent its retries: another round would only be later.
                if isinstance(failed, ModelTimeout):
                    break
                if not isinstance(failed, BadModelReply) and len(waiting) == before:
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
            arrived.put_nowait(Scored(candidate, None))
        missing = failure or BadModelReply(f"the model left {len(waiting)} items without a score")
        arrived.put_nowait(BatchFailed(missing, len(waiting)))

    async def _ask(
        self, query: Query, batch: Batch, waiting: dict[str, Candidate], usage: Usage
    ) -> AsyncGenerator[Scored, None]:
        """Scores of `waiting`, which are taken out of it as they come."""
        reply = batch.prompt.reply
        if reply is None:
            raise ConfigError(f"`{batch.prompt.ref}` has no returnStruc")
        items = [(tag, as_prompted(candidate)) for tag, candidate in waiting.items()]
        values = await self._prompter.values_for(
            batch.prompt, query, site=batch.site, item_type=batch.item_type
        )
        call = call_of(
            batch.prompt,
            fill_batch(batch.prompt, values, items),
            query,
            tier="low",
            schema=reply.batch_schema(TAG),
        )
        reader = ObjectReader(TAG)
        room = MAX_REPLY_CHARS
        async with aclosing(self._prompter.model.stream(call, usage)) as pieces:
            async for piece in pieces:
                room -= len(piece)
                if room < 0:
                    raise BadModelReply(f"the model's reply is longer than {MAX_REPLY_CHARS} characters")
                for found in reader.feed(piece):
                    if scored := _scored(found, waiting, batch.prompt):
                        yield scored
        for found in reader.close():
            if scored := _scored(found, waiting, batch.prompt):
                yield scored


def _scored(found: dict[str, object], waiting: dict[str, Candidate], prompt: Prompt) -> Scored | None:
    """The score in one object of a reply; None if its tag is unknown (or seen before) or it has no score."""
    tag = str(found.get(TAG, ""))
    if tag not in waiting and len(waiting) == 1 and TAG not in found:
        # One item was asked about: a reply without the tag can only mean that one (NLWeb's own prompts).
        tag = next(iter(waiting))
    if tag not in waiting or prompt.reply is None:
        return None
    try:
        values = prompt.reply.coerce({key: value for key, value in found.items() if key != TAG})
    except BadModelReply:
        return None
    return Scored(waiting.pop(tag), int(values["score"]), str(values.get("description") or ""))


def as_prompted(candidate: Candidate) -> Value:
    """What the model sees of an item: its trimmed object, and the passage that was found in a long page."""
    seen: Value = trimmed(candidate.document.schema_object)
    if candidate.document.chunks > 1 and isinstance(seen, dict):
        return {**seen, "passage": candidate.text}
    return seen
