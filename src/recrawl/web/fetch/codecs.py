"""One class for each content coding, all alike: bytes in, at most so many bytes out, is there more, is it whole.

The libraries differ in how they hold back input, end a stream and report faults; here those differences end. A
stream may hold several gzip members or zstd frames; what follows the last one and is none is ignored, as browsers do.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable
from typing import Any, Protocol

import brotli  # type: ignore[import-untyped]

if sys.version_info >= (3, 14):  # pragma: no cover
    from compression import zstd
else:
    from backports import zstd

# A stream of thousands of empty members costs time and yields nothing.
_MOST_MEMBERS = 256
_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
# RFC 9659: the coding zstd never needs a window of more than 8 MiB.
_ZSTD_WINDOW_LOG = 23


class BrokenStream(Exception):
    """Bytes that are not what the coding says; caught in `decoding.py`, never seen outside."""


class Codec(Protocol):
    """What `decoding.py` asks of a coding."""

    @property
    def has_more(self) -> bool:
        """Whether `decode(b"", n)` would yield more before new input is needed."""

    @property
    def is_whole(self) -> bool:
        """Whether the stream has come to its end."""

    def decode(self, data: bytes, most: int) -> bytes:
        """At most `most` bytes (a little more for br); new data only while `has_more` is False."""


class _Zlib:
    """gzip by members and deflate of one stream, over zlib."""

    def __init__(self, window_bits: int, *, members: bool) -> None:
        self._window_bits = window_bits
        self._members_left = _MOST_MEMBERS if members else 0
        self._stream = zlib.decompressobj(window_bits)
        self._held = b""
        self._ended = False
        self._pending = False

    @property
    def has_more(self) -> bool:
        return self._pending

    @property
    def is_whole(self) -> bool:
        return self._ended

    def decode(self, data: bytes, most: int) -> bytes:
        self._held += data
        if self._ended and not self._next_member():
            return b""
        try:
            out = self._stream.decompress(self._held, most)
        except zlib.error as error:
            raise BrokenStream(f"the stream is broken: {error}") from None
        self._ended = self._stream.eof
        self._held = self._stream.unused_data if self._ended else self._stream.unconsumed_tail
        starts_again = self._ended and self._members_left > 0 and self._held[:2] == _GZIP_MAGIC
        self._pending = starts_again or (not self._ended and (bool(self._held) or len(out) == most))
        return out

    def _next_member(self) -> bool:
        """Begin the next gzip member; anything else after the end is dropped."""
        self._pending = False
        if self._members_left > 0 and self._held == _GZIP_MAGIC[:1]:
            return False
        if self._members_left == 0 or self._held[:2] != _GZIP_MAGIC:
            self._held = b""
            self._members_left = 0
            return False
        self._members_left -= 1
        if self._members_left == 0:
            raise BrokenStream(f"the stream has more than {_MOST_MEMBERS} members")
        self._stream = zlib.decompressobj(self._window_bits)
        return True


class _Deflate:
    """deflate as RFC 9110 has it, in zlib's wrapping, and as some servers send it, bare: the first bytes tell."""

    def __init__(self) -> None:
        self._inner: _Zlib | None = None
        self._first = b""

    @property
    def has_more(self) -> bool:
        return self._inner is not None and self._inner.has_more

    @property
    def is_whole(self) -> bool:
        return self._inner is not None and self._inner.is_whole

    def decode(self, data: bytes, most: int) -> bytes:
        if self._inner is None:
            self._first += data
            if len(self._first) < 2:
                return b""
            is_wrapped = self._first[0] & 0x8F == 0x08 and int.from_bytes(self._first[:2], "big") % 31 == 0
            self._inner = _Zlib(zlib.MAX_WBITS if is_wrapped else -zlib.MAX_WBITS, members=False)
            data, self._first = self._first, b""
        return self._inner.decode(data, most)


class _Brotli:
    """br; bytes after the end are ignored."""

    def __init__(self) -> None:
        self._stream: Any = brotli.Decompressor()
        self._was_full = False

    @property
    def has_more(self) -> bool:
        # The library may have taken in all input and still hold back output.
        return not self.is_whole and (self._was_full or not self._stream.can_accept_more_data())

    @property
    def is_whole(self) -> bool:
        return bool(self._stream.is_finished())

    def decode(self, data: bytes, most: int) -> bytes:
        if self.is_whole:
            return b""
        try:
            out: bytes = self._stream.process(data, output_buffer_limit=most)
        except brotli.error:
            raise BrokenStream("the stream is broken: it is no br") from None
        self._was_full = len(out) >= most
        return out


class _Zstd:
    """zstd by frames, with a bounded window."""

    def __init__(self) -> None:
        self._frames_left = _MOST_MEMBERS
        self._stream = _zstd_stream()
        self._held = b""

    @property
    def has_more(self) -> bool:
        return self._held[:4] == _ZSTD_MAGIC if self._stream.eof else not self._stream.needs_input

    @property
    def is_whole(self) -> bool:
        return bool(self._stream.eof)

    def decode(self, data: bytes, most: int) -> bytes:
        if self._stream.eof and not self._next_frame(data):
            return b""
        data, self._held = self._held + data, b""
        try:
            out: bytes = self._stream.decompress(data, most)
        except zstd.ZstdError as error:
            raise BrokenStream(f"the stream is broken: {error}") from None
        if self._stream.eof:
            self._held = self._stream.unused_data
        return out

    def _next_frame(self, data: bytes) -> bool:
        begins = self._held + data
        if self._frames_left and len(begins) < 4 and _ZSTD_MAGIC.startswith(begins):
            self._held = begins
            return False
        if self._frames_left == 0 or begins[:4] != _ZSTD_MAGIC:
            self._held = b""
            self._frames_left = 0
            return False
        self._frames_left -= 1
        if self._frames_left == 0:
            raise BrokenStream(f"the stream has more than {_MOST_MEMBERS} frames")
        self._stream = _zstd_stream()
        return True


def _zstd_stream() -> Any:
    return zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: _ZSTD_WINDOW_LOG})


CODECS: dict[bytes, Callable[[], Codec]] = {
    b"gzip": lambda: _Zlib(zlib.MAX_WBITS | 16, members=True),
    b"x-gzip": lambda: _Zlib(zlib.MAX_WBITS | 16, members=True),
    b"deflate": _Deflate,
    b"br": _Brotli,
    b"zstd": _Zstd,
}
ACCEPT_ENCODING = "gzip, deflate, br, zstd"
