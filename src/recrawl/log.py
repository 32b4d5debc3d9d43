"""The log: a logger for each room, records without secrets, and lines of text or of JSON.

    _LOG = room_log("tracker")
    _LOG.warning("the store cannot write: %s", error, extra={"waiting": 12})

A room writes to `recrawl.<room>` as the standard library has it; `start_log` is for commands, and programs that embed
recrawl attach handlers of their own. Every record of a room passes `without_secrets` before any handler has it, and so
does every record of another library before our handler writes it.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, Literal, TextIO

LogFormat = Literal["text", "json"]
ROOT = "recrawl"
HIDDEN = "***"
_ADDRESS = re.compile(r"\b([A-Za-z][A-Za-z0-9+.-]{1,20})://([^\s\"'<>`]*)")
_SECRET_NAME = re.compile(
    r"token|secret|passw|pwd|key(?!word)|sig|auth|cred|session|^sid$|jwt|code|hmac|hash|policy|ticket|nonce|otp|access",
    re.IGNORECASE,
)
_SAID_SECRET = re.compile(
    r"\b(bearer|basic)\s+(?=\S*[0-9=_-])\S{8,}|\b(password|passwd|pwd|secret|token|api[-_]?key)(\s*=\s*)[^\s&]+|"
    r"\brecrawl-[0-9a-f]{12}-[0-9a-f]+",
    re.IGNORECASE,
)
_HEX = re.compile(r"(?=.*[0-9])(?=.*[A-Fa-f])[0-9A-Fa-f-]{20,}")
_SHORTEST_RANDOM = 16
_CHANGES = 0.3  # of characters that are followed by another class of characters; words and numbers have fewer
_STANDARD = frozenset({*vars(logging.makeLogRecord({})), "message", "asctime", "taskName"})


def without_secrets(text: str) -> str:
    """Return a text whose addresses have no credentials, no fragments, and nothing that looks drawn at random.

    >>> without_secrets("https://me:pw@a.example/hooks/T0pS3cr3tT0k3nXy?page=2&sig=a1#login")
    'https://***@a.example/hooks/***?page=2&sig=***#***'
    >>> without_secrets("postgresql://u:p/w@db/crawl has https://a.example/2024/a-long-title-of-10-words?id=5")
    'postgresql://***@db/crawl has https://a.example/2024/a-long-title-of-10-words?id=5'
    """
    if "://" in text:
        text = _ADDRESS.sub(_safe_address, text)
    return _SAID_SECRET.sub(_hidden, text)


def _hidden(match: re.Match[str]) -> str:
    named = match[1] or match[2]
    return f"{named}{match[3] or ' '}{HIDDEN}" if named else HIDDEN  # else a token of our own API


def _safe_address(match: re.Match[str]) -> str:
    scheme, rest = match[1], match[2]
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    user, at, _ = authority.rpartition("@")
    if not at and "@" in rest and re.search(r":(?![0-9]*$)", authority):  # a password with a slash, not encoded
        user = rest.rpartition("@")[0]
    login = f"{HIDDEN}@" if user or at else ""
    rest = rest[len(user) + 1 :] if login else rest
    rest, hash_sign, _ = rest.partition("#")
    rest, mark, query = rest.partition("?")
    host, *path = rest.split("/")
    safe = "/".join([host, *(HIDDEN if _looks_random(part) else part for part in path)])
    asked = "&".join(_safe_value(each) for each in query.split("&"))
    return f"{scheme}://{login}{safe}{mark}{asked}{f'#{HIDDEN}' if hash_sign else ''}"


def _safe_value(pair: str) -> str:
    name, equals, value = pair.partition("=")
    if not equals:
        return HIDDEN if _looks_random(pair) else pair
    foreign = ":" in value or "%3a" in value.lower() or "%40" in value  # an address in an address, or a login
    return f"{name}={HIDDEN}" if value and (foreign or _SECRET_NAME.search(name) or _looks_random(value)) else pair


def _looks_random(text: str) -> bool:
    """Return whether a part of an address looks like a token rather than like words, dates or numbers."""
    if _HEX.fullmatch(text):
        return True
    kinds = ["9" if each.isdigit() else "A" if each.isupper() else "a" for each in text if each.isalnum()]
    if len(kinds) < _SHORTEST_RANDOM or "9" not in kinds or len(set(kinds)) == 1:
        return False
    changes = sum(one != other for one, other in pairwise(kinds))
    return changes >= _CHANGES * len(kinds)


class _Clean(logging.Filter):
    """Takes secrets out of the message, the fields and the traceback of a record, and makes them encodable as UTF-8."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = _clean(record.getMessage()), ()
        for name, value in fields_of(record).items():
            if not isinstance(value, (int, float, bool, type(None))):
                setattr(record, name, _clean(str(value)))
        if record.exc_info and record.exc_info[0] is not None:
            record.exc_text = _clean(logging.Formatter().formatException(record.exc_info))
            record.exc_info = None
        return True


def _clean(text: str) -> str:
    return without_secrets(text).encode("utf-8", "backslashreplace").decode("utf-8")


_CLEAN = _Clean()


def fields_of(record: logging.LogRecord) -> dict[str, Any]:
    """Return what a record has beside what every record has: its `extra`."""
    return {name: value for name, value in vars(record).items() if name not in _STANDARD}


def room_log(room: str) -> logging.Logger:
    """Return the logger of a room."""
    log = logging.getLogger(f"{ROOT}.{room}")
    log.addFilter(_CLEAN)
    return log


class _Lines(logging.Formatter):
    """A record as one line for people; a traceback follows it, indented."""

    def format(self, record: logging.LogRecord) -> str:
        said = "".join(f" {name}={value}" for name, value in fields_of(record).items())
        line = f"{_time(record)} {record.levelname} {record.name}: {_printable(record.getMessage() + said)}"
        trace = (record.exc_text or "").splitlines()
        return "\n".join([line, *(f"    {_printable(each)}" for each in trace)])


class _Objects(logging.Formatter):
    """A record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        said: dict[str, Any] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "fields": fields_of(record),
        }
        if record.exc_text:
            said["error"] = record.exc_text
        return json.dumps(said, ensure_ascii=False, default=str)


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _printable(text: str) -> str:
    """A text without characters that could steer a terminal, or begin a line of their own."""
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text)


class _Handler(logging.Handler):
    """Writes to standard error as it is by then, or to a stream; one that is closed is no reason to stop."""

    def __init__(self, stream: TextIO | None) -> None:
        super().__init__()
        self._stream = stream

    def emit(self, record: logging.LogRecord) -> None:
        stream = sys.stderr if self._stream is None else self._stream
        if stream is not None:  # standard error may be closed before Python starts
            try:
                stream.write(self.format(record) + "\n")
                stream.flush()
            except (OSError, ValueError):
                self.handleError(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - by the base class
        """Do nothing: whoever read the log has left."""


def start_log(form: LogFormat, level: int, stream: TextIO | None = None) -> None:
    """Write the log of all rooms, and the warnings of other libraries, to a stream; once for each process.

    Args:
        form: lines of text, or objects of JSON.
        level: of our own records, at least.
        stream: standard error unless it is given.
    """
    handler = _Handler(stream)
    handler.setFormatter(_Objects() if form == "json" else _Lines())
    handler.addFilter(_CLEAN)
    root = logging.getLogger()
    for old in [each for each in root.handlers if isinstance(each, _Handler)]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    logging.getLogger(ROOT).setLevel(level)
    logging.captureWarnings(capture=True)


logging.getLogger(ROOT).addHandler(logging.NullHandler())  # silent in programs that want no log
