"""Cho's estimator as an interval, as C01 uses it: after every k visits the mean time between changes becomes it.

With x of k visits at interval I changed, the new interval is I / −ln((k − x + 0.5) / (k + 0.5)) (Cho and
Garcia-Molina 2003); without a change the estimate is infinite and the longest interval holds. C01 leaves k and the
limits to its user; here 5 visits, start 1 day, 1 hour to 90 days.
"""

from __future__ import annotations

import math

from recrawl.jit import exact
from recrawl.lab.peers.visit import Visit
from recrawl.pages import Floats

_INTERVAL, _VISITS, _CHANGED = range(3)


@exact
def cho_interval_wait(parameters: Floats, own: Floats, visit: Visit) -> float:
    """Parameters: start, visits, shortest, longest; times in days."""
    start, visits, shortest, longest = parameters[0], parameters[1], parameters[2], parameters[3]
    if visit.first:
        own[_INTERVAL] = start
        return float(start)
    own[_VISITS] += 1.0
    own[_CHANGED] += 1.0 if visit.changed else 0.0
    if own[_VISITS] >= visits:
        estimate = longest
        if own[_CHANGED] > 0.0:
            unchanged = (own[_VISITS] - own[_CHANGED] + 0.5) / (own[_VISITS] + 0.5)
            estimate = own[_INTERVAL] / -math.log(unchanged)
        own[_INTERVAL] = min(max(estimate, shortest), longest)
        own[_VISITS] = own[_CHANGED] = 0.0
    return float(own[_INTERVAL])
