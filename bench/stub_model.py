"""A chat endpoint that costs next to nothing, so that a bench measures us and not the model.

`python -m bench.stub_model --port 0 --latency-ms 50 [--stream-ms 200]` prints `{"url": ...}` as one JSON
line and serves until it is stopped. `GET /stats` tells what was asked of it, `POST /reset` starts anew.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import signal
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import orjson
from aiohttp import web

PIECES = 10
TAG = re.compile(r'"tag"\s*:\s*"([^"\\]+)"')
NEVER = "-"  # what a string field says; short, as the length of answers is not what is measured


@dataclass(slots=True)
class Stats:
    """What was asked since the start or the last reset; tokens are characters / 4."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    left: int = 0  # clients that went before their reply was complete
    in_flight: int = 0
    max_in_flight: int = 0


class StubModel:
    """Waits `latency_s`, then answers by the schema in the request, spread over `stream_s` if it streams."""

    def __init__(self, latency_s: float, stream_s: float) -> None:
        self.latency_s = latency_s
        self.stream_s = stream_s
        self.stats = Stats()

    def app(self) -> web.Application:
        """The routes; run it with `handler_cancellation=True`, or clients that leave go unseen."""
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_post("/v1/chat/completions", self.chat)
        app.router.add_get("/v1/models", self.models)
        app.router.add_get("/stats", self.tell)
        app.router.add_post("/reset", self.reset)
        return app

    async def chat(self, request: web.Request) -> web.StreamResponse:
        """POST /v1/chat/completions."""
        body = orjson.loads(await request.read())
        prompt = "\n".join(str(message["content"]) for message in body["messages"])
        stats = self.stats
        stats.calls += 1
        stats.prompt_tokens += len(prompt) // 4
        stats.in_flight += 1
        stats.max_in_flight = max(stats.max_in_flight, stats.in_flight)
        complete = False
        try:
            await asyncio.sleep(self.latency_s)
            text = reply_to(prompt, asked_schema(body))
            stats.completion_tokens += len(text) // 4
            usage = {
                "prompt_tokens": len(prompt) // 4,
                "completion_tokens": len(text) // 4,
                "total_tokens": (len(prompt) + len(text)) // 4,
            }
            if body.get("stream"):
                response: web.StreamResponse = await self.send_pieces(request, text, usage)
            else:
                response = web.Response(body=whole(text, usage), content_type="application/json")
            complete = True
            return response
        finally:
            stats.in_flight -= 1
            stats.left += not complete

    async def send_pieces(self, request: web.Request, text: str, usage: dict[str, int]) -> web.StreamResponse:
        """The reply as server-sent events: in one write, or one write a piece where `stream_s` is set."""
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        frames = [event(piece) for piece in pieces(text)]
        last = ending(usage)
        if self.stream_s:
            for frame in frames:
                await response.write(frame)
                await asyncio.sleep(self.stream_s / len(frames))
            await response.write(last)
        else:
            await response.write(b"".join(frames) + last)
        await response.write_eof()
        return response

    async def models(self, request: web.Request) -> web.Response:  # noqa: ARG002
        """GET /v1/models."""
        return web.json_response({"object": "list", "data": [{"id": "stub", "object": "model"}]})

    async def tell(self, request: web.Request) -> web.Response:  # noqa: ARG002
        """GET /stats."""
        return web.json_response(asdict(self.stats))

    async def reset(self, request: web.Request) -> web.Response:  # noqa: ARG002
        """POST /reset: calls still running stay counted as in flight."""
        running = self.stats.in_flight
        self.stats = Stats(in_flight=running, max_in_flight=running)
        return web.json_response({})


def asked_schema(body: dict[str, Any]) -> dict[str, Any]:
    """The schema of the reply, or {} where the request names none."""
    wanted = body.get("response_format") or {}
    schema = (wanted.get("json_schema") or {}).get("schema") or {}
    return dict(schema)


def reply_to(prompt: str, schema: dict[str, Any]) -> str:
    """JSON by the schema: one object a tag in the prompt where a list is asked for."""
    properties = schema.get("properties") or {}
    lists = [name for name, sub in properties.items() if sub.get("type") == "array"]
    tags = list(dict.fromkeys(TAG.findall(prompt)))
    if tags and schema.get("type") == "array":
        return orjson.dumps([ranked(tag, schema.get("items") or {}) for tag in tags]).decode()
    if tags and len(properties) == 1 and lists:
        inner = properties[lists[0]].get("items") or {}
        return orjson.dumps({lists[0]: [ranked(tag, inner) for tag in tags]}).decode()
    if tags:
        return orjson.dumps([ranked(tag, {}) for tag in tags]).decode()
    if schema:
        return orjson.dumps(value(schema, prompt)).decode()
    return "A short answer that says nothing [1]."


def ranked(tag: str, schema: dict[str, Any]) -> dict[str, Any]:
    """One item's reply: the score depends on the tag alone, so that two runs rank alike."""
    # Of each its own, as a model's are: what is said of several items in the same words is not shown.
    described = {"description": f"Item {tag} as the stub sees it."}
    reply = value(schema, tag) if schema.get("properties") else {}
    if not reply or "description" in reply:
        reply = {**reply, **described}
    return {**reply, "tag": tag, "score": score(tag)}


def value(schema: dict[str, Any], seed: str) -> Any:
    """The least that the schema allows; numbers named by nobody are spread over 0..100."""
    kind = schema.get("type")
    if kind == "object":
        return {name: value(sub, seed) for name, sub in (schema.get("properties") or {}).items()}
    if kind == "array":
        return []
    if kind in ("integer", "number"):
        return score(seed)
    if kind == "boolean":
        return False
    return (schema.get("enum") or [NEVER])[0]


def score(seed: str) -> int:
    """0..100, the same for the same text in every process."""
    return zlib.crc32(seed.encode("utf-8", "replace")) % 101


def pieces(text: str) -> Iterator[str]:
    """About ten pieces of equal length."""
    size = max(1, -(-len(text) // PIECES))
    for start in range(0, len(text), size):
        yield text[start : start + size]


def event(piece: str) -> bytes:
    """One delta, written by hand: building dicts would be most of the stub's cost."""
    return (
        b'data: {"id":"stub","object":"chat.completion.chunk","created":0,"model":"stub","choices":'
        b'[{"index":0,"delta":{"content":' + orjson.dumps(piece) + b'},"finish_reason":null}]}\n\n'
    )


def ending(usage: dict[str, int]) -> bytes:
    """The finish reason, the usage and the end mark."""
    return (
        b'data: {"id":"stub","object":"chat.completion.chunk","created":0,"model":"stub","choices":'
        b'[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
        b'data: {"id":"stub","object":"chat.completion.chunk","created":0,"model":"stub",'
        b'"choices":[],"usage":' + orjson.dumps(usage) + b"}\n\ndata: [DONE]\n\n"
    )


def whole(text: str, usage: dict[str, int]) -> bytes:
    """The reply of a call that does not stream."""
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return orjson.dumps(
        {
            "id": "stub",
            "object": "chat.completion",
            "created": 0,
            "model": "stub",
            "choices": [choice],
            "usage": usage,
        }
    )


async def serve(host: str, port: int, model: StubModel) -> None:
    """Serve until SIGINT or SIGTERM."""
    stop = asyncio.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    runner = web.AppRunner(model.app(), access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port, backlog=1024).start()
        bound = runner.addresses[0][1]
        print(orjson.dumps({"url": f"http://{host}:{bound}/v1"}).decode(), flush=True)
        await stop.wait()
    finally:
        await runner.cleanup()


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m bench.stub_model", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--latency-ms", type=float, default=50.0, help="before the first byte")
    parser.add_argument("--stream-ms", type=float, default=0.0, help="a streamed reply is spread over this")
    args = parser.parse_args()
    model = StubModel(args.latency_ms / 1000, args.stream_ms / 1000)
    asyncio.run(serve(args.host, args.port, model))


if __name__ == "__main__":
    main()
