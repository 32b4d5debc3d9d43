"""Connections that keep a pace: whoever sends no whole request in time, or a head without end, is let go.

The server below knows neither bound. A connection has ten seconds for the head of a request and a minute for its body
from the first byte on; idle ones are closed by the server's own clock once they have had an answer.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

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
