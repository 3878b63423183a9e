"""A wire to PostgreSQL that can be cut, frozen and mended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import sqlalchemy as sa


@dataclass
class Wire:
    """Passes on what comes at `port` to the socket `target`; nothing while `flowing` is not set."""

    target: Path
    port: int = 0
    flowing: asyncio.Event = field(default_factory=asyncio.Event)
    listening: asyncio.Server | None = None
    open: set[asyncio.StreamWriter] = field(default_factory=set)

    def url(self, url: str) -> str:
        """The address of the same database by this wire."""
        query = {"sslmode": "disable", "gssencmode": "disable"}
        by_wire = sa.make_url(url).set(host="127.0.0.1", port=self.port, query=query)
        return by_wire.render_as_string(hide_password=False)

    async def mend(self) -> None:
        self.flowing.set()
        self.listening = await asyncio.start_server(self._connected, "127.0.0.1", self.port)
        self.port = self.listening.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        assert self.listening is not None
        self.listening.close()
        for writer in list(self.open):
            writer.close()
        await self.listening.wait_closed()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_server, to_server = await asyncio.open_unix_connection(self.target)
        await asyncio.gather(self._flow(reader, to_server), self._flow(from_server, writer))

    async def _flow(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open.add(writer)
        try:
            while block := await reader.read(65536):
                await self.flowing.wait()
                writer.write(block)
        except OSError:
            pass
        finally:
            self.open.discard(writer)
            writer.close()


@asynccontextmanager
async def wire_to(target: Path) -> AsyncIterator[Wire]:
    wire = Wire(target)
    await wire.mend()
    try:
        yield wire
    finally:
        await wire.cut()
