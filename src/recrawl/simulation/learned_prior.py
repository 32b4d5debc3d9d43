"""What the laboratory's learning scheduler believes of a page before its first crawl, and the settings built on it.

A prior that gives all magnitudes alike has a mean far above the rate of nearly every page. Where a page's value is
taken at its mean rate, as it is for pages that listen to signals, such a page seems hopeless: it is never crawled, and
so nothing is ever learned of it. This prior is even in the logarithm between once in three years and once in ten days,
and falls with the square of the rate above. Rates are per day. Pure.
"""

from __future__ import annotations

import numpy as np

from recrawl.learning.prior import RatePrior
from recrawl.learning.rate_grid import rate_grid
from recrawl.simulation.scheduler_run_settings import Settings

SLOWEST = 1e-3
"""Changes a day of the slowest pages that are told apart; slower ones would be given up before they are known."""

BUSY = 0.1
"""Changes a day above which pages are the rarer, the busier."""

FASTEST = 1e2
_FALL = 2.0


def page_prior() -> RatePrior:
    """The prior of a page that nothing is known of, rates per day.

    >>> prior = page_prior()
    >>> round(float(prior.weights.sum()), 9), bool(prior.weights @ prior.grid.rates < BUSY)
    (1.0, True)
    """
    grid = rate_grid(SLOWEST, FASTEST)
    weights = np.minimum(1.0, (grid.rates / BUSY) ** -_FALL)
    return RatePrior(grid, weights / weights.sum(), np.empty((0, grid.points)))


def learned_freshness(batch: int | None = None) -> Settings:
    """Settings for freshness with rates and trust in signals learned on the way, time in days."""
    return Settings(objective="freshness", prior=page_prior(), batch=batch)
