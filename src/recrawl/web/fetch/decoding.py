r"""Content codings undone within bounds: gzip, deflate (both kinds), br and zstd, at most two in a chain.

`body_decoder` reads a Content-Encoding, `BodyDecoder.feed` takes the bytes of the wire as they come, `finish` says
whether the stream was whole. What goes wrong is a `DecodingFault`, a value; nothing here raises on foreign bytes and
no step makes more than 64 KiB at a time, so memory is bounded by the cap whatever the ratio of the stream. The
libraries differ in how they hold back input, end a stream and report faults; a `Codec` hides that. A stream may hold
several gzip members or zstd frames; what follows the last one and is none is ignored, as browsers do.

    >>> import zlib
    >>> decoder = body_decoder(b"deflate")
    >>> decoder.feed(zlib.compress(b"hello"))
    >>> decoder.finish(), decoder.body()
    (None, b'hello')
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

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


DecodingProblem = Literal["too-many-codings", "unknown-coding", "garbage", "truncated", "too-large", "ratio"]

_PIECE_BYTES = 65_536
# Framing may make a stream a little longer than what it carries; more is padding without end.
_WIRE_SLACK_BYTES = 65_536
_RATIO_COUNTS_FROM_BYTES = 1 << 20
_LONGEST_HEADER_BYTES = 256


@dataclass(frozen=True, slots=True)
class DecodingFault:
    """Why a body could not be decoded; `too-large` and `ratio` are cuts at a bound, the rest broken streams."""

    problem: DecodingProblem
    reason: str

    @property
    def is_cut(self) -> bool:
        """Whether the stream was stopped because it held too much."""
        return self.problem in ("too-large", "ratio")


@dataclass(frozen=True, slots=True)
class DecodingLimits:
    """Bounds of one body.

    Args:
        most_bytes: decoded bytes.
        most_codings: codings in a chain; `identity` does not count.
        most_expansion: decoded bytes for each byte of the wire, counted once a body has grown beyond 1 MiB.
    """

    most_bytes: int = 10 << 20
    most_codings: int = 2
    most_expansion: float = 250.0


DEFAULT_LIMITS = DecodingLimits()


class BodyDecoder:
    """One body on its way from the wire; made by `body_decoder`."""

    def __init__(self, codecs: tuple[Codec, ...], limits: DecodingLimits) -> None:
        self._codecs = codecs
        self._limits = limits
        self._pieces: list[bytes] = []
        self._fault: DecodingFault | None = None
        self.wire_bytes = 0
        self.decoded_bytes = 0

    def unless_too_large(self, announced_bytes: int) -> BodyDecoder | DecodingFault:
        """This decoder, or at once the fault that a body of this size on the wire would end in."""
        fits = announced_bytes <= self._limits.most_bytes + _WIRE_SLACK_BYTES
        return self if fits else self._too_large("are announced")

    def feed(self, data: bytes) -> DecodingFault | None:
        """Take bytes from the wire. After a fault the decoder takes no more and repeats it. O(bytes out)."""
        if self._fault is None and data:
            room = self._limits.most_bytes + _WIRE_SLACK_BYTES - self.wire_bytes
            self.wire_bytes += len(data)
            try:
                self._run(data if len(data) <= room else data[:room], 0)
            except BrokenStream as broken:
                self._fault = DecodingFault("garbage", str(broken))
            if self._fault is None and len(data) > room:
                self._fault = self._too_large("came over the wire")
        return self._fault

    def finish(self) -> DecodingFault | None:
        """Whether every coding came to its end; a body without a single byte is whole."""
        if self._fault is None and self.wire_bytes and not all(codec.is_whole for codec in self._codecs):
            self._fault = DecodingFault("truncated", "the compressed stream ends before its end")
        return self._fault

    def body(self) -> bytes:
        """What has been decoded so far, never more than the cap."""
        joined = b"".join(self._pieces)
        self._pieces = [joined]
        return joined

    def _run(self, data: bytes, stage: int) -> None:
        if stage == len(self._codecs):
            self._keep(data)
            return
        codec = self._codecs[stage]
        piece = codec.decode(data, _PIECE_BYTES)
        while self._fault is None:
            if piece:
                self._run(piece, stage + 1)
            if not codec.has_more:
                return
            piece = codec.decode(b"", _PIECE_BYTES)

    def _keep(self, data: bytes) -> None:
        room = self._limits.most_bytes - self.decoded_bytes
        self._pieces.append(data[:room] if len(data) > room else data)
        self.decoded_bytes += min(len(data), room)
        if len(data) > room:
            self._fault = self._too_large("were decoded")
        elif (
            self._codecs
            and self.decoded_bytes > _RATIO_COUNTS_FROM_BYTES
            and self.decoded_bytes > self._limits.most_expansion * self.wire_bytes
        ):
            self._fault = DecodingFault("ratio", f"the body grows more than {self._limits.most_expansion:g} times")

    def _too_large(self, how: str) -> DecodingFault:
        return DecodingFault("too-large", f"more than {self._limits.most_bytes} bytes {how}")


def body_decoder(content_encoding: bytes, limits: DecodingLimits = DEFAULT_LIMITS) -> BodyDecoder | DecodingFault:
    """The decoder for a Content-Encoding value, several headers joined by commas; or why there is none.

    >>> body_decoder(b"gzip, gzip, gzip").problem
    'too-many-codings'
    >>> body_decoder(b"compress").problem
    'unknown-coding'
    """
    if not content_encoding:
        return BodyDecoder((), limits)
    if len(content_encoding) > _LONGEST_HEADER_BYTES:
        return DecodingFault("too-many-codings", "the Content-Encoding is longer than any real one")
    names = [name for part in content_encoding.lower().split(b",") if (name := part.strip(b" \t")) not in _NO_CODING]
    if len(names) > limits.most_codings:
        return DecodingFault("too-many-codings", f"the body is encoded {len(names)} times")
    codecs: list[Codec] = []
    for name in reversed(names):  # the last one named was applied last
        make = CODECS.get(name)
        if make is None:
            return DecodingFault("unknown-coding", f"the body is encoded as {name.decode('latin-1')!a}")
        codecs.append(make())
    return BodyDecoder(tuple(codecs), limits)


_NO_CODING = (b"", b"identity")
