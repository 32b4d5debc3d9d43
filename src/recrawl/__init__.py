"""recrawl decides what to crawl next: every crawl has a value, the budget has a price.

    import recrawl

    plan = recrawl.plan({"importance": [3, 1], "change_rate": [0.5, 2.0]}, budget=1.0)
    plan.rates, plan.price, plan.freshness

    scheduler = recrawl.Scheduler(budget=1.0)
    ids = scheduler.add(importance=[3, 1], change_rate=[0.5, 2.0])
    batch = scheduler.take(now=0.0, n=10)

Names are loaded when first used, so that `import recrawl` is quick and loads no compiler.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from recrawl.version import __version__

if TYPE_CHECKING:
    from recrawl.errors import InvalidFile, InvalidInput, RecrawlError, UnknownPage, Unreachable
    from recrawl.planning.plan import Costs, Curve, Plan
    from recrawl.planning.solve import plan
    from recrawl.scheduling.explain import Explanation
    from recrawl.scheduling.scheduler import Scheduler
    from recrawl.scheduling.types import Batch, Signal, Status, Tuning

_HOMES = {
    "Batch": "recrawl.scheduling.types",
    "Costs": "recrawl.planning.plan",
    "Curve": "recrawl.planning.plan",
    "Explanation": "recrawl.scheduling.explain",
    "InvalidFile": "recrawl.errors",
    "InvalidInput": "recrawl.errors",
    "Plan": "recrawl.planning.plan",
    "RecrawlError": "recrawl.errors",
    "Scheduler": "recrawl.scheduling.scheduler",
    "Signal": "recrawl.scheduling.types",
    "Status": "recrawl.scheduling.types",
    "Tuning": "recrawl.scheduling.types",
    "UnknownPage": "recrawl.errors",
    "Unreachable": "recrawl.errors",
    "plan": "recrawl.planning.solve",
}

__all__ = [
    "Batch",
    "Costs",
    "Curve",
    "Explanation",
    "InvalidFile",
    "InvalidInput",
    "Plan",
    "RecrawlError",
    "Scheduler",
    "Signal",
    "Status",
    "Tuning",
    "UnknownPage",
    "Unreachable",
    "__version__",
    "plan",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'recrawl' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
