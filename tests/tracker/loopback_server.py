"""A server on loopback that is there for the length of a block; what it says is its heirs' to decide."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Self


@dataclass(slots=True)
class LoopbackServer:
    """Listens on a port of its own, and closes all connections at the end."""

    port: int = field(default=0, kw_only=True)
    _server: asyncio.Server | None = field(default=None, kw_only=True)
    _open: set[asyncio.StreamWriter] = field(default_factory=set, kw_only=True)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for writer in list(self._open):
            writer.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        raise NotImplementedError
