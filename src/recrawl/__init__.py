"""recrawl decides what to crawl next: every crawl has a value, the budget has a price.

    import recrawl

    plan = recrawl.plan({"importance": [3, 1], "change_rate": [0.5, 2.0]}, budget=1.0)
    plan.rates, plan.price, plan.freshness

Names are loaded when first used, so that `import recrawl` is quick and loads no compiler.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from recrawl.version import __version__

if TYPE_CHECKING:
    from recrawl.errors import InvalidFile, InvalidInput, RecrawlError, Unreachable
    from recrawl.planning.curve import Curve
    from recrawl.planning.plan import Costs, Plan
    from recrawl.planning.solve import plan

_HOMES = {
    "Costs": "recrawl.planning.plan",
    "Curve": "recrawl.planning.curve",
    "InvalidFile": "recrawl.errors",
    "InvalidInput": "recrawl.errors",
    "Plan": "recrawl.planning.plan",
    "RecrawlError": "recrawl.errors",
    "Unreachable": "recrawl.errors",
    "plan": "recrawl.planning.solve",
}

__all__ = [
    "Costs",
    "Curve",
    "InvalidFile",
    "InvalidInput",
    "Plan",
    "RecrawlError",
    "Unreachable",
    "__version__",
    "plan",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'recrawl' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
