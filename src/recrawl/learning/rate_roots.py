"""The roots behind the classical estimators, page by page.

Each equation has one root, between two rates that are known in closed form, and Newton on logarithms finds it in a
handful of steps; a step that leaves the bracket is replaced by its middle.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from recrawl.jit import exact, kernel
from recrawl.learning.evidence import MIXED_GAPS, Indices, summed_up
from recrawl.pages import Floats

_MOST_STEPS = 200
_CLOSE = 1e-14


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
def regular_rates(offsets: Indices, gaps: Floats, changed: NDArray[np.bool_]) -> Floats:
    """−ln((n − x + ½)/(n + ½)) over the mean gap."""
    rates = np.empty(len(offsets) - 1)
    for page in range(len(rates)):
        crawls = 0
        changes = 0
        time = 0.0
        for row in range(offsets[page], offsets[page + 1]):
            crawls += gaps[row] > 0.0
            changes += changed[row] & (gaps[row] > 0.0)
            time += gaps[row]
        rates[page] = -math.log1p(-changes / (crawls + 0.5)) * crawls / time if changes > 0 else 0.0
    return rates


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
