"""The budget–freshness curve and its inverse: what would another budget buy, which budget buys this freshness."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from recrawl.errors import InvalidInput, Unreachable
from recrawl.pages import LARGEST, SMALLEST, Floats, check_number
from recrawl.planning.plan import Plan
from recrawl.planning.root import find_price
from recrawl.planning.solve import answer

if TYPE_CHECKING:
    from collections.abc import Callable

_POINTS = 25
_CLOSE_FRESHNESS = 1e-10


@dataclass(frozen=True, slots=True)
class Curve:
    """What budgets buy, one entry per budget: freshness, both costs (sums over pages) and the price."""

    budgets: Floats
    freshness: Floats
    harmonic: Floats
    binary: Floats
    price: Floats


def trace(
    plan: Plan,
    budgets: Sequence[float] | Floats | None = None,
    progress: Callable[[int, int | None], None] | None = None,
) -> Curve:
    """Solve the plan's question for other budgets, in rising order of the budget but answered in the order given.

    O(pages) per budget: each starts from the price of the one before.
    """
    wanted = _default_budgets(plan.budget) if budgets is None else np.asarray(budgets, dtype=np.float64)
    if wanted.ndim != 1:
        raise InvalidInput("must be a list of budgets", field="budgets")
    rows = np.empty((len(wanted), 4))
    guess: float | None = plan.price
    for done, i in enumerate(np.argsort(wanted)):
        point = at_budget(plan, check_number(wanted[i], f"budgets[{i}]"), guess)
        rows[i] = point.freshness, point.costs.harmonic, point.costs.binary, point.price
        guess = point.price
        if progress is not None:
            progress(done + 1, len(wanted))
    return Curve(wanted, *(np.ascontiguousarray(column) for column in rows.T))


def at_budget(plan: Plan, budget: float, guess: float | None = None) -> Plan:
    """Answer the plan's question for another budget, crawls spaced as in the plan."""
    other = answer(replace(plan.question, budget=budget), guess if guess is not None else plan.price)
    return replace(other, spacing=plan.spacing)


def budget_for(plan: Plan, freshness: float) -> float:
    """The smallest budget that reaches a freshness, by a search on the logarithm of the budget."""
    target = check_number(freshness, "freshness", largest=1.0)
    if target <= at_budget(plan, 0.0).freshness:
        return 0.0
    most = _most_freshness(plan)
    if most < target or target == 1:
        raise Unreachable(
            f"no budget reaches a freshness of {target:g}: with these limits the most is {_shown(most)}; "
            "raise max_rate or the host caps, or ask for less"
        )
    # What falls as the budget rises is staleness, or where little is fresh the inverse of freshness; the logarithm of
    # the budget takes the place of that of the price.
    guess = [plan.price]

    def measure(freshness: float) -> float:
        return 1.0 - freshness if target > 0.5 else 1.0 / max(freshness, 1e-300)

    def missed(log_budget: float) -> tuple[float, float]:
        point = at_budget(plan, math.exp(log_budget), guess[0])
        guess[0] = point.price
        return measure(point.freshness), math.nan

    start = plan.budget or max(float(plan.question.pages.change_rate.sum()), 1e-50)
    found = find_price(missed, measure(target), math.log(start), close=_CLOSE_FRESHNESS)
    return math.exp(found.high)


def _most_freshness(plan: Plan) -> float:
    """What a budget without end would reach: less than 1 where ceilings or host caps bind."""
    question = plan.question
    limited = question.pages.max_rate is not None or question.host_caps or plan.spacing in ("slots", "signals")
    return at_budget(plan, LARGEST).freshness if limited else 1.0


def _shown(freshness: float) -> str:
    return "below 1" if freshness == 1 else f"{freshness:.6g}"


def _default_budgets(budget: float) -> Floats:
    if budget == 0:
        return np.zeros(1)
    return np.geomspace(max(budget / 10, SMALLEST), min(budget * 10, LARGEST), _POINTS)
