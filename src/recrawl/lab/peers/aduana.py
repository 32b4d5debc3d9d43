"""Aduana's frequency scheduler (Scrapinghub 2015): crawl at the rate of changes found, plus one.

The rate is (changes found + 1) / (last crawl − first crawl). Aduana pops the page with the lowest score and adds the
inverse of its frequency: a virtual clock, which is what scaling to the budget does here. As it is, it is Aduana with
its pause at margin 0: no page before its time.
"""

from __future__ import annotations

from recrawl.jit import exact
from recrawl.lab.peers.visit import Visit
from recrawl.pages import Floats

_FIRST_CRAWL, _CHANGES = range(2)


@exact
def aduana_wait(parameters: Floats, own: Floats, visit: Visit) -> float:
    """Parameters: the first wait in days."""
    if visit.first:
        own[_FIRST_CRAWL] = visit.now
        return float(parameters[0])
    if visit.changed:
        own[_CHANGES] += 1.0
    return float((visit.now - own[_FIRST_CRAWL]) / (own[_CHANGES] + 1.0))
