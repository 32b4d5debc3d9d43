"""changedetection.io: every watch after a threshold of 3 hours, plus a jitter drawn once for each recheck.

The jitter is even in ±j and 0 by default. A watch is never rechecked within 3 seconds. (Source of August 2026.)
"""

from __future__ import annotations

from recrawl.jit import exact
from recrawl.lab.peers.visit import Visit
from recrawl.pages import Floats

_LEAST = 3.0 / 86400.0


@exact
def changedetection_wait(parameters: Floats, own: Floats, visit: Visit) -> float:  # noqa: ARG001 - the contract of rules
    """Parameters: threshold and jitter in days."""
    return max(float(parameters[0] + parameters[1] * (2.0 * visit.chance - 1.0)), _LEAST)
