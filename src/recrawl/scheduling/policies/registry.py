"""Every policy by name. To add one, write it in a file of its own and name it here.

Nothing is imported until a policy is made, so that only what is used is compiled.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING, Any

from recrawl.errors import InvalidInput

if TYPE_CHECKING:
    from recrawl.scheduling.policies.contract import Policy
    from recrawl.scheduling.table.pages import PageTable

_HOMES = {
    "argmax": ("argmax", "Argmax"),
    "wic": ("wic", "Wic"),
    "greedy": ("ncis", "Greedy"),
    "greedy-cis": ("ncis", "GreedyCis"),
    "greedy-cis+": ("ncis", "GreedyCisPlus"),
    "greedy-ncis": ("ncis", "GreedyNcis"),
    "edf": ("planned", "EarliestDeadline"),
    "lds": ("planned", "LowDiscrepancy"),
    "poisson": ("planned", "PoissonSchedule"),
    "echo-newpages": ("echo", "NewPagesFirst"),
    "echo-schedule": ("echo", "OnSchedule"),
    "echo-greedy": ("echo", "GreedySources"),
}
_APPROXIMATION = re.compile(r"ncis-approx-([1-9][0-9]{0,5})")

POLICY_NAMES: tuple[str, ...] = ("price", *_HOMES, "ncis-approx-1", "ncis-approx-2")
"""Names to choose from; `ncis-approx-j` takes any whole number of terms."""


def make_policy(name: Any, table: PageTable, budget: float, seed: int, now: float = 0.0) -> Policy:
    """Make the policy of this name for the pages of a table; `now` is when it starts.

    Raises:
        InvalidInput: if no policy has this name; the error lists the names.
    """
    if name == "price":
        from recrawl.scheduling.market.policy import ByPrice

        return ByPrice(table, budget, now)
    if approximation := _APPROXIMATION.fullmatch(str(name)):
        from recrawl.scheduling.policies.ncis import NcisApprox

        return NcisApprox(table, budget, seed, terms=int(approximation[1]))
    if not isinstance(name, str) or name not in _HOMES:
        known = ", ".join(("price", *_HOMES, "ncis-approx-j"))
        raise InvalidInput(f"is {name!r}, but must be one of {known} (j: a whole number of terms)", field="policy")
    module, kind = _HOMES[name]
    made: Policy = getattr(import_module(f"recrawl.scheduling.policies.{module}"), kind)(table, budget, seed)
    return made
