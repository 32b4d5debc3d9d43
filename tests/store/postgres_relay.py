"""A line between a store and its server that a test can cut at a moment of its choice."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from postgres_server import USER, PostgresServer

_SOCKET = ".s.PGSQL.5432"


class Relay:
    """Passes everything on, until it is told to lose the server's answer to the next COMMIT."""

    def __init__(self, server: PostgresServer, folder: Path) -> None:
        self._server = server
        self._folder = folder
        self.lose_next_answer = False
        self.lost = 0

    def dsn(self, database: str) -> str:
        return f"postgresql://{USER}@/{database}?host={self._folder}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, both ways, until one side ends or an answer was lost."""
        there_reader, there_writer = await asyncio.open_unix_connection(self._server.folder / _SOCKET)
        committing = asyncio.Event()
        ways = [
            asyncio.create_task(self._pass_questions(reader, there_writer, committing)),
            asyncio.create_task(self._pass_answers(there_reader, writer, committing)),
        ]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in ways:
            way.cancel()
        for end in (writer, there_writer):
            end.close()
            with suppress(ConnectionError):
                await end.wait_closed()

    async def _pass_questions(
        self, reader: asyncio.StreamReader, there: asyncio.StreamWriter, committing: asyncio.Event
    ) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(65536):
                if self.lose_next_answer and b"COMMIT" in data:
                    committing.set()
                there.write(data)
                await there.drain()

    async def _pass_answers(
        self, there: asyncio.StreamReader, writer: asyncio.StreamWriter, committing: asyncio.Event
    ) -> None:
        with suppress(ConnectionError):
            while data := await there.read(65536):
                if committing.is_set():
                    # The server answers when it has committed; nobody hears it.
                    self.lose_next_answer = False
                    self.lost += 1
                    return
                writer.write(data)
                await writer.drain()


@asynccontextmanager
async def relay_to(server: PostgresServer) -> AsyncIterator[Relay]:
    """A relay until the end of the block."""
    with tempfile.TemporaryDirectory(prefix="recrawl-relay-", dir="/tmp") as folder:
        relay = Relay(server, Path(folder))
        listening = await asyncio.start_unix_server(relay.serve, Path(folder) / _SOCKET)
        try:
            yield relay
        finally:
            listening.close()
            await listening.wait_closed()
