"""The `Plan`: crawl rates for every page, what they use of the budget and what they buy; and its `Curve`.

The curve answers what other budgets would buy; its inverse, which budget buys a freshness.

Rates and price are found when the plan is made; costs, freshness, the curve and schedules are worked out when asked
for. This module loads no compiler until then.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import InvalidInput, Unreachable
from recrawl.pages import LARGEST, SMALLEST, Floats, Objective, Pages, check_number
from recrawl.planning.limits import NO_SHORTFALL, Shortfall

if TYPE_CHECKING:
    from recrawl.planning.solve import Solver
    from recrawl.planning.solvers import Spacing

# Solvers that crawl announced pages at announced changes rather than by the clock.
_LISTENING = ("lambdacrawl", "lambdacrawl-approx", "signals")
_ROUNDING = 1e-9
_POINTS = 25
_CLOSE_FRESHNESS = 1e-10


@dataclass(frozen=True, slots=True)
class Costs:
    """Expected staleness of a plan, weighted by importance and summed over pages.

    `harmonic` weighs the k-th missed change 1/k, `binary` counts a page as stale or not.
    """

    harmonic: float
    binary: float
    pages: int

    def per_page(self) -> Costs:
        """The same, divided by the number of pages."""
        pages = max(self.pages, 1)
        return Costs(self.harmonic / pages, self.binary / pages, self.pages)


@dataclass(frozen=True, slots=True)
class Question:
    """What a plan answers: checked pages, a budget, an objective, a solver, host caps."""

    pages: Pages
    budget: float
    objective: Objective
    solver: Solver
    host_caps: Mapping[Any, float] | None


@dataclass(frozen=True, slots=True)
class Curve:
    """What budgets buy, one entry per budget: freshness, both costs (sums over pages) and the price."""

    budgets: Floats
    freshness: Floats
    harmonic: Floats
    binary: Floats
    price: Floats


@dataclass(frozen=True)
class Plan:
    """Crawl rates that spend a budget, and what they are worth.

    `rates` are expected crawls per unit time in the order of the pages, announced pages included. `price` is what one
    more unit of budget per unit time is worth (NaN for the rules of thumb, which have none; 0 where budget is left
    over; infinite where there is no budget to spend freely). `host_prices` are the prices on hosts whose cap binds.
    `passes` is how many times the pages were read to find the rates.
    """

    question: Question = field(repr=False)
    rates: Floats
    price: float
    used: float
    spacing: Spacing
    shortfall: Shortfall = NO_SHORTFALL
    host_prices: dict[Hashable, float] = field(default_factory=dict)
    passes: int = 0
    source_gain: tuple[float, float] | None = field(default=None, repr=False)

    @property
    def budget(self) -> float:
        """The budget that was given."""
        return self.question.budget

    @property
    def objective(self) -> Objective:
        """What the plan is best at."""
        return self.question.objective

    @property
    def solver(self) -> Solver:
        """The algorithm that found the rates."""
        return self.question.solver

    @property
    def surplus(self) -> float:
        """Budget that cannot be used: every page is crawled as often as it may be."""
        left = self.budget - self.used
        return left if left > _ROUNDING * self.budget else 0.0

    @cached_property
    def starved(self) -> float:
        """Share of pages that are never crawled."""
        return float(np.count_nonzero(self.rates == 0) / max(len(self.rates), 1))

    @cached_property
    def probabilities(self) -> Floats:
        """Chance of a crawl at an announced change; NaN for pages whose crawls follow no announcements."""
        chances = np.full(len(self.rates), math.nan)
        announced = self._announced
        if announced.size:
            change_rate = self.question.pages.change_rate[announced]
            with np.errstate(all="ignore"):
                chances[announced] = np.where(
                    change_rate > 0, np.minimum(1.0, self.rates[announced] / change_rate), 1.0
                )
        return chances

    @cached_property
    def costs(self) -> Costs:
        """Expected staleness, harmonic and binary. O(pages)."""
        pages = self.question.pages
        if self.spacing == "signals":
            from recrawl.planning import signals

            harmonic, binary = signals.costs(pages, self.objective, self.rates)
        else:
            from recrawl.planning import costs

            code = {"even": costs.EVEN, "poisson": costs.POISSON, "slots": costs.SLOTS}[self.spacing]
            harmonic, binary = costs.cost_sums(code, pages.importance, pages.change_rate, self._announced, self.rates)
        return Costs(harmonic, binary, len(pages))

    @cached_property
    def freshness(self) -> float:
        """Expected share of importance that is fresh: Σ importance·fresh / Σ importance."""
        weight = float(self.question.pages.importance.sum())
        return max(0.0, 1.0 - self._binary / weight) if weight > 0 else 1.0

    @cached_property
    def gain(self) -> float:
        """Value captured per unit time; NaN unless the objective is `captures` or `news`."""
        if self.source_gain is not None:
            return self.source_gain[0]
        if self.objective not in ("captures", "news"):
            return math.nan
        from recrawl.planning.costs import gain_sum
        from recrawl.planning.solvers import fading

        gain, decay, windowed = fading(self.question.pages)
        return float(gain_sum(self.spacing == "even", gain, decay, windowed, self.rates))

    @cached_property
    def gain_share(self) -> float:
        """The gain as a share of what crawling without pause would capture."""
        pages = self.question.pages
        most = float(pages.importance @ pages.change_rate) if self.source_gain is None else self.source_gain[1]
        return self.gain / most if most > 0 else self.gain

    @cached_property
    def host_use(self) -> dict[Hashable, float]:
        """Crawls per unit time of each host; empty if the pages have no hosts."""
        hosts = self.question.pages.hosts
        if hosts is None:
            return {}
        sums = np.bincount(hosts.codes, weights=self.rates, minlength=len(hosts.names))
        return dict(zip(hosts.names, sums.tolist(), strict=True))

    def spaced(self, spacing: Literal["even", "poisson"]) -> Plan:
        """The same rates with crawls spaced evenly or at random; announced pages count changes or toss coins."""
        if spacing not in ("even", "poisson"):
            raise InvalidInput(f"is {spacing!r}, but must be 'even' or 'poisson'", field="spacing")
        if self.spacing == "slots":
            raise InvalidInput("of a plan in slots cannot be changed; use the solver azar", field="spacing")
        return replace(self, spacing=spacing)

    def curve(self, budgets: Sequence[float] | Floats | None = None) -> Curve:
        """What other budgets would buy: one plan per budget, by default from a tenth to ten times this one."""
        return trace(self, budgets)

    def budget_for(self, freshness: float) -> float:
        """The smallest budget that reaches this freshness; raises `Unreachable` if none does."""
        return budget_for(self, freshness)

    def schedule(
        self, kind: Literal["edf", "low-discrepancy", "poisson"] = "edf", seed: int = 0
    ) -> Iterator[tuple[float, int]]:
        """Yield (time, page) for ever: when to crawl what, at the plan's rates.

        Pages that are crawled at announced changes are left out: announcements say when.
        """
        from recrawl.planning.schedules import schedule

        rates = self.rates
        if self._announced.size:
            rates = np.where(self._announced, 0.0, rates)
        return schedule(rates, kind, seed)

    @cached_property
    def _announced(self) -> NDArray[np.bool_]:
        announced = self.question.pages.announced() if self.solver in _LISTENING else None
        return np.empty(0, dtype=np.bool_) if announced is None else announced

    @cached_property
    def _binary(self) -> float:
        """The binary cost, from the costs if they are there already; alone it is cheaper."""
        if "costs" in self.__dict__ or self.spacing == "signals":
            return self.costs.binary
        from recrawl.planning import costs

        code = {"even": costs.EVEN, "poisson": costs.POISSON, "slots": costs.SLOTS}[self.spacing]
        pages = self.question.pages
        return float(costs.binary_sum(code, pages.importance, pages.change_rate, self._announced, self.rates))


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
    from recrawl.planning.solve import answer

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

    from recrawl.planning.root import find_price

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
