"""Heritrix 1's WaitEvaluator: the interval is divided by 1.5 after a change and else multiplied by it.

Start 1 day, 1 hour to 28 days.
"""

from __future__ import annotations

from recrawl.jit import exact
from recrawl.lab.peers.visit import Visit
from recrawl.pages import Floats


@exact
def heritrix_wait(parameters: Floats, own: Floats, visit: Visit) -> float:
    """Parameters: start, factor, shortest, longest; times in days."""
    start, factor, shortest, longest = parameters[0], parameters[1], parameters[2], parameters[3]
    if visit.first:
        own[0] = start
    elif visit.changed:
        own[0] = max(own[0] / factor, shortest)
    else:
        own[0] = min(own[0] * factor, longest)
    return float(own[0])
