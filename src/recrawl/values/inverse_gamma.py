"""The inverse of the incomplete gamma function P(shape, x) in x."""

from __future__ import annotations

import math

from recrawl.jit import exact
from recrawl.values.incomplete_gamma import lower_gamma, poisson_term


@exact
def inverse_lower_gamma(shape: float, share: float) -> float:
    """The x with P(shape, x) = share, for 0 < share < 1 and a finite shape ≥ 1. O(√shape).

    Newton on ln P in ln x. That curve is concave and the start lies left of the root, so steps only overshoot
    where rounding makes them; a bracket holds those.
    """
    # P(a, x) ≤ x^a / Γ(a + 1), so this is a lower bound but for rounding.
    x = math.exp((math.log(share) + math.lgamma(shape + 1.0)) / shape)
    low = 0.0
    high = math.inf
    for _ in range(200):
        reached = lower_gamma(shape, x)
        if reached < share:
            low = max(low, x)
        else:
            high = min(high, x)
        step = _log_step(shape, share, x, reached)
        following = x * math.exp(step)
        if not low <= following <= high:
            following = 0.5 * low + 0.5 * high if high < math.inf else 2.0 * low
        if abs(step) <= 1e-15 or following == x or abs(reached - share) <= 1e-16 * share:
            return following
        x = following
    return x


@exact
def _log_step(shape: float, share: float, x: float, reached: float) -> float:
    """The Newton step in ln x."""
    if reached < 1e-300:  # P has left the floats: use the logarithm of its bound
        bound = shape * math.log(x) - x - math.lgamma(shape + 1.0)
        return (math.log(share) - bound) / (shape - x)
    slope = poisson_term(shape - 1.0, x) * x / reached
    return math.log(share / reached) / slope if slope > 0.0 else -1.0
