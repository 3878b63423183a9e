"""From a query to a stream of messages: steps beside retrieval, then ranking, each result as it is known."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from core.documents import Candidate, Documents
from core.errors import AskError, ModelError
from core.language import detect
from core.memory import Memory
from core.messages import (
    AskingSites,
    Complete,
    Decontextualized,
    Failure,
    Header,
    Item,
    Message,
    NoResults,
    NoResultsReason,
    RankingType,
    Results,
    Started,
    UsedMemories,
)
from core.passages import best_passage
from core.prompting.ask import Prompter
from core.providers.base import Usage
from core.query import Query
from core.ranking import BatchFailed, Ranker, Scored
from core.retrieval import Part, Retriever
from core.selection import Selection
from core.steps import Decontextualize, DetectMemory, Outcome, Step
from core.steps.decontextualize import parts_of

log = logging.getLogger(__name__)

API_VERSION = "0.55"
NO_LLM = "none"
# Recall is a look into the store; where it takes longer than this the question goes ahead without it.
RECALL_S = 0.5
# NLWeb's name for the sites that a question to all of them is told it went to.
SITES_NAMED = 3


@dataclass(frozen=True, slots=True)
class PipelineSettings:
    """The part of the settings that asking needs."""

    max_results: int
    min_score: int
    headers: Mapping[str, str] = field(default_factory=dict)


class Pipeline:
    """Answers questions. One for the process; every question is a `run` of its own."""

    def __init__(
        self,
        *,
        documents: Documents,
        retriever: Retriever,
        memory: Memory | None,
        prompter: Prompter | None,
        ranker: Ranker | None,
        settings: PipelineSettings,
    ) -> None:
        self._documents = documents
        self._retriever = retriever
        self._memory = memory
        self._prompter = prompter
        self._ranker = ranker
        self._settings = settings

    @property
    def llm(self) -> str:
        """The model's name, or `none`."""
        return self._prompter.model.name if self._prompter else NO_LLM

    async def run(self, query: Query) -> AsyncGenerator[Message, None]:
        """The answer's messages; `Complete` is the last, whatever fails. Close it to stop the work."""
        outbox: asyncio.Queue[Message | None] = asyncio.Queue()
        answer = _Answer(self, query, outbox.put_nowait)
        work = asyncio.create_task(answer.conduct())
        work.add_done_callback(lambda _: outbox.put_nowait(None))
        try:
            while (message := await outbox.get()) is not None:
                yield message
            await work
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)


class _Answer:
    """One question on its way: what was found, sent and spent."""

    def __init__(self, pipeline: Pipeline, query: Query, send: Callable[[Message], None]) -> None:
        self._p = pipeline
        self._query = query
        self._send = send
        self._usage = Usage()
        self._began = time.monotonic()
        self._timings: dict[str, float] = {}
        self._degraded = False
        self._told: set[str] = set()
        self._memory_handled = False

    async def conduct(self) -> None:
        """Everything between the first message and the last."""
        self._send(Started(API_VERSION, self._p.llm))
        for name, content in self._p._settings.headers.items():
            self._send(Header(name, content))
        order: Sequence[Item] = ()
        try:
            order = await self._answer()
        except ExceptionGroup as group:
            self._fail(_cause(group, self._query))
        except AskError as failed:
            self._fail(failed)
        except Exception:
            # The stream is open: the client gets a last message in any case, the log gets the cause.
            log.exception("ask.failed", extra={"query_id": self._query.query_id})
            self._fail(AskError("the server failed on this question"))
        self._mark("total")
        self._send(
            Complete(
                order=tuple(item.document_id for item in order),
                degraded=self._degraded,
                timings=self._timings,
                usage={
                    "model_calls": self._usage.calls,
                    "prompt_tokens": self._usage.prompt_tokens,
                    "completion_tokens": self._usage.completion_tokens,
                },
            )
        )

    async def _answer(self) -> Sequence[Item]:
        if self._query.all_sites:
            self._send(_asking(self._query.sites))
        query = await self._with_facts(self._query)
        query = query.with_(language=query.language or detect(query.text))
        given = query.decontextualized_query
        async with asyncio.TaskGroup() as tasks:
            # Speculation: the search for the question as it came, beside the steps that may change it.
            parts = [Part(given)] if given else parts_of(query)
            retrieval = tasks.create_task(self._retrieve(parts, query))
            memory = tasks.create_task(self._remember(query))
            rewritten = await self._decontextualize(query)
            if rewritten is not None:
                # What was found for the question as typed does not hold for what was meant.
                retrieval.cancel()
                query = query.with_(decontextualized_query=rewritten)
                retrieval = tasks.create_task(self._retrieve([Part(rewritten)], query))
            items = await self._rank(query, await retrieval, memory)
            await memory
        return items

    async def _with_facts(self, query: Query) -> Query:
        """The query with what is remembered of its asker, in good time or not at all."""
        if self._p._memory is None or query.identity is None:
            return query
        try:
            facts = await asyncio.wait_for(self._p._memory.recall(query), RECALL_S)
        except TimeoutError:
            log.warning("memory.recall_late", extra={"query_id": query.query_id})
            return query
        self._mark("recall")
        if not facts:
            return query
        self._send(UsedMemories(tuple({"memory_id": f.memory_id, "text": f.text} for f in facts)))
        return query.with_(facts=tuple(fact.text for fact in facts))

    async def _decontextualize(self, query: Query) -> str | None:
        """The question to search for instead, told to the client; None if it stands as it is."""
        if query.decontextualized_query is not None or not query.prev:
            return None
        outcome = await self._step(Decontextualize(), query)
        self._mark("decontextualize")
        if outcome.rewritten is not None:
            self._send(Decontextualized(outcome.rewritten, query.text))
        return outcome.rewritten

    async def _remember(self, query: Query) -> None:
        if self._p._memory is None or not query.remember:
            return
        outcome = await self._step(DetectMemory(), query)
        self._mark("memory")
        if outcome.remember is None:
            return
        self._memory_handled = True
        try:
            # Once begun it is finished, also if the person leaves now: it was asked for.
            self._send(await asyncio.shield(self._p._memory.remember(query, outcome.remember)))
        except AskError as failed:
            self._fail(failed, degraded=False)

    async def _step(self, step: Step, query: Query) -> Outcome:
        """What the step says; where the model fails, what it can say without."""
        if self._p._prompter is None:
            return step.fallback(query)
        try:
            return await step.run(query, self._p._prompter, self._usage)
        except ModelError as failed:
            self._fail(failed)
            return step.fallback(query)

    async def _retrieve(self, parts: Sequence[Part], query: Query) -> list[Candidate] | AskError:
        """What is found, or as a value what failed: a speculative search must not end the other tasks."""
        try:
            found = await self._p._retriever.search(
                parts,
                sites=query.sites,
                limit=query.num_results,
                languages=await self._p._documents.languages(query.sites),
            )
            candidates = await self._p._documents.live(found)
        except AskError as failed:
            return failed
        self._mark("retrieval")
        return _once(candidates)

    async def _rank(
        self, query: Query, retrieved: list[Candidate] | AskError, memory: asyncio.Task[None]
    ) -> Sequence[Item]:
        if isinstance(retrieved, AskError):
            self._fail(retrieved)
            return await self._nothing("retrieval_failed", memory)
        if not retrieved:
            empty = not any(s.documents for s in await self._p._documents.sites() if s.name in query.sites)
            return await self._nothing("site_empty" if empty else "below_min_score", memory)
        if query.provisional and self._p._ranker is not None:
            first = retrieved[: query.max_results]
            self._results([self._item(query, c, None, "PROVISIONAL") for c in first])
        threshold = query.min_score
        if threshold is None:
            threshold = self._p._settings.min_score if self._p._ranker else 0
        selection = Selection(start=query.start_num, size=query.max_results, min_score=threshold)
        sent: set[tuple[str, str]] = set()
        if self._p._ranker is None:
            self._rank_by_retrieval(query, retrieved, selection)
        else:
            await self._rank_by_model(query, retrieved, selection, sent)
        final = selection.final()
        self._results([item for item in final if (item.site, item.document_id) not in sent])
        if not final:
            return await self._nothing("below_min_score", memory)
        return final

    def _rank_by_retrieval(self, query: Query, retrieved: Sequence[Candidate], selection: Selection) -> None:
        for place, candidate in enumerate(retrieved):
            item = self._item(query, candidate, _on_scale(candidate, retrieved), "RETRIEVAL")
            selection.offer(item, place)

    async def _rank_by_model(
        self,
        query: Query,
        retrieved: Sequence[Candidate],
        selection: Selection,
        sent: set[tuple[str, str]],
    ) -> None:
        assert self._p._ranker is not None
        place_of = {candidate.document.key: place for place, candidate in enumerate(retrieved)}
        track: RankingType = "REGULAR_TRACK" if query.decontextualized_query else "FAST_TRACK"
        async with aclosing(self._p._ranker.rank(query, retrieved, self._usage)) as ranked:
            async for scored in ranked:
                if isinstance(scored, BatchFailed):
                    self._fail(scored.error)
                    continue
                item = self._scored_item(query, scored, retrieved, track)
                place = place_of[scored.candidate.document.key]
                # Items that got no score are placed, not judged: the model's threshold is not for them.
                exempt = scored.score is None and query.min_score is None
                if selection.offer(item, place, exempt=exempt) and scored.score is not None:
                    sent.add((item.site, item.document_id))
                    self._results([item])

    def _scored_item(
        self, query: Query, scored: Scored, retrieved: Sequence[Candidate], track: RankingType
    ) -> Item:
        if scored.score is None:
            return self._item(query, scored.candidate, _on_scale(scored.candidate, retrieved), "RETRIEVAL")
        return self._item(query, scored.candidate, float(scored.score), track, scored.description)

    def _item(
        self,
        query: Query,
        candidate: Candidate,
        score: float | None,
        ranking_type: RankingType,
        description: str = "",
    ) -> Item:
        document = candidate.document
        return Item(
            url=document.url,
            name=document.name,
            site=document.site,
            score=score,
            description=description or _passage(query, candidate),
            schema_object=document.schema_object,
            ranking_type=ranking_type,
            document_id=document.document_id,
        )

    async def _nothing(self, reason: NoResultsReason, memory: asyncio.Task[None]) -> Sequence[Item]:
        """Say that nothing was found; not to someone who asked for nothing but to remember."""
        await memory
        if not self._memory_handled or reason == "retrieval_failed":
            self._send(NoResults(_NOTHING[reason], reason))
        return ()

    def _results(self, items: Sequence[Item]) -> None:
        if not items:
            return
        if "first_result" not in self._timings:
            self._mark("first_result")
        self._send(Results(tuple(items)))

    def _fail(self, failed: AskError, *, degraded: bool = True) -> None:
        """Tell the client once per kind of failure; what was had stays."""
        self._degraded = self._degraded or degraded
        if failed.code not in self._told:
            self._told.add(failed.code)
            self._send(Failure(failed.code, failed.message, failed.retryable))

    def _mark(self, name: str) -> None:
        """Milliseconds since the question came, under this name."""
        self._timings[name] = round((time.monotonic() - self._began) * 1000, 1)


_NOTHING: Mapping[NoResultsReason, str] = {
    "site_empty": "Nothing has been loaded here yet.",
    "below_min_score": "Nothing here answers this well enough.",
    "filters": "Nothing matches with these filters.",
    "retrieval_failed": "The search is not working at the moment.",
}


def _cause(group: ExceptionGroup[Exception], query: Query) -> AskError:
    """What to tell of errors that ended the tasks together: one of ours if there is one."""
    ours, others = group.split(AskError)
    if others is not None:
        log.error("ask.failed", exc_info=others, extra={"query_id": query.query_id})
    while ours is not None:
        first = ours.exceptions[0]
        if isinstance(first, AskError):
            return first
        ours = first
    return AskError("the server failed on this question")


def _asking(sites: Sequence[str]) -> AskingSites:
    named = ", ".join(sites[:SITES_NAMED])
    more = f" and {len(sites) - SITES_NAMED} more" if len(sites) > SITES_NAMED else ""
    return AskingSites(
        message=f"Asking {named}{more}" if sites else "There are no sites yet", sites=tuple(sites)
    )


def _once(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Each document once, at its best place."""
    first: dict[tuple[str, str], Candidate] = {}
    for candidate in candidates:
        first.setdefault((candidate.document.site, candidate.document.document_id), candidate)
    return list(first.values())


def _on_scale(candidate: Candidate, among: Sequence[Candidate]) -> float:
    """The retrieval score as 0..100 within the answer (contract 4.6)."""
    best = max(other.score for other in among)
    return round(100 * candidate.score / best, 1) if best > 0 else 0.0


def _passage(query: Query, candidate: Candidate) -> str:
    asked = query.decontextualized_query or " ".join([query.text, *query.prev[-1:]])
    return best_passage(candidate.text, asked, candidate.document.language or detect(candidate.text))
