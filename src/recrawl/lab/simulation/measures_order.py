"""Times and values put in order, without sorting: by page, by rank, by tenth; and the busiest time. Kernels.

Everything here goes through its input once or twice, so that measuring is linear in what happened.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.jit import kernel
from recrawl.lab.simulation.crawl_log import PageNumbers
from recrawl.lab.simulation.world import Ints
from recrawl.pages import Floats

Groups = NDArray[np.int8]

_FEWEST_BITS, _MOST_SHELVES_BITS = 12, 5  # see `shelf_bits`
_BINS = 4096  # of values whose quantiles are wanted


class Shelves(NamedTuple):
    """Crawls by shelf, a row of neighbouring pages, and in order of time on each.

    Pages `i << bits` up to `(i + 1) << bits` are on shelf i; their crawls are those from `starts[i]` to
    `starts[i + 1]`.
    """

    bits: int
    starts: Ints
    page: PageNumbers
    time: Floats


def shelf_bits(pages: int) -> int:
    """How many pages a shelf has, as a power of two.

    All that happens to a shelf fits into the cache of a core, and there are not more shelves than a core can fill at
    the same time: either makes putting crawls in order several times as fast.

    >>> shelf_bits(1_000), shelf_bits(100_000), shelf_bits(10_000_000)
    (12, 12, 19)
    """
    return max(_FEWEST_BITS, pages.bit_length() - _MOST_SHELVES_BITS)


@kernel
def count_by_shelf(page: PageNumbers, time: Floats, pages: int, bits: int, starts: Ints) -> int:
    """Write where shelves start into `starts`, which is 0 everywhere. O(crawls).

    Returns:
        The first crawl of an unknown page or before its predecessor, and then the rest means nothing; -1 if all is
        well.
    """
    before = -math.inf
    for i in range(len(page)):
        if not (0 <= page[i] < pages and time[i] >= before):
            return i
        before = time[i]
        starts[(page[i] >> bits) + 1] += 1
    for shelf in range(len(starts) - 1):
        starts[shelf + 1] += starts[shelf]
    return -1


@kernel
def put_on_shelves(page: PageNumbers, time: Floats, shelves: Shelves) -> None:
    """Copy crawls in order of time to their shelves. O(crawls)."""
    place = shelves.starts[:-1].copy()
    for i in range(len(page)):
        shelf = page[i] >> shelves.bits
        at = place[shelf]
        shelves.page[at], shelves.time[at] = page[i], time[i]
        place[shelf] = at + 1


@kernel
def by_page(shelves: Shelves, shelf: int, offsets: Ints, times: Floats) -> None:
    """Write the crawls of a shelf by page and time into `times`, and where those of each page start. O(crawls)."""
    first = shelf << shelves.bits
    last = min(first + (1 << shelves.bits), len(offsets) - 1)
    offsets[first : last + 1] = 0
    page = shelves.page[shelves.starts[shelf] : shelves.starts[shelf + 1]]
    time = shelves.time[shelves.starts[shelf] : shelves.starts[shelf + 1]]
    for i in range(len(page)):
        offsets[page[i] + 1] += 1
    for i in range(first, last):
        offsets[i + 1] += offsets[i]
    place = offsets[first:last].copy()
    for i in range(len(page)):
        at = place[page[i] - first]
        times[at] = time[i]
        place[page[i] - first] = at + 1


@kernel
def most_within(times: Floats, length: float) -> int:
    """The most times in any half-open window of this length; times are in order. O(times).

    From one time to the next the most rises by one at most, so it is enough to look back by as many as it is.
    """
    most, i = 0, 0
    while i < len(times):
        # A loop of its own, in which the most stands still: else each look would wait for the one before.
        while i < len(times) and times[i] - times[i - most] >= length:
            i += 1
        most += i < len(times)
        i += 1
    return most


@kernel
def tenths(values: Floats, edges: Floats, group: Groups, sizes: Ints) -> None:
    """Write how many edges are at or below each value into `group`, and count the groups. O(values · edges)."""
    for i in range(len(values)):
        number = 0
        for edge in range(len(edges)):
            number += edges[edge] <= values[i]
        group[i] = number
        sizes[number] += 1


def quantiles(values: Floats, levels: Floats) -> Floats:
    """Quantiles between neighbours, as `numpy.quantile` has them, by sorting only where they lie. O(values)."""
    return _quantiles(values, levels, float(values.min()), float(values.max()))


@kernel
def _quantiles(values: Floats, levels: Floats, low: float, high: float) -> Floats:
    """Values are counted in bins; a rank is looked for in the bin that holds it."""
    answers = np.full(len(levels), low)
    if not high > low:
        return answers
    scale = (_BINS - 1) / (high - low)
    starts = np.zeros(_BINS + 1, dtype=np.int64)
    for i in range(len(values)):
        starts[int((values[i] - low) * scale) + 1] += 1
    starts = np.cumsum(starts)
    ranks = np.empty(2 * len(levels), dtype=np.int64)
    for number in range(len(levels)):
        ranks[2 * number] = int(levels[number] * (len(values) - 1))
        ranks[2 * number + 1] = min(ranks[2 * number] + 1, len(values) - 1)
    ranked = _ranked(values, starts, ranks, low, scale)
    for number in range(len(levels)):
        first, second = ranked[2 * number], ranked[2 * number + 1]
        answers[number] = first + (levels[number] * (len(values) - 1) - ranks[2 * number]) * (second - first)
    return answers


@kernel
def _ranked(values: Floats, starts: Ints, ranks: Ints, low: float, scale: float) -> Floats:
    """The values of these ranks, counted from 0, where bins of values start at these ranks."""
    wanted = np.zeros(_BINS, dtype=np.bool_)
    bins = np.searchsorted(starts, ranks, side="right") - 1
    for number in range(len(ranks)):
        wanted[bins[number]] = True
    room = np.empty((starts[1:] - starts[:-1])[wanted].sum())
    count = 0
    for i in range(len(values)):
        if wanted[int((values[i] - low) * scale)]:
            room[count] = values[i]
            count += 1
    room.sort()
    found = np.empty(len(ranks))
    for number in range(len(ranks)):
        left_out = 0  # values below that were not gathered
        for bin_number in range(bins[number]):
            if not wanted[bin_number]:
                left_out += starts[bin_number + 1] - starts[bin_number]
        found[number] = room[ranks[number] - left_out]
    return found
