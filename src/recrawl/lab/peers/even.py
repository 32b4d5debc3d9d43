"""Uniform: all pages at the same rate, budget divided by the number of pages known at the time."""

from __future__ import annotations

from recrawl.jit import exact
from recrawl.lab.peers.visit import Visit
from recrawl.pages import Floats


@exact
def even_wait(parameters: Floats, own: Floats, visit: Visit) -> float:  # noqa: ARG001 - the contract of rules
    """No parameters. In a world of steady size it uses the whole budget."""
    return visit.fair
