"""One request after another over the connections of the client, and their answers.

The client's own request object does much that a crawl has no use for, and takes three times as long as the request
itself. Here the head is written as it is, on a connection of the client's pool: the pool dials (through the gate),
verifies TLS, parses answers within its bounds and keeps connections; nothing of that is done again.
"""

from __future__ import annotations

import asyncio
from functools import cached_property

import aiohttp
from aiohttp.client_reqrep import ClientRequest, ConnectionKey
from aiohttp.connector import Connection
from aiohttp.helpers import TimerNoop
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.streams import EMPTY_PAYLOAD, EofStream, StreamReader
from yarl import URL

from recrawl.web.fetch.deadlines import Deadlines
from recrawl.web.fetch.faults import BrokenFraming, fault_of
from recrawl.web.fetch.framing import CountedAnswers, FramingFlood
from recrawl.web.fetch.protocol import BodyEnd, Chunk, Fault, Head, Read, Send
from recrawl.web.fetch.session import READ_BUFFER_BYTES
from recrawl.web.fetch.settings import HeaderPairs
from recrawl.web.url.address import Address

WIRE_ERRORS = (OSError, aiohttp.ClientError, HttpProcessingError, EofStream, BrokenFraming, FramingFlood)
"""What servers, networks and the gate cause; anything else is a mistake in this program, and is raised.

`OSError` covers deadlines, TLS, name look-ups and refusals of the gate.
"""
_BODY_END = BodyEnd()
_SWITCHING_PROTOCOLS = 101
_NO_TIMER = TimerNoop()  # every wait here has a deadline of its own


class Line:
    """What all exchanges of a transport share.

    Args:
        connector: the pool of connections.
        most_headers: header lines of an answer.
        longest_line_bytes: of its status line and header lines.
    """

    def __init__(self, connector: aiohttp.BaseConnector, most_headers: int, longest_line_bytes: int) -> None:
        self.connector = connector
        self.deadlines = Deadlines(asyncio.get_running_loop())
        self._most_headers = most_headers
        self._longest_line_bytes = longest_line_bytes
        self._timeout = aiohttp.ClientTimeout(total=None)
        self._headers: tuple[HeaderPairs, bytes] = (), b"\r\n"

    async def connect(self, request: _Dial, connect_s: float) -> Connection:
        """A connection that is ready for a request, from the pool or new."""
        if connect_s != self._timeout.connect:
            self._timeout = aiohttp.ClientTimeout(total=None, connect=connect_s)
        try:
            while True:  # no longer than there are kept connections
                connection = await self.connector.connect(request, [], self._timeout)
                if request.is_new or _is_silent(connection):
                    return connection
                connection.close()
        except TimeoutError as late:
            raise aiohttp.ConnectionTimeoutError from late

    async def ask(self, connection: Connection, step: Send) -> tuple[Head, StreamReader]:
        """Send the head of a request; the head of its answer and the body to come."""
        protocol = connection.protocol
        # Gone since it left the pool: uvloop would raise a RuntimeError for a write to a connection that is closing.
        if protocol is None or protocol.transport is None or protocol.transport.is_closing():
            raise aiohttp.ServerDisconnectedError
        protocol.set_response_params(
            timer=_NO_TIMER,
            read_until_eof=True,
            auto_decompress=False,
            read_bufsize=READ_BUFFER_BYTES,
            max_line_size=self._longest_line_bytes,
            max_field_size=self._longest_line_bytes,
            max_headers=self._most_headers,
        )
        address = step.address
        start = f"GET {address.target} HTTP/1.1\r\nHost: {address.authority}\r\n".encode("ascii")
        protocol.transport.write(start + self._written(step.headers))
        message, content = await protocol.read()
        while 100 <= message.code < 200 and message.code != _SWITCHING_PROTOCOLS:  # interim answers
            message, content = await protocol.read()
        return Head(message.code, tuple(message.raw_headers)), content

    def _written(self, headers: HeaderPairs) -> bytes:
        """The lines of headers and the empty one after them; the last ones are kept, for most requests are alike."""
        known, lines = self._headers
        if headers is not known:
            lines = b"".join(f"{name}: {value}\r\n".encode() for name, value in headers) + b"\r\n"
            if lines.count(b"\n") != len(headers) + 1 or lines.count(b"\r") != len(headers) + 1 or b"\0" in lines:
                raise ValueError("a header holds a line break")
            self._headers = headers, lines
        return lines


def _is_silent(connection: Connection) -> bool:
    protocol = connection.protocol
    return isinstance(protocol, CountedAnswers) and protocol.is_silent()


class _Dial(ClientRequest):
    """As much of a request as the pool needs to find or make a connection."""

    proxy = proxy_auth = proxy_headers = server_hostname = None
    connection_key: ConnectionKey = None  # type: ignore[assignment]  # a property of the class above

    def __init__(self, address: Address, verify_tls: bool) -> None:
        # The base class would build the whole request.
        self._address = address
        self._ssl = verify_tls
        self.is_new = False  # whether a connection had to be made
        is_tls = address.scheme == "https"
        self.connection_key = ConnectionKey(address.host, address.port, is_tls, verify_tls, None, None, None, None)

    @cached_property
    def url(self) -> URL:  # type: ignore[override]
        """Looked at only where a connection is made."""
        self.is_new = True
        return URL(self._address.url, encoded=True)


class Exchange:
    """One request at a time and its answer."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._connection: Connection | None = None
        self._content: StreamReader = EMPTY_PAYLOAD

    async def send(self, step: Send) -> Head | Fault:
        """Send a request and wait for the head of its answer; a fault for what the wire raises."""
        self.drop()
        try:
            return await self._line.deadlines.keep(step.deadline, self._head(step))
        except WIRE_ERRORS as error:
            return fault_of(error)

    async def _head(self, step: Send) -> Head:
        """The head of the answer; asks once more where the server has closed a kept connection meanwhile."""
        line, has_retried = self._line, False
        while True:
            dial = _Dial(step.address, step.verify_tls)
            connection = await line.connect(dial, step.connect_s)
            try:
                head, content = await line.ask(connection, step)
            except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError):
                connection.close()
                if dial.is_new or has_retried:
                    raise
                has_retried = True
            except BaseException:
                connection.close()
                raise
            else:
                self._connection, self._content = connection, content
                return head

    def read_now(self) -> Chunk | BodyEnd | Fault | None:
        """What is here of the body, or its end; None if it must be waited for."""
        content = self._content
        try:
            data = content.read_nowait()
        except WIRE_ERRORS as error:
            self.close()
            return fault_of(error)
        if data:
            return Chunk(data)
        if not content.at_eof():
            return None
        self.drop()
        return _BODY_END

    async def read(self, step: Read) -> Chunk | BodyEnd | Fault:
        """The next bytes of the body, or its end."""
        try:
            data = await self._line.deadlines.keep(step.deadline, self._content.readany())
        except WIRE_ERRORS as error:
            self.close()
            return fault_of(error)
        if data:
            return Chunk(data)
        self.drop()
        return _BODY_END

    def drop(self) -> None:
        """Let the answer go; the connection is kept if nothing of the answer is left on it."""
        if self._connection is not None:
            self._connection.release()
            self._connection, self._content = None, EMPTY_PAYLOAD

    def close(self) -> None:
        """Let the answer go, and the connection too unless the answer was read to its end."""
        if self._connection is not None:
            self._connection.close()
            self._connection, self._content = None, EMPTY_PAYLOAD
