"""Fixed interval: every page again after the same time.

It is what Nutch does by default (30 days), StormCrawler by default and Frontera's old revisiting backend (1 day),
Heritrix 3 with a reschedule delay, and most monitors.
"""

from __future__ import annotations

from recrawl.jit import exact
from recrawl.lab.peers.visit import Visit
from recrawl.pages import Floats


@exact
def fixed_wait(parameters: Floats, own: Floats, visit: Visit) -> float:  # noqa: ARG001 - the contract of rules
    """Parameters: the interval in days."""
    return float(parameters[0])
