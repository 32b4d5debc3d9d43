"""The living web on a socket: HTTP/1.1 with keep-alive on 127.0.0.1, virtual hosts told apart by the Host header.

A raw protocol, since the server must be faster than the crawlers it tries. It reads only GET and HEAD, trusts nobody
with more than 16 KiB of headers, and answers in the order of asking.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import cast

from recrawl.errors import InvalidInput
from recrawl.lab.livingweb.answers import Answer, Request, encode_answer
from recrawl.lab.livingweb.clock import Clock
from recrawl.lab.livingweb.web_answers import WebAnswers
from recrawl.lab.livingweb.world import LivingWorld

LONGEST_HEAD_BYTES = 16_384
_TEXT = b"text/plain; charset=utf-8"
_TOO_LONG = Answer(431, b"too long\n", _TEXT)
_BAD = Answer(400, b"this is not HTTP as known here\n", _TEXT)
_NOT_ALLOWED = Answer(405, b"only GET and HEAD\n", _TEXT, b"Allow: GET, HEAD\r\n")


class LivingWeb:
    """The server; use it in `async with`, or `start` and `stop` it.

    Args:
        world: the web to serve.
        clock: its time.
        port: 0 lets the system choose.

    Reach it like any private network, by settings: `allow` and `resolve` are what the gate of a crawler needs.
    """

    def __init__(self, world: LivingWorld, clock: Clock, port: int = 0) -> None:
        if not 0 <= port <= 65_535:
            raise InvalidInput(f"is {port}, but must lie between 0 and 65535", field="port")
        self.world = world
        self.clock = clock
        self.answers = WebAnswers(world)
        self._wanted_port = port
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Transport] = set()

    @property
    def port(self) -> int:
        """The port it listens on."""
        if self._server is None:
            raise InvalidInput("is known once the server runs; start it first", field="port")
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    @property
    def allow(self) -> dict[str, str]:
        """The network to open, by name and with its port."""
        return {"living": f"127.0.0.1/32:{self.port}"}

    @property
    def resolve(self) -> dict[str, str]:
        """The names to map."""
        return {f"*.{self.world.settings.domain}": "127.0.0.1"}

    def url(self, page: int) -> str:
        """The URL at which a page was born."""
        return self.world.url(page, self.port)

    def seeds(self) -> list[str]:
        """The home pages of all hosts."""
        return [f"http://{host.name}:{self.port}/" for host in self.world.hosts]

    async def start(self) -> None:
        """Listen."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Connection(self), "127.0.0.1", self._wanted_port, backlog=1024)

    async def stop(self) -> None:
        """Close the port and every connection."""
        if self._server is None:
            return
        self._server.close()
        for connection in list(self._connections):
            connection.abort()
        await self._server.wait_closed()
        self._server = None

    async def __aenter__(self) -> LivingWeb:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def opened(self, connection: asyncio.Transport) -> None:
        """Note a new connection."""
        self._connections.add(connection)

    def closed(self, connection: asyncio.Transport) -> None:
        """Note the end of one."""
        self._connections.discard(connection)


class _Connection(asyncio.Protocol):
    """One connection: cuts the stream into requests, and writes the answers."""

    __slots__ = ("_head", "_transport", "_web")

    def __init__(self, web: LivingWeb) -> None:
        self._web = web
        self._head = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are transports in all but name.
        self._transport = cast(asyncio.Transport, transport)
        self._web.opened(self._transport)

    def connection_lost(self, error: Exception | None) -> None:
        del error
        if self._transport is not None:
            self._web.closed(self._transport)
            self._transport = None

    def pause_writing(self) -> None:
        """A client that does not read its answers gets no more of them."""
        if self._transport is not None:
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        if self._transport is not None:
            self._transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        head = self._head + data if self._head else data
        while self._transport is not None and not self._transport.is_closing():
            end = head.find(b"\r\n\r\n")
            if end < 0 or end > LONGEST_HEAD_BYTES:
                break
            self._transport.write(self._answer(head[: end + 2]))
            head = head[end + 4 :]
        self._head = head
        if len(head) > LONGEST_HEAD_BYTES and self._transport is not None:
            self._transport.write(encode_answer(_TOO_LONG, self._web.clock(), close=True))
            self._transport.close()

    def _answer(self, head: bytes) -> bytes:
        now = self._web.clock()
        method, request = read_request(head)
        lower = head.lower()
        close = b"\r\nconnection: close\r\n" in lower or b" http/1.0\r\n" in lower or request is None
        if b"\r\ncontent-length:" in lower or b"\r\ntransfer-encoding:" in lower:
            method, close = b"", True  # a body is never read, so that the stream could not go on behind it
        if request is None:
            answer = _BAD
        elif method not in (b"GET", b"HEAD"):
            answer = _NOT_ALLOWED
        else:
            answer = self._web.answers.answer(request, now)
        assert self._transport is not None
        encoded = encode_answer(answer, now, with_body=method != b"HEAD", close=close)
        if close:
            self._transport.write(encoded)
            self._transport.close()
            return b""
        return encoded


def read_request(head: bytes) -> tuple[bytes, Request | None]:
    r"""Method and request from the lines of a head, each with its end; no request if it cannot be read.

    >>> read_request(b"GET /a?b=c HTTP/1.1\r\nHost: X.test:80\r\n")[1]
    Request(host=b'x.test', port=b':80', path=b'/a', query=b'b=c', if_none_match=None, if_modified_since=None)
    """
    parts = head[: head.find(b"\r\n")].split(b" ")
    if len(parts) != 3 or not parts[2].startswith(b"HTTP/1.") or not parts[1].startswith(b"/"):
        return parts[0], None
    path, _, query = parts[1].partition(b"?")
    lower = head.lower()
    authority = _header(head, lower, b"\r\nhost:")
    if authority is None:
        return parts[0], None
    host, colon, port = authority.lower().partition(b":")
    if colon and not (port.isdigit() and len(port) < 6):
        return parts[0], None
    none_match = _header(head, lower, b"\r\nif-none-match:")
    since = _header(head, lower, b"\r\nif-modified-since:")
    return parts[0], Request(host, colon + port, path, query, none_match, since)


def _header(head: bytes, lower: bytes, name: bytes) -> bytes | None:
    start = lower.find(name)
    if start < 0:
        return None
    start += len(name)
    return head[start : head.find(b"\r\n", start)].strip()
