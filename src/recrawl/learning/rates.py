"""Change rates of single pages: the classical estimators.

They look at each page alone. `posterior` is more accurate where many pages are known; these are quick, need no
population, and are what other systems use. Rates are per unit time of the caller's choice; all take histories of
many pages and return an array.

Each estimate is the root of an equation. It lies between two rates that are known in closed form, and Newton on
logarithms finds it in a handful of steps; a step that leaves the bracket is replaced by the middle.

Where every change of a page is known (from a feed, a version history, announcements), U changes in a time T have the
rate (U + ½)/(T + ½) (`complete_rate`; LambdaCrawl, Kolobov et al. 2019, with half a day).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import InvalidInput
from recrawl.jit import exact, kernel
from recrawl.learning.histories import Histories
from recrawl.learning.inputs import check_amounts, check_made, check_positive
from recrawl.learning.prior import MIXED_GAPS, Indices, summed_up
from recrawl.pages import Floats

_MOST_STEPS = 200
_CLOSE = 1e-14

_FAKE_CHANGES = 0.5
_MOST_CHANGES = 2**53


def smoothed_mle(
    histories: Histories, fake_gap: float = 0.5, lowest: float | None = None, highest: float | None = None
) -> Floats:
    """The most likely rate of each page, smoothed (LambdaCrawl, Kolobov et al. 2019).

    Solves Σ_changed a/(e^{aΔ} − 1) = Σ_unchanged a, where every page has two imaginary crawls more, one changed and one
    unchanged, so that the answer is neither 0 nor infinite. A page without crawls gets ln(2)/fake_gap.

    Args:
        histories: crawls of the pages.
        fake_gap: gap of the imaginary crawls; the paper has half a day.
        lowest: rates below are raised to it; the paper's code has 0.0005 per day.
        highest: rates above are lowered to it; the paper's code has 7 per day.

    O(observations + about 5 · changes), on equal gaps O(observations).

    >>> from recrawl.learning.histories import read_histories
    >>> seen = read_histories([[1.0, 1.0, 2.0]], [[1, 0, 0]])
    >>> smoothed_mle(seen).round(4).tolist()
    [0.4761]
    """
    _check_histories(histories)
    gap = check_positive(fake_gap, "fake_gap")
    rates = smoothed_rates(histories.offsets, histories.gaps, histories.changed, gap)
    return _clipped(rates, lowest, highest)


def moments(histories: Histories) -> Floats:
    """The rate at which as many changed crawls are expected as were seen: Σ (1 − e^{−Δa}) = x.

    Upadhyay et al., "Learning to crawl", 2020. Where all n crawls saw a change, x is taken as n − ½; a page that never
    changed gets 0. Gaps of 0 do not count. O(about 5 · observations), on equal gaps O(observations).

    >>> from recrawl.learning.histories import read_histories
    >>> moments(read_histories([[1.0] * 4, [1.0] * 4], [[1, 1, 0, 0], [0, 0, 0, 0]])).round(4).tolist()
    [0.6931, 0.0]
    """
    _check_histories(histories)
    return moment_rates(histories.offsets, histories.gaps, histories.changed)


def _check_histories(histories: Histories) -> None:
    check_made(histories, Histories, "histories", "read_histories")


def _clipped(rates: Floats, lowest: float | None, highest: float | None) -> Floats:
    low = None if lowest is None else check_positive(lowest, "lowest")
    high = None if highest is None else check_positive(highest, "highest")
    if low is not None and high is not None and low > high:
        raise InvalidInput(f"is {low!r}, above highest {high!r}", field="lowest")
    return np.clip(rates, low, high) if low is not None or high is not None else rates


@kernel
def smoothed_rates(offsets: Indices, gaps: Floats, changed: NDArray[np.bool_], fake_gap: float) -> Floats:
    """Roots of Σ_changed a/(e^{aΔ} − 1) = Σ_unchanged a, an imaginary crawl of each kind included."""
    evidence = summed_up(offsets, gaps, changed)
    rates = np.empty(len(offsets) - 1)
    most = evidence.changes.max() + 1 if len(rates) else 1
    sizes, times = np.empty(most), np.empty(most)
    for page in range(len(rates)):
        sizes[0], times[0] = fake_gap, 1.0
        count = 1
        if evidence.common_gap[page] != MIXED_GAPS:
            if evidence.changes[page] > 0:
                sizes[1], times[1] = evidence.common_gap[page], float(evidence.changes[page])
                count = 2
        else:
            for row in range(offsets[page], offsets[page + 1]):
                if changed[row] and gaps[row] > 0.0:
                    sizes[count], times[count] = gaps[row], 1.0
                    count += 1
        rates[page] = _likeliest(sizes[:count], times[:count], evidence.unchanged_time[page] + fake_gap)
    return rates


@exact
def _likeliest(sizes: Floats, times: Floats, unchanged_time: float) -> float:
    """The root in Δ of Σ times·a/(e^{aΔ} − 1) = unchanged time."""
    number = 0.0
    changed_time = 0.0
    for i in range(len(sizes)):
        number += times[i]
        changed_time += times[i] * sizes[i]
    mean = changed_time / number
    # a/(e^{aΔ} − 1) is convex in a and below 1/Δ: taking the mean gap for all is too low, taking 1/Δ too high.
    low = math.log(math.log1p(changed_time / unchanged_time) / mean)
    high = max(math.log(number / unchanged_time), low)
    at = low
    for _ in range(_MOST_STEPS):
        rate = math.exp(at)
        total = 0.0
        slope = 0.0
        for i in range(len(sizes)):
            odds = 1.0 / math.expm1(min(sizes[i] * rate, 700.0))
            term = times[i] * sizes[i] * odds
            total += term
            slope -= term * sizes[i] * rate * (1.0 + odds)
        if total > unchanged_time:
            low = max(low, at)
        else:
            high = min(high, at)
        following = at - math.log(total / unchanged_time) * total / slope
        if not low <= following <= high:
            following = 0.5 * (low + high)
        moved = abs(following - at)
        at = following
        if moved <= _CLOSE * max(1.0, abs(at)):
            break
    return math.exp(at)


@kernel
def moment_rates(offsets: Indices, gaps: Floats, changed: NDArray[np.bool_]) -> Floats:
    """Roots of Σ (1 − e^{−Δa}) = number of changed crawls, at most n − ½."""
    rates = np.empty(len(offsets) - 1)
    for page in range(len(rates)):
        crawls = 0
        changes = 0
        shortest = math.inf
        for row in range(offsets[page], offsets[page + 1]):
            if gaps[row] > 0.0:
                crawls += 1
                changes += changed[row]
                shortest = min(shortest, gaps[row])
        if changes == 0:
            rates[page] = 0.0
        else:
            expected = min(float(changes), crawls - 0.5)
            rates[page] = _expecting(gaps[offsets[page] : offsets[page + 1]], crawls, shortest, expected)
    return rates


@exact
def _expecting(gaps: Floats, crawls: int, shortest: float, expected: float) -> float:
    """The rate at which so many of the crawls are expected to see a change."""
    at_once = -math.log1p(-expected / crawls)
    # 1 − e^{−Δa} is concave in a and rises: taking the mean gap for all is too low, taking the shortest too high.
    low = math.log(at_once / (gaps.sum() / crawls))
    high = max(math.log(at_once / shortest), low)
    at = low
    for _ in range(_MOST_STEPS):
        rate = math.exp(at)
        total = 0.0
        slope = 0.0
        for i in range(len(gaps)):
            unseen = math.expm1(-gaps[i] * rate)
            total -= unseen
            slope += gaps[i] * rate * (1.0 + unseen)
        if total < expected:
            low = max(low, at)
        else:
            high = min(high, at)
        following = at + math.log(expected / total) * total / slope if slope > 0.0 else low - 1.0
        if not low <= following <= high:
            following = 0.5 * (low + high)
        moved = abs(following - at)
        at = following
        if moved <= _CLOSE * max(1.0, abs(at)):
            break
    return math.exp(at)


def complete_rate(changes: Any, watched: Any, fake_time: float = 0.5) -> Floats:
    """The rate of each page, (U + ½)/(T + ½). O(pages).

    Args:
        changes: how many changes were seen, one number per page or one alone.
        watched: for how long, in the caller's unit of time.
        fake_time: the time of the imaginary half change; the paper has half a day.

    >>> complete_rate([0, 9], [9.5, 9.5]).tolist()
    [0.05, 0.95]
    """
    counts, times, fake = _checked(changes, watched, fake_time)
    rates: Floats = (counts + _FAKE_CHANGES) / (times + fake)
    return rates


def _checked(changes: Any, watched: Any, fake_time: float) -> tuple[Floats, Floats, float]:
    fake = check_positive(fake_time, "fake_time")
    counts, times = _counts(changes), _numbers(watched, "watched")
    if counts.ndim and times.ndim and counts.shape != times.shape:
        raise InvalidInput(f"has {len(times)} values but changes has {len(counts)}", field="watched")
    return counts, times, fake


def _counts(changes: Any) -> Floats:
    counts = _numbers(changes, "changes")
    legal = (counts <= _MOST_CHANGES) & (np.floor(counts) == counts)
    if not legal.all():
        row = int(np.argmin(legal)) if counts.ndim else None
        number = float(counts.flat[row or 0])
        problem = f"is {number!r}, but must be a whole number from 0 to {_MOST_CHANGES}"
        raise InvalidInput(problem, field="changes", row=row)
    return counts


def _numbers(column: Any, field: str) -> Floats:
    """One amount per page, or one alone."""
    if np.isscalar(column) or (isinstance(column, np.ndarray) and column.ndim == 0):
        return np.asarray(check_positive(column, field, may_be_zero=True))
    return check_amounts(column, field)
