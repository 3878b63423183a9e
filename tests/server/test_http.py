"""Requests that no handler sees are refused as JSON, and tell nothing of what is inside."""

from __future__ import annotations

import asyncio
import json
from io import BytesIO
from typing import Any

import pytest

from tests.conftest import Serve, Served

HOST = b"Host: 127.0.0.1\r\nConnection: close\r\n"
UNREADABLE: list[tuple[str, bytes, int, str]] = [
    (
        "a line beyond 32 kB",
        b"GET /ask?query=" + b"a" * 40_000 + b" HTTP/1.1\r\n" + HOST + b"\r\n",
        431,
        "too_large",
    ),
    (
        "a header beyond it",
        b"GET /health HTTP/1.1\r\nX-A: " + b"a" * 40_000 + b"\r\n" + HOST + b"\r\n",
        431,
        "too_large",
    ),
    ("no method", b"\x16\x03\x01 HTTP/1.1\r\n" + HOST + b"\r\n", 400, "bad_request"),
    ("no HTTP", b"hello there\r\n\r\n", 400, "bad_request"),
    (
        "two lengths",
        b"POST /ask HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n" + HOST + b"\r\nab",
        400,
        "bad_request",
    ),
    (
        "a strange Expect",
        b"POST /ask HTTP/1.1\r\nExpect: a-miracle\r\nContent-Length: 2\r\n" + HOST + b"\r\n{}",
        417,
        "expectation_failed",
    ),
    ("no such path", b"GET /nowhere HTTP/1.1\r\n" + HOST + b"\r\n", 404, "not_found"),
    ("no such method", b"DELETE /ask HTTP/1.1\r\n" + HOST + b"\r\n", 405, "method_not_allowed"),
]


async def sent(server: Served, raw: bytes) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of the answer to these bytes."""
    host, _, port = server.url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(raw)
    await writer.drain()
    answer = await reader.read()
    writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    status, *lines = head.decode().split("\r\n")
    return (
        int(status.split()[1]),
        {k.lower(): v for k, _, v in (line.partition(": ") for line in lines)},
        body,
    )


@pytest.mark.parametrize(("raw", "status", "code"), [pytest.param(*row[1:], id=row[0]) for row in UNREADABLE])
async def test_what_cannot_be_read_or_is_not_there_is_refused_as_json(
    serve: Serve, raw: bytes, status: int, code: str
) -> None:
    server = await serve()
    told, headers, body = await sent(server, raw)
    assert told == status
    assert headers["content-type"].startswith("application/json")
    error: dict[str, Any] = json.loads(body)["error"]
    assert error["code"] == code
    assert error["message"]
    assert b"aaaa" not in body
    for inside in ("Traceback", "aiohttp", ".py", "b'"):
        assert inside not in body.decode()


async def test_a_line_of_almost_32_kb_is_read(serve: Serve) -> None:
    server = await serve()
    line = b"GET /health?" + b"a" * 32_000 + b" HTTP/1.1\r\n"
    status, _, _ = await sent(server, line + HOST + b"\r\n")
    assert status == 200


async def test_a_body_beyond_the_limit_is_413_as_json(serve: Serve) -> None:
    server = await serve(server={"max_body_mb": 1})
    status, told = await server.json("POST", "/ask", data=BytesIO(b" " * 2_000_000))
    assert (status, told["error"]["code"]) == (413, "too_large")
