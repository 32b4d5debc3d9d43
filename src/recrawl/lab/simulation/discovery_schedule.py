"""How often to crawl each content source: the schedule of ECHO (Lefortier et al. 2013, algorithm 1), or with a quota.

The same answer as the solver `echo-paper`, by plain bisection as in the paper, compiled, since a run asks for it every
half hour; and a second one for a budget that is for sources alone.
"""

from __future__ import annotations

import math

import numpy as np

from recrawl.jit import kernel
from recrawl.pages import Floats
from recrawl.values.special import inverse_g

_STEPS = 48  # of bisection: from twelve decades to ten digits
_LEAST = 1e-12  # price, of the largest worth


@kernel
def source_schedule(profit: Floats, new_pages: Floats, decay: Floats, budget: float, pays_for_pages: bool) -> Floats:
    """Crawls per unit time of each source. O(sources), 48 times.

    Sources have p = P/(1 − e^{−κ/λ}); those with p above the price have the rate at which p g(κ/rate) is the price,
    others none. The budget is for the kept sources, and for all their new pages too if it pays for pages. Where that
    is met only by keeping a source or not, it is kept, at next to no rate: some source is always kept.
    """
    worth = np.empty(profit.size)
    most = 0.0
    for i in range(profit.size):
        worth[i] = profit[i] / -math.expm1(-decay[i] / new_pages[i])
        most = max(most, worth[i])
    low, high = math.log(most * _LEAST), math.log(most)
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        price = math.exp(middle)
        spent = 0.0
        for i in range(profit.size):
            if worth[i] > price:
                spent += decay[i] / inverse_g(price / worth[i]) + (new_pages[i] if pays_for_pages else 0.0)
        if spent > budget:
            low = middle
        else:
            high = middle
    price = math.exp(low)
    rates = np.zeros(profit.size)
    for i in range(profit.size):
        if worth[i] > price:
            rates[i] = decay[i] / inverse_g(price / worth[i])
    return rates
