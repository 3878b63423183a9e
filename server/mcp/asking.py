"""The tool `ask`: a question through the same pipeline as `/ask`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import aclosing
from itertools import count
from typing import Annotated, Any, Final

import orjson
from pydantic import Field

from core.messages import (
    AskUser,
    CompareItems,
    Complete,
    Decontextualized,
    EnsembleResult,
    Failure,
    GeneratedAnswer,
    Irrelevant,
    Item,
    ItemDetails,
    Message,
    NoResults,
    Results,
    Summary,
    UsedMemories,
)
from core.query import Mode, Query
from server.auth import caller_of, readable_sites
from server.keys import FEEDBACK, PIPELINE, SETTINGS
from server.mcp.base import Arguments, Call, Result, Told, Tool
from server.mcp.finding import Question, Tags
from server.mcp.ids import item_id
from server.params import MAX_PREV, Params, asked_from
from server.wire.base import final_items, message_body

# What an answer may say beside its items and has no field for, passed on as the messages of `/ask`.
BESIDE = (CompareItems, EnsembleResult, Irrelevant, ItemDetails)


class AskArguments(Arguments):
    query: Annotated[Question, Field(description="The question, in any language.")]
    site: Annotated[
        str | None, Field(description="Only this site (see list_sites), or several with commas; else all.")
    ] = None
    prev: Annotated[
        list[Question],
        Field(
            max_length=MAX_PREV,
            description="The earlier questions of this conversation, oldest first, if this is a follow-up.",
        ),
    ] = []  # noqa: RUF012 - pydantic copies defaults
    mode: Annotated[
        Mode,
        Field(
            description="list: the best items; summarize: also a summary of them; generate: an answer "
            "written from them, with its sources."
        ),
    ] = "list"
    max_results: Annotated[int | None, Field(ge=1, le=100, description="At most so many results.")] = None
    tags: Tags = []  # noqa: RUF012


class Answer(Result):
    """One result of `ask`, a stored item."""

    id: Annotated[str, Field(description="For the tool fetch.")]
    title: str
    url: str
    site: str
    text: Annotated[str, Field(description="Why it fits, or the passage that fits best.")]
    score: Annotated[float | None, Field(description="How well it fits, 0..100.")]


class Source(Result):
    """What a written answer cites as [n]."""

    n: int
    id: Annotated[str, Field(description="For the tool fetch.")]
    title: str
    url: str
    site: str


class Written(Result):
    """A written answer (`mode` generate)."""

    text: Annotated[str, Field(description="It cites its sources as [n].")]
    sources: list[Source]
    found: Annotated[
        str | None,
        Field(description="How much of the question they answer, by the model; null: nobody judged it."),
    ]
    extractive: Annotated[
        bool, Field(description="No model wrote it: it is put together from the sources' sentences.")
    ]


class BackQuestion(Result):
    id: str
    text: str
    options: Annotated[list[str], Field(description="What can be chosen; empty: anything can be said.")]


class Back(Result):
    """What has to be known before the question can be answered."""

    text: str
    questions: list[BackQuestion]


class Used(Result):
    """A remembered fact that the answer takes into account."""

    memory_id: Annotated[str, Field(description="For the tool forget.")]
    text: str


class Fault(Result):
    code: str
    message: str


class AskResult(Result):
    query_id: str
    searched: Annotated[str, Field(description="The question as it was understood and searched for.")]
    results: Annotated[list[Answer], Field(description="The best first.")]
    answer: Annotated[Written | None, Field(description="With `mode` generate.")]
    summary: Annotated[str | None, Field(description="With `mode` summarize.")]
    ask_user: Annotated[
        Back | None,
        Field(
            description="Set: ask the person this, then call again with what they say as `query` and with "
            "`query` at the end of `prev`."
        ),
    ]
    used_memories: Annotated[
        list[Used], Field(description="What is remembered of the person and was taken into account.")
    ]
    messages: Annotated[
        list[dict[str, Any]],
        Field(description="What else is told: details, a comparison, why the question has no answer here."),
    ]
    degraded: Annotated[bool, Field(description="Whether something failed on the way.")]
    notice: Annotated[str, Field(description="What failed, or why there are no results; else empty.")]
    errors: Annotated[list[Fault], Field(description="What failed, one by one.")]


async def ask(call: Call, given: AskArguments) -> Told:
    for said in call.person.answers:
        given = _completed(given, said)
    steps = count(1)
    while True:
        query = await _query(call, given)
        messages = await _answered(call, query, steps)
        asked = next((message for message in messages if isinstance(message, AskUser)), None)
        answer = await call.person.ask(asked) if asked is not None else None
        if answer is None:
            return _told(query, messages)
        given = _completed(given, answer)


def _completed(given: AskArguments, answer: str) -> AskArguments:
    """The next question of the conversation, which is what the last one lacked."""
    return given.model_copy(update={"query": answer, "prev": [*given.prev, given.query][-MAX_PREV:]})


async def _answered(call: Call, query: Query, steps: Iterator[int]) -> list[Message]:
    request = call.request
    answered = request.app[FEEDBACK].begin(caller_of(request).label, query)
    messages: list[Message] = []
    found = 0
    async with aclosing(request.app[PIPELINE].run(query)) as stream:
        async for message in stream:
            messages.append(message)
            answered.see(message)
            found += len(message.items) if isinstance(message, Results) else 0
            if note := _note(message, found):
                await call.progress(next(steps), note)
            if isinstance(message, Failure):
                await call.warn(f"{message.code}: {message.message}")
    return messages


async def _query(call: Call, given: AskArguments) -> Query:
    # Nothing of it is kept: an agent that wants something remembered has a tool for that.
    given_values = given.model_dump(exclude_none=True)
    return asked_from(
        Params({name: [value] for name, value in given_values.items()}),
        settings=call.request.app[SETTINGS],
        readable=await readable_sites(call.request),
        identity=caller_of(call.request).identity,
        remember=False,
        accept="",
    ).query


def _note(message: Message, found: int) -> str:
    """How far it is, for a person who waits; empty where there is nothing new to say."""
    if isinstance(message, Decontextualized):
        return f"Understood as: {message.decontextualized_query}"
    if isinstance(message, Results):
        return f"{found} found so far: {message.items[-1].name}"
    return ""


def _told(query: Query, messages: Sequence[Message]) -> Told:
    items = final_items(messages)
    failures = [message for message in messages if isinstance(message, Failure)]
    beside = [message for message in messages if isinstance(message, BESIDE)]
    nothing = next((m.message for m in messages if isinstance(m, NoResults)), "")
    data = AskResult(
        query_id=query.query_id,
        searched=next(
            (m.decontextualized_query for m in messages if isinstance(m, Decontextualized)), query.text
        ),
        results=[_answer(item) for item in items],
        answer=next((_written(m) for m in messages if isinstance(m, GeneratedAnswer)), None),
        summary=next((m.message for m in messages if isinstance(m, Summary)), None),
        ask_user=next((_back(m) for m in messages if isinstance(m, AskUser)), None),
        used_memories=[
            Used(memory_id=one["memory_id"], text=one["text"])
            for message in messages
            if isinstance(message, UsedMemories)
            for one in message.items
        ],
        messages=[message_body(message) for message in beside],
        degraded=any(message.degraded for message in messages if isinstance(message, Complete)),
        notice="; ".join(failure.message for failure in failures) or nothing,
        errors=[Fault(code=one.code, message=one.message) for one in failures],
    )
    # Where the model judged and wrote nothing, what there is was only searched for: the agent must know that
    # the call failed, and may use it all the same.
    judged = any(item.ranking_type != "RETRIEVAL" for item in items)
    written = any(isinstance(m, GeneratedAnswer | Summary) and not m.extractive for m in messages)
    useful = judged or written or bool(beside) or data.ask_user is not None
    return Told(
        "\n\n".join(_as_text(data, beside)), data, failed=failures[0].code if failures and not useful else ""
    )


def _written(message: GeneratedAnswer) -> Written:
    sources = [
        Source(
            n=one["n"],
            id=item_id(one["site"], one["document_id"]),
            title=one["name"],
            url=one["url"],
            site=one["site"],
        )
        for one in message.items
    ]
    return Written(text=message.answer, sources=sources, found=message.found, extractive=message.extractive)


def _back(message: AskUser) -> Back:
    return Back(
        text=message.message,
        questions=[
            BackQuestion(id=one.id, text=one.text, options=list(one.options)) for one in message.questions
        ],
    )


def _answer(item: Item) -> Answer:
    return Answer(
        id=item_id(item.site, item.document_id),
        title=item.name,
        url=item.url,
        site=item.site,
        text=item.description,
        score=item.score,
    )


def _as_text(data: AskResult, beside: Sequence[Message]) -> Iterator[str]:
    if data.notice:
        yield data.notice
    if data.summary:
        yield data.summary
    if data.answer:
        sources = [
            f"[{one.n}] {one.title} ({one.site}, id {one.id}) {one.url}" for one in data.answer.sources
        ]
        yield "\n".join([data.answer.text, *sources])
    if data.ask_user:
        yield "\n".join([data.ask_user.text, *_choices(data.ask_user)])
    yield from _beside_as_text(beside)
    for number, one in enumerate(data.results, 1):
        yield f"{number}. {one.title} ({one.site}, id {one.id})\n{one.url}\n{one.text}"
    if data.used_memories:
        yield "\n".join(["Remembered of the person:", *(f"- {one.text}" for one in data.used_memories)])


def _choices(asked: Back) -> Iterator[str]:
    for question in asked.questions:
        if question.text != asked.text:
            yield f"- {question.text}"
        if question.options:
            yield f"  ({' / '.join(question.options)})"


def _beside_as_text(beside: Sequence[Message]) -> Iterator[str]:
    for message in beside:
        if isinstance(message, Irrelevant):
            yield message.message
        elif isinstance(message, ItemDetails):
            yield f"{message.name} {message.url}\n{_plain(message.details)}\n{message.explanation}"
        elif isinstance(message, CompareItems):
            yield f"{message.item1.name} / {message.item2.name}\n{_plain(message.comparison)}"
        elif isinstance(message, EnsembleResult):
            yield _plain(message.result)


def _plain(value: str | dict[str, Any]) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


ASK: Final = Tool(
    name="ask",
    title="Ask the sites",
    description=(
        "Find what these websites have that answers a question in plain language: the best items, each with "
        "the reason it fits; if wanted, a summary or an answer written from them. Give the earlier questions "
        "of the conversation as `prev` with a follow-up."
    ),
    arguments=AskArguments,
    result=AskResult,
    run=ask,
    cards=True,
)
