"""Squid's LM-factor as a revisit rule: wait a fifth of the time since Last-Modified, at most 3 days.

RFC 9111 suggests a tenth. Squid's default shortest time is 0; here it is a minute, which is Squid's unit.
"""

from __future__ import annotations

from recrawl.jit import exact
from recrawl.lab.peers.visit import Visit
from recrawl.pages import Floats


@exact
def lm_factor_wait(parameters: Floats, own: Floats, visit: Visit) -> float:  # noqa: ARG001 - the contract of rules
    """Parameters: factor, shortest, longest; times in days."""
    factor, shortest, longest = parameters[0], parameters[1], parameters[2]
    return float(min(max(factor * (visit.now - visit.modified), shortest), longest))
