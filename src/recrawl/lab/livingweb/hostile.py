r"""The hostile web: a server on loopback that misbehaves as it is told, over raw sockets, and writes down who came.

    async with HostileWeb() as web:
        web.on("/drip", drip(b"x"))
        ...                               # fetch web.url("/drip")
        web.log[0].target, web.log[0].at, web.connections

A script is an async function of a `Visit`: it may send any bytes, wait for the client to give up, reset. What a
path has no script for is answered 404; `/robots.txt` too unless a script stands there. The server ends all visits
when it is closed. Ready-made scripts are in `hostile_scripts.py` and `hostile_bodies.py`.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from types import TracebackType

_LONGEST_REQUEST_BYTES = 65_536
_NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"

Script = Callable[["Visit"], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Visitor:
    """One request as the server saw it.

    Args:
        peer: address and port of the client.
        at: moment on the clock of the loop.
        connection: number of the connection, from 0.
        target: path and query as sent.
        headers: names in lower case, the last value of each.
        raw: the whole request.
    """

    peer: tuple[str, int]
    at: float
    connection: int
    target: str
    headers: dict[str, str]
    raw: bytes


class Visit:
    """One request and the bare connection to answer it on."""

    def __init__(self, visitor: Visitor, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.visitor = visitor
        self._reader = reader
        self._writer = writer

    async def send(self, data: bytes) -> None:
        """Send bytes as they are, and wait until the client has room for more."""
        if self._writer.is_closing():
            raise ConnectionResetError("the client has left")
        self._writer.write(data)
        await self._writer.drain()

    async def until_gone(self) -> None:
        """Send nothing more; return when the client has closed."""
        while await self._reader.read(65_536):
            pass

    def hang_up(self) -> None:
        """Close the connection in good order."""
        self._writer.close()

    def reset(self) -> None:
        """Break the connection off with a reset."""
        bare: socket.socket | None = self._writer.get_extra_info("socket")
        if bare is not None:
            bare.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()


class HostileWeb:
    """The server.

    Args:
        tls: speak https with this context.
        greeting: a script for every connection before any request is read, such as one that never answers.
        ip: the loopback address to listen on.
        port: the port, 0 for any.
    """

    def __init__(
        self,
        *,
        tls: ssl.SSLContext | None = None,
        greeting: Script | None = None,
        ip: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        self._tls = tls
        self._where = (ip, port)
        self._greeting = greeting
        self._scripts: dict[str, Script] = {}
        self._server: asyncio.Server | None = None
        self._visits: set[asyncio.Task[None]] = set()
        self.log: list[Visitor] = []
        self.connections = 0
        self.failures: list[BaseException] = []

    @property
    def port(self) -> int:
        """The port it listens on."""
        assert self._server is not None, "use the server in `async with`"
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    def url(self, target: str, host: str = "a.hostile.test") -> str:
        """The address of a target, at any host name that leads here."""
        return f"{'https' if self._tls else 'http'}://{host}:{self.port}{target}"

    def on(self, path: str, script: Script) -> None:
        """Answer requests for a path, whatever their query, by a script."""
        self._scripts[path] = script

    def seen(self, path: str) -> list[Visitor]:
        """Requests for a path, in order."""
        return [visitor for visitor in self.log if visitor.target.partition("?")[0] == path]

    async def __aenter__(self) -> HostileWeb:
        self._server = await asyncio.start_server(
            self._accept, *self._where, ssl=self._tls, limit=_LONGEST_REQUEST_BYTES
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for visit in self._visits:
            visit.cancel()
        await asyncio.gather(*self._visits, return_exceptions=True)
        await self._server.wait_closed()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._visits.add(task)
        number, self.connections = self.connections, self.connections + 1
        try:
            await self._serve(number, reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, asyncio.CancelledError):
            pass  # the client left, or the server closes: both are how visits end here
        except Exception as failure:  # a fault of a script, for the test to see
            self.failures.append(failure)
        finally:
            self._visits.discard(task)
            if not writer.is_closing():
                writer.transport.abort()

    async def _serve(self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = writer.get_extra_info("peername")[:2]
        if self._greeting is not None:
            await self._greeting(Visit(_visitor(peer, number, b" - \r\n\r\n"), reader, writer))
            return
        while not writer.is_closing():
            raw = await reader.readuntil(b"\r\n\r\n")
            visitor = _visitor(peer, number, raw)
            self.log.append(visitor)
            script = self._scripts.get(visitor.target.partition("?")[0], _not_found)
            await script(Visit(visitor, reader, writer))


async def _not_found(visit: Visit) -> None:
    await visit.send(_NOT_FOUND)


def _visitor(peer: tuple[str, int], number: int, raw: bytes) -> Visitor:
    first, *lines = raw.decode("latin-1").split("\r\n")
    headers = {
        name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines) if name
    }
    return Visitor(peer, asyncio.get_running_loop().time(), number, first.split(" ")[1], headers, raw)
