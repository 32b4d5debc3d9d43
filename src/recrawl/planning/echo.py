"""Crawl rates of content sources whose new pages cost crawls too (ECHO, Lefortier et al. 2013).

Source i has new pages at rate λ, each worth P when new and fading with κ. A crawl every I yields p(1−e^{−κI}), with
the paper's p = P/(1−e^{−κ/λ}); keeping the source costs 1/I + λ crawls per unit time. For a price ω the interval of
a kept source is g⁻¹(ω/p)/κ. The paper drops a source when ω ≥ p. That keeps sources that do not pay for their own
pages: the better rule keeps a source only while its surplus does, pκe^{−κI} ≥ ωλ. Spending jumps where a source is
dropped, so the marginal source is run for a part of the time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from recrawl.errors import InvalidInput
from recrawl.jit import exact, kernel
from recrawl.pages import Floats, Pages
from recrawl.planning.root import LOWEST, find_price
from recrawl.values import inverse_shape_g, shape_g
from recrawl.values.special import g


@dataclass(frozen=True, slots=True)
class SourcePlan:
    """Rates of the sources, the budget they use with their new pages, the price, and what is gathered.

    `most` is what crawling without pause would gather, by the paper's reckoning.
    """

    rates: Floats
    used: float
    price: float
    gain: float
    most: float


def solve(pages: Pages, budget: float, *, paper_rule: bool) -> SourcePlan:
    """Solve for the rates of the sources: by the optimal rule, or by the paper's."""
    _refuse_limits(pages)
    profit, new_pages, decay = pages.importance, pages.change_rate, _decay(pages)
    with np.errstate(all="ignore"):
        worth = np.where((new_pages > 0) & (profit > 0), profit / -np.expm1(-decay / new_pages), 0.0)
    most = float(worth @ decay)
    if budget == 0:
        return SourcePlan(np.zeros(len(pages)), 0.0, math.inf if len(pages) else 0.0, 0.0, most)
    dropped_at = worth if paper_rule else worth * shape_g(_longest_interval(decay, new_pages))

    def at(price: float) -> tuple[Floats, float]:
        kept = price < dropped_at
        rates = np.zeros(len(pages))
        rates[kept] = decay[kept] / inverse_shape_g(price / worth[kept])
        return rates, float(rates.sum() + new_pages[kept].sum())

    found = find_price(lambda x: (at(math.exp(x))[1], math.nan), budget, math.log(max(worth.max(initial=0), 1e-60)))
    rates, used = at(math.exp(found.high))
    pace = rates
    if found.low != found.high:
        pace, _ = at(math.exp(found.low))
        rates, used = _run_the_marginal_source_in_part(rates, pace, used, new_pages, budget)
    price = 0.0 if found.high <= LOWEST else math.exp(found.high)
    return SourcePlan(rates, used, price, _gain(worth, decay, rates, pace), most)


def _run_the_marginal_source_in_part(
    rates: Floats, generous: Floats, used: float, new_pages: Floats, budget: float
) -> tuple[Floats, float]:
    """Spend what is left on the sources that tie at the price, in order, the last one for a part of the time."""
    rates = rates.copy()
    for source in np.flatnonzero((rates == 0) & (generous > 0)):
        price_of_source = generous[source] + new_pages[source]
        share = min(1.0, max(0.0, (budget - used) / price_of_source))
        rates[source] = share * generous[source]
        used += share * price_of_source
    return rates, used


def _gain(worth: Floats, decay: Floats, rates: Floats, pace: Floats) -> float:
    """What kept sources gather per unit time; `pace` is the rate of a source while it is run."""
    kept = rates > 0
    return float((worth[kept] * rates[kept]) @ -np.expm1(-decay[kept] / pace[kept]))


def _decay(pages: Pages) -> Floats:
    assert pages.decay is not None
    return pages.decay


def _refuse_limits(pages: Pages) -> None:
    for name in ("min_rate", "max_rate", "cost"):
        if getattr(pages, name) is not None:
            raise InvalidInput(
                "cannot be kept by the solver echo, whose budget also pays for new pages; leave the column out or use "
                "the solver even",
                field=name,
            )


@exact
def _last_x(ratio: float) -> float:
    """The x with e^{−x} = ratio·g(x): the longest interval at which a source pays for its pages."""
    low, high = 1e-30, 1e3
    for _ in range(200):
        middle = math.sqrt(low * high)
        if math.exp(-middle) > ratio * g(middle):
            low = middle
        else:
            high = middle
    return high


@kernel
def _longest_interval(decay: Floats, new_pages: Floats) -> Floats:
    """The longest interval, in units of 1/decay, at which each source pays for its pages."""
    longest = np.empty(decay.size)
    for i in range(decay.size):
        longest[i] = _last_x(new_pages[i] / decay[i])
    return longest
