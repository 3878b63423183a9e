"""A chat endpoint that answers from a script and keeps what it was asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson
from aiohttp import web

WAIT_S = 10.0  # for something that a test says must happen
SSE = {"Content-Type": "text/event-stream; charset=utf-8"}


@dataclass(frozen=True)
class ModelRequest:
    """A chat completion as it was asked for; `schema_name` is found in all three ways to ask for JSON."""

    raw: Mapping[str, Any]
    headers: Mapping[str, str]

    @property
    def prompt(self) -> str:
        """The user's message."""
        return self._said_by("user")

    @property
    def system(self) -> str:
        """The system message, "" if there is none."""
        return self._said_by("system")

    @property
    def stream(self) -> bool:
        return bool(self.raw.get("stream"))

    @property
    def schema(self) -> Mapping[str, Any]:
        """The reply's JSON schema, {} if none was given or told."""
        given = (self.raw.get("response_format") or {}).get("json_schema") or {}
        if given:
            return dict(given.get("schema") or {})
        start = self.system.find('{"title":')
        return dict(json.loads(self.system[start:])) if start >= 0 else {}

    @property
    def schema_name(self) -> str:
        given = (self.raw.get("response_format") or {}).get("json_schema") or {}
        return str(given.get("name") or self.schema.get("title") or "")

    def _said_by(self, role: str) -> str:
        return "\n".join(str(said["content"]) for said in self.raw["messages"] if said["role"] == role)


@dataclass(frozen=True)
class Fail:
    """A status, with `Retry-After` and a body if wanted; status 200 with an error in the body works too."""

    status: int
    retry_after: float | str | None = None
    body: Any = None


@dataclass(frozen=True)
class Say:
    """A text reply with its particulars: `thinking` goes into `reasoning_content`; `usage` False reports
    none; `cached` are the prompt's tokens that it says it had cached."""

    text: str
    finish: str = "stop"
    thinking: str = ""
    usage: bool = True
    cached: int | None = None


@dataclass(frozen=True)
class Cut:
    """The connection breaks after so many characters of the reply; 0: before any byte of the answer."""

    after_chars: int
    reply: Any = "a reply that nobody will ever see the end of"


@dataclass(frozen=True)
class Hang:
    """No answer until the client gives up."""


@dataclass(frozen=True)
class Drip:
    """A reply that comes a character at a time, with so many seconds between two."""

    reply: Any
    seconds: float


@dataclass(frozen=True)
class Split:
    """These bytes as the body of a streamed reply, one network chunk each."""

    chunks: Sequence[bytes]


Step = Any  # dict | list | str | int | float | Fail | Say | Cut | Drip | Hang | Split | Callable[…]


@dataclass
class ScriptedModel:
    """What a test holds in its hand.

    `replies` are used up one a request: a dict or list is a JSON reply, a str a text, an int a status, a
    float seconds to wait before the step after it, a callable is asked for a step, and there are Fail, Say,
    Cut, Drip, Hang and Split. When they are used up `answer` is asked; without one the request is refused
    with 400. What stands in `refuses` (a parameter's name, `json_schema`, `strict`, `json_object`) is
    answered with a complaint, as endpoints that lack it do, and takes nothing from the script.
    """

    replies: list[Step] = field(default_factory=list)
    answer: Callable[[ModelRequest], Step] | None = None
    refuses: set[str] = field(default_factory=set)
    models: list[str] = field(default_factory=lambda: ["big", "small"])
    piece_chars: int = 12
    piece_delay: float = 0.0
    requests: list[ModelRequest] = field(default_factory=list)
    cancelled: int = 0  # clients that left before their reply was complete
    in_flight: int = 0
    max_in_flight: int = 0
    connections: set[Any] = field(default_factory=set)
    url: str = ""

    def __post_init__(self) -> None:
        self._changed = asyncio.Condition()

    async def until(self, condition: Callable[[], bool], what: str = "the condition") -> None:
        """Wait until it holds; it is looked at whenever a request comes or ends."""
        async with self._changed:
            try:
                async with asyncio.timeout(WAIT_S):
                    await self._changed.wait_for(condition)
            except TimeoutError:
                raise AssertionError(f"{what} did not come true in {WAIT_S:g} s: {self!r}"[:2000]) from None

    async def seen(self, count: int) -> None:
        """Wait until so many requests have come in."""
        await self.until(lambda: len(self.requests) >= count, f"{count} requests")

    async def left(self, count: int) -> None:
        """Wait until so many clients have left before their reply was complete."""
        await self.until(lambda: self.cancelled >= count, f"{count} clients leaving")

    async def idle(self) -> None:
        """Wait until no request is being answered."""
        await self.until(lambda: self.in_flight == 0, "nothing in flight")

    # ------------------------------------------------------------ the server's side

    def app(self) -> web.Application:
        """The routes."""
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_get("/v1/models", self._models)
        return app

    async def _models(self, request: web.Request) -> web.Response:
        data = [{"id": name, "object": "model", "created": 0, "owned_by": "test"} for name in self.models]
        return web.json_response({"object": "list", "data": data})

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        asked = ModelRequest(orjson.loads(await request.read()), dict(request.headers))
        self.requests.append(asked)
        self.connections.add(request.transport)
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)
        await self._tell()
        try:
            return await self._perform(request, asked)
        except (asyncio.CancelledError, ConnectionResetError):
            self.cancelled += 1
            raise
        finally:
            self.in_flight -= 1
            await asyncio.shield(self._tell())

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def _perform(self, request: web.Request, asked: ModelRequest) -> web.StreamResponse:
        refused = refusal(asked.raw, self.refuses)
        if refused is not None:
            return refused
        step = await self._next_step(asked)
        if isinstance(step, Hang):
            await asyncio.Event().wait()
        if isinstance(step, int) and not isinstance(step, bool):
            step = Fail(step)
        if isinstance(step, Fail):
            return failure(step)
        if isinstance(step, Split):
            return await self._send(request, step.chunks)
        if isinstance(step, Cut):
            return await self._cut(request, asked, step)
        if isinstance(step, Drip):
            return await self._drip(request, asked, step)
        said = step if isinstance(step, Say) else Say(as_text(step, asked.schema))
        if not asked.stream:
            return web.json_response(completion(said, asked))
        return await self._send(request, list(events(said, asked, self.piece_chars)))

    async def _next_step(self, asked: ModelRequest) -> Step:
        while True:
            if self.replies:
                step = self.replies.pop(0)
            elif self.answer is not None:
                step = self.answer(asked)
            else:
                return Fail(400, body={"error": {"message": "the script is used up"}})
            while callable(step):
                step = step(asked)
            if not isinstance(step, float):
                return step
            await asyncio.sleep(step)

    async def _send(
        self, request: web.Request, chunks: Sequence[bytes], delay: float | None = None
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers=SSE)
        await response.prepare(request)
        for n, chunk in enumerate(chunks):
            if n:
                await asyncio.sleep(
                    self.piece_delay if delay is None else delay
                )  # 0 still lets each chunk leave by itself
            await response.write(chunk)
        await response.write_eof()
        return response

    async def _cut(self, request: web.Request, asked: ModelRequest, cut: Cut) -> web.StreamResponse:
        response = web.StreamResponse(headers=SSE if asked.stream else {"Content-Type": "application/json"})
        if cut.after_chars:
            said = Say(as_text(cut.reply, asked.schema)[: cut.after_chars])
            await response.prepare(request)
            for chunk in self._unfinished(said, asked):
                await response.write(chunk)
        assert request.transport is not None
        request.transport.close()
        return response

    async def _drip(self, request: web.Request, asked: ModelRequest, drip: Drip) -> web.StreamResponse:
        said = Say(as_text(drip.reply, asked.schema))
        if asked.stream:
            return await self._send(request, list(events(said, asked, 1)), drip.seconds)
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        for byte in orjson.dumps(completion(said, asked)):
            await response.write(bytes([byte]))
            await asyncio.sleep(drip.seconds)
        await response.write_eof()
        return response

    def _unfinished(self, said: Say, asked: ModelRequest) -> list[bytes]:
        if asked.stream:
            return list(events(said, asked, self.piece_chars))[: -len(ending(said, asked))]
        whole = orjson.dumps(completion(said, asked))
        return [whole[: whole.index(b'"finish_reason"')]]


@asynccontextmanager
async def scripted_model(**settings: Any) -> AsyncIterator[ScriptedModel]:
    """A running model; `settings` are ScriptedModel's fields. `url` is the base URL for a client."""
    model = ScriptedModel(**settings)
    runner = web.AppRunner(model.app(), access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        model.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        yield model
    finally:
        await runner.cleanup()


def as_text(reply: Any, schema: Mapping[str, Any]) -> str:
    """A reply as the model writes it: a list stands under the key that the schema has for it, if any."""
    if isinstance(reply, str):
        return reply
    properties = schema.get("properties") or {}
    if isinstance(reply, list) and len(properties) == 1:
        reply = {next(iter(properties)): reply}
    return orjson.dumps(reply).decode()


def failure(fail: Fail) -> web.Response:
    """The response that a Fail describes."""
    headers = {} if fail.retry_after is None else {"Retry-After": str(fail.retry_after)}
    body = fail.body if fail.body is not None else {"error": {"message": "as the script says", "code": None}}
    if isinstance(body, str):
        return web.Response(status=fail.status, headers=headers, text=body)
    return web.json_response(body, status=fail.status, headers=headers)


def refusal(raw: Mapping[str, Any], refuses: set[str]) -> web.Response | None:
    """A complaint about the first thing in the request that the endpoint lacks."""
    wanted = raw.get("response_format") or {}
    kinds = {wanted.get("type"), "strict" if (wanted.get("json_schema") or {}).get("strict") else None}
    for name in sorted(refuses):
        if name in kinds:
            why = "Invalid schema for response_format: strict is not supported" if name == "strict" else ""
            return complaint("response_format", why or f"response_format of type {name} is not supported")
        if name in raw:
            hint = " Use 'max_completion_tokens' instead." if name == "max_tokens" else ""
            return complaint(name, f"Unsupported parameter: '{name}' is not supported with this model.{hint}")
    return None


def complaint(param: str, message: str) -> web.Response:
    """A 400 in OpenAI's form."""
    error = {"message": message, "type": "invalid_request_error", "param": param, "code": "unsupported"}
    return web.json_response({"error": error}, status=400)


def usage_of(said: Say, asked: ModelRequest) -> dict[str, Any]:
    """Token counts that differ from an estimate by characters, so that a test sees which one was taken."""
    prompt = len((asked.system + " " + asked.prompt).split())
    reply = len(said.text.split())
    usage: dict[str, Any] = {
        "prompt_tokens": prompt,
        "completion_tokens": reply,
        "total_tokens": prompt + reply,
    }
    if said.cached is not None:
        usage["prompt_tokens_details"] = {"cached_tokens": said.cached}
    return usage


def completion(said: Say, asked: ModelRequest) -> dict[str, Any]:
    """The body of a reply that does not stream."""
    message: dict[str, Any] = {"role": "assistant", "content": said.text}
    if said.thinking:
        message["reasoning_content"] = said.thinking
    body: dict[str, Any] = {
        **head(asked, "chat.completion"),
        "choices": [{"index": 0, "message": message, "finish_reason": said.finish}],
    }
    return {**body, "usage": usage_of(said, asked)} if said.usage else body


def events(said: Say, asked: ModelRequest, piece_chars: int) -> Iterator[bytes]:
    """A streamed reply, an event a chunk."""
    deltas = [{"role": "assistant", "content": ""}]
    if said.thinking:
        deltas.append({"reasoning_content": said.thinking})
    starts = range(0, len(said.text), piece_chars)
    deltas.extend({"content": said.text[start : start + piece_chars]} for start in starts)
    for delta in deltas:
        yield event(chunk_of(asked, [{"index": 0, "delta": delta, "finish_reason": None}]))
    yield from ending(said, asked)


def ending(said: Say, asked: ModelRequest) -> list[bytes]:
    """What comes after the text: the finish reason, the usage if it was asked for, the end mark."""
    last = [event(chunk_of(asked, [{"index": 0, "delta": {}, "finish_reason": said.finish}]))]
    if said.usage and (asked.raw.get("stream_options") or {}).get("include_usage"):
        last.append(event({**chunk_of(asked, []), "usage": usage_of(said, asked)}))
    return [*last, b"data: [DONE]\n\n"]


def chunk_of(asked: ModelRequest, choices: list[dict[str, Any]]) -> dict[str, Any]:
    return {**head(asked, "chat.completion.chunk"), "choices": choices}


def head(asked: ModelRequest, kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-test", "object": kind, "created": 0, "model": asked.raw["model"]}


def event(payload: Mapping[str, Any]) -> bytes:
    """One server-sent event."""
    return b"data: " + orjson.dumps(payload) + b"\n\n"
