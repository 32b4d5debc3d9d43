"""The groups of `recrawl bench`. To add one, write its module and list it here and in the documentation."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from recrawl.bench.measure import Measure

_MODULES = {"planning": "recrawl.bench.planning"}

GROUPS = tuple(_MODULES)


def measures_of(group: str) -> tuple[Measure, ...]:
    """The measures of a group, in the order they run; nothing is computed yet."""
    make: Callable[[], tuple[Measure, ...]] = import_module(_MODULES[group]).measures
    return make()
