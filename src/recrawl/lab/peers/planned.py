"""The wait that a plan holds for the page: for competitors that plan anew from time to time."""

from __future__ import annotations

from recrawl.jit import exact
from recrawl.lab.peers.visit import Visit
from recrawl.pages import Floats


@exact
def planned_wait(parameters: Floats, own: Floats, visit: Visit) -> float:  # noqa: ARG001 - the contract of rules
    """No parameters."""
    return visit.planned
