"""Miniflux's entry_frequency: as often as entries were dated in the last week.

It reads the dates of the entries, so it knows every change and not only that there was one. The weekly count is the
week divided by the mean gap between entries, rounded up; with fewer than two entries the interval is the longest.
5 minutes to 24 hours, factor 1.
"""

from __future__ import annotations

import math

from recrawl.jit import exact
from recrawl.lab.peers.visit import WEEK, Visit
from recrawl.pages import Floats


@exact
def miniflux_wait(parameters: Floats, own: Floats, visit: Visit) -> float:  # noqa: ARG001 - the contract of rules
    """Parameters: factor, shortest, longest; times in days. O(entries in a week)."""
    factor, shortest, longest = parameters[0], parameters[1], parameters[2]
    begin, end = visit.entries
    oldest = end
    while oldest > begin and visit.dates[oldest - 1] > visit.now - WEEK:
        oldest -= 1
    entries = end - oldest
    if entries < 2:
        return float(longest)
    mean_gap = (visit.dates[end - 1] - visit.dates[oldest]) / (entries - 1)
    if mean_gap <= 0.0:
        return float(shortest)
    weekly = math.ceil(WEEK / mean_gap)
    return float(min(max(WEEK / (weekly * factor), shortest), longest))
