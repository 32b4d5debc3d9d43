"""A BUbiNG fork that revisits (Ondrej 2018): Nutch's rule without the offset.

Factors 0.2, start 5 days, 1 hour to 180 days; then at least the time since the last change that was found.
"""

from __future__ import annotations

from recrawl.jit import exact
from recrawl.lab.peers.visit import Visit
from recrawl.pages import Floats

_INTERVAL, _MODIFIED = range(2)


@exact
def bubing_wait(parameters: Floats, own: Floats, visit: Visit) -> float:
    """Parameters: start, increase, decrease, shortest, longest; times in days."""
    start, increase, decrease, shortest, longest = (
        parameters[0],
        parameters[1],
        parameters[2],
        parameters[3],
        parameters[4],
    )
    if visit.first:
        own[_INTERVAL], own[_MODIFIED] = start, visit.now
        return float(start)
    factor = 1.0 + increase
    if visit.changed:
        factor = 1.0 - decrease
        own[_MODIFIED] = visit.now
    interval = min(max(own[_INTERVAL] * factor, shortest), longest)
    own[_INTERVAL] = max(interval, visit.now - own[_MODIFIED])
    return float(own[_INTERVAL])
