"""The page most likely to have changed first: the highest 1 − e^(−rate·age), with the rate learned on the way.

The order by rate·age is that of waits in proportion to 1/rate, so the due-date engine serves it scaled to the budget.
The rate is Cho's estimate −ln((n − x + 0.5) / (n + 0.5)) / mean gap, as in gp4c (Santos et al.), and half a change in
the time watched where none was seen.
"""

from __future__ import annotations

import math

from recrawl.jit import exact
from recrawl.lab.peers.visit import Visit
from recrawl.pages import Floats

_VISITS, _CHANGED, _WATCHED = range(3)


@exact
def change_first_wait(parameters: Floats, own: Floats, visit: Visit) -> float:  # noqa: ARG001 - the contract of rules
    """No parameters."""
    if visit.first:
        return visit.fair
    own[_VISITS] += 1.0
    own[_CHANGED] += 1.0 if visit.changed else 0.0
    own[_WATCHED] += visit.gap
    visits, changed, watched = own[_VISITS], own[_CHANGED], own[_WATCHED]
    expected = -math.log((visits - changed + 0.5) / (visits + 0.5)) * visits
    return float(watched / max(expected, 0.5))
