"""From a query to a stream of messages: steps beside retrieval, then ranking, each result as it is known."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from core.access import Scope
from core.conversation import Conversations, Record, told, with_history
from core.conversation_rows import Entry
from core.cutoff import related
from core.deadline import Deadline
from core.documents import Candidate, Documents
from core.errors import AskError, MemoryFailed, ModelError, ModelTimeout, StoreError
from core.generation import choose, extract, generate, summarize, whole
from core.items import item_of, key_of, leaned, of_kind, on_scale, once, undescribed, with_passages
from core.language import detect
from core.memory import Memory
from core.messages import (
    AskingSites,
    AskUser,
    Complete,
    Debug,
    Decontextualized,
    Failure,
    Forgotten,
    GeneratedAnswer,
    Header,
    Irrelevant,
    Item,
    Memories,
    Message,
    NoResults,
    NoResultsReason,
    RankingType,
    Remember,
    Results,
    Started,
    ToolSelection,
    UsedMemories,
)
from core.prompting.ask import Prompter
from core.prompting.library import PromptLibrary
from core.providers.base import Usage
from core.providers.traced import Traced
from core.query import Query
from core.ranking import BatchFailed, Ranker, Scored
from core.retrieval import Part, Retriever, filtered
from core.selection import Selection
from core.steps import STEP_CALLS, Decontextualize, DetectMemory, Outcome, SideStep, beside
from core.steps.context import with_context
from core.steps.decontextualize import before_it, leans_on_something, parts_of
from core.steps.memory import commands
from core.steps.running import StepRunner
from core.timeline import Timeline, spent_on
from core.tools import SEARCH, Choice, Kit, Tool, ToolAnswer, chosen, described, tool_for
from core.tools.base import CHOSEN_SCORE
from core.tools.rules import may_be_for_a_tool
from core.weighing import Weighing

log = logging.getLogger(__name__)

API_VERSION = "0.55"
NO_LLM = "none"
# Recall is a look into the store; where it takes longer than this the question goes ahead without it.
RECALL_S = 0.5
# A store that hangs must not hold an answer for ever.
RETRIEVAL_S = 5.0
# To make out what a question is for takes a small reply; to answer by a tool a few calls, some in a row.
TOOL_CHOICE_S = 4.0
TOOL_S = 30.0
# Through so many tasks a message goes to its reader, one a turn of the event loop, and one to spare.
HANDS = 3
# NLWeb's name for the sites that a question to all of them is told it went to.
SITES_NAMED = 3


@dataclass(frozen=True, slots=True)
class PipelineSettings:
    """The part of the settings that asking needs."""

    max_results: int
    min_score: int
    source_score: int  # the same for a source of a written answer
    answer_s: float  # what one answer may ask of the model in all
    headers: Mapping[str, str] = field(default_factory=dict)


class Pipeline:
    """Answers questions. One for the process; every question is a `run` of its own."""

    def __init__(
        self,
        *,
        documents: Documents,
        retriever: Retriever,
        conversations: Conversations | None = None,
        memory: Memory | None,
        prompter: Prompter | None,
        ranker: Ranker | None,
        settings: PipelineSettings,
        library: Callable[[], PromptLibrary],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._documents = documents
        self._retriever = retriever
        self._conversations = conversations
        self._memory = memory
        self._prompter = prompter
        self._ranker = ranker
        self._settings = settings
        self._library = library
        self._clock = clock

    @property
    def llm(self) -> str:
        """The model's name, or `none`."""
        return self._prompter.model.name if self._prompter else NO_LLM

    @property
    def trouble(self) -> str:
        """What the model's last call failed of; empty where there is none or it is well."""
        return self._prompter.model.trouble if self._prompter else ""

    async def run(self, query: Query) -> AsyncGenerator[Message, None]:
        """The answer's messages; `Complete` is the last, whatever fails. Close it to stop the work."""
        outbox: asyncio.Queue[Message | None] = asyncio.Queue()
        query = query.with_(asked_at=self._clock())
        record = self._conversations.record(query) if self._conversations is not None else None
        answer = _Answer(self, query, outbox.put_nowait, record)
        work = asyncio.create_task(answer.conduct())
        work.add_done_callback(lambda _: outbox.put_nowait(None))
        try:
            while (message := await outbox.get()) is not None:
                yield message
            await work
        finally:
            work.cancel()
            if self._conversations is not None and record is not None:
                # Also where the person left: what was had by then. It is not waited for.
                self._conversations.keep(record)
            await asyncio.gather(work, return_exceptions=True)


class _Answer:
    """One question on its way: what was found, sent and spent."""

    def __init__(
        self, pipeline: Pipeline, query: Query, send: Callable[[Message], None], record: Record | None
    ) -> None:
        self._p = pipeline
        self._query = query
        self._client = send
        self._record = record
        self._board: Sequence[Entry] = ()
        self._usage = Usage()
        self._began = time.monotonic()
        self._deadline = Deadline.after(pipeline._settings.answer_s)
        self._timings: dict[str, float] = {}
        self._degraded = False
        self._told: set[str] = set()
        self._search_damaged = False  # a part of the search is not working
        self._memory_handled = False
        self._learn_from: Query | None = None
        self._provisional: asyncio.Task[None] | None = None
        self._verdict: asyncio.Task[AskUser | Irrelevant | None] | None = None
        self._shown = False  # something that is final: an item, or that there is none
        # A question keeps the prompts it began with, whatever is reloaded while it runs.
        self._prompter: Prompter | None = None
        self._ranker: Ranker | None = None
        self._timeline = Timeline(self._began) if query.debug else None
        self._traced: Traced | None = None
        self._joined: str | None = None
        if pipeline._prompter is not None:
            if self._timeline is not None:
                self._traced = Traced(pipeline._prompter.model, self._timeline)
            self._prompter = pipeline._prompter.for_question(
                self._usage, self._mark, model=self._traced, deadline=self._deadline
            )
            self._ranker = pipeline._ranker and pipeline._ranker.using(self._prompter)
        self._steps = StepRunner(
            self._prompter, self._usage, self._deadline, mark=self._mark, fail=self._fail
        )
        library = self._prompter.library if self._prompter is not None else pipeline._library()
        self._weighing = Weighing(library, pipeline._clock(), query.near)

    async def conduct(self) -> None:
        """Everything between the first message and the last."""
        if self._timeline is not None:
            self._timeline.follow()
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
        finally:
            if self._prompter is not None:
                await self._prompter.close()
        self._mark("total")
        if self._timeline is not None:
            calls = self._traced.calls if self._traced is not None else []
            self._send(
                Debug(
                    steps=dict(self._timings),
                    timeline=self._timeline.rows(),
                    model_calls=tuple(sorted(calls, key=lambda call: float(call["start_ms"]))),
                )
            )
        complete = Complete(
            order=tuple(item.document_id for item in order),
            degraded=self._degraded,
            timings=self._timings,
            usage={
                "model_calls": self._usage.calls,
                "prompt_tokens": self._usage.prompt_tokens,
                "completion_tokens": self._usage.completion_tokens,
            },
        )
        if self._p._conversations is not None and self._record is not None:
            # Before the last message: who asks on as soon as it is there finds this turn.
            self._record.see(complete)
            await self._p._conversations.keep_in_time(self._record)
        self._send(complete)
        if self._p._memory is not None and self._learn_from is not None:
            self._p._memory.learn(self._learn_from)

    def _send(self, message: Message) -> None:
        if self._record is not None:
            self._record.see(message)
        self._client(message)

    async def _answer(self) -> Sequence[Item]:
        if self._query.all_sites:
            self._send(_asking(self._query.sites))
        query = await self._with_history(self._query)
        query = await self._on_page(query)
        query = query.with_(language=query.language or detect(query.text))
        if self._p._memory is not None and query.remember and commands(query, self._prompter):
            asked = DetectMemory().fallback(query)
            if self._record is not None and any(one.action != "remember" for one in asked.memory):
                self._record.void = True  # a turn that names what is forgotten would bring it back
            await self._remember(query, asked)
            return ()
        async with asyncio.TaskGroup() as tasks:
            # Speculation: the search for the question as it came, beside the steps that may change it.
            retrieval = tasks.create_task(self._retrieve(_searched_as(query), query))
            if query.provisional and self._ranker is not None:
                self._provisional = tasks.create_task(self._show_provisional(retrieval, query))
            # What is remembered is needed from here on, not for this search: looking for it delays nothing.
            query = await self._with_facts(query)
            if self._prompter is not None:
                self._prompter.start_steps(query)
            memory = tasks.create_task(self._remember(query))
            rewritten = await self._decontextualize(query)
            if rewritten is not None:
                # What was found for the question as typed does not hold for what was meant.
                unseen = not retrieval.done()
                retrieval.cancel()
                query = query.with_(decontextualized_query=rewritten)
                retrieval = tasks.create_task(self._retrieve(_searched_as(query), query))
                if unseen and self._provisional is not None:
                    self._provisional = tasks.create_task(self._show_provisional(retrieval, query))
            self._steps.start_beside(self._side_steps(query), query, tasks)
            items = await self._unless_settled(query, retrieval, memory)
            self._steps.drop_late()
            await memory
        return items

    def _side_steps(self, query: Query) -> Mapping[str, SideStep]:
        """Those there are calls left for, beside the memory's, the rewriting's, and what a tool may need."""
        if self._prompter is None or self._given_up():
            return {}
        remembers = self._p._memory is not None and query.remember
        rewrote = "decontextualize" in self._timings
        for_tool = may_be_for_a_tool(query.decontextualized_query or query.text)
        return beside(query, self._prompter, STEP_CALLS - remembers - rewrote - for_tool)

    async def _unless_settled(
        self,
        query: Query,
        retrieval: asyncio.Task[list[Candidate] | AskError],
        memory: asyncio.Task[None],
    ) -> Sequence[Item]:
        """The answer; or, if a step says so before anything is shown, why there is none (or what is needed
        first), and then nothing is ranked any further."""
        work = asyncio.create_task(self._work(query, retrieval, memory))
        self._verdict = asyncio.create_task(self._steps.verdict())
        try:
            await asyncio.wait({work, self._verdict}, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                items = await work
                if self._shown:
                    return items
            if (said := await self._verdict) is not None and not self._shown:
                self._send(said)
                return ()
            return await work
        finally:
            for task in (work, self._verdict):
                task.cancel()
            await asyncio.gather(work, self._verdict, return_exceptions=True)

    async def _work(
        self,
        query: Query,
        retrieval: asyncio.Task[list[Candidate] | AskError],
        memory: asyncio.Task[None],
    ) -> Sequence[Item]:
        """By a tool if the question is for one, else ranked, and then summed up or written if asked for."""
        retrieved = await retrieval
        if self._provisional is not None:
            await asyncio.wait({self._provisional})
        if not isinstance(retrieved, AskError):
            answer = await self._by_tool(query, retrieved)
            if answer is not None:
                return answer.items if await self._tell(answer) else ()
        items = await self._rank(query, retrieved, memory)
        if query.mode == "summarize":
            with spent_on("summary"):
                await self._summarize(query, items)
        elif query.mode == "generate" and not isinstance(retrieved, AskError):
            with spent_on("answer"):
                items = await self._generate(query, items, retrieved)
        return items

    async def _by_tool(self, query: Query, retrieved: Sequence[Candidate]) -> ToolAnswer | None:
        """What the tool that the question is for says; None if it is a search, or is one after all."""
        kit = self._kit(query, retrieved)
        tool = tool_for(query, retrieved, kit)
        if tool is None:
            return None
        choice = await self._tool_choice(tool, query, kit)
        if choice is None:
            return None
        self._send(ToolSelection(tool.name, choice.score, dict(choice.parameters)))
        limit = self._deadline.within(TOOL_S)
        try:
            with spent_on(f"tool {tool.name}"):
                async with asyncio.timeout(limit):
                    answer = await tool.run(query, choice.parameters, kit)
        except TimeoutError:
            self._fail(ModelTimeout(f"the tool `{tool.name}` gave no answer within {limit:.3g} s"))
            answer = None
        except AskError as failed:
            self._fail(failed)
            answer = None
        except Exception:
            # Code of others may raise anything: the question is still a search.
            log.exception("tool.failed", extra={"tool": tool.name, "query_id": query.query_id})
            self._fail(AskError(f"the tool `{tool.name}` failed"))
            answer = None
        answer = answer and _as_every_answer(answer, query, kit.min_score)
        if answer is None:
            self._send(ToolSelection(SEARCH, 100))
        else:
            self._mark(f"tool {tool.name}")
        return answer

    async def _tool_choice(self, tool: Tool, query: Query, kit: Kit) -> Choice | None:
        """Whether the question is for the tool; one that the client insists on is taken in any case."""
        forced = query.tool is not None
        try:
            with spent_on("tool_choice"):
                async with asyncio.timeout(self._deadline.within(TOOL_CHOICE_S)):
                    choice = await chosen(tool, query, kit, described())
        except (TimeoutError, AskError) as failed:
            self._steps.skipped("tool_choice", failed, query)
            return Choice() if forced else None
        self._mark("tool_choice")
        if forced:
            return Choice(100, choice.parameters if choice is not None else {})
        return choice if choice is not None and choice.score >= CHOSEN_SCORE else None

    def _kit(self, query: Query, retrieved: Sequence[Candidate]) -> Kit:
        async def search(text: str) -> Sequence[Candidate]:
            had = self._timings.get("retrieval", 0.0)
            found = await self._retrieve([Part(text)], query)
            self._timings["retrieval"] = had  # of the question
            if isinstance(found, AskError):
                raise found
            return found

        def item(one: Candidate, score: float | None, description: str) -> Item:
            track: RankingType = "RETRIEVAL" if prompter is None else "REGULAR_TRACK"
            return item_of(query, one, score, track, description)

        # Of a model that is not asked any more a tool knows no more than where there is none.
        prompter, ranker = (None, None) if self._given_up() else (self._prompter, self._ranker)
        return Kit(
            usage=self._usage,
            search=search,
            item=item,
            found=retrieved,
            min_score=self._least_score(query),
            prompter=prompter,
            ranker=ranker,
        )

    async def _tell(self, answer: ToolAnswer) -> bool:
        """Show a tool's answer and the items it rests on, unless something is to be known first."""
        if not await self._steps.may_show():
            return False
        self._shown = True
        for message in answer.messages:
            self._send(message)
        self._results(answer.items)
        return True

    async def _with_history(self, query: Query) -> Query:
        """The query with its stored conversation, in good time or not at all; that it is without is told, as
        a follow-up then means something else. Not read for what the client says is a first question."""
        first = query.history_given and not query.prev
        if self._p._conversations is None or query.identity is None or first:
            return query
        reading = self._p._conversations.history(query.identity, query.conversation_id)
        try:
            with spent_on("history"):
                history = await asyncio.wait_for(reading, RECALL_S)
        except (TimeoutError, AskError) as failed:
            self._steps.skipped("history", failed, query)
            self._fail(StoreError("what was said before could not be read: the question is taken by itself"))
            return query
        if self._record is not None:
            self._record.build_on(history)
        self._board = history.board
        return with_history(query, history)

    async def _on_page(self, query: Query) -> Query:
        """The query with what is stored of the page it is asked on, in good time or not at all."""
        if not query.context_url:
            return query
        try:
            with spent_on("context"):
                return await asyncio.wait_for(with_context(query, self._p._documents), RECALL_S)
        except (TimeoutError, AskError) as failed:
            self._steps.skipped("context", failed, query)
            return query

    async def _with_facts(self, query: Query) -> Query:
        """The query with what is remembered of its asker, in good time or not at all."""
        if self._p._memory is None or query.identity is None:
            return query
        try:
            with spent_on("recall"):
                facts = await asyncio.wait_for(self._p._memory.recall(query), RECALL_S)
        except (TimeoutError, AskError) as failed:
            self._steps.skipped("recall", failed, query)
            return query
        self._mark("recall")
        if not facts:
            return query
        self._send(UsedMemories(tuple({"memory_id": f.memory_id, "text": f.text} for f in facts)))
        return query.with_(facts=tuple(fact.text for fact in facts))

    async def _decontextualize(self, query: Query) -> str | None:
        """The question to search for instead, told to the client; None if it stands as it is."""
        # Rewriting sees the whiteboard also where no turn is cut.
        query = query.with_(whiteboard=told(self._board))
        if not leans_on_something(query):
            return None
        outcome = await self._steps.run("decontextualize", Decontextualize(), query)
        self._mark("decontextualize")
        if outcome.unsure and query.prev:
            # It could not be rewritten: what is searched together is judged and answered together.
            self._joined = f"{before_it(query)} {query.text}"
        if outcome.rewritten is not None:
            self._send(Decontextualized(outcome.rewritten, query.text))
        return outcome.rewritten

    async def _remember(self, query: Query, outcome: Outcome | None = None) -> None:
        """Do what the message asks of the memory; `outcome` is that, where it is known already."""
        if self._p._memory is None or not query.remember:
            return
        if outcome is None:
            outcome = await self._steps.run("memory", DetectMemory(), query)
        self._mark("memory")
        for request in outcome.memory:
            self._memory_handled = True
            # Once begun it is finished, also if the person leaves now or the time is up: it was asked for.
            handling = asyncio.create_task(self._p._memory.handle(query, request))
            handling.add_done_callback(_looked_at)
            try:
                with spent_on("remember"):
                    await asyncio.wait({handling}, timeout=max(RECALL_S, self._deadline.left))
                    if not handling.done():
                        raise MemoryFailed("remembering takes longer than an answer waits; it goes on")
                    self._send(handling.result())
            except AskError as failed:
                self._fail(failed, degraded=False)
            except Exception:
                # Whatever a hook does, it never stops an answer.
                log.exception("memory.failed", extra={"query_id": query.query_id})
                self._fail(AskError("remembering failed"), degraded=False)
        if not outcome.memory:
            self._learn_from = query

    async def _retrieve(self, parts: Sequence[Part], query: Query) -> list[Candidate] | AskError:
        """What is found, or as a value what failed: a speculative search must not end the other tasks."""
        try:
            with spent_on("retrieval"):
                async with asyncio.timeout(RETRIEVAL_S):
                    found = await self._p._retriever.search(
                        parts,
                        sites=query.sites,
                        limit=self._weighing.width(query.sites, query.num_results),
                        where=filtered(query.item_type, query.tags),
                        languages=await self._p._documents.languages(query.sites),
                        on_failure=self._search_failed,
                    )
                    candidates = await self._p._documents.live(Scope.of(query.sites), found, query.tags)
        except TimeoutError:
            return StoreError(f"the search gave no answer within {RETRIEVAL_S:g} s")
        except AskError as failed:
            return failed
        self._mark("retrieval")
        return self._weighing.best(once(candidates), query.num_results)

    async def _show_provisional(
        self, retrieval: asyncio.Task[list[Candidate] | AskError], query: Query
    ) -> None:
        """The order of the first search that comes to an end, at once: no step is waited for. It ends with
        the message on its way: to put all prompts of the ranking together takes longer than that."""
        await asyncio.wait({retrieval})
        if retrieval.cancelled() or isinstance(found := retrieval.result(), AskError):
            return
        page = found[query.start_num : query.start_num + query.max_results]
        items = await with_passages(query, [undescribed(c, None, "PROVISIONAL") for c in page], page)
        # Making the passages lets others go on: what is judged by now is not to be followed by a guess.
        if not self._shown:
            self._results(items)
        for _ in range(HANDS):
            await asyncio.sleep(0)

    async def _rank(
        self, query: Query, retrieved: list[Candidate] | AskError, memory: asyncio.Task[None]
    ) -> Sequence[Item]:
        if isinstance(retrieved, AskError):
            self._fail(retrieved)
            return await self._nothing("retrieval_failed", memory)
        if not retrieved:
            counts = await self._p._documents.sites(Scope.of(query.sites))
            empty = not any(site.documents for site in counts)
            narrowed = filtered(query.item_type, query.tags) is not None
            reason: NoResultsReason = "site_empty" if empty else "filters" if narrowed else "below_min_score"
            # Nothing found by what still works says nothing about what is there.
            if self._search_damaged:
                reason = "retrieval_failed"
            return await self._nothing(reason, memory)
        kind = self._steps.kind_so_far()
        if kind is not None and (narrower := of_kind(retrieved, kind)):
            retrieved, query = narrower, query.with_(item_type=kind)
        selection = Selection(
            start=query.start_num, size=query.max_results, min_score=self._least_score(query)
        )
        sent: dict[tuple[str, str], Item] = {}
        if self._ranker is None or self._given_up():
            with spent_on("ranking"):
                await self._rank_by_retrieval(query, await self._related(query, retrieved), selection)
        else:
            with spent_on("ranking"):
                await self._rank_by_model(query, retrieved, selection, sent)
        if (kind := await self._steps.kind()) is not None:
            selection.narrow({key_of(one) for one in of_kind(retrieved, kind)})
        if not await self._steps.may_show():
            return ()
        # As they were shown already, those that were.
        page = [sent.get((item.site, item.document_id), item) for item in selection.final()]
        final = await with_passages(query, page, retrieved)
        self._results([item for item in final if (item.site, item.document_id) not in sent])
        if not final:
            return await self._nothing("below_min_score", memory)
        return final

    def _given_up(self) -> bool:
        """Whether nothing more is asked of the model for this question: it has let a step wait in vain (so
        that one that never answers costs one call's time and not one after the other), or the answer's time
        is up, which is then told. What is missing is placed by retrieval, or left out."""
        if self._prompter is not None and self._deadline.over:
            self._fail(ModelTimeout(f"the answer's time is up: {self._deadline.seconds:g} s"))
        return ModelTimeout.code in self._told

    def _least_score(self, query: Query) -> int:
        """What the client names; else what holds here: nothing is judged without a model."""
        if query.min_score is not None:
            return query.min_score
        if self._ranker is None or self._given_up():
            return 0
        settings = self._p._settings
        return settings.source_score if query.mode == "generate" else settings.min_score

    async def _related(self, query: Query, retrieved: Sequence[Candidate]) -> Sequence[Candidate]:
        """What was found without what has nothing to do with the question. All of it where a model is to say
        that but does not answer (a failure loses no item), and where a part of the search did not work."""
        if self._ranker is not None or self._search_damaged:
            return retrieved
        narrowed = filtered(query.item_type, query.tags) is not None
        passages = len(retrieved) if narrowed else await self._p._documents.size(query.sites)
        return await asyncio.to_thread(related, _searched_as(query), retrieved, passages)

    async def _rank_by_retrieval(
        self, query: Query, retrieved: Sequence[Candidate], selection: Selection
    ) -> None:
        if query.facts:
            retrieved = await asyncio.to_thread(leaned, query, retrieved)
        for place, candidate in enumerate(retrieved):
            selection.offer(undescribed(candidate, on_scale(candidate, retrieved), "RETRIEVAL"), place)

    async def _rank_by_model(
        self,
        query: Query,
        retrieved: Sequence[Candidate],
        selection: Selection,
        sent: dict[tuple[str, str], Item],
    ) -> None:
        assert self._ranker is not None
        place_of = {candidate.document.key: place for place, candidate in enumerate(retrieved)}
        track: RankingType = "REGULAR_TRACK" if query.decontextualized_query else "FAST_TRACK"
        async with aclosing(self._ranker.rank(self._as_meant(query), retrieved, self._usage)) as ranked:
            async for scored in ranked:
                if isinstance(scored, BatchFailed):
                    self._fail(scored.error)
                    continue
                item = self._scored_item(scored, retrieved, track, selection.min_score)
                place = place_of[scored.candidate.document.key]
                # Items that got no score are placed, not judged: the model's threshold is not for them.
                exempt = scored.score is None and query.min_score is None
                if not await self._steps.may_show():
                    return
                kind = self._steps.kind_so_far()
                fits = kind is None or bool(of_kind([scored.candidate], kind))
                if selection.offer(item, place, exempt=exempt) and scored.score is not None and fits:
                    (shown,) = await with_passages(query, [item], [scored.candidate])
                    sent[shown.site, shown.document_id] = shown
                    self._results([shown])

    def _as_meant(self, query: Query) -> Query:
        return query.with_(decontextualized_query=self._joined) if self._joined else query

    def _scored_item(
        self, scored: Scored, retrieved: Sequence[Candidate], track: RankingType, least: float
    ) -> Item:
        if scored.score is None:
            return undescribed(scored.candidate, on_scale(scored.candidate, retrieved), "RETRIEVAL")
        score = self._weighing.judged(scored.candidate.document, float(scored.score), least)
        return undescribed(scored.candidate, score, track, scored.description)

    async def _summarize(self, query: Query, items: Sequence[Item]) -> None:
        """A few sentences on the best items; where that fails the list stands without them."""
        if not items:
            return
        try:
            writer = None if self._given_up() else self._prompter
            summary = await summarize(writer, self._as_meant(query), items, self._usage)
        except ModelError as failed:
            self._fail(failed)
            return
        if summary is not None:
            self._mark("summary")
            self._send(summary)

    async def _generate(
        self, query: Query, items: Sequence[Item], retrieved: Sequence[Candidate]
    ) -> Sequence[Item]:
        """The answer from the items' facts; returns those it cites. The model is not asked without a fact."""
        candidates = {(c.document.site, c.document.document_id): c for c in retrieved}
        sources = await choose([(item, candidates[item.site, item.document_id]) for item in items])
        if not sources:
            return ()
        said: list[str] = []
        answer: GeneratedAnswer | None = None
        if self._prompter is not None and not self._given_up():
            try:
                writing = generate(self._prompter, self._as_meant(query), sources, self._usage)
                async with aclosing(writing) as written:
                    async for message in written:
                        if isinstance(message, GeneratedAnswer):
                            answer = message
                            continue
                        if not said:
                            self._mark("first_result")
                        said.append(message.text)
                        self._send(message)
            except ModelError as failed:
                self._fail(failed)
                # What was written stays; where nothing was, the best sentences stand in.
                answer = whole("".join(said), sources) if said else None
        answer = answer or await extract(self._as_meant(query), sources)
        self._send(answer)
        cited = [source["document_id"] for source in answer.items]
        return [item for item in items if item.document_id in cited]

    async def _nothing(self, reason: NoResultsReason, memory: asyncio.Task[None]) -> Sequence[Item]:
        """Say that nothing was found; not to someone who asked for nothing but to remember."""
        await memory
        judged = self._verdict if reason in ("below_min_score", "filters") else None
        if judged is not None and await asyncio.shield(judged) is not None:
            # That says more than that nothing was found, and is told instead.
            return ()
        self._shown = True
        if not self._memory_handled or reason == "retrieval_failed":
            self._send(NoResults(_NOTHING[reason], reason))
        return ()

    def _results(self, items: Sequence[Item]) -> None:
        if not items or self._query.mode == "generate":
            return
        if "first_result" not in self._timings:
            self._mark("first_result")
        self._shown = self._shown or any(item.ranking_type != "PROVISIONAL" for item in items)
        self._send(Results(tuple(items)))

    def _fail(self, failed: AskError, *, degraded: bool = True) -> None:
        """Tell the client once per kind of failure; what was had stays."""
        self._degraded = self._degraded or degraded
        if failed.code not in self._told:
            log.warning(
                "ask.failure",
                extra={"query_id": self._query.query_id, "code": failed.code, "reason": failed.message},
            )
            self._told.add(failed.code)
            self._send(Failure(failed.code, failed.message, failed.retryable))

    def _search_failed(self, failed: AskError) -> None:
        self._search_damaged = True
        self._fail(failed)

    def _mark(self, name: str) -> None:
        """Milliseconds since the question came, under this name."""
        self._timings[name] = round((time.monotonic() - self._began) * 1000, 1)


_NOTHING: Mapping[NoResultsReason, str] = {
    "site_empty": "Nothing has been loaded here yet.",
    "below_min_score": "Nothing here answers this well enough.",
    "filters": "Nothing matches with these filters.",
    "retrieval_failed": "The search is not working at the moment.",
}


def _searched_as(query: Query) -> list[Part]:
    """What is searched: the question as it was rewritten, else with what it may lean on."""
    meant = query.decontextualized_query
    return [Part(meant)] if meant else parts_of(query)


def _looked_at(done: asyncio.Task[Remember | Forgotten | Memories]) -> None:
    """Nobody may be waiting any more for how it ended."""
    if not done.cancelled() and (failed := done.exception()) is not None:
        log.info("memory.ended", extra={"reason": str(failed)})


def _as_every_answer(answer: ToolAnswer, query: Query, least: int) -> ToolAnswer | None:
    """A tool's answer as any other: at most `max_results` items, none twice, none under the least score. None
    where all it rests on is under that."""
    unlike: dict[tuple[str, str], Item] = {}
    for item in answer.items:
        if item.score is None or item.score >= least:
            unlike.setdefault((item.site, item.document_id), item)
    if answer.items and not unlike:
        return None
    return replace(answer, items=tuple(unlike.values())[: query.max_results])


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
