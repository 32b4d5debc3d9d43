"""Foreign errors mapped once: what the HTTP client, the resolver, TLS and the system raise, as a `Fault`."""

from __future__ import annotations

import errno
from collections.abc import Iterator

from recrawl.outcomes import FaultKind
from recrawl.web.fetch.egress import EgressRefused
from recrawl.web.fetch.protocol import Fault
from recrawl.web.refused import safe_text

# By the name of the class, so that no other file needs to import the client; the first that fits counts.
_BY_CLASS: tuple[tuple[str, FaultKind, str], ...] = (
    ("ConnectionTimeoutError", "connect-timeout", "connection timed out"),
    ("TimeoutError", "timeout", "the answer did not come in time"),
    ("SSLError", "tls", "the secure connection failed"),
    ("CertificateError", "tls", "the certificate is not trusted"),
    ("gaierror", "dns-failed", "the name could not be looked up"),
    ("ClientConnectorDNSError", "dns-failed", "the name could not be looked up"),
    ("LineTooLong", "headers", "the answer has a line that is too long"),
    ("ContentLengthError", "closed", "the body ended before its end"),
    ("FramingFlood", "protocol", "the answer brings too much that is no page"),
    ("BrokenFraming", "protocol", "the body is not framed as the protocol asks"),
    ("TransferEncodingError", "protocol", "the body is not framed as the protocol asks"),
    ("BadHttpMessage", "protocol", "the answer is not HTTP"),
    ("ConnectionResetError", "reset", "the server reset the connection"),
    ("BrokenPipeError", "reset", "the server reset the connection"),
    ("ConnectionRefusedError", "connect-refused", "the server does not listen"),
    ("ServerDisconnectedError", "closed", "the server closed the connection without an answer"),
    ("EofStream", "closed", "the server closed the connection without an answer"),
    ("ClientPayloadError", "closed", "the body ended before its end"),
    ("ClientResponseError", "protocol", "the answer is not HTTP"),
    ("HttpProcessingError", "protocol", "the answer is not HTTP"),
    ("InvalidURL", "protocol", "the client cannot use the address"),
)
_BY_ERRNO: dict[int, tuple[FaultKind, str]] = {
    errno.ECONNREFUSED: ("connect-refused", "the server does not listen"),
    errno.ECONNRESET: ("reset", "the server reset the connection"),
    errno.EPIPE: ("reset", "the server reset the connection"),
    errno.ETIMEDOUT: ("connect-timeout", "connection timed out"),
    errno.EHOSTUNREACH: ("unreachable", "no route leads to the server"),
    errno.ENETUNREACH: ("unreachable", "no route leads to the server"),
    errno.EADDRNOTAVAIL: ("unreachable", "no route leads to the server"),
    errno.EMFILE: ("unknown", "this process may open no more files: allow it more, or fewer fetches at once"),
    errno.ENFILE: ("unknown", "this system may open no more files"),
}
# Answers of the look-up that say that the name does not exist: EAI_NONAME, EAI_NODATA on Linux and the BSDs.
_NAME_MISSING = frozenset({-2, -5, 7, 8})
_TOO_MANY_HEADERS = "Too many"
_CUT_SHORT = "Not enough data"


class BrokenFraming(Exception):
    """The client closed the connection in the middle of a body, because of what came over it."""


def fault_of(error: BaseException) -> Fault:
    """The fault that an error stands for; looks through its causes. Never raises."""
    chain = list(_causes(error))
    for cause in chain:
        if isinstance(cause, EgressRefused):
            return Fault("refused", cause.refused.sentence)
    for name, kind, sentence in _BY_CLASS:
        for cause in chain:
            if _is_a(cause, name):
                return _refined(cause, kind, sentence) if kind != "tls" else Fault("tls", _tls_reason(chain, sentence))
    for cause in chain:
        if isinstance(cause, OSError) and cause.errno in _BY_ERRNO:
            return Fault(*_BY_ERRNO[cause.errno])
    return Fault("unknown", f"{type(error).__name__}: {safe_text(str(error))}")


def _refined(cause: BaseException, kind: FaultKind, sentence: str) -> Fault:
    if kind == "dns-failed" and isinstance(cause, OSError) and cause.errno in _NAME_MISSING:
        return Fault("dns-missing", "the name does not exist")
    if kind == "protocol" and _TOO_MANY_HEADERS in str(cause):
        return Fault("headers", "the answer has too many headers")
    if kind == "protocol" and _CUT_SHORT in str(cause):
        return Fault("closed", "the body ended before its end")
    return Fault(kind, sentence)


def _tls_reason(chain: list[BaseException], sentence: str) -> str:
    """What TLS itself says, from whichever error in the chain still knows it."""
    for part in ("verify_message", "reason"):
        for cause in chain:
            said = getattr(cause, part, None)
            if isinstance(said, str) and said:
                return f"{sentence}: {safe_text(said)}"
    return sentence


def _is_a(cause: BaseException, name: str) -> bool:
    return any(base.__name__ == name for base in type(cause).__mro__)


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting and len(seen) < 32:
        cause = waiting.pop(0)
        if cause is None or id(cause) in seen:
            continue
        seen.add(id(cause))
        yield cause
        waiting += [getattr(cause, "os_error", None), getattr(cause, "certificate_error", None)]
        waiting += [cause.__cause__, cause.__context__]
