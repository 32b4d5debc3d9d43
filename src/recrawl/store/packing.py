"""Texts of versions, packed for the store and unpacked again. Pure."""

from __future__ import annotations

import sys

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_LEVEL = 1  # ten times as fast as the level after which files get little smaller
_COMPRESSOR = zstd.ZstdCompressor(_LEVEL)  # made once: making one takes as long as packing a page four times


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
