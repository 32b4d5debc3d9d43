"""The yardsticks of the group `planning`: each the plainest competent version, in NumPy and SciPy.

Every plan here is a bisection on the logarithm of the price, with a fixed number of passes over whole arrays.
What does not depend on the price is computed once, before the passes. Nothing is done to slow them down; the
tests hold each to the answer of `recrawl.plan`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.bench.measure import CannotRun
from recrawl.extras import is_installed, missing
from recrawl.pages import Floats

PASSES = 60
"""Passes of a bisection: enough for every digit of the price."""

_NARROWEST = 1e-12


class Solution(NamedTuple):
    """What a bisection finds."""

    price: float
    rates: Floats


def bisect(spent: Callable[[float], float], importance: Floats, budget: float) -> float:
    """Find the price at which the pages spend the budget, by halving the logarithm 60 times.

    In all four laws a page spends at most importance/price, so the root is below Σ importance/budget; it is looked
    for down to 1e-12 of that.
    """
    high = float(importance.sum()) / budget
    low = high * _NARROWEST
    for _ in range(PASSES):
        middle = math.sqrt(low * high)
        if spent(middle) > budget:
            low = middle
        else:
            high = middle
    return math.sqrt(low * high)


def mixed_harmonic(columns: Mapping[str, Floats], budget: float) -> Solution:
    """Harmonic staleness, random times or announced changes (LambdaCrawl, Kolobov et al. 2019), one price."""
    announced = (columns["recall"] == 1) & (columns["precision"] == 1)
    other = ~announced
    change_rate = columns["change_rate"][other]
    square, product = change_rate**2, 4 * columns["importance"][other] * change_rate
    told_importance = columns["importance"][announced]
    told_rate = columns["change_rate"][announced]

    def other_rates(price: float) -> Floats:
        # The printed formula, quick though it loses digits where changes are frequent.
        rates: Floats = (np.sqrt(square + product / price) - change_rate) / 2
        return rates

    def announced_rates(price: float) -> Floats:
        rates: Floats = np.minimum(told_rate, told_importance / price)
        return rates

    def spent(price: float) -> float:
        return float(other_rates(price).sum() + announced_rates(price).sum())

    price = bisect(spent, columns["importance"], budget)
    rates = np.empty(len(announced))
    rates[other] = other_rates(price)
    rates[announced] = announced_rates(price)
    return Solution(price, rates)


def random_freshness(columns: Mapping[str, Floats], budget: float) -> Solution:
    """Freshness with crawls at random times (Azar et al. 2018)."""
    change_rate = columns["change_rate"]
    root = np.sqrt(columns["importance"] * change_rate)

    def rates(price: float) -> Floats:
        return np.maximum(root / math.sqrt(price) - change_rate, 0)

    price = bisect(lambda price: float(rates(price).sum()), columns["importance"], budget)
    return Solution(price, rates(price))


def even_harmonic(columns: Mapping[str, Floats], budget: float) -> Solution:
    """Harmonic staleness with even spacing, through scipy's lambertw. Tens of seconds at a million pages."""
    lambertw = load_lambertw()
    change_rate = columns["change_rate"]
    level_at_one = change_rate / columns["importance"]

    def rates(price: float) -> Floats:
        return change_rate / inverse_h_by_lambertw(lambertw, level_at_one * price)

    price = bisect(lambda price: float(rates(price).sum()), columns["importance"], budget)
    return Solution(price, rates(price))


def even_freshness(columns: Mapping[str, Floats], budget: float) -> Solution:
    """Freshness with even spacing, through scipy's lambertw. Tens of seconds at a million pages."""
    lambertw = load_lambertw()
    change_rate = columns["change_rate"]
    level_at_one = change_rate / columns["importance"]

    def crawled_rates(price: float) -> tuple[Floats, NDArray[np.bool_]]:
        level = level_at_one * price
        crawled = level < 1
        return change_rate[crawled] / inverse_g_by_lambertw(lambertw, level[crawled]), crawled

    price = bisect(lambda price: float(crawled_rates(price)[0].sum()), columns["importance"], budget)
    rates = np.zeros(len(change_rate))
    some, crawled = crawled_rates(price)
    rates[crawled] = some
    return Solution(price, rates)


def g_by_formula(x: Floats) -> Floats:
    """1 − (1 + x)e^{−x} as it is printed; loses its digits for small x."""
    return 1 - (1 + x) * np.exp(-x)


def inverse_g_by_lambertw(lambertw: Any, level: Floats) -> Floats:
    """−1 − W₋₁(−(1 − c)/e) for levels below 1."""
    inverse: Floats = -1 - lambertw((level - 1) / math.e, -1).real
    return inverse


def inverse_h_by_lambertw(lambertw: Any, level: Floats) -> Floats:
    """1 + c + W₀(−e^{−(1+c)})."""
    inverse: Floats = 1 + level + lambertw(-np.exp(-1 - level)).real
    return inverse


def load_lambertw() -> Any:
    """SciPy's lambertw; a reason that says how to install it where it is missing."""
    if not is_installed("scipy"):
        raise CannotRun(missing("scipy", "the yardstick"))
    from scipy.special import lambertw

    return lambertw
