"""Numbers drawn evenly from [0, 1) by what they are for, not by when: same seed, page and crawl, same number."""

from __future__ import annotations

import numpy as np

from recrawl.jit import borrowing

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_UNIT = 2.0**-53


@borrowing
def chance_of(seed: int, page: int, crawl: int) -> float:
    """A number for the crawl of a page, by the mixing function of SplitMix64 (Steele, Lea, Flood 2014)."""
    mixed = _mix(_mix(np.uint64(seed)) ^ np.uint64(page)) ^ np.uint64(crawl)
    return float(_mix(mixed) >> np.uint64(11)) * _UNIT


@borrowing
def _mix(number: np.uint64) -> np.uint64:
    number = number + _STEP
    number = (number ^ (number >> np.uint64(30))) * _FIRST
    number = (number ^ (number >> np.uint64(27))) * _SECOND
    return number ^ (number >> np.uint64(31))
