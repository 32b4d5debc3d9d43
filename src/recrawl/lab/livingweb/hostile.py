"""The hostile web: a server on loopback that misbehaves as it is told, over raw sockets, and writes down who came.

    async with HostileWeb() as web:
        web.on("/drip", drip(b"x"))
        ...                               # fetch web.url("/drip")
        web.log[0].target, web.log[0].at, web.connections

A script is an async function of a `Visit`: it may send any bytes, wait for the client to give up, reset. What a
path has no script for is answered 404; `/robots.txt` too unless a script stands there. The server ends all visits
when it is closed. Ready-made are scripts of misbehaviour, and bodies that are small on the wire and huge in memory.
"""

from __future__ import annotations

import asyncio
import gzip
import socket
import ssl
import struct
import sys
import zlib
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from types import TracebackType
from typing import Literal

import brotli  # type: ignore[import-untyped]
from aiohttp.abc import AbstractResolver, ResolveResult

NameFault = Literal["missing", "failed", "looped", "silent", "empty"]
NameAnswer = NameFault | list[str]

_FAULTS: dict[NameFault, tuple[int, str]] = {
    "missing": (socket.EAI_NONAME, "Name or service not known"),
    "failed": (socket.EAI_AGAIN, "Temporary failure in name resolution"),
    "looped": (socket.EAI_FAIL, "Non-recoverable failure in name resolution"),
}


MIB = 1 << 20

Headers = Sequence[tuple[str, str]]
_REASON = "Whatever"

_LONGEST_REQUEST_BYTES = 65_536
_NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"

Script = Callable[["Visit"], Awaitable[None]]


class ScriptedNames(AbstractResolver):
    """A name service that lies as it is told: an answer for each look-up, faults, and a flip from public to private.

    For a transport's `resolver`.

    `names.on("a.test", ["93.184.216.34"], ["127.0.0.1"])` answers the first look-up with one address, every later
    one with another. A fault stands in place of a list: `missing` (no such name), `failed` (the service is down),
    `looped` (a chain of names that ends nowhere), `silent` (no answer ever), `empty` (an answer without addresses).
    Unknown names are missing.
    """

    def __init__(self) -> None:
        self._answers: dict[str, list[NameAnswer]] = {}
        self.log: list[str] = []
        self.closed = False

    def on(self, host: str, *answers: NameAnswer) -> None:
        """Answer look-ups of a name, one after the other; the last answer is repeated."""
        self._answers[host] = list(answers)

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """The next answer for a name, of whatever family it is."""
        del family
        self.log.append(host)
        left = self._answers.get(host, ["missing"])
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, list):
            return [_result(host, ip, port) for ip in answer]
        if answer == "silent":
            await asyncio.Event().wait()
        if answer == "empty":
            return []
        raise socket.gaierror(*_FAULTS[answer])

    async def close(self) -> None:
        """Note that it was closed."""
        self.closed = True


def _result(host: str, ip: str, port: int) -> ResolveResult:
    family = socket.AF_INET6 if ip_address(ip).version == 6 else socket.AF_INET
    return ResolveResult(hostname=host, host=ip, port=port, family=family, proto=0, flags=socket.AI_NUMERICHOST)


if sys.version_info >= (3, 14):  # pragma: no cover
    from compression import zstd
else:
    from backports import zstd


def gzip_bomb(mebibytes: int) -> bytes:
    """So many MiB of zeros, about 1 KiB for each."""
    return _zlib_bomb(mebibytes, zlib.MAX_WBITS | 16)


def deflate_bomb(mebibytes: int) -> bytes:
    """The same in zlib's wrapping."""
    return _zlib_bomb(mebibytes, zlib.MAX_WBITS)


def raw_deflate_bomb(mebibytes: int) -> bytes:
    """The same without any wrapping."""
    return _zlib_bomb(mebibytes, -zlib.MAX_WBITS)


def brotli_bomb(mebibytes: int) -> bytes:
    """So many MiB of zeros in some dozen bytes."""
    stream = brotli.Compressor(quality=1)
    zeros = bytes(MIB)
    return b"".join([*(stream.process(zeros) for _ in range(mebibytes)), stream.finish()])


def zstd_bomb(mebibytes: int) -> bytes:
    """So many MiB of zeros, in one frame."""
    stream = zstd.ZstdCompressor()
    zeros = bytes(MIB)
    return b"".join([*(stream.compress(zeros) for _ in range(mebibytes)), stream.flush()])


def zstd_wide_window() -> bytes:
    """A frame that asks for a window of 2 GiB before it says a word."""
    return b"\x28\xb5\x2f\xfd" + b"\x00" + bytes([(31 - 10) << 3]) + b"\x01\x00\x00"


BOMBS: dict[str, Callable[[int], bytes]] = {
    "gzip": gzip_bomb,
    "deflate": deflate_bomb,
    "br": brotli_bomb,
    "zstd": zstd_bomb,
}


def gzip_again(data: bytes, times: int) -> bytes:
    """Bytes compressed with gzip, and the outcome again, so many times."""
    for _ in range(times):
        data = gzip.compress(data, mtime=0)
    return data


def chunked(*pieces: bytes) -> bytes:
    r"""Pieces as the chunked transfer coding has them, with its end.

    >>> chunked(b"ab", b"c")
    b'2\r\nab\r\n1\r\nc\r\n0\r\n\r\n'
    """
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def _zlib_bomb(mebibytes: int, window_bits: int) -> bytes:
    stream = zlib.compressobj(6, zlib.DEFLATED, window_bits)
    zeros = bytes(MIB)
    return b"".join([*(stream.compress(zeros) for _ in range(mebibytes)), stream.flush()])


def head(status: int, headers: Headers = ()) -> bytes:
    r"""The head of an answer.

    >>> head(200, [("A", "b")])
    b'HTTP/1.1 200 Whatever\r\nA: b\r\n\r\n'
    """
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
    return f"HTTP/1.1 {status} {_REASON}\r\n{lines}\r\n".encode("latin-1")


def page(body: bytes, headers: Headers = (), status: int = 200) -> bytes:
    """A well-formed answer with its length."""
    return head(status, [*headers, ("Content-Length", str(len(body)))]) + body


def answers(*whole: bytes) -> Script:
    """Well-behaved: the first answer to the first request, and so on; the last one is repeated."""
    left = list(whole)

    async def script(visit: Visit) -> None:
        await visit.send(left.pop(0) if len(left) > 1 else left[0])

    return script


def sends_and_hangs_up(*pieces: bytes) -> Script:
    """Sends these bytes and closes, whatever was promised."""

    async def script(visit: Visit) -> None:
        for piece in pieces:
            await visit.send(piece)
        visit.hang_up()

    return script


def sends_and_resets(data: bytes) -> Script:
    """Sends these bytes and resets the connection."""

    async def script(visit: Visit) -> None:
        await visit.send(data)
        await _next_turn()
        visit.reset()

    return script


def sends_and_stalls(data: bytes) -> Script:
    """Sends these bytes and then nothing, for as long as the client stays."""

    async def script(visit: Visit) -> None:
        await visit.send(data)
        await visit.until_gone()

    return script


def drips(data: bytes, *, first: bytes = b"", every_s: float = 0.01) -> Script:
    """Sends `first`, then `data` one byte at a time, over and over: never idle, never done."""

    async def script(visit: Visit) -> None:
        await visit.send(first)
        while True:
            for byte in data:
                await visit.send(bytes((byte,)))
                await asyncio.sleep(every_s)

    return script


def never_ends(first: bytes, piece: bytes) -> Script:
    """Sends `first`, then the same piece as fast as the client takes it, for ever."""

    async def script(visit: Visit) -> None:
        await visit.send(first)
        while True:
            await visit.send(piece)
            await _next_turn()

    return script


def repeats(first: bytes, pieces: Iterable[bytes]) -> Script:
    """Sends `first`, then the pieces, then waits for the client to leave."""
    kept = tuple(pieces)

    async def script(visit: Visit) -> None:
        await visit.send(first)
        for piece in kept:
            await visit.send(piece)
        await visit.until_gone()

    return script


def redirects(status: int, location: str | bytes, headers: Headers = ()) -> Script:
    """Sends the client elsewhere; bytes stand in the header as they are."""
    where = location if isinstance(location, bytes) else location.encode("utf-8")
    rest = "".join(f"{name}: {value}\r\n" for name, value in headers).encode("latin-1")
    return answers(
        f"HTTP/1.1 {status} {_REASON}\r\nLocation: ".encode() + where + b"\r\n" + rest + b"Content-Length: 0\r\n\r\n"
    )


def redirects_onward(status: int, path: str) -> Script:
    """Sends the client to the same path with a new query each time."""
    turns = iter(range(1_000_000))

    async def script(visit: Visit) -> None:
        await visit.send(head(status, [("Location", f"{path}?turn={next(turns)}"), ("Content-Length", "0")]))

    return script


async def never_answers(visit: Visit) -> None:
    """As a greeting: takes the connection and says nothing; https never gets past its handshake."""
    await visit.until_gone()


async def _next_turn() -> None:
    await asyncio.sleep(0)


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
