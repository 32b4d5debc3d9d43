"""What given crawl rates cost: expected staleness, harmonic and binary, and the value of what is captured.

Sums over pages in one pass, O(pages). A page whose content does not change, or that nobody wants, costs nothing.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from recrawl.jit import exact, kernel
from recrawl.pages import Floats
from recrawl.values.special import ein, h, harmonic_number

EVEN, POISSON, SLOTS = 0, 1, 2
"""How crawls fall in time: evenly spaced, at random times, by a coin in each slot."""


@exact
def even_costs(change_rate: float, rate: float) -> tuple[float, float]:
    """Harmonic and binary cost of evenly spaced crawls, per unit importance."""
    if rate <= 0.0:
        return math.inf, 1.0
    x = change_rate / rate
    if x <= 0.0:
        return 0.0, 0.0
    stale = h(x) / x if x < 1e300 else 1.0
    return ein(x) - stale, stale


@exact
def poisson_costs(change_rate: float, rate: float) -> tuple[float, float]:
    """Harmonic and binary cost of crawls at random times, per unit importance (LambdaCrawl)."""
    if rate <= 0.0:
        return math.inf, 1.0
    return math.log1p(change_rate / rate), change_rate / (rate + change_rate)


@exact
def slot_costs(change: float, probability: float) -> tuple[float, float]:
    """Harmonic and binary cost of a coin in each slot, per unit importance (Azar et al. 2018).

    The number of changes missed is geometric with ratio 1 − fresh, so the harmonic cost is −ln fresh.
    """
    if probability <= 0.0:
        return math.inf, 1.0
    missed = change * (1.0 - probability)
    return math.log1p(missed / probability), missed / (probability + missed)


@exact
def coin_costs(change_rate: float, rate: float) -> tuple[float, float]:
    """Harmonic and binary cost of a coin at each announced change, per unit importance (LambdaCrawl)."""
    if rate <= 0.0:
        return math.inf, 1.0
    probability = min(1.0, rate / change_rate)
    return -math.log(probability), 1.0 - probability


@exact
def counter_costs(change_rate: float, rate: float) -> tuple[float, float]:
    """Harmonic and binary cost of crawling at every N-th announced change, per unit importance.

    Where the rate lies between those of N and N+1, the page follows either for part of the time.
    """
    if rate <= 0.0:
        return math.inf, 1.0
    probability = min(1.0, rate / change_rate)
    fewer = np.floor(1.0 / probability)
    often, seldom = 1.0 / fewer, 1.0 / (fewer + 1.0)
    share = min(1.0, (probability - seldom) / (often - seldom)) if often > seldom else 1.0
    harmonic = harmonic_number(fewer) - 1.0 + (1.0 - share) * seldom
    binary = share * (1.0 - often) + (1.0 - share) * (1.0 - seldom)
    return harmonic, binary


@exact
def _page_costs(spacing: int, announced: bool, change_rate: float, rate: float) -> tuple[float, float]:
    if spacing == EVEN:
        return counter_costs(change_rate, rate) if announced else even_costs(change_rate, rate)
    if spacing == SLOTS:
        return slot_costs(change_rate, rate)
    return coin_costs(change_rate, rate) if announced else poisson_costs(change_rate, rate)


@kernel
def cost_sums(
    spacing: int, importance: Floats, change_rate: Floats, announced: NDArray[np.bool_], rates: Floats
) -> tuple[float, float]:
    """Sum harmonic and binary cost over pages; `announced` may have length 0."""
    harmonic, binary = 0.0, 0.0
    for i in range(importance.size):
        if importance[i] > 0.0 and change_rate[i] > 0.0:
            told = announced[i] if announced.size else False
            page_harmonic, page_binary = _page_costs(spacing, told, change_rate[i], rates[i])
            harmonic += importance[i] * page_harmonic
            binary += importance[i] * page_binary
    return harmonic, binary


@kernel
def binary_sum(
    spacing: int, importance: Floats, change_rate: Floats, announced: NDArray[np.bool_], rates: Floats
) -> float:
    """Sum binary cost alone, which is much cheaper than the harmonic one."""
    binary = 0.0
    for i in range(importance.size):
        if importance[i] > 0.0 and change_rate[i] > 0.0:
            if spacing == EVEN and not announced.size:
                x = change_rate[i] / rates[i] if rates[i] > 0.0 else math.inf
                binary += importance[i] * (h(x) / x if x < 1e300 else 1.0)
            else:
                told = announced[i] if announced.size else False
                binary += importance[i] * _page_costs(spacing, told, change_rate[i], rates[i])[1]
    return binary


@kernel
def gain_sum(even: bool, gain: Floats, decay: Floats, windowed: NDArray[np.bool_], rates: Floats) -> float:
    """Sum the value captured per unit time by pages whose changes are worth `gain` and fade with `decay`.

    A windowed page has decay 1/window and captures min(1, rate·window) of its gain.
    """
    total = 0.0
    for i in range(gain.size):
        if gain[i] > 0.0 and rates[i] > 0.0:
            x = decay[i] / rates[i]
            if windowed.size and windowed[i]:
                total += gain[i] * (min(1.0, 1.0 / x) if even else -math.expm1(-1.0 / x))
            elif even:
                total += gain[i] * (-math.expm1(-x) / x if x > 0.0 else 1.0)
            else:
                total += gain[i] / (1.0 + x)
    return total
