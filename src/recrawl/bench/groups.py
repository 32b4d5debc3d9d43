"""The groups of `recrawl bench`. To add one, write its module and list it here and in the documentation."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from recrawl.bench.measure import Measure
from recrawl.errors import InvalidInput

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MODULES = {
    "planning": "recrawl.bench.planning",
    "learning": "recrawl.bench.learning",
    "scheduler": "recrawl.bench.scheduler",
    "simulation": "recrawl.bench.simulation",
    "web": "recrawl.bench.web",
    "store": "recrawl.bench.store",
    "signals": "recrawl.bench.signals",
    "service": "recrawl.bench.service",
    "commands": "recrawl.bench.commands",
}

_FIGURES = {"learning": "recrawl.bench.learning_figure"}

GROUPS = tuple(_MODULES)


def measures_of(group: str) -> tuple[Measure, ...]:
    """The measures of a group, in the order they run; nothing is computed yet."""
    make: Callable[[], tuple[Measure, ...]] = import_module(_MODULES[group]).measures
    return make()


def figure_of(group: str) -> Figure:
    """Draw the figure of a group that has one."""
    if group not in _FIGURES:
        raise InvalidInput(f"is for the group {' or '.join(_FIGURES)}; {group} has no figure", field="plot")
    draw: Callable[[], Figure] = import_module(_FIGURES[group]).figure
    return draw()
