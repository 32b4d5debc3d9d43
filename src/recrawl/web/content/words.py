"""The words of a text, compiled: white space tidied, a hash of each word.

A word is a run of characters without white space, as written; each Chinese, Japanese or Korean character is a word of
its own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.jit import borrowing, inlined, kernel

LINE_END = 0x1E  # what separates the lines of the text handed in; in the tidied text it is a newline

Bytes = NDArray[np.uint8]
Hashes = NDArray[np.uint64]
Places = NDArray[np.int32]

_FNV_START = np.uint64(0xCBF29CE484222325)
_FNV_PRIME = np.uint64(0x100000001B3)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)

_SPACE, _PERHAPS_SPACE = 1, 2  # the first is also its size in bytes
_KINDS = np.zeros(256, dtype=np.uint8)  # by the first byte of a character
_KINDS[:0x21] = _KINDS[0x7F] = _SPACE
_KINDS[[0xC2, 0xE2, 0xE3, 0xEF]] = _PERHAPS_SPACE
_LONE = np.zeros(256, dtype=np.uint8)  # bytes of a character that is a word of its own
_LONE[0xE3:0xEE] = 3
_LONE[0xF0] = 4


class Words(NamedTuple):
    """The words of a tidied text: a 64-bit hash of each, and where it starts and ends in the bytes."""

    hashes: Hashes
    starts: Places
    ends: Places


def tidy_text(text: bytes) -> bytes:
    r"""Return a text with words separated by one space, lines by one newline. O(bytes).

    >>> tidy_text(b" a   b\x1e\x1e c ")
    b'a b\nc'
    """
    return _tidy(np.frombuffer(text, dtype=np.uint8)).tobytes()


def split_words(tidied: bytes) -> Words:
    """The words of a tidied text. O(bytes).

    >>> [(int(a), int(b)) for a, b in zip(*split_words(b"to be")[1:])]
    [(0, 2), (3, 5)]
    """
    return Words(*_split(np.frombuffer(tidied, dtype=np.uint8)))


@inlined
def mixed(value: np.uint64) -> np.uint64:
    """Spread a 64-bit value over all its bits (splitmix64)."""
    value = (value ^ (value >> np.uint64(30))) * _MIX_1
    value = (value ^ (value >> np.uint64(27))) * _MIX_2
    return value ^ (value >> np.uint64(31))


@borrowing
def _wide_space_bytes(text: Bytes, at: int) -> int:
    """Bytes of the white space character of two or three bytes at a place, 0 if there is none."""
    first, left = text[at], len(text) - at
    if first == 0xC2:  # control characters and the space that does not break
        return 2 if left > 1 and text[at + 1] <= 0xA0 else 0
    if left < 3:
        return 0
    second, third = text[at + 1], text[at + 2]
    if first == 0xE2 and second == 0x80:
        return 3 if third <= 0x8B or third == 0xA8 or third == 0xA9 or third == 0xAF else 0
    if first == 0xE2:
        return 3 if second == 0x81 and third == 0x9F else 0
    if first == 0xE3:
        return 3 if second == 0x80 and third == 0x80 else 0
    return 3 if second == 0xBB and third == 0xBF else 0


@borrowing
def _space_bytes(text: Bytes, at: int) -> int:
    """Bytes of the white space character at a place, 0 if there is none."""
    kind = _KINDS[text[at]]
    return _wide_space_bytes(text, at) if kind >= _PERHAPS_SPACE else int(kind)


@borrowing
def _most_words(size: int) -> int:
    """At most how many words a text of a size holds: two in three bytes, for half a lone character and a space."""
    return size - size // 3 + 1


@kernel
def _tidy(text: Bytes) -> Bytes:
    total = len(text)
    out = np.empty(total, dtype=np.uint8)
    size, at, separator = 0, 0, 0
    while at < total:
        while at < total and not separator and _KINDS[text[at]] == 0:  # nearly all bytes of nearly all pages
            out[size] = text[at]
            size += 1
            at += 1
        if at == total:
            break
        space = _space_bytes(text, at)
        if space:
            if size and separator != 0x0A:
                separator = 0x0A if text[at] == LINE_END else 0x20
            at += space
            continue
        if separator:
            out[size] = separator
            size += 1
            separator = 0
        out[size] = text[at]
        size += 1
        at += 1
    return out[:size]


@kernel
def _split(text: Bytes) -> tuple[Hashes, Places, Places]:
    most = _most_words(len(text))
    hashes = np.empty(most, dtype=np.uint64)
    starts = np.empty(most, dtype=np.int32)
    ends = np.empty(most, dtype=np.int32)
    count, at = 0, 0
    while at < len(text):
        if text[at] <= 0x20:
            at += 1
            continue
        start = at
        value = _FNV_START
        lone = _LONE[text[at]]
        while at < len(text) and text[at] > 0x20 and (at < start + lone if lone else _LONE[text[at]] == 0):
            value = (value ^ np.uint64(text[at])) * _FNV_PRIME
            at += 1
        hashes[count], starts[count], ends[count] = mixed(value), start, at
        count += 1
    return hashes[:count], starts[:count], ends[:count]
