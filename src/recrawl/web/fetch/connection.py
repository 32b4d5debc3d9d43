"""Connections: dialled through the gate, verified, bounded, kept for another request; one request at a time on each.

The HTTP client (aiohttp) dials, verifies TLS, parses answers within its bounds and keeps connections. Its own request
object does much that a crawl has no use for, and takes three times as long as the request itself, so the head of a
request is written here. Nothing of the environment changes a client: no proxy, no password file, no list of
authorities, no log of TLS keys. Pages leave through `transport.py`, webhooks through `push/delivery.py`.

The client bounds each header line and their number, and the fetch flow bounds the body. Between them there is room for
floods that cost time and yield nothing: a million chunks of one byte, blank lines or a chunk extension without end, a
body of which each byte comes alone. So every byte and every arrival of a response is counted. A response is aborted
when it has brought a mebibyte more than its body so far, which is the longest head that the other bounds allow or
200,000 of the smallest chunks, and when it comes in crumbs.

Between two requests nothing may come over a connection: what a server sends without being asked, such as the rest of a
body that is longer than announced, would be read as the answer to the next request. A connection that is not silent is
closed.
"""

from __future__ import annotations

import asyncio
import math
import select
import ssl
import sys
from collections import OrderedDict
from collections.abc import Awaitable
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
from aiohttp.abc import AbstractResolver
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ClientRequest, ConnectionKey
from aiohttp.connector import Connection
from aiohttp.helpers import TimerNoop
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.streams import EMPTY_PAYLOAD, EofStream, StreamReader
from yarl import URL

from recrawl.web.fetch.egress import EgressPolicy, socket_factory
from recrawl.web.fetch.faults import BrokenFraming, fault_of
from recrawl.web.fetch.protocol import BodyEnd, Chunk, Fault, Head, Read, Send
from recrawl.web.fetch.settings import DEFAULT_LIMITS, FetchLimits, HeaderPairs
from recrawl.web.url.address import Address

Result = TypeVar("Result")


class _Watch:
    """One wait of a task."""

    __slots__ = ("cancels_before", "deadline", "is_over", "task")

    def __init__(self, deadline: float, task: asyncio.Task[Any]) -> None:
        self.deadline = deadline
        self.task = task
        self.cancels_before = task.cancelling()
        self.is_over = False


class Deadlines:
    """Deadlines of many waits by one timer: `asyncio.timeout_at` at a tenth of its cost where few run out."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._watches: set[_Watch] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._rings_at = math.inf

    async def keep(self, deadline: float, work: Awaitable[Result]) -> Result:
        """What the work gives, if it ends by the deadline. O(1), and O(waits) when the timer rings.

        Raises:
            TimeoutError: after the deadline; the work is cancelled.
        """
        task = asyncio.current_task()
        assert task is not None
        watch = _Watch(deadline, task)
        self._watches.add(watch)
        if deadline < self._rings_at:
            self._set_timer(deadline)
        try:
            return await work
        except asyncio.CancelledError as cancelled:
            if watch.is_over and task.cancelling() <= watch.cancels_before + 1:  # cancelled by nobody else
                raise TimeoutError from cancelled
            raise
        finally:
            self._watches.discard(watch)
            if watch.is_over:
                task.uncancel()

    def close(self) -> None:
        """Take the timer back."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._rings_at = None, math.inf

    def _set_timer(self, when: float) -> None:
        self.close()
        self._timer, self._rings_at = self._loop.call_at(when, self._ring), when

    def _ring(self) -> None:
        now, nearest = self._loop.time(), math.inf
        self._timer, self._rings_at = None, math.inf
        for watch in self._watches:
            if watch.deadline > now:
                nearest = min(nearest, watch.deadline)
            elif not watch.is_over:
                watch.is_over = True
                watch.task.cancel()
        if nearest < math.inf:
            self._set_timer(nearest)


MOST_FRAMING_BYTES = 1 << 20
MOST_CRUMBS = 16_384
_BYTES_OF_A_CRUMB = 64


class FramingFlood(Exception):
    """An answer brought too much that is no page."""


class CountedConnection(ResponseHandler):
    """One connection. Counts bytes per response; aborts if data arrives between requests.

    The client has no public names for the body that is being received (`_payload`), for what its parser has left over
    (`_parser`) and for a pause of reading (`_reading_paused`); tests of floods and of resting connections hold them.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop=loop)
        self._answer_bytes = 0
        self._arrivals = 0
        self._is_resting = False

    def rest(self) -> None:
        """No request is under way from now on."""
        self._is_resting = True

    def set_response_params(self, **params: Any) -> None:
        """Begin the next answer."""
        self._is_resting = False
        self._answer_bytes = self._arrivals = 0
        super().set_response_params(**params)

    def data_received(self, data: bytes) -> None:
        """Take in what came, and break off what floods or was not asked for."""
        if self._is_resting:
            if data and self.transport is not None:
                self.transport.abort()
            return
        self._answer_bytes += len(data)
        self._arrivals += bool(data)  # the client calls this with nothing when it goes on after a pause
        super().data_received(data)
        if self._answer_bytes > MOST_FRAMING_BYTES or self._arrivals > MOST_CRUMBS:
            self._break_off_a_flood()

    def resume_reading(self, resume_parser: bool = True) -> None:
        """Go on after a pause; the client asks for that with every piece that is read, and few follow a pause."""
        if self._reading_paused:
            super().resume_reading(resume_parser)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Tell a body that still waits that its connection is gone: after broken chunks the client does not."""
        body = self._payload
        super().connection_lost(exc)
        if body is not None and not body.is_eof() and body.exception() is None:
            body.set_exception(BrokenFraming())

    def has_leftovers(self) -> bool:
        """Whether more has come than the answer: the beginning of another, or of something else.

        Ask only after the answer, for it ends the parser; each answer has its own.
        """
        if self._reading_paused:  # what comes then is not seen
            return True
        try:
            return self._parser is not None and self._parser.feed_eof() is not None
        except Exception:  # it began as no answer may
            return True

    def is_silent(self) -> bool:
        """Whether nothing waits to be read, neither bytes nor the end: the loop learns of both only when it looks."""
        transport = self.transport
        bare = None if transport is None else transport.get_extra_info("socket")
        return bare is not None and bare.fileno() >= 0 and not _can_be_read(bare.fileno())

    def _break_off_a_flood(self) -> None:
        body = self._payload
        framing_bytes = self._answer_bytes - (0 if body is None else body.total_bytes)
        crumbs = self._arrivals - self._answer_bytes // _BYTES_OF_A_CRUMB
        if framing_bytes <= MOST_FRAMING_BYTES and crumbs <= MOST_CRUMBS:
            return
        flood = FramingFlood()
        self.set_exception(flood)
        if body is not None and not body.is_eof():
            body.set_exception(flood)
        if self.transport is not None:
            self.transport.abort()


def _can_be_read(file: int) -> bool:
    if sys.platform == "win32":  # has no poll; its select takes any socket
        return bool(select.select([file], [], [], 0)[0])
    poll = select.poll()
    poll.register(file, select.POLLIN)
    return bool(poll.poll(0))


class KeptConnections(aiohttp.TCPConnector):
    """The client's pool, with a bound on idle connections.

    The client bounds the connections in use, not those it keeps: a crawl of many hosts at a hundred pages a second
    would hold fifteen hundred open, and most systems give a process a thousand files.

    Args:
        max_idle: connections that wait for another request; beyond that the one that waits longest is closed.
        options: of the pool it extends.

    The client has no public way to choose the protocol of its connections or to learn that one became idle; the tests
    of floods and of idle connections hold the two names used here.
    """

    def __init__(self, max_idle: int, **options: Any) -> None:
        super().__init__(**options)
        protocol: type[ResponseHandler] = CountedConnection
        self._factory = partial(protocol, loop=self._loop)
        self._max_idle = max_idle
        self._idle: OrderedDict[ResponseHandler, None] = OrderedDict()

    def _release(self, key: Any, protocol: ResponseHandler, *, should_close: bool = False) -> None:
        assert isinstance(protocol, CountedConnection)
        is_done = should_close or protocol.should_close or protocol.has_leftovers()
        super()._release(key, protocol, should_close=is_done)
        self._idle.pop(protocol, None)
        if protocol.is_connected():
            protocol.rest()
            self._idle[protocol] = None
        while len(self._idle) > self._max_idle:
            oldest, _ = self._idle.popitem(last=False)
            if oldest not in self._acquired:
                oldest.close()


_AUTOMATIC_HEADERS = ("User-Agent", "Accept", "Accept-Encoding")
_KEEP_ALIVE_S = 15.0
_NAMES_KEPT_S = 60
READ_BUFFER_BYTES = 65_536


def open_session(
    policy: EgressPolicy,
    names: AbstractResolver,
    tls: ssl.SSLContext | None,
    max_connections: int,
    *,
    limits: FetchLimits = DEFAULT_LIMITS,
    keep_alive: bool = True,
) -> aiohttp.ClientSession:
    """A client that dials only what the gate allows, follows, decodes and keeps nothing. Close it when done.

    Args:
        policy: the gate's policy.
        names: who looks up names, behind the gate.
        tls: the context for https; None for the authorities of the system.
        max_connections: in use at once, and as many again that are kept.
        limits: the bounds on headers count.
        keep_alive: whether a connection serves for more than one request.
    """
    connector = KeptConnections(
        max_connections,
        limit=max_connections,
        ssl=tls or system_tls(),
        resolver=names,
        socket_factory=socket_factory(policy),
        ttl_dns_cache=_NAMES_KEPT_S,
        keepalive_timeout=_KEEP_ALIVE_S if keep_alive else None,
        force_close=not keep_alive,
    )
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        trust_env=False,
        requote_redirect_url=False,
        skip_auto_headers=_AUTOMATIC_HEADERS,
        timeout=aiohttp.ClientTimeout(total=None),
        read_bufsize=READ_BUFFER_BYTES,
        max_line_size=limits.longest_line_bytes,
        max_field_size=limits.longest_line_bytes,
        max_headers=limits.most_headers,
    )


@lru_cache(maxsize=1)
def system_tls() -> ssl.SSLContext:
    """TLS 1.2 or later, certificates checked against the authorities that this Python was built to trust.

    `ssl.create_default_context` would take others from SSL_CERT_FILE and write keys to SSLKEYLOGFILE. Who needs other
    authorities hands in a context.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    paths = ssl.get_default_verify_paths()
    file = paths.openssl_cafile if Path(paths.openssl_cafile).is_file() else None
    folder = paths.openssl_capath if Path(paths.openssl_capath).is_dir() else None
    if file or folder:
        context.load_verify_locations(file, folder)
    else:  # systems that keep them elsewhere, such as Windows
        context.load_default_certs()
    return context


WIRE_ERRORS = (OSError, aiohttp.ClientError, HttpProcessingError, EofStream, BrokenFraming, FramingFlood)
"""What servers, networks and the gate cause; anything else is a mistake in this program, and is raised.

`OSError` covers deadlines, TLS, name look-ups and refusals of the gate.
"""
_BODY_END = BodyEnd()
_SWITCHING_PROTOCOLS = 101
_NO_TIMER = TimerNoop()  # every wait here has a deadline of its own


class ConnectionPool:
    """What all exchanges of a transport share.

    Args:
        connector: the client's pool of connections.
        limits: the bounds on headers count.
    """

    def __init__(self, connector: aiohttp.TCPConnector, limits: FetchLimits) -> None:
        self.connector = connector
        self.deadlines = Deadlines(asyncio.get_running_loop())
        self._limits = limits
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
            max_line_size=self._limits.longest_line_bytes,
            max_field_size=self._limits.longest_line_bytes,
            max_headers=self._limits.most_headers,
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
    return isinstance(protocol, CountedConnection) and protocol.is_silent()


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

    def __init__(self, pool: ConnectionPool) -> None:
        self._pool = pool
        self._connection: Connection | None = None
        self._content: StreamReader = EMPTY_PAYLOAD

    async def send(self, step: Send) -> Head | Fault:
        """Send a request and wait for the head of its answer; a fault for what the wire raises."""
        self.drop()
        try:
            return await self._pool.deadlines.keep(step.deadline, self._head(step))
        except WIRE_ERRORS as error:
            return fault_of(error)

    async def _head(self, step: Send) -> Head:
        """The head of the answer; asks once more where the server has closed a kept connection meanwhile."""
        pool, has_retried = self._pool, False
        while True:
            dial = _Dial(step.address, step.verify_tls)
            connection = await pool.connect(dial, step.connect_s)
            try:
                head, content = await pool.ask(connection, step)
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
            data = await self._pool.deadlines.keep(step.deadline, self._content.readany())
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
