"""MirrorSync's way to crawl: at even steps, with a probe inside some of them (Kolobov, Bubeck, Zimmert 2020).

A step is as long as the planned wait. With chance ε the page is also crawled at a time drawn evenly from the step.
What the probe misses of the cost at the end of the step is the slope of the page's cost in its crawl rate: no model of
change is needed.
"""

from __future__ import annotations

from recrawl.jit import exact
from recrawl.lab.peers.visit import Visit
from recrawl.pages import Floats

_STAGE, _REST, _PROBED, MISSED, STEPS = range(5)
"""Where the sum of what probes missed and the number of steps are in what is remembered of a page."""

_END_OF_STEP, _PROBE, _END_OF_PROBED_STEP = range(3)


@exact
def mirror_probe_wait(parameters: Floats, own: Floats, visit: Visit) -> float:
    """Parameters: ε."""
    stage = own[_STAGE]
    if not visit.first:
        bit = 1.0 if visit.changed else 0.0
        if stage == _PROBE:
            own[_PROBED] = bit
            own[_STAGE] = _END_OF_PROBED_STEP
            return float(own[_REST])
        own[STEPS] += 1.0
        if stage == _END_OF_PROBED_STEP:
            own[MISSED] += own[_PROBED] - max(own[_PROBED], bit)
    own[_STAGE] = _END_OF_STEP
    if visit.chance >= parameters[0]:
        return visit.planned
    inside = visit.chance / parameters[0] * visit.planned
    own[_STAGE] = _PROBE
    own[_REST] = visit.planned - inside
    return float(inside)
