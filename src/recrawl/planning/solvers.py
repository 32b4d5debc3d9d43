"""The solvers that follow a law: each turns pages into a `Draft`.

A draft names the law of the rates and the columns that the law reads. It knows no budget and no price: `solve.py`
turns it into a market. A new solver is a function here from pages to a draft, named in `solve.py`.

**Even.** Evenly spaced crawls, the optimum of each objective when only time is known. For a price Λ the interval of a
page is where its value reaches the price: (gain/decay)·shape(decay·interval) = Λ. Freshness is the optimum of Cho and
Garcia-Molina; the harmonic index is better than LambdaCrawl's random times on LambdaCrawl's own cost and starves
nothing that changes.

**Azar et al. 2018.** Freshness with crawls at random times. `azar` maximises Σ μρ/(ρ+Δ), `azar-discrete` Σ μp/(p+Δ−pΔ)
with one coin per page and slot. `blc-eps` is LambdaCrawl's binary variant: no page gets less than ε of an even share.

**LambdaCrawl, Kolobov et al. 2019.** Harmonic staleness with crawls at random times or at announced changes. The paper
splits the budget between announced and other pages by a search around two solvers. Both kinds share one multiplier, so
one root in the price solves them together, exactly.

**Rules of thumb.** The budget in equal shares, or in proportion to change rate or importance, as most crawlers do. They
ignore what a crawl costs and have no price; floors, ceilings and host caps are kept, the rest of the budget is shared
by the same rule.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import InvalidInput
from recrawl.pages import LIVES, Floats, Objective, Pages
from recrawl.planning.laws import EVEN_G, EVEN_H, POISSON_BINARY, POISSON_HARMONIC, SHARE, SLOT_BINARY
from recrawl.planning.root import find_price

Spacing = Literal["even", "poisson", "slots", "signals"]
"""How crawls at a given rate fall in time: evenly, at random, by a coin in each slot, or when signals say so."""

NO_PAGES: NDArray[np.int64] = np.empty(0, dtype=np.int64)

Refill = Callable[[Floats, Floats, Floats], None]
"""Works out rates and slopes of all pages at the given price of each: (prices, rates, slopes)."""

EVEN_SHARE_KEPT = 0.4
"""ε: the share of an even rate that `blc-eps` grants every page, as in the LambdaCrawl paper."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A law and its columns (see `laws.py`).

    `even_share_kept` is the part of an even share of the budget that every page gets at least. `charged` is False
    for rules that ignore what a crawl costs. `refill` belongs to the law GIVEN.
    """

    law: int
    spacing: Spacing
    gain: Floats
    decay: Floats
    special: NDArray[np.int64] = field(default_factory=lambda: NO_PAGES)
    even_share_kept: float = 0.0
    charged: bool = True
    refill: Refill | None = None


def draft_even(pages: Pages, objective: Objective) -> Draft:
    """Draft the evenly spaced optimum."""
    if objective == "harmonic":
        return Draft(EVEN_H, "even", pages.importance, pages.change_rate)
    if objective == "freshness":
        return Draft(EVEN_G, "even", pages.importance, pages.change_rate)
    gain, decay, windowed = fading(pages)
    return Draft(EVEN_G, "even", gain, decay, np.flatnonzero(windowed))


def fading(pages: Pages) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Gain and decay of pages whose changes (or new pages) lose value while they wait, and which are windowed.

    Changes that overwrite each other fade by their own rate too; a change that stays for a window has decay
    1/window. The last array has length 0 if no page says what becomes of its changes.
    """
    gain = pages.importance * pages.change_rate
    decay = np.zeros(len(pages)) if pages.decay is None else pages.decay
    if pages.life is None:
        return gain, decay, np.empty(0, dtype=np.bool_)
    decay = np.where(pages.life == LIVES.index("overwrite"), decay + pages.change_rate, decay)
    windowed = pages.life == LIVES.index("window")
    if windowed.any():
        assert pages.window is not None
        decay[windowed] = 1.0 / pages.window[windowed]
    return gain, decay, windowed


def draft_azar(pages: Pages) -> Draft:
    """Draft the optimum in continuous time."""
    return Draft(POISSON_BINARY, "poisson", pages.importance, pages.change_rate)


def draft_azar_discrete(pages: Pages) -> Draft:
    """Draft the optimum in discrete time: rates are probabilities per slot, the budget is crawls per slot."""
    _check_slots(pages)
    return Draft(SLOT_BINARY, "slots", pages.importance, pages.change_rate)


def draft_blc_eps(pages: Pages) -> Draft:
    """Draft the optimum in continuous time with a floor for every page."""
    return Draft(POISSON_BINARY, "poisson", pages.importance, pages.change_rate, even_share_kept=EVEN_SHARE_KEPT)


def _check_slots(pages: Pages) -> None:
    if (pages.change_rate >= 1).any():
        row = int(np.argmax(pages.change_rate >= 1))
        raise InvalidInput(
            f"is {float(pages.change_rate[row])!r}, but the solver azar-discrete needs the chance of a change in a "
            "slot, below 1; use shorter slots or the solver azar",
            field="change_rate",
            row=row,
        )
    if pages.min_rate is not None and (pages.min_rate > 1).any():
        raise InvalidInput(
            "is above 1, but a page is crawled at most once in a slot",
            field="min_rate",
            row=int(np.argmax(pages.min_rate > 1)),
        )


def draft_lambdacrawl(pages: Pages) -> Draft:
    """Draft the mixed optimum."""
    announced = pages.announced()
    special = NO_PAGES if announced is None else np.flatnonzero(announced)
    return Draft(POISSON_HARMONIC, "poisson", pages.importance, pages.change_rate, special)


def approximate_lambdacrawl(pages: Pages, budget: float) -> tuple[Floats, float]:
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


def _announced_only(
    rates: Floats, announced: NDArray[np.bool_], told: Callable[[float], Floats], budget: float
) -> tuple[Floats, float]:
    most = told(1e-150)
    if float(most.sum()) <= budget:
        rates[announced] = most
        return rates, 0.0
    found = find_price(lambda x: (float(told(math.exp(x)).sum()), math.nan), budget, 0.0)
    rates[announced] = told(math.exp(found.low))
    return rates, math.exp(found.low)


def draft_uniform(pages: Pages) -> Draft:
    """Draft the same rate for every page."""
    return _share(pages, np.ones(len(pages)))


def draft_proportional(pages: Pages) -> Draft:
    """Draft rates in proportion to the change rate, as adaptive intervals do."""
    return _share(pages, pages.change_rate)


def draft_importance(pages: Pages) -> Draft:
    """Draft rates in proportion to importance."""
    return _share(pages, pages.importance)


def _share(pages: Pages, weight: Floats) -> Draft:
    return Draft(SHARE, "poisson", weight, pages.change_rate, charged=False)
