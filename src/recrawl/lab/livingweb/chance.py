"""Chance from a seed, by purpose and number, in any order of asking: `stream` for draws, `mix` for one quick number."""

from __future__ import annotations

import zlib

import numpy as np

_64_BITS = 0xFFFFFFFFFFFFFFFF


def stream(seed: int, purpose: str, *keys: int) -> np.random.Generator:
    """A generator of its own for each purpose and keys; costs about 15 microseconds.

    >>> bool(stream(1, "a", 2).random() == stream(1, "a", 2).random())
    True
    """
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence((seed, zlib.crc32(purpose.encode()), *keys))))


def mix(first: int, second: int, third: int = 0) -> int:
    """64 well-mixed bits from three whole numbers; the same on every machine.

    >>> mix(1, 2, 3) == mix(1, 2, 3), mix(1, 2, 3) == mix(1, 3, 2)
    (True, False)
    """
    x = (first * 0x9E3779B97F4A7C15 + second * 0xC2B2AE3D27D4EB4F + third * 0x165667B19E3779F9) & _64_BITS
    x ^= x >> 29
    x = (x * 0xBF58476D1CE4E5B9) & _64_BITS
    return x ^ (x >> 32)


def share(first: int, second: int, third: int = 0) -> float:
    """A number in [0, 1) from three whole numbers."""
    return (mix(first, second, third) >> 11) / 9007199254740992.0
