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
from core.documents import Candidate, Documents
from core.errors import AskError, ModelError, ModelTimeout, StoreError
from core.generation import choose, extract, generate, summarize, whole
from core.ingestion.text import plain
from core.language import detect
from core.memory import Memory
from core.memory.claims import leaning
from core.messages import (
    AskingSites,
    AskUser,
    Complete,
    Debug,
    Decontextualized,
    Failure,
    GeneratedAnswer,
    Header,
    Irrelevant,
    Item,
    Message,
    NoResults,
    NoResultsReason,
    RankingType,
    Results,
    Started,
    ToolSelection,
    UsedMemories,
)
from core.passages import best_of
from core.prompting.ask import Prompter
from core.prompting.schema_types import BASE, kinds
from core.providers.base import Usage, Where
from core.providers.traced import Traced
from core.query import Query
from core.ranking import BatchFailed, Ranker, Scored
from core.retrieval import Part, Retriever
from core.selection import Selection
from core.steps import STEP_CALLS, Decontextualize, DetectMemory, Outcome, SideStep, Step, beside
from core.steps.context import with_context
from core.steps.decontextualize import leans_on_something, parts_of
from core.steps.memory import commands
from core.tools import SEARCH, Choice, Kit, Tool, ToolAnswer, chosen, described, tool_for
from core.tools.base import CHOSEN_SCORE
from core.tools.rules import may_be_for_a_tool

log = logging.getLogger(__name__)

API_VERSION = "0.55"
NO_LLM = "none"
# Recall is a look into the store; where it takes longer than this the question goes ahead without it.
RECALL_S = 0.5
# A store that hangs must not hold an answer for ever.
RETRIEVAL_S = 5.0
# A source of a written answer needs a little more than a place in a list (NLWeb's number).
GATHER_SCORE = 55
# To make out what a question is for takes a small reply; to answer by a tool a few calls, some in a row.
TOOL_CHOICE_S = 4.0
TOOL_S = 30.0
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
        conversations: Conversations | None = None,
        memory: Memory | None,
        prompter: Prompter | None,
        ranker: Ranker | None,
        settings: PipelineSettings,
    ) -> None:
        self._documents = documents
        self._retriever = retriever
        self._conversations = conversations
        self._memory = memory
        self._prompter = prompter
        self._ranker = ranker
        self._settings = settings

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
        self._timings: dict[str, float] = {}
        self._degraded = False
        self._told: set[str] = set()
        self._memory_handled = False
        self._learn_from: Query | None = None
        self._beside: Mapping[str, asyncio.Task[Outcome]] = {}
        self._verdict: asyncio.Task[AskUser | Irrelevant | None] | None = None
        self._shown = False  # something that is final: an item, or that there is none
        # A question keeps the prompts it began with, whatever is reloaded while it runs.
        self._prompter: Prompter | None = None
        self._ranker: Ranker | None = None
        self._traced: Traced | None = None
        self._joined: str | None = None
        if pipeline._prompter is not None:
            self._traced = Traced(pipeline._prompter.model) if query.debug else None
            self._prompter = pipeline._prompter.for_question(self._usage, self._mark, model=self._traced)
            self._ranker = pipeline._ranker and pipeline._ranker.using(self._prompter)

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
        finally:
            if self._prompter is not None:
                await self._prompter.close()
        self._mark("total")
        if self._query.debug:
            calls = (
                sorted(self._traced.calls, key=lambda call: float(call["start_ms"])) if self._traced else []
            )
            self._send(Debug(steps=dict(self._timings), model_calls=tuple(calls)))
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
            if self._record is not None:
                self._record.void = True  # a turn that names what is forgotten would bring it back
            await self._remember(query, DetectMemory().fallback(query))
            return ()
        given = query.decontextualized_query
        async with asyncio.TaskGroup() as tasks:
            # Speculation: the search for the question as it came, beside the steps that may change it.
            parts = [Part(given)] if given else parts_of(query)
            retrieval = tasks.create_task(self._retrieve(parts, query))
            if query.provisional and self._ranker is not None:
                tasks.create_task(self._show_provisional(retrieval, query))
            # What is remembered is needed from here on, not for this search: looking for it delays nothing.
            query = await self._with_facts(query)
            if self._prompter is not None:
                self._prompter.start_steps(query)
            memory = tasks.create_task(self._remember(query))
            rewritten = await self._decontextualize(query)
            if rewritten is not None:
                # What was found for the question as typed does not hold for what was meant.
                retrieval.cancel()
                query = query.with_(decontextualized_query=rewritten)
                retrieval = tasks.create_task(self._retrieve([Part(rewritten)], query))
            self._beside = {
                name: tasks.create_task(self._side_step(name, step, query))
                for name, step in self._side_steps(query).items()
            }
            items = await self._unless_settled(query, retrieval, memory)
            self._drop_late_steps()
            await memory
        return items

    def _side_steps(self, query: Query) -> Mapping[str, SideStep]:
        """Those there are calls left for, beside the memory's, the rewriting's, and what a tool may need."""
        if self._prompter is None:
            return {}
        remembers = self._p._memory is not None and query.remember
        rewrote = "decontextualize" in self._timings
        for_tool = may_be_for_a_tool(query.decontextualized_query or query.text)
        return beside(query, self._prompter, STEP_CALLS - remembers - rewrote - for_tool)

    async def _side_step(self, name: str, step: SideStep, query: Query) -> Outcome:
        """What the step found in its time; where it fails or is late the answer goes on without it."""
        assert self._prompter is not None
        try:
            async with asyncio.timeout(self._limit(step, query)):
                outcome = await step.run(query, self._prompter, self._usage)
        except (TimeoutError, AskError) as failed:
            self._skipped(name, failed)
            return Outcome()
        self._mark(name)
        return outcome

    def _drop_late_steps(self) -> None:
        """The answer stands: what a step has not said by now has no use."""
        for name, task in self._beside.items():
            if not task.done():
                task.cancel()
                self._mark(f"{name}_skipped")

    def _limit(self, step: Step | SideStep, query: Query) -> float:
        """Seconds that the step may take: its prompt's own `timeout`, else the step's."""
        prompt = self._prompter and self._prompter.find(step.prompt(query), query)
        return (prompt and prompt.timeout_s) or step.limit_s

    def _skipped(self, name: str, why: BaseException) -> None:
        """Go on without a step: `complete.timings` names it, the log says why."""
        self._mark(f"{name}_skipped")
        reason = why.message if isinstance(why, AskError) else "late"
        log.warning("step.skipped", extra={"step": name, "reason": reason, "query_id": self._query.query_id})

    async def _unless_settled(
        self,
        query: Query,
        retrieval: asyncio.Task[list[Candidate] | AskError],
        memory: asyncio.Task[None],
    ) -> Sequence[Item]:
        """The answer; or, if a step says so before anything is shown, why there is none (or what is needed
        first), and then nothing is ranked any further."""
        work = asyncio.create_task(self._work(query, retrieval, memory))
        self._verdict = asyncio.create_task(self._judged())
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

    async def _judged(self) -> AskUser | Irrelevant | None:
        """The first reason not to answer."""
        deciding = [self._beside[name] for name in ("required_info", "relevance") if name in self._beside]
        for outcome in asyncio.as_completed(deciding):
            found = await outcome
            if found.ask is not None:
                return found.ask
            if found.irrelevant is not None:
                return Irrelevant(found.irrelevant)
        return None

    async def _may_show(self) -> bool:
        """Whether nothing has to be asked back first. Only that is waited for: a site's answer to a question
        that is not for it does no harm."""
        if "required_info" not in self._beside:
            return True
        return (await asyncio.shield(self._beside["required_info"])).ask is None

    async def _work(
        self,
        query: Query,
        retrieval: asyncio.Task[list[Candidate] | AskError],
        memory: asyncio.Task[None],
    ) -> Sequence[Item]:
        """By a tool if the question is for one, else ranked, and then summed up or written if asked for."""
        retrieved = await retrieval
        if not isinstance(retrieved, AskError):
            answer = await self._by_tool(query, retrieved)
            if answer is not None:
                return answer.items if await self._tell(answer) else ()
        items = await self._rank(query, retrieved, memory)
        if query.mode == "summarize":
            await self._summarize(query, items)
        elif query.mode == "generate" and not isinstance(retrieved, AskError):
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
        try:
            async with asyncio.timeout(TOOL_S):
                answer = await tool.run(query, choice.parameters, kit)
        except TimeoutError:
            self._fail(ModelTimeout(f"the tool `{tool.name}` gave no answer within {TOOL_S:g} s"))
            answer = None
        except AskError as failed:
            self._fail(failed)
            answer = None
        except Exception:
            # Code of others may raise anything: the question is still a search.
            log.exception("tool.failed", extra={"tool": tool.name, "query_id": query.query_id})
            self._fail(AskError(f"the tool `{tool.name}` failed"))
            answer = None
        if answer is None:
            self._send(ToolSelection(SEARCH, 100))
        else:
            self._mark(f"tool {tool.name}")
        return answer

    async def _tool_choice(self, tool: Tool, query: Query, kit: Kit) -> Choice | None:
        """Whether the question is for the tool; one that the client insists on is taken in any case."""
        forced = query.tool is not None
        try:
            async with asyncio.timeout(TOOL_CHOICE_S):
                choice = await chosen(tool, query, kit, described())
        except (TimeoutError, AskError) as failed:
            self._skipped("tool_choice", failed)
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
            track: RankingType = "RETRIEVAL" if self._prompter is None else "REGULAR_TRACK"
            return self._item(query, one, score, track, description)

        return Kit(
            usage=self._usage,
            search=search,
            item=item,
            found=retrieved,
            min_score=self._threshold(query) if query.min_score is None else query.min_score,
            prompter=self._prompter,
            ranker=self._ranker,
        )

    async def _tell(self, answer: ToolAnswer) -> bool:
        """Show a tool's answer and the items it rests on, unless something is to be known first."""
        if not await self._may_show():
            return False
        self._shown = True
        for message in answer.messages:
            self._send(message)
        self._results(answer.items)
        return True

    async def _with_history(self, query: Query) -> Query:
        """The query with its stored conversation, in good time or not at all."""
        if self._p._conversations is None or query.identity is None:
            return query
        reading = self._p._conversations.history(query.identity, query.conversation_id)
        try:
            history = await asyncio.wait_for(reading, RECALL_S)
        except (TimeoutError, AskError):
            log.warning("conversation.not_read", extra={"query_id": query.query_id})
            return query
        if query.prev or not query.history_given:
            self._board = history.board
        return with_history(query, history)

    async def _on_page(self, query: Query) -> Query:
        """The query with what is stored of the page it is asked on, in good time or not at all."""
        try:
            return await asyncio.wait_for(with_context(query, self._p._documents), RECALL_S)
        except (TimeoutError, AskError):
            log.warning("context.not_read", extra={"query_id": query.query_id})
            return query

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
        # Rewriting sees the whiteboard also where no turn is cut.
        query = query.with_(whiteboard=told(self._board))
        if not leans_on_something(query):
            return None
        outcome = await self._step("decontextualize", Decontextualize(), query)
        self._mark("decontextualize")
        if outcome.unsure and query.prev:
            # It could not be rewritten: what is searched together is judged together.
            self._joined = f"{query.prev[-1]} {query.text}"
        if outcome.rewritten is not None:
            self._send(Decontextualized(outcome.rewritten, query.text))
        return outcome.rewritten

    async def _remember(self, query: Query, outcome: Outcome | None = None) -> None:
        """Do what the message asks of the memory; `outcome` is that, where it is known already."""
        if self._p._memory is None or not query.remember:
            return
        if outcome is None:
            outcome = await self._step("memory", DetectMemory(), query)
        self._mark("memory")
        for request in outcome.memory:
            self._memory_handled = True
            try:
                # Once begun it is finished, also if the person leaves now: it was asked for.
                self._send(await asyncio.shield(self._p._memory.handle(query, request)))
            except AskError as failed:
                self._fail(failed, degraded=False)
            except Exception:
                # Whatever a hook does, it never stops an answer.
                log.exception("memory.failed", extra={"query_id": query.query_id})
                self._fail(AskError("remembering failed"), degraded=False)
        if not outcome.memory:
            self._learn_from = query

    async def _step(self, name: str, step: Step, query: Query) -> Outcome:
        """What the step says; where the model fails or is late, what it can say without."""
        if self._prompter is None:
            return step.fallback(query)
        limit = self._limit(step, query)
        try:
            async with asyncio.timeout(limit):
                return await step.run(query, self._prompter, self._usage)
        except TimeoutError as late:
            self._skipped(name, late)
            self._fail(ModelTimeout(f"the model gave no answer within {limit:g} s ({name})"))
        except ModelError as failed:
            self._skipped(name, failed)
            self._fail(failed)
        return step.fallback(query)

    async def _retrieve(self, parts: Sequence[Part], query: Query) -> list[Candidate] | AskError:
        """What is found, or as a value what failed: a speculative search must not end the other tasks."""
        try:
            async with asyncio.timeout(RETRIEVAL_S):
                found = await self._p._retriever.search(
                    parts,
                    sites=query.sites,
                    limit=query.num_results,
                    where=_filtered(query),
                    languages=await self._p._documents.languages(query.sites),
                    on_failure=self._fail,
                )
                candidates = await self._p._documents.live(Scope.of(query.sites), found)
        except TimeoutError:
            return StoreError(f"the search gave no answer within {RETRIEVAL_S:g} s")
        except AskError as failed:
            return failed
        self._mark("retrieval")
        return _once(candidates)

    async def _show_provisional(
        self, retrieval: asyncio.Task[list[Candidate] | AskError], query: Query
    ) -> None:
        """The order of the first search, as soon as it is there: no step is waited for."""
        await asyncio.wait({retrieval})
        if retrieval.cancelled() or isinstance(found := retrieval.result(), AskError):
            return
        page = found[query.start_num : query.start_num + query.max_results]
        self._results([self._item(query, c, None, "PROVISIONAL") for c in page])

    async def _rank(
        self, query: Query, retrieved: list[Candidate] | AskError, memory: asyncio.Task[None]
    ) -> Sequence[Item]:
        if isinstance(retrieved, AskError):
            self._fail(retrieved)
            return await self._nothing("retrieval_failed", memory)
        if not retrieved:
            counts = await self._p._documents.sites(Scope.of(query.sites))
            empty = not any(site.documents for site in counts)
            filtered = _filtered(query) is not None
            reason: NoResultsReason = "site_empty" if empty else "filters" if filtered else "below_min_score"
            # Nothing found by what still works says nothing about what is there.
            if StoreError.code in self._told:
                reason = "retrieval_failed"
            return await self._nothing(reason, memory)
        kind = self._kind_so_far()
        if kind is not None and (narrowed := _of_kind(retrieved, kind)):
            retrieved, query = narrowed, query.with_(item_type=kind)
        threshold = query.min_score
        if threshold is None:
            threshold = self._threshold(query)
        selection = Selection(start=query.start_num, size=query.max_results, min_score=threshold)
        sent: set[tuple[str, str]] = set()
        if self._ranker is None or self._silent:
            self._rank_by_retrieval(query, retrieved, selection)
        else:
            await self._rank_by_model(query, retrieved, selection, sent)
        if (kind := await self._kind()) is not None:
            selection.narrow({_key(one) for one in _of_kind(retrieved, kind)})
        if not await self._may_show():
            return ()
        final = selection.final()
        self._results([item for item in final if (item.site, item.document_id) not in sent])
        if not final:
            return await self._nothing("below_min_score", memory)
        return final

    @property
    def _silent(self) -> bool:
        """Whether the model has let a step of this question wait in vain: then nothing more is asked of it,
        so that a model that never answers costs one call's time and not one after the other."""
        return ModelTimeout.code in self._told

    def _threshold(self, query: Query) -> int:
        """The least score where the client names none: nothing is judged without a model."""
        if self._ranker is None or self._silent:
            return 0
        return GATHER_SCORE if query.mode == "generate" else self._p._settings.min_score

    def _rank_by_retrieval(self, query: Query, retrieved: Sequence[Candidate], selection: Selection) -> None:
        retrieved = _leaned(query, retrieved)
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
        assert self._ranker is not None
        place_of = {candidate.document.key: place for place, candidate in enumerate(retrieved)}
        track: RankingType = "REGULAR_TRACK" if query.decontextualized_query else "FAST_TRACK"
        asked = query.with_(decontextualized_query=self._joined) if self._joined else query
        async with aclosing(self._ranker.rank(asked, retrieved, self._usage)) as ranked:
            async for scored in ranked:
                if isinstance(scored, BatchFailed):
                    self._fail(scored.error)
                    continue
                item = self._scored_item(query, scored, retrieved, track)
                place = place_of[scored.candidate.document.key]
                # Items that got no score are placed, not judged: the model's threshold is not for them.
                exempt = scored.score is None and query.min_score is None
                if not await self._may_show():
                    return
                kind = self._kind_so_far()
                fits = kind is None or bool(_of_kind([scored.candidate], kind))
                if selection.offer(item, place, exempt=exempt) and scored.score is not None and fits:
                    sent.add((item.site, item.document_id))
                    self._results([item])

    async def _kind(self) -> str | None:
        """The kind of item that is meant, if that is sure."""
        task = self._beside.get("item_type")
        return None if task is None else (await asyncio.shield(task)).item_type

    def _kind_so_far(self) -> str | None:
        """The kind of item that is meant, if that is known by now: nothing waits for it but the last word."""
        task = self._beside.get("item_type")
        return task.result().item_type if task is not None and task.done() else None

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

    async def _summarize(self, query: Query, items: Sequence[Item]) -> None:
        """A few sentences on the best items; where that fails the list stands without them."""
        try:
            writer = None if self._silent else self._prompter
            summary = await summarize(writer, query, items, self._usage)
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
        sources = choose([(item, candidates[item.site, item.document_id]) for item in items])
        if not sources:
            return ()
        said: list[str] = []
        answer: GeneratedAnswer | None = None
        if self._prompter is not None and not self._silent:
            try:
                async with aclosing(generate(self._prompter, query, sources, self._usage)) as written:
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
        answer = answer or extract(query, sources)
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

    def _mark(self, name: str) -> None:
        """Milliseconds since the question came, under this name."""
        self._timings[name] = round((time.monotonic() - self._began) * 1000, 1)


_NOTHING: Mapping[NoResultsReason, str] = {
    "site_empty": "Nothing has been loaded here yet.",
    "below_min_score": "Nothing here answers this well enough.",
    "filters": "Nothing matches with these filters.",
    "retrieval_failed": "The search is not working at the moment.",
}


def _filtered(query: Query) -> Where | None:
    """The store's filter; every item is a `Thing`."""
    kind = query.item_type
    return Where(must={"types": kind}) if kind is not None and kind != BASE else None


def _key(candidate: Candidate) -> tuple[str, str]:
    return candidate.document.site, candidate.document.document_id


def _of_kind(candidates: Sequence[Candidate], kind: str) -> list[Candidate]:
    """Those of this schema.org type or one below it."""
    return [one for one in candidates if kind in kinds(one.document.types)]


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


def _leaned(query: Query, candidates: Sequence[Candidate]) -> Sequence[Candidate]:
    """The candidates in the light of what the asker likes and does not, where no model reads that."""
    if not query.facts:
        return candidates
    texts = [f"{candidate.document.name}\n{candidate.text}" for candidate in candidates]
    leans = leaning(texts, query.facts)
    moved = [replace(c, score=max(0.0, c.score + lean)) for c, lean in zip(candidates, leans, strict=True)]
    return sorted(moved, key=lambda candidate: -candidate.score)


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
    """What of an item answers, by words alone: its description's best sentences, or the found chunk's."""
    asked = query.decontextualized_query or " ".join([query.text, *query.prev[-1:]])
    language = candidate.document.language or detect(candidate.text)
    described = candidate.document.schema_object
    prose = described.get("description") if isinstance(described, dict) else None
    texts = [plain(prose), candidate.text] if isinstance(prose, str) else [candidate.text]
    return best_of(texts, asked, language)
