"""A bound on what comes over a connection and is no page: heads, interim answers, chunk sizes, extensions, trailers.

The HTTP client bounds each header line and their number, and the fetch flow bounds the body. Between them there is
room for floods that cost time and yield nothing: a million chunks of one byte, blank lines or a chunk extension
without end, a body of which each byte comes alone. Here every byte and every arrival of an answer is counted. It is
broken off when it has brought a mebibyte more than its body so far, which is the longest head that the other bounds
allow or 200,000 of the smallest chunks, and when it comes in crumbs.

Between two requests a connection rests, and nothing may come over it: what a server sends without being asked, such
as the rest of a body that is longer than announced, would be read as the answer to the next request. A connection
that is not silent is given up.
"""

from __future__ import annotations

import asyncio
import select
import sys
from typing import Any

from aiohttp.client_proto import ResponseHandler

from recrawl.web.fetch.faults import BrokenFraming

MOST_FRAMING_BYTES = 1 << 20
MOST_CRUMBS = 16_384
_BYTES_OF_A_CRUMB = 64


class FramingFlood(Exception):
    """An answer brought too much that is no page."""


class CountedAnswers(ResponseHandler):
    """The client's side of one connection, which counts what each answer brings and bears nothing between them."""

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
