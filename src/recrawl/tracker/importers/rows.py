"""What every parser of an import gives, row by row: a page that is wanted, or why it cannot be used. Pure.

A parser reads bytes from a stream that nobody vouches for. It reads no more than its bounds allow, raises nothing for
any bytes, and names the row of whatever it cannot use; row 0 is the file as a whole.
"""

from __future__ import annotations

import codecs
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, Any, NamedTuple, cast

from recrawl.tracker.admission import PageRequest

LONGEST_DOCUMENT_BYTES = 32 << 20
"""Of formats that must be read whole; lists and CSV are streamed, and may have any length."""
MOST_ROWS = 10_000_000
LONGEST_LINE = 65_536
_ENDS = ("\n", "\r")
_HALF = "\udcff"


class GoodRow(NamedTuple):
    """A page, and the row it was in; `paused` if it was so where it comes from."""

    row: int
    wanted: PageRequest
    paused: bool = False


class BadRow(NamedTuple):
    """A row that gives no page, and why."""

    row: int
    reason: str


Item = GoodRow | BadRow


@dataclass(frozen=True, slots=True)
class Hints:
    """What a parser may know beside the bytes: names of groups, and the time as Unix seconds."""

    groups: frozenset[str] = frozenset()
    now: float = 0.0


Parser = Callable[[IO[bytes], Hints], Iterator[Item]]


def whole(stream: IO[bytes]) -> bytes | BadRow:
    """All bytes of a document, unless it is too long."""
    content = stream.read(LONGEST_DOCUMENT_BYTES + 1)
    if len(content) > LONGEST_DOCUMENT_BYTES:
        return BadRow(0, f"is longer than {LONGEST_DOCUMENT_BYTES >> 20} MB: split it")
    return content


def text_lines(stream: IO[bytes]) -> Iterator[tuple[int, str | None]]:
    r"""Numbered lines of text with their ends; None for one that is too long. O(length), memory O(longest line).

    UTF-8, or UTF-16 with a mark at its beginning. Bytes that are neither become halves of characters, which no address
    has.

    >>> list(text_lines(io.BytesIO(codecs.BOM_UTF8 + b"a\r\nb")))
    [(1, 'a\r\n'), (2, 'b')]
    """
    start = stream.read(4)
    utf_16 = start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    rest: Any = io.BufferedReader(cast(Any, _Joined(start, stream)))
    text = io.TextIOWrapper(
        rest,
        encoding="utf-16" if utf_16 else "utf-8-sig",
        errors="replace" if utf_16 else "surrogateescape",
        newline="",
    )
    number = 0
    while line := text.readline(LONGEST_LINE):
        number += 1
        if len(line) == LONGEST_LINE and not line.endswith(_ENDS):
            while (more := text.readline(LONGEST_LINE)) and not more.endswith(_ENDS):
                pass
            yield number, None
        else:
            yield number, line.replace("\N{REPLACEMENT CHARACTER}", _HALF) if utf_16 else line
    text.detach()


class _Joined(io.RawIOBase):
    """The first bytes of a stream, read before, and the rest of it."""

    def __init__(self, start: bytes, rest: IO[bytes]) -> None:
        self._start = start
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]  # any buffer of bytes
        size = len(buffer)
        piece, self._start = self._start[:size], self._start[size:]
        if not piece:
            piece = self._rest.read(size)
        buffer[: len(piece)] = piece
        return len(piece)


def printable(text: str, longest: int = 120) -> str:
    """Foreign text, fit for one line of a terminal."""
    cut = text if len(text) <= longest else text[: longest - 1] + "…"
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in cut)
