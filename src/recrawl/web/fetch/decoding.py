r"""Content codings undone within bounds: gzip, deflate (both kinds), br and zstd, at most two in a chain.

`body_decoder` reads a Content-Encoding, `BodyDecoder.feed` takes the bytes of the wire as they come, `finish` says
whether the stream was whole. What goes wrong is a `DecodingFault`, a value; nothing here raises on foreign bytes and
no step makes more than 64 KiB at a time, so memory is bounded by the cap whatever the ratio of the stream.

    >>> import zlib
    >>> decoder = body_decoder(b"deflate")
    >>> decoder.feed(zlib.compress(b"hello"))
    >>> decoder.finish(), decoder.body()
    (None, b'hello')
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from recrawl.web.fetch.codecs import CODECS, BrokenStream, Codec

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
        """This decoder, or at once the fault that a body of so many bytes on the wire would end in."""
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
