r"""Lines of a large file in blocks, gzipped or not, in bounded memory and whatever the bytes.

    for block in line_blocks(stream, report): ...

A block is a list of lines without their ends. A line that is too long is not given but counted. What is wrong with the
file as a whole is told in the report and ends it: a broken stream, or so much in a row without a line that anyone
could use (`report.useful()` says that there was one) that it cannot be what it should be, such as a small file that
unpacks to terabytes.

    >>> import io
    >>> list(line_blocks(io.BytesIO(b"a\r\nb\n\nc"), LineReport()))
    [[b'a', b'b', b''], [b'c']]
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

LONGEST_LINE = 16_384
MOST_USELESS_BYTES = 64 << 20
MOST_USELESS_LINES = 1_000_000
_PIECE_BYTES = 1 << 18
_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_BITS = 31


@dataclass(slots=True)
class LineReport:
    """What was seen of a file.

    Args:
        read_bytes: of text, after decompression.
        read_lines: so far, also those that are empty or too long.
        too_long: lines that were left out for their length.
        problem: one sentence on what ended the file early, or None.
    """

    read_bytes: int = 0
    read_lines: int = 0
    too_long: int = 0
    problem: str | None = None
    _useful_byte: int = 0
    _useful_line: int = 0

    def useful(self) -> None:
        """Say that something in the last block could be used."""
        self._useful_byte, self._useful_line = self.read_bytes, self.read_lines

    @property
    def is_useless(self) -> bool:
        """Whether far too much came since something could be used."""
        bytes_since, lines_since = self.read_bytes - self._useful_byte, self.read_lines - self._useful_line
        return bytes_since > MOST_USELESS_BYTES or lines_since > MOST_USELESS_LINES


def line_blocks(stream: IO[bytes], report: LineReport) -> Iterator[list[bytes]]:
    """The lines of a stream. O(bytes), memory O(longest line).

    Raises nothing of its own; a stream that cannot be read raises what it raises.
    """
    held, skipping = b"", False
    for piece in _pieces(stream, report):
        report.read_bytes += len(piece)
        if report.is_useless:
            report.problem = (
                f"{MOST_USELESS_BYTES >> 20} MB or {MOST_USELESS_LINES} lines in a row hold nothing that can be used; "
                "the rest is not read"
            )
            return
        end = piece.rfind(b"\n")
        if end < 0:
            if not skipping and len(held) + len(piece) <= LONGEST_LINE:
                held += piece
            else:
                held, skipping = b"", True
            continue
        lines = (held + piece[:end]).split(b"\n")
        report.read_lines += len(lines)
        held = piece[end + 1 :]
        if skipping:
            lines[0] = b"." * (LONGEST_LINE + 1)
            skipping = False
        yield _fitting(lines, report)
    if held:
        yield _fitting([held], report)
    report.too_long += skipping


def _fitting(lines: list[bytes], report: LineReport) -> list[bytes]:
    """Lines without carriage returns, and without those that are too long."""
    if max(map(len, lines)) > LONGEST_LINE:
        short = [line for line in lines if len(line) <= LONGEST_LINE]
        report.too_long += len(lines) - len(short)
        lines = short
    return [line.rstrip(b"\r") for line in lines] if any(line[-1:] == b"\r" for line in lines) else lines


def _pieces(stream: IO[bytes], report: LineReport) -> Iterator[bytes]:
    first = stream.read(_PIECE_BYTES)
    while 0 < len(first) < len(_GZIP_MAGIC) and (more := stream.read(_PIECE_BYTES)):
        first += more
    if first.startswith(_GZIP_MAGIC):
        yield from _unpacked(first, stream, report)
        return
    while first:
        yield first
        first = stream.read(_PIECE_BYTES)


def _unpacked(data: bytes, stream: IO[bytes], report: LineReport) -> Iterator[bytes]:
    """The pieces in a gzip file of any number of members; zeros after the last are padding."""
    while data:
        member, ended = zlib.decompressobj(_GZIP_BITS), False
        while not ended:
            try:
                piece = member.decompress(data, _PIECE_BYTES)
            except zlib.error as error:
                report.problem = f"the gzip file is broken: {error}; the rest is not read"
                return
            if piece:
                yield piece
            data, ended = member.unconsumed_tail, member.eof
            # A full piece may leave more behind than its input shows; an empty call gives it out.
            if not ended and not data and len(piece) < _PIECE_BYTES:
                data = stream.read(_PIECE_BYTES)
                if not data:
                    report.problem = "the gzip file is cut off"
                    return
        data = member.unused_data.lstrip(b"\0")
        while not data and (more := stream.read(_PIECE_BYTES)):
            data = more.lstrip(b"\0")
