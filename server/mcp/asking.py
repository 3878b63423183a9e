"""The tool `ask`: a question through the same pipeline as `/ask`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import aclosing
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
)
from core.query import MAX_QUERY_CHARS, Query
from server.auth import caller_of, readable_sites
from server.keys import FEEDBACK, PIPELINE, SETTINGS
from server.mcp.base import Arguments, Call, Result, Told, Tool
from server.mcp.ids import item_id
from server.params import MAX_PREV, Params, asked_from
from server.wire.base import final_items, message_body

# What an answer may say beside its items, passed on as the messages of `/ask`.
BESIDE = (AskUser, CompareItems, EnsembleResult, GeneratedAnswer, Irrelevant, ItemDetails, Summary)
Question = Annotated[str, Field(min_length=1, max_length=MAX_QUERY_CHARS)]


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
    max_results: Annotated[int | None, Field(ge=1, le=100, description="At most so many results.")] = None


class Answer(Result):
    """One result of `ask`, a stored item."""

    id: Annotated[str, Field(description="For the tool fetch.")]
    title: str
    url: str
    site: str
    text: Annotated[str, Field(description="Why it fits, or the passage that fits best.")]
    score: Annotated[float | None, Field(description="How well it fits, 0..100.")]


class AskResult(Result):
    query_id: str
    searched: Annotated[str, Field(description="The question as it was understood and searched for.")]
    results: Annotated[list[Answer], Field(description="The best first.")]
    messages: Annotated[
        list[dict[str, Any]],
        Field(description="What else is told: a summary, an answer, details, a question back."),
    ]
    degraded: Annotated[bool, Field(description="Whether something failed on the way.")]
    notice: Annotated[str, Field(description="What failed, or why there are no results; else empty.")]


async def ask(call: Call, given: AskArguments) -> Told:
    query = await _query(call, given)
    request = call.request
    answered = request.app[FEEDBACK].begin(caller_of(request).label, query)
    messages: list[Message] = []
    told = found = 0
    async with aclosing(request.app[PIPELINE].run(query)) as stream:
        async for message in stream:
            messages.append(message)
            answered.see(message)
            found += len(message.items) if isinstance(message, Results) else 0
            if note := _note(message, found):
                told += 1
                await call.progress(told, note)
    return _told(query, messages)


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
    notice = "; ".join(failure.message for failure in failures) or nothing
    searched = next(
        (m.decontextualized_query for m in messages if isinstance(m, Decontextualized)), query.text
    )
    data = AskResult(
        query_id=query.query_id,
        searched=searched,
        results=[_answer(item) for item in items],
        messages=[message_body(message) for message in beside],
        degraded=any(message.degraded for message in messages if isinstance(message, Complete)),
        notice=notice,
    )
    lines = [*_beside_as_text(beside), *_items_as_text(data.results)]
    if notice:
        lines.insert(0, notice)
    # Where the model judged nothing, what there is was only searched for: the agent must know that the call
    # failed, and may use it all the same.
    judged = beside or any(item.ranking_type != "RETRIEVAL" for item in items)
    return Told("\n\n".join(lines), data, failed=bool(failures) and not judged)


def _answer(item: Item) -> Answer:
    return Answer(
        id=item_id(item.site, item.document_id),
        title=item.name,
        url=item.url,
        site=item.site,
        text=item.description,
        score=item.score,
    )


def _items_as_text(answers: Sequence[Answer]) -> Iterator[str]:
    for number, answer in enumerate(answers, 1):
        yield f"{number}. {answer.title} ({answer.site}, id {answer.id})\n{answer.url}\n{answer.text}"


def _beside_as_text(beside: Sequence[Message]) -> Iterator[str]:
    for message in beside:
        if isinstance(message, Irrelevant | Summary):
            yield message.message
        elif isinstance(message, GeneratedAnswer):
            sources = [f"[{item['n']}] {item['name']} {item['url']}" for item in message.items]
            yield "\n".join([message.answer, *sources])
        elif isinstance(message, AskUser):
            yield "\n".join([message.message, *(f"- {question.text}" for question in message.questions)])
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
        "the reason it fits. Give the earlier questions of the conversation as `prev` with a follow-up."
    ),
    arguments=AskArguments,
    result=AskResult,
    run=ask,
    cards=True,
)
