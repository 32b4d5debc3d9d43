"""The service beside a tracker: in its process, on its loop, until it stops.

The server leaves signals to the tracker, reads no proxy header (`guard.py` does), does not name itself and keeps no
access log. A connection has ten seconds for the head of a request and a minute for its body; the server below knows
neither bound.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any

import uvicorn
from litestar import Litestar
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from recrawl.errors import InvalidInput
from recrawl.log import room_log
from recrawl.service.app import make_app
from recrawl.service.auth.access import Access
from recrawl.service.incoming.hooks import check_hooks
from recrawl.service.listening import Listening
from recrawl.service.monitor.health import Pulse
from recrawl.service.monitor.monitor import References, Watch
from recrawl.tracker.settings.file import Origin
from recrawl.tracker.tracker import Tracker

_LOG = room_log("service")
_GRACE_S = 2
_BACKLOG = 2048


class _Server(uvicorn.Server):
    """A server that leaves signals alone."""

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Signals are the tracker's."""
        yield


def service(
    listening: Listening,
    origins: Mapping[str, Origin] | None = None,
    *,
    link: bool = False,
    token: bool = True,
    told: Callable[[str, str], None] | None = None,
    fetches: bool = True,
    references: References | None = None,
) -> Callable[[Tracker], Awaitable[None]]:
    """The service as a companion of `run_tracker`.

    Args:
        listening: where.
        origins: who gave each setting.
        link: say a link that signs in once, for whoever sits at the terminal.
        token: make and show the first token if there was never one; not where words are kept, as in a log.
        told: is called with the address when it listens, for programs, and with the link, "" if there is none.
        fetches: whether the tracker fetches itself.
        references: gives freshness for the dashboard to show beside that of the tracker, by name.
    """

    async def serve_beside(tracker: Tracker) -> None:
        check_hooks(tracker.settings)
        listener = _bound(listening, tracker.say)
        try:
            access = Access(tracker.store, listening, time.time)
            watch, pulse = Watch(tracker, origins, references), Pulse(time.monotonic(), fetches)
            app = make_app(tracker, access, watch, pulse)
            address = address_of(listener, listening)
            signs_in = await _tell(tracker, access, address, link=link, token=token)
            if told is not None:
                told(address, signs_in)
            beside = [asyncio.ensure_future(watch.run()), asyncio.ensure_future(pulse.run(tracker))]
            try:
                await _serve(app, listener, tracker)
            finally:
                app.state["site_keys"].close()
                await asyncio.wait(beside, timeout=_GRACE_S)
                for each in beside:
                    each.cancel()
                await asyncio.gather(*beside, return_exceptions=True)
        finally:
            listener.close()

    return serve_beside


async def _tell(tracker: Tracker, access: Access, address: str, *, link: bool, token: bool) -> str:
    if not token and not await access.records():
        _LOG.warning("the API has no token yet, and shows none in a log: make one with `recrawl token new`")
    elif token and (first := await access.first_token()) is not None:
        tracker.say(f"the token of the API, shown this once: {first}")
    code = f"login#{access.sessions.new_code(access.now())}" if link else ""
    tracker.say(f"listening on {address}/{code}{' (this link signs in once)' if link else ''}")
    return f"{address}/{code}" if link else ""


async def _serve(app: Litestar, listener: socket.socket, tracker: Tracker) -> None:
    server = _Server(
        uvicorn.Config(
            app,
            http=BoundedProtocol,
            ws="none",
            lifespan="off",
            loop="none",
            log_config=None,
            log_level="critical",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=_GRACE_S,
        )
    )
    running = asyncio.ensure_future(server.serve([listener]))
    stopped = asyncio.ensure_future(_stopped(tracker))
    try:
        await asyncio.wait([running, stopped], return_when=asyncio.FIRST_COMPLETED)
        server.should_exit = True
        await running
    finally:
        stopped.cancel()
        running.cancel()


async def _stopped(tracker: Tracker) -> None:
    while not tracker.stopping:
        await tracker.pause(3600.0)


def _bound(listening: Listening, say: Callable[[str], None]) -> socket.socket:
    """A socket that listens; if a port nobody asked for is taken, any other."""
    try:
        return _listener(listening.host, listening.port)
    except OSError as error:
        if listening.fixed or listening.port == 0:
            raise InvalidInput(
                f"is {listening.host}:{listening.port}, which cannot be had: {error.strerror or error}",
                field="listen",
            ) from None
        say(f"port {listening.port} is taken: another one is used")
        return _listener(listening.host, 0)


def _listener(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(_BACKLOG)  # from now on, since the address is told before the server runs
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener


def address_of(listener: socket.socket, listening: Listening) -> str:
    """The address by which clients on this machine reach it."""
    port = listener.getsockname()[1]
    host = f"[{listening.host}]" if ":" in listening.host else listening.host
    return f"http://{host}:{port}"


HEAD_S = 10.0
BODY_S = 60.0
MOST_HEAD_BYTES = 64 * 1024
MOST_HEADERS = 128
MOST_CONNECTIONS = 1000


class BoundedProtocol(HttpToolsProtocol):
    """The server's protocol for one connection, with bounds."""

    _deadline: asyncio.TimerHandle | None = None
    _head_bytes = 0
    _in_head = True

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client came; one too many is let go at once."""
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            self._give_up()
        self._wait(HEAD_S)

    def connection_lost(self, exc: Exception | None) -> None:
        """It left."""
        self._wait(None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Bytes came; those of a head are counted."""
        if self._in_head:
            self._head_bytes += len(data)
            if self._deadline is None:  # of another request on the same connection
                self._wait(HEAD_S)
        super().data_received(data)
        if self._in_head and self._head_bytes > MOST_HEAD_BYTES:
            self._give_up()

    def on_message_begin(self) -> None:
        """A request begins."""
        self._in_head = True
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header came whole."""
        super().on_header(name, value)
        if len(self.headers) > MOST_HEADERS:
            self._give_up()

    def on_headers_complete(self) -> None:
        """The head is whole, the body may follow."""
        self._in_head, self._head_bytes = False, 0
        self._wait(BODY_S)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The request is whole."""
        self._in_head = True
        self._wait(None)
        super().on_message_complete()

    def _wait(self, seconds: float | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None if seconds is None else self.loop.call_later(seconds, self._give_up)

    def _give_up(self) -> None:
        transport: Any = self.transport
        if transport is not None and not transport.is_closing():
            transport.abort()
