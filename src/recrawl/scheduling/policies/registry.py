"""Every policy by name. To add one, write it in a file of its own and add a row to `POLICIES`.

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

POLICIES = {
    "argmax": "recrawl.scheduling.policies.argmax.Argmax",
    "wic": "recrawl.scheduling.policies.wic.Wic",
    "greedy": "recrawl.scheduling.policies.ncis.Greedy",
    "greedy-cis": "recrawl.scheduling.policies.ncis.GreedyCis",
    "greedy-cis+": "recrawl.scheduling.policies.ncis.GreedyCisPlus",
    "greedy-ncis": "recrawl.scheduling.policies.ncis.GreedyNcis",
    "edf": "recrawl.scheduling.policies.planned.EarliestDeadline",
    "lds": "recrawl.scheduling.policies.planned.LowDiscrepancy",
    "poisson": "recrawl.scheduling.policies.planned.PoissonSchedule",
    "echo-newpages": "recrawl.scheduling.policies.echo.NewPagesFirst",
    "echo-schedule": "recrawl.scheduling.policies.echo.OnSchedule",
    "echo-greedy": "recrawl.scheduling.policies.echo.GreedySources",
}
"""Where the class of each policy is; it is made with the table, the budget and the seed."""

_APPROXIMATION = re.compile(r"ncis-approx-([1-9][0-9]{0,5})")

POLICY_NAMES: tuple[str, ...] = ("price", *POLICIES, "ncis-approx-1", "ncis-approx-2")
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
    if not isinstance(name, str) or name not in POLICIES:
        known = ", ".join(("price", *POLICIES, "ncis-approx-j"))
        raise InvalidInput(f"is {name!r}, but must be one of {known} (j: a whole number of terms)", field="policy")
    module, _, kind = POLICIES[name].rpartition(".")
    made: Policy = getattr(import_module(module), kind)(table, budget, seed)
    return made
