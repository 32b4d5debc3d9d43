"""Change rates from all gaps between crawls so far, page by page: maximum likelihood, or the method of moments.

Likelihood: Σ over changed gaps of g / (e^(rate·g) − 1) = Σ of unchanged gaps (Cho and Garcia-Molina 2003), with one
changed and one unchanged gap that were not seen, as LambdaCrawl has it (Kolobov et al. 2019). Moments:
Σ (1 − e^(−rate·g)) = changes found (Upadhyay et al. 2020). Both sides' difference falls and is convex in the rate, so
Newton's method reaches the root from below.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.jit import exact
from recrawl.pages import Floats

_MOST_STEPS = 60
_CLOSE = 1e-7


class Law(NamedTuple):
    """Which estimate, the length of the gaps that were not seen (0: none), and the least and the most a rate may be."""

    moments: bool
    unseen: float
    least: float
    most: float


class Gaps(NamedTuple):
    """Gaps between crawls and whether the page changed in them; those of page i start at `offsets[i]`."""

    offsets: NDArray[np.int64]
    days: Floats
    changed: NDArray[np.bool_]


@exact
def group_gaps(page: NDArray[np.int32], days: Floats, changed: NDArray[np.bool_], pages: int) -> Gaps:
    """Sort gaps by page; gaps of 0 days are first crawls and left out. O(gaps + pages)."""
    offsets = np.zeros(pages + 1, dtype=np.int64)
    for k in range(len(page)):
        if days[k] > 0.0:
            offsets[page[k] + 1] += 1
    for i in range(pages):
        offsets[i + 1] += offsets[i]
    place = offsets[:-1].copy()
    gaps = Gaps(offsets, np.empty(offsets[pages]), np.empty(offsets[pages], dtype=np.bool_))
    for k in range(len(page)):
        if days[k] > 0.0:
            gaps.days[place[page[k]]] = days[k]
            gaps.changed[place[page[k]]] = changed[k]
            place[page[k]] += 1
    return gaps


@exact
def estimate_rates(gaps: Gaps, law: Law, rates: Floats) -> None:
    """Improve the rates, which hold a first guess, to the estimates. O(gaps) times a few."""
    for page in range(len(rates)):
        rate = min(max(rates[page], law.least), law.most)
        for _ in range(_MOST_STEPS):
            height, slope = _difference(gaps, page, law, rate)
            moved = rate - height / slope if slope < 0.0 else (law.most if height > 0.0 else law.least)
            moved = min(max(moved, law.least), law.most)
            settled = abs(moved - rate) <= _CLOSE * rate
            rate = moved
            if settled:
                break
        rates[page] = rate


@exact
def _difference(gaps: Gaps, page: int, law: Law, rate: float) -> tuple[float, float]:
    """How far the two sides of the estimating equation are apart at a rate, and how that changes with the rate."""
    height, slope = 0.0, 0.0
    if law.unseen > 0.0:
        height, slope = _changed(law.unseen, rate)
        height -= law.unseen
    for k in range(gaps.offsets[page], gaps.offsets[page + 1]):
        days = gaps.days[k]
        if law.moments:
            silent = math.exp(-rate * days)
            height += silent if gaps.changed[k] else silent - 1.0
            slope -= days * silent
        elif gaps.changed[k]:
            more, steeper = _changed(days, rate)
            height += more
            slope += steeper
        else:
            height -= days
    return height, slope


@exact
def _changed(days: float, rate: float) -> tuple[float, float]:
    """What a changed gap g adds: g / (e^(rate·g) − 1), and its slope."""
    silent = math.exp(-rate * days)
    seen = -math.expm1(-rate * days)
    return days * silent / seen, -days * days * silent / (seen * seen)
