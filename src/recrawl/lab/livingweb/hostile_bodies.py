"""Bodies that are small on the wire and huge in memory, and other compressed mischief, made on the spot."""

from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Callable

import brotli  # type: ignore[import-untyped]

if sys.version_info >= (3, 14):  # pragma: no cover
    from compression import zstd
else:
    from backports import zstd

MIB = 1 << 20


def gzip_bomb(mebibytes: int) -> bytes:
    """So many MiB of zeros, about 1 KiB for each."""
    return _zlib_bomb(mebibytes, zlib.MAX_WBITS | 16)


def deflate_bomb(mebibytes: int) -> bytes:
    """The same in zlib's wrapping."""
    return _zlib_bomb(mebibytes, zlib.MAX_WBITS)


def raw_deflate_bomb(mebibytes: int) -> bytes:
    """The same without any wrapping."""
    return _zlib_bomb(mebibytes, -zlib.MAX_WBITS)


def brotli_bomb(mebibytes: int) -> bytes:
    """So many MiB of zeros in some dozen bytes."""
    stream = brotli.Compressor(quality=1)
    zeros = bytes(MIB)
    return b"".join([*(stream.process(zeros) for _ in range(mebibytes)), stream.finish()])


def zstd_bomb(mebibytes: int) -> bytes:
    """So many MiB of zeros, in one frame."""
    stream = zstd.ZstdCompressor()
    zeros = bytes(MIB)
    return b"".join([*(stream.compress(zeros) for _ in range(mebibytes)), stream.flush()])


def zstd_wide_window() -> bytes:
    """A frame that asks for a window of 2 GiB before it says a word."""
    return b"\x28\xb5\x2f\xfd" + b"\x00" + bytes([(31 - 10) << 3]) + b"\x01\x00\x00"


BOMBS: dict[str, Callable[[int], bytes]] = {
    "gzip": gzip_bomb,
    "deflate": deflate_bomb,
    "br": brotli_bomb,
    "zstd": zstd_bomb,
}


def gzip_again(data: bytes, times: int) -> bytes:
    """Bytes compressed with gzip, and the outcome again, so many times."""
    for _ in range(times):
        data = gzip.compress(data, mtime=0)
    return data


def chunked(*pieces: bytes) -> bytes:
    r"""Pieces as the chunked transfer coding has them, with its end.

    >>> chunked(b"ab", b"c")
    b'2\r\nab\r\n1\r\nc\r\n0\r\n\r\n'
    """
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def _zlib_bomb(mebibytes: int, window_bits: int) -> bytes:
    stream = zlib.compressobj(6, zlib.DEFLATED, window_bits)
    zeros = bytes(MIB)
    return b"".join([*(stream.compress(zeros) for _ in range(mebibytes)), stream.flush()])
