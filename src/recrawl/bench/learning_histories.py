"""Crawl histories of a synthetic population, with the true change rates: what learning is measured on.

Pages are those of `web_population`; a crawl sees a change with probability 1 − e^{−rate·gap}. Everything follows from
the seed. Drawn in parts, so that drawing a hundred million crawls needs little memory beside them.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from recrawl.lab.worlds.laws import web_population
from recrawl.learning.histories import Histories
from recrawl.pages import Floats

Schedule = Literal["daily", "irregular", "missing"]
"""Once a day; at random times, once a day on average; once a day with three crawls in ten left out."""

_KEPT_SHARE = 0.7
_PAGES_AT_ONCE = 20_000


class Drawn(NamedTuple):
    """True rates per day, and what crawls showed of them."""

    change_rate: Floats
    histories: Histories


def draw_histories(pages: int, crawls: int, schedule: Schedule = "daily", seed: int = 1) -> Drawn:
    """Draw pages and so many days of crawls of each. O(pages · crawls).

    >>> drawn = draw_histories(100, 14, "missing")
    >>> len(drawn.histories), drawn.histories.offsets[-1] < 1400
    (100, np.True_)
    """
    change_rate = web_population(pages)["change_rate"]
    random = np.random.Generator(np.random.PCG64([seed, crawls]))
    gaps = np.empty(pages * crawls)
    changed = np.empty(pages * crawls, dtype=np.bool_)
    lengths = np.empty(pages, dtype=np.int64)
    filled = 0
    for begin in range(0, pages, _PAGES_AT_ONCE):
        rates = change_rate[begin : begin + _PAGES_AT_ONCE]
        some, counts = _draw_gaps(len(rates), crawls, schedule, random)
        rows = slice(filled, filled + len(some))
        gaps[rows] = some
        changed[rows] = random.random(len(some)) < -np.expm1(-np.repeat(rates, counts) * some)
        lengths[begin : begin + len(rates)] = counts
        filled += len(some)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return Drawn(change_rate, Histories(offsets, gaps[:filled], changed[:filled]))


def _draw_gaps(
    pages: int, crawls: int, schedule: Schedule, random: np.random.Generator
) -> tuple[Floats, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """Gaps of some pages, one after the other, and how many each has."""
    all_crawls = np.full(pages, crawls, dtype=np.int64)
    if schedule == "daily":
        return np.ones(pages * crawls), all_crawls
    if schedule == "irregular":
        return random.exponential(1.0, pages * crawls), all_crawls
    kept = random.random((pages, crawls)) < _KEPT_SHARE
    counts = kept.sum(axis=1)
    # Days between kept crawls of a page; before the first lie all days since the page was first seen.
    gaps = np.diff(np.nonzero(kept)[1], prepend=0)
    first = (np.cumsum(counts) - counts)[counts > 0]
    gaps[first] = kept.argmax(axis=1)[counts > 0] + 1
    return gaps.astype(np.float64), counts
