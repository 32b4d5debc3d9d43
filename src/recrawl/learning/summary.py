"""A distribution of the rate on evenly spaced logarithms, summed up in the five numbers of a `RatePosterior`.

Each node stands for its surroundings, half a step to both sides, so quantiles move smoothly between nodes.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from recrawl.jit import kernel
from recrawl.pages import Floats
from recrawl.values.special import exp_of_minus

NUMBERS = 5
"""How many numbers sum up a page: mean, median, low, high, mean of the logarithm, in this order."""

_NEGLIGIBLE = 300.0  # e^{−300} times any weight or rate is a normal float, and those are quicker


class Nodes(NamedTuple):
    """Rates with equal steps between their logarithms, and their weights, up to a factor."""

    log_rates: Floats
    rates: Floats
    weights: Floats


@kernel
def exponentials(logarithms: Floats, out: Floats) -> None:
    """Write e to these powers, up to a factor: the highest becomes 1, and none becomes 0. O(len)."""
    highest = logarithms.max()
    for k in range(len(out)):
        out[k] = exp_of_minus(min(highest - logarithms[k], _NEGLIGIBLE))


@kernel
def sum_up(nodes: Nodes, tail: float, out: Floats) -> None:
    """Write the five numbers, with `tail` of the weight below the low end and as much above the high. O(nodes)."""
    weights = nodes.weights
    total = 0.0
    rate = 0.0
    log_rate = 0.0
    for k in range(len(weights)):
        total += weights[k]
        rate += weights[k] * nodes.rates[k]
        log_rate += weights[k] * nodes.log_rates[k]
    out[0] = rate / total
    out[1] = _quantile(nodes, 0.5 * total)
    out[2] = _quantile(nodes, tail * total)
    out[3] = _quantile(nodes, (1.0 - tail) * total)
    out[4] = log_rate / total


@kernel
def _quantile(nodes: Nodes, weight: float) -> float:
    """The rate with so much weight below it."""
    last = len(nodes.rates) - 1
    below = 0.0
    k = 0
    while k < last and below + nodes.weights[k] < weight:
        below += nodes.weights[k]
        k += 1
    share = (weight - below) / max(nodes.weights[k], 1e-300)
    step = nodes.log_rates[1] - nodes.log_rates[0]
    log_rate = nodes.log_rates[k] + step * (min(share, 1.0) - 0.5)
    return math.exp(min(max(log_rate, nodes.log_rates[0]), nodes.log_rates[last]))
