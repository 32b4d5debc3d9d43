"""What the crawls of a page say of its change rate, in few numbers.

A crawl after a gap a that saw no change has probability e^{−Δa}, one that saw a change 1 − e^{−Δa}. So the unchanged
crawls of a page count only by their total time, and changed ones with equal gaps only by their number. Pages that
say the same need to be worked out only once: on a regular schedule a million pages fall into a few hundred groups.
A gap of 0 says nothing and is left out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.jit import kernel
from recrawl.learning.histories import Histories
from recrawl.pages import Floats
from recrawl.values.special import bits_of

Indices = NDArray[np.int64]

MIXED_GAPS = -1.0
"""Stands for the common gap of changed crawls where there is none."""


class Evidence(NamedTuple):
    """Per page: total time of unchanged crawls, number of changed ones, and their gap if all have the same."""

    unchanged_time: Floats
    changes: Indices
    common_gap: Floats  # 0 without changes, MIXED_GAPS where gaps differ


class Groups(NamedTuple):
    """Pages that say the same: the first page of each group, and the group of each page."""

    first: Indices
    of_page: Indices


def evidence_of(histories: Histories) -> Evidence:
    """Sum up every page. O(observations)."""
    return summed_up(histories.offsets, histories.gaps, histories.changed)


def groups_of(evidence: Evidence, prior_rows: Indices) -> Groups:
    """Put pages together that say the same and have the same prior. O(pages)."""
    first, of_page, count = _grouped(evidence, prior_rows)
    return Groups(first[:count], of_page)


@kernel
def summed_up(offsets: Indices, gaps: Floats, changed: NDArray[np.bool_]) -> Evidence:
    """Sum up the pages between these offsets."""
    pages = len(offsets) - 1
    unchanged_time = np.empty(pages)
    changes = np.empty(pages, dtype=np.int64)
    common_gap = np.empty(pages)
    for page in range(pages):
        begin, end = offsets[page], offsets[page + 1]
        time = 0.0
        for row in range(begin, end):  # without a branch, so that it vectorises
            time += 0.0 if changed[row] else gaps[row]
        gap = 0.0
        for row in range(begin, end):
            if changed[row] and gaps[row] > 0.0:
                gap = gaps[row]
                break
        same = 0
        others = 0
        if gap > 0.0:
            for row in range(begin, end):
                same += changed[row] & (gaps[row] == gap)
                others += changed[row] & (gaps[row] != gap) & (gaps[row] != 0.0)
        unchanged_time[page] = time
        changes[page] = same + others
        common_gap[page] = gap if others == 0 else MIXED_GAPS
    return Evidence(unchanged_time, changes, common_gap)


@kernel
def _grouped(evidence: Evidence, prior_rows: Indices) -> tuple[Indices, Indices, int]:
    """Groups through an open hash table; pages with mixed gaps stand alone."""
    pages = len(evidence.changes)
    size = 16
    while size < 2 * pages:
        size *= 2
    table = np.full(size, -1, dtype=np.int64)
    first = np.empty(pages, dtype=np.int64)
    of_page = np.empty(pages, dtype=np.int64)
    count = 0
    for page in range(pages):
        slot = -1
        if evidence.common_gap[page] != MIXED_GAPS:
            slot = _hash(evidence, prior_rows, page) & (size - 1)
            while table[slot] >= 0 and not _same(evidence, prior_rows, first[table[slot]], page):
                slot = (slot + 1) & (size - 1)
            if table[slot] >= 0:
                of_page[page] = table[slot]
                continue
            table[slot] = count
        first[count] = page
        of_page[page] = count
        count += 1
    return first, of_page, count


@kernel
def _same(evidence: Evidence, prior_rows: Indices, one: int, other: int) -> bool:
    return bool(
        evidence.unchanged_time[one] == evidence.unchanged_time[other]
        and evidence.changes[one] == evidence.changes[other]
        and evidence.common_gap[one] == evidence.common_gap[other]
        and prior_rows[one] == prior_rows[other]
    )


@kernel
def _hash(evidence: Evidence, prior_rows: Indices, page: int) -> int:
    """Mix the numbers of a page; products wrap around, and the high bits hold the mixture."""
    mixed = bits_of(evidence.unchanged_time[page])
    mixed = (mixed ^ evidence.changes[page]) * 0x2545F4914F6CDD1D
    mixed = (mixed ^ (mixed >> 29) ^ bits_of(evidence.common_gap[page])) * 0x1B873593CC9E2D51
    mixed = (mixed ^ (mixed >> 31) ^ prior_rows[page]) * 0x2545F4914F6CDD1D
    return int(mixed >> 24)
