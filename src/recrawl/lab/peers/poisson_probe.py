"""Crawls at random times with a known rate, and two estimators that need just that (Avrachenkov, Patil, Thoppe 2020).

With crawls at Poisson rate p and bits I_k, the law of large numbers gives rate = p·X / (k + a − X) with X the sum of
the bits; stochastic approximation moves y by η_k·(I·(y + p) − y), η_k = (k + 1)^−γ. Both keep a few numbers.
"""

from __future__ import annotations

import math

from recrawl.jit import exact
from recrawl.lab.peers.visit import Visit
from recrawl.pages import Floats

CHANGED, VISITS, APPROXIMATED = range(3)
"""Where the sum of bits, their number and the approximation are in what is remembered of a page."""


@exact
def poisson_probe_wait(parameters: Floats, own: Floats, visit: Visit) -> float:
    """Parameters: γ, and the least the approximation may fall to, as a share of the crawl rate."""
    exponent, least = parameters[0], parameters[1]
    crawl_rate = 1.0 / visit.planned
    if visit.first:
        own[APPROXIMATED] = crawl_rate
    else:
        bit = 1.0 if visit.changed else 0.0
        own[CHANGED] += bit
        own[VISITS] += 1.0
        step = (own[VISITS] + 1.0) ** -exponent
        moved = own[APPROXIMATED] + step * (bit * (own[APPROXIMATED] + crawl_rate) - own[APPROXIMATED])
        own[APPROXIMATED] = max(moved, least * crawl_rate)
    return -math.log1p(-visit.chance) * visit.planned
