"""A request and an answer as values, and the bytes of an answer. No IO."""

from __future__ import annotations

import time
from functools import lru_cache
from http import HTTPStatus
from typing import NamedTuple

HTML = b"text/html; charset=utf-8"
_DAYS = (b"Mon", b"Tue", b"Wed", b"Thu", b"Fri", b"Sat", b"Sun")
_MONTHS = (b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec")
_LINES = {
    status.value: b"HTTP/1.1 %d %b\r\nServer: living\r\nDate: " % (status, status.phrase.encode())
    for status in HTTPStatus
}


class Request(NamedTuple):
    """What the living web reads of a request.

    Args:
        host: the host name in lower case, without a port.
        port: the port as sent, with its colon, or nothing.
        path: without the query.
        query: without the question mark.
        if_none_match: as sent.
        if_modified_since: as sent.
    """

    host: bytes
    port: bytes
    path: bytes
    query: bytes = b""
    if_none_match: bytes | None = None
    if_modified_since: bytes | None = None


class Answer(NamedTuple):
    """What is sent back; `headers` are whole lines."""

    status: int
    body: bytes = b""
    content_type: bytes = HTML
    headers: bytes = b""


def encode_answer(answer: Answer, now: float, *, with_body: bool = True, close: bool = False) -> bytes:
    """The bytes of an answer, body included unless the method was HEAD."""
    bodiless = answer.status == HTTPStatus.NOT_MODIFIED
    length = (
        b"" if bodiless else b"\r\nContent-Type: %b\r\nContent-Length: %d" % (answer.content_type, len(answer.body))
    )
    return b"%b%b%b\r\n%b%b\r\n%b" % (
        _LINES[answer.status],
        http_date(int(now)),
        length,
        b"Connection: close\r\n" if close else b"",
        answer.headers,
        answer.body if with_body and not bodiless else b"",
    )


@lru_cache(maxsize=1024)
def http_date(unix: int) -> bytes:
    """A moment as HTTP has it.

    >>> http_date(0)
    b'Thu, 01 Jan 1970 00:00:00 GMT'
    """
    t = time.gmtime(unix)
    return b"%b, %02d %b %04d %02d:%02d:%02d GMT" % (
        _DAYS[t.tm_wday], t.tm_mday, _MONTHS[t.tm_mon - 1], t.tm_year, t.tm_hour, t.tm_min, t.tm_sec,
    )  # fmt: skip


def w3c_date(unix: float) -> bytes:
    """A moment as sitemaps and Atom have it.

    >>> w3c_date(0)
    b'1970-01-01T00:00:00Z'
    """
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(unix)).encode()


def redirect(status: int, location: bytes) -> Answer:
    """An answer that sends the client elsewhere."""
    return Answer(status, b"<p>See <a href=%b>here</a>.</p>" % location, headers=b"Location: %b\r\n" % location)
