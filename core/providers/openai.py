"""A chat model behind any OpenAI-compatible endpoint; what the endpoint can do is found out by asking it.

Replies are read from the SDK's raw response, as its typed events cost several times the CPU, and of requests,
which differ in nothing but their body, it puts one together.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import random
import re
from collections.abc import AsyncGenerator, Awaitable, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, TypeVar, cast

import aiohttp
import httpx2
import orjson
from openai import APIConnectionError, APIStatusError, AsyncOpenAI, AsyncStream, DefaultAioHttpClient

from core.deadline import Deadline
from core.errors import BadModelReply, ModelError, ModelTimeout
from core.providers.base import ModelCall, Tier, Usage
from core.providers.openai_reply import (
    DONE,
    Again,
    Events,
    Meter,
    Part,
    ReplyText,
    complaint_in,
    failed_status,
    failure,
    parse,
    part_of,
    whole_text,
)
from core.providers.openai_request import Abilities, request_body
from core.providers.slots import FairSlots

if TYPE_CHECKING:
    from openai._models import FinalRequestOptions

log = logging.getLogger(__name__)
ResultT = TypeVar("ResultT")

OPENAI_URL = "https://api.openai.com/v1"
NO_KEY = "none"  # local endpoints want the header, not what is in it
KEEPALIVE_S = 60.0
CHATS = "/chat/completions"
OF_ITS_OWN = (b"content-length", b"cookie")  # headers of a request that the next has to make anew
LINGER_S = 0.05  # wait for the end of a finished reply, so that its connection can be used again
CONNECTION_ERRORS = (APIConnectionError, httpx2.HTTPError, httpx2.StreamError, aiohttp.ClientError, OSError)
# A reply that a person reads while it is written earns a second of time with each so many characters: half of
# what a slow machine writes, and far more than one that lets a letter drip now and then.
CHARS_A_SECOND = 10
COMPLAINTS = (400, 404, 422, 501)  # statuses that can mean "not this parameter"
KEY_LIKE = re.compile(r"\b(?:sk|key|Bearer)[-_ ][\w*.-]{6,}")


def make_client(base_url: str | None, api_key: str | None, *, max_concurrency: int = 64) -> AsyncOpenAI:
    """The one client of a process. `base_url` None is OpenAI's; without a key a placeholder is sent, as local
    endpoints need none. It has no timeouts and no retries of its own: `OpenAIChat` has them."""
    limits = httpx2.Limits(
        max_connections=max_concurrency,
        max_keepalive_connections=max_concurrency,
        keepalive_expiry=KEEPALIVE_S,
    )
    client = _Client(
        base_url=base_url or OPENAI_URL,
        api_key=api_key or NO_KEY,
        timeout=None,
        max_retries=0,
        http_client=DefaultAioHttpClient(timeout=None, limits=limits),
    )
    # The SDK fills these from the environment; settings say what is sent, and to whom.
    client.organization = client.project = client.admin_api_key = None
    return client


class _Client(AsyncOpenAI):
    """The SDK's client, which merges all its headers and takes its address apart anew for each request: half
    of what a call costs. Here the first request of the chats is a model for the others."""

    _first: httpx2.Request | None = None

    def _build_request(self, options: FinalRequestOptions, *, retries_taken: int = 0) -> httpx2.Request:
        # An inner part of the SDK: where it is called in another way, or no more, nothing is saved or broken.
        if options.url != CHATS or not isinstance(options.content, bytes) or retries_taken:
            return super()._build_request(options, retries_taken=retries_taken)
        if self._first is None:
            self._first = super()._build_request(options)
        like = self._first
        return httpx2.Request(
            like.method,
            like.url,
            headers=[(name, value) for name, value in like.headers.raw if name.lower() not in OF_ITS_OWN],
            cookies=self._client.cookies,
            content=options.content,
            extensions=like.extensions,
        )


_Client.__name__ = AsyncOpenAI.__name__  # as which it presents itself to endpoints


class OpenAIChat:
    """`ChatModel` over a ready client. `models` names a model for each tier; `timeout_s` is the whole budget
    of a call, with its wait for a slot and its retries (a `written` reply earns more by coming, and a call's
    `deadline` ends it in any case); `backoff_s` is the first pause between retries."""

    def __init__(
        self,
        client: AsyncOpenAI,
        *,
        models: Mapping[Tier, str],
        timeout_s: float,
        max_concurrency: int,
        max_retries: int,
        backoff_s: float = 0.25,
    ) -> None:
        self._client = client
        self._models = dict(models)
        self._timeout_s = timeout_s
        self._slots = FairSlots(max_concurrency)
        self._max_retries = max_retries
        self._backoff_s = backoff_s
        self._abilities = {model: Abilities() for model in self._models.values()}
        self.trouble = ""

    @property
    def name(self) -> str:
        """What clients are told: the model of the higher tier."""
        return self._models["high"]

    async def complete(self, call: ModelCall, usage: Usage) -> str:
        """The whole reply, thinking removed. Raises ModelTimeout when the budget is used up, ModelBusy or
        ModelError when the retries are, ModelRefused where trying again is no use, BadModelReply for no
        text."""
        async with aclosing(self._tries(call, usage, streamed=False)) as pieces:
            return "".join([piece async for piece in pieces])

    def stream(self, call: ModelCall, usage: Usage) -> AsyncGenerator[str, None]:
        """The reply in pieces as they arrive, thinking removed; closing it hangs up. A `written` reply comes
        in the endpoint's own pieces, of another those that arrive together are one. Raises as `complete`;
        tries again only while nothing has been yielded."""
        return self._tries(call, usage, streamed=True)

    async def close(self) -> None:
        """Close the client with its connections."""
        await self._client.close()

    async def _tries(self, call: ModelCall, usage: Usage, *, streamed: bool) -> AsyncGenerator[str, None]:
        usage.model = self._models[call.tier]  # also of a call that never gets its slot
        budget = Budget(self._timeout_s if call.timeout_s is None else call.timeout_s, call.deadline)
        most = max(self._max_retries, call.retries)
        retries = 0
        while True:
            begun = False
            try:
                async with aclosing(self._try(call, usage, budget, streamed=streamed)) as pieces:
                    async for piece in pieces:
                        begun = True
                        if call.written:
                            budget.earn(len(piece) / CHARS_A_SECOND)
                        yield piece
                self.trouble = ""
                return
            except ModelError as failed:
                self.trouble = failed.message
                raise
            except Again as again:
                if begun or (not again.free and retries >= most):
                    self.trouble = again.error.message
                    if begun and call.retries and retries < most:
                        await budget.pause(again, self._backoff_s * 2**retries)
                        again.error.broke_off = True
                    raise again.error from again.__cause__
                if not again.free:
                    await budget.pause(again, self._backoff_s * 2**retries)
                    retries += 1

    async def _try(
        self, call: ModelCall, usage: Usage, budget: Budget, *, streamed: bool
    ) -> AsyncGenerator[str, None]:
        budget.check()
        await budget.within(self._slots.acquire(call.site))
        try:
            model = self._models[call.tier]
            body = request_body(call, model, self._abilities[model], streamed=streamed)
            usage.calls += 1
            response = await budget.within(self._send(body))
            meter = Meter(body["messages"])
            try:
                if streamed and "json" not in response.headers.get("content-type", ""):
                    async with aclosing(self._read_stream(response, body, meter, budget)) as arriving:
                        async for pieces in arriving:
                            for piece in pieces if call.written else ["".join(pieces)]:
                                yield piece
                else:
                    yield await budget.within(self._read_whole(response, body, meter))
            finally:
                usage.add(meter.total())
                with contextlib.suppress(*CONNECTION_ERRORS):
                    await response.aclose()
        finally:
            self._slots.release()

    async def _send(self, body: dict[str, Any]) -> httpx2.Response:
        try:
            sent = await self._client.post(
                CHATS,
                cast_to=httpx2.Response,
                content=orjson.dumps(body),
                stream=True,
                stream_cls=AsyncStream[Any],
            )
        except APIStatusError as exc:
            response = exc.response
            try:
                payload = parse(response.content)
            except BadModelReply:
                payload = None
            raise self._failure(response.status_code, response.headers, payload, body) from None
        except CONNECTION_ERRORS as exc:
            raise Again(ModelError("the model endpoint cannot be reached")) from exc
        return cast(httpx2.Response, sent)  # what `cast_to` asks for

    async def _read_whole(self, response: httpx2.Response, body: dict[str, Any], meter: Meter) -> str:
        try:
            data = await response.aread()
        except CONNECTION_ERRORS as exc:
            raise Again(ModelError("the model endpoint cut the connection")) from exc
        part = self._part(parse(data), response, body, meter)
        return checked(whole_text(part.text), part.declined)

    async def _read_stream(
        self, response: httpx2.Response, body: dict[str, Any], meter: Meter, budget: Budget
    ) -> AsyncGenerator[list[str], None]:
        """The reply's pieces, those of one read from the network together; never none."""
        reply = ReplyText()
        begun = finished = declined = False
        failed: Again | ModelError | None = None
        async with aclosing(self._events(response, budget)) as arriving:
            async for events in arriving:
                pieces: list[str] = []
                for event in events:
                    if event == DONE:
                        finished = True
                        continue
                    try:
                        part = self._part(parse(event), response, body, meter)
                    except (Again, ModelError) as exc:
                        failed = exc  # what came before it is told first
                        break
                    finished = finished or part.finished
                    declined = declined or part.declined
                    if text := reply.feed(part.text):
                        pieces.append(text)
                if pieces:
                    begun = True
                    yield pieces
                if failed is not None:
                    raise failed
        if not finished:
            raise Again(ModelError("the model endpoint cut the connection"))
        rest = reply.close()
        if rest or not begun:
            yield [checked(rest, declined)]

    async def _events(self, response: httpx2.Response, budget: Budget) -> AsyncGenerator[list[bytes], None]:
        """The events of each read from the network that ended some, up to the end mark."""
        events = Events()
        async with aclosing(response.aiter_bytes()) as chunks:
            while True:
                try:
                    chunk = await budget.within(anext(chunks, None))
                except CONNECTION_ERRORS as exc:
                    raise Again(ModelError("the model endpoint cut the connection")) from exc
                ended = events.close() if chunk is None else events.feed(chunk)
                if DONE in ended:
                    yield ended[: ended.index(DONE) + 1]
                    await drain(chunks)
                    return
                if ended:
                    yield ended
                if chunk is None:
                    return

    def _part(self, payload: Any, response: httpx2.Response, body: dict[str, Any], meter: Meter) -> Part:
        """One event or reply, counted; an error that came under status 200 is raised as what it is."""
        status = failed_status(payload)
        if status is not None:
            raise self._failure(status, response.headers, payload, body)
        part = part_of(payload)
        meter.saw(payload, part.text)
        return part

    def _failure(
        self, status: int, headers: Mapping[str, str], payload: Any, body: dict[str, Any]
    ) -> Again | ModelError:
        model = body["model"]
        complaint = complaint_in(payload)
        failed = failure(status, headers, complaint, model)
        learned = status in COMPLAINTS and self._abilities[model].learn(body, complaint)
        if learned and isinstance(failed, ModelError):
            failed = Again(failed, free=True)
        log.log(
            logging.INFO if isinstance(failed, Again) else logging.WARNING,
            "model_failure model=%s status=%d learned=%s said=%r",
            model,
            status,
            learned,
            self._without_key(complaint)[:300],
        )
        return failed

    def _without_key(self, text: str) -> str:
        return KEY_LIKE.sub("[key]", text.replace(self._client.api_key, "[key]"))


class Budget:
    """The time of one call: `seconds`, and what is earned beside them, but nothing after the `last`."""

    def __init__(self, seconds: float, last: Deadline | None = None) -> None:
        self._began = asyncio.get_running_loop().time()
        self._last = math.inf if last is None else last.at
        self._deadline = min(self._began + seconds, self._last)

    def earn(self, seconds: float) -> None:
        """More time, by a reply that keeps coming."""
        self._deadline = min(self._deadline + seconds, self._last)

    def check(self) -> None:
        """Raises ModelTimeout where there is no time left to begin anything in."""
        if asyncio.get_running_loop().time() >= self._deadline:
            raise self._late()

    def _late(self) -> ModelTimeout:
        return ModelTimeout(
            f"the model gave no complete answer within {max(0.0, self._deadline - self._began):.3g} s"
        )

    async def within(self, step: Awaitable[ResultT]) -> ResultT:
        """The step's result; ModelTimeout if the time is up before it is there."""
        limit = asyncio.timeout_at(self._deadline)
        try:
            async with limit:
                return await step
        except TimeoutError as exc:
            if limit.expired():
                raise self._late() from exc
            raise

    async def pause(self, again: Again, backoff_s: float) -> None:
        """Wait before a retry, as long as the endpoint said, else about `backoff_s`; where that is more than
        is left, the failure is raised at once."""
        jitter = random.uniform(0.5, 1.0)  # noqa: S311 - spreads retries, guards nothing
        seconds = backoff_s * jitter if again.after is None else again.after
        if asyncio.get_running_loop().time() + seconds >= self._deadline:
            raise again.error from again.__cause__
        await asyncio.sleep(seconds)


async def drain(chunks: AsyncGenerator[bytes, None]) -> None:
    """Read a finished reply to its end, if that comes at once."""
    with contextlib.suppress(TimeoutError, *CONNECTION_ERRORS):
        async with asyncio.timeout(LINGER_S):
            async for _ in chunks:
                pass


def checked(text: str, declined: bool) -> str:
    """The text, if there is any. Raises BadModelReply."""
    if not text.strip():
        raise BadModelReply("the model declined to answer" if declined else "the model sent an empty reply")
    return text
