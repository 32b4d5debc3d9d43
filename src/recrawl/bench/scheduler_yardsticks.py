"""The yardstick of the scheduler's speed: the exact argmax, which looks at every page for every crawl.

Pages are three plain columns, and what does not depend on the time is computed beforehand. The compiled version goes
through them once, in blocks that stay in the cache: values first, several pages at a time, then the largest of the
block. The other is NumPy without new arrays. Both take the formula as it is printed, which is inexact for small
arguments and quick. Nothing is done to slow them down; the tests hold both to the plain formula. This module holds
kernels: import it where it computes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from recrawl.jit import kernel
from recrawl.pages import Floats
from recrawl.values.special import exp_of_minus

_BLOCK = 2048
_LARGEST = 700.0  # e^{−x} is nothing beyond


class PlainPages(NamedTuple):
    """Harmonic pages: importance/change rate, change rate, and the time of the last crawl."""

    scale: Floats
    change_rate: Floats
    last_crawled: Floats


def plain_pages(importance: Floats, change_rate: Floats, last_crawled: Floats) -> PlainPages:
    """Columns for both versions, which are changed as pages are crawled; change rates are above 0."""
    return PlainPages(importance / change_rate, change_rate.copy(), last_crawled.copy())


def crawl_by_kernel(pages: PlainPages, times: Floats) -> list[int]:
    """Crawl the page that is worth most at each of these times; which it was. O(pages · times)."""
    room = np.empty(_BLOCK)
    chosen = []
    for now in times.tolist():
        best = int(_argmax(pages, now, room))
        pages.last_crawled[best] = now
        chosen.append(best)
    return chosen


def crawl_by_numpy(pages: PlainPages, times: Floats) -> list[int]:
    """The same in NumPy. O(pages · times)."""
    x, falls = np.empty_like(pages.scale), np.empty_like(pages.scale)
    chosen = []
    for now in times.tolist():
        np.subtract(now, pages.last_crawled, out=x)
        np.multiply(x, pages.change_rate, out=x)
        np.negative(x, out=falls)
        np.expm1(falls, out=falls)
        np.add(x, falls, out=x)
        np.multiply(x, pages.scale, out=x)
        best = int(np.argmax(x))
        pages.last_crawled[best] = now
        chosen.append(best)
    return chosen


@kernel
def _argmax(pages: PlainPages, now: float, room: Floats) -> int:
    best, most = -1, -1.0
    for start in range(0, pages.scale.size, room.size):
        size = min(room.size, pages.scale.size - start)
        for i in range(size):
            x = pages.change_rate[start + i] * (now - pages.last_crawled[start + i])
            small = x if x < _LARGEST else _LARGEST
            room[i] = pages.scale[start + i] * ((x - 1.0) + exp_of_minus(small))
        highest = _highest(room, size)
        if highest > most:
            most = highest
            for i in range(size):
                if room[i] == highest:
                    best = start + i
                    break
    return best


@kernel
def _highest(room: Floats, size: int) -> float:
    """The largest of the first values, in four lanes, so that none waits for the one before."""
    a = b = c = d = room[0]
    whole = size // 4 * 4
    for i in range(0, whole, 4):
        a = room[i] if room[i] > a else a
        b = room[i + 1] if room[i + 1] > b else b
        c = room[i + 2] if room[i + 2] > c else c
        d = room[i + 3] if room[i + 3] > d else d
    for i in range(whole, size):
        a = room[i] if room[i] > a else a
    highest: float = max(a, b, c, d)
    return highest
