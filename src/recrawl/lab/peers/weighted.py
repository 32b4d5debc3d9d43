"""Rates in proportion to a column: the true change rate, or importance (LambdaCrawlApprox, Kolobov et al. 2019).

Only the ratio of waits counts: scaled to the budget, page i gets the share weight_i / Σ weight of the pages known at
the time. A page of weight 0 is never crawled.
"""

from __future__ import annotations

import math

from recrawl.jit import exact
from recrawl.lab.peers.visit import Visit
from recrawl.pages import Floats


@exact
def by_rate_wait(parameters: Floats, own: Floats, visit: Visit) -> float:  # noqa: ARG001 - the contract of rules
    """No parameters."""
    return _inverse(visit.rate)


@exact
def by_importance_wait(parameters: Floats, own: Floats, visit: Visit) -> float:  # noqa: ARG001 - the contract of rules
    """No parameters."""
    return _inverse(visit.importance)


@exact
def _inverse(weight: float) -> float:
    return 1.0 / weight if weight > 0.0 else math.inf
