"""Apache StormCrawler's AdaptiveScheduler, in whole minutes: towards the shortest interval after a change, longer else.

StormCrawler: start 1440, 60 to 20160 minutes, both factors 0.5. Common Crawl's news crawler runs it with feeds at
start 720, 90 minutes to 90 days, decrease 0.2. (Sources of 2025.)
"""

from __future__ import annotations

import math

from recrawl.jit import exact
from recrawl.lab.peers.visit import MINUTE, Visit
from recrawl.pages import Floats


@exact
def stormcrawler_wait(parameters: Floats, own: Floats, visit: Visit) -> float:
    """Parameters: start, increase, decrease, shortest, longest; times in minutes."""
    start, increase, decrease, shortest, longest = (
        parameters[0],
        parameters[1],
        parameters[2],
        parameters[3],
        parameters[4],
    )
    if visit.first:
        own[0] = start
    elif visit.changed:
        own[0] = math.floor((1.0 - decrease) * own[0] + decrease * shortest)
    else:
        own[0] = min(longest, math.floor(own[0] * (1.0 + increase)))
    return float(own[0] * MINUTE)
