"""Bodies and texts of versions in the form in which they are kept: their digests, compressed with zstd. Pure."""

from __future__ import annotations

import sys

import xxhash

from recrawl.errors import InvalidInput

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_BODY_LEVEL = 3  # the fastest level that still halves HTML twice
_TEXT_LEVEL = 1  # ten times as fast as the level after which texts get little smaller
_COMPRESSOR = zstd.ZstdCompressor(_TEXT_LEVEL)  # made once: making one takes as long as packing a page four times


def body_digest(body: bytes) -> bytes:
    """The digest of a body: xxh3 of 128 bits.

    >>> body_digest(b"").hex()
    '99aa06d3014798d86001c324468d497f'
    """
    return xxhash.xxh3_128_digest(body)


def check_digest(digest: bytes, body: bytes) -> None:
    """Refuse a body under a digest that is not its own."""
    if body_digest(body) != digest:
        raise InvalidInput("is not the xxh3-128 of the body", field="digest")


def pack_body(body: bytes) -> bytes:
    """A body as it is kept. O(bytes)."""
    return zstd.compress(body, _BODY_LEVEL)


def unpack_body(digest: bytes, kept: bytes) -> bytes | None:
    """A body as it was; None if what is kept is not whole."""
    try:
        body = bytes(zstd.decompress(kept))
    except (zstd.ZstdError, EOFError):
        return None
    return body if body_digest(body) == digest else None


def packed(text: bytes) -> bytes:
    """A text in a few tenths of its size. O(bytes).

    >>> unpacked(packed(b"word " * 1000)) == b"word " * 1000
    True
    """
    return _COMPRESSOR.compress(text, zstd.ZstdCompressor.FLUSH_FRAME)


def unpacked(kept: bytes) -> bytes | None:
    """A text as it was; None if what is kept is not whole."""
    try:
        return zstd.decompress(kept)
    except zstd.ZstdError:
        return None
