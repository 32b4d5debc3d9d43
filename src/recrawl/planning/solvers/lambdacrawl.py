"""Harmonic staleness with crawls at random times or at announced changes (LambdaCrawl, Kolobov et al. 2019).

The paper splits the budget between announced and other pages by a search around two solvers. Both kinds share one
multiplier, so one root in the price solves them together, exactly.
"""

from __future__ import annotations

import math

import numpy as np

from recrawl.errors import InvalidInput
from recrawl.pages import Floats, Pages
from recrawl.planning.draft import NO_PAGES, Draft
from recrawl.planning.laws import POISSON_HARMONIC
from recrawl.planning.root import find_price


def draft(pages: Pages) -> Draft:
    """Draft the mixed optimum."""
    announced = pages.announced()
    special = NO_PAGES if announced is None else np.flatnonzero(announced)
    return Draft(POISSON_HARMONIC, "poisson", pages.importance, pages.change_rate, special)


def approximate(pages: Pages, budget: float) -> tuple[Floats, float]:
    """LambdaCrawl's approximation: importance-proportional rates where changes are not announced.

    The share of the unannounced pages is one root: with R⁻ crawls at rates μR⁻/M their marginal value is
    Λ = (1/R⁻)·Σ μΔ/(μR⁻/M + Δ), and announced pages are crawled with probability min(1, μ/(ΛΔ)).
    Returns rates and price. O(pages) per step.
    """
    for name in ("min_rate", "max_rate", "cost"):
        if getattr(pages, name) is not None:
            raise InvalidInput(
                "cannot be kept by the solver lambdacrawl-approx, which is a closed form; leave the column out or "
                "use the solver lambdacrawl",
                field=name,
            )
    announced = pages.announced()
    if announced is None:
        announced = np.zeros(len(pages), dtype=bool)
    importance, change_rate = pages.importance[~announced], pages.change_rate[~announced]
    told_importance, told_rate = pages.importance[announced], pages.change_rate[announced]
    weight = float(importance.sum())

    def price_of(share: float) -> float:
        if share <= 0 or weight == 0:
            return math.inf
        rates = importance * (share / weight)
        useful = rates + change_rate > 0
        return float((importance * change_rate)[useful] @ (1 / (rates + change_rate)[useful])) / share

    def told(price: float) -> Floats:
        with np.errstate(all="ignore"):
            return np.where(told_importance > 0, np.minimum(told_rate, told_importance / price), 0.0)

    rates = np.zeros(len(pages))
    if not (importance @ change_rate) > 0:  # nothing to gain from pages that are not announced
        return _announced_only(rates, announced, told, budget)
    # The spending rises with R⁻: search on the logarithm of 1/R⁻, where it falls as `find_price` expects.
    found = find_price(
        lambda x: (math.exp(-x) + float(told(price_of(math.exp(-x))).sum()), math.nan), budget, -math.log(budget)
    )
    share = math.exp(-found.low)
    rates[~announced] = importance * (share / weight)
    rates[announced] = told(price_of(share))
    return rates, price_of(share)


def _announced_only(rates: Floats, announced: np.ndarray, told: object, budget: float) -> tuple[Floats, float]:
    assert callable(told)
    most = told(1e-150)
    if float(most.sum()) <= budget:
        rates[announced] = most
        return rates, 0.0
    found = find_price(lambda x: (float(told(math.exp(x)).sum()), math.nan), budget, 0.0)
    rates[announced] = told(math.exp(found.low))
    return rates, math.exp(found.low)
