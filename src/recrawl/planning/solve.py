"""`plan`: the one call that turns pages and a budget into crawl rates.

    pages ─ read_pages ─ draft (what law) ─ fit_limits ─ allocate (which price) ─ Plan

This module loads no compiler; it imports the solvers when it is asked to compute.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from recrawl.errors import InvalidInput
from recrawl.pages import OBJECTIVES, Floats, Objective, Pages, check_number, read_pages
from recrawl.planning.plan import Plan, Question

if TYPE_CHECKING:
    from recrawl.planning.limits import Limits
    from recrawl.planning.market import Market
    from recrawl.planning.solvers import Draft

Solver = Literal[
    "even", "azar", "azar-discrete", "lambdacrawl", "lambdacrawl-approx", "blc-eps", "signals", "echo", "echo-paper",
    "uniform", "proportional", "importance",
]  # fmt: skip
SOLVERS: tuple[Solver, ...] = get_args(Solver)

# What each solver can be asked for; the first is what it does when not told.
_OBJECTIVES: dict[Solver, tuple[Objective, ...]] = {
    "even": ("harmonic", "freshness", "captures", "news"),
    "azar": ("freshness",),
    "azar-discrete": ("freshness",),
    "lambdacrawl": ("harmonic",),
    "lambdacrawl-approx": ("harmonic",),
    "blc-eps": ("freshness",),
    "signals": ("harmonic", "freshness"),
    "echo": ("news",),
    "echo-paper": ("news",),
    "uniform": ("harmonic", "freshness", "captures", "news"),
    "proportional": ("harmonic", "freshness", "captures", "news"),
    "importance": ("harmonic", "freshness", "captures", "news"),
}

_ROUNDING = 1e-9


def plan(
    pages: Any,
    budget: float,
    objective: Objective | None = None,
    solver: Solver = "even",
    host_caps: Mapping[Any, float] | None = None,
) -> Plan:
    """Find the crawl rates that spend a budget best.

    Args:
        pages: anything columnar with `importance` and `change_rate` (a dict of arrays, a pandas or polars frame,
            an Arrow table); optional `host`, `cost`, `min_rate`, `max_rate`, `recall` with `precision` or
            `false_signal_rate`. `captures` also reads `decay`, `life`, `window`; `news` reads `profit`, `decay`,
            `new_page_rate`.
        budget: crawls (or units of `cost`) per unit time; the unit of time is yours, the same for all rates.
        objective: `harmonic` (nothing that changes starves), `freshness`, `captures` (WIC) or `news` (ECHO);
            by default what the solver is for.
        solver: the algorithm; `even` is the evenly spaced optimum of the objective.
        host_caps: the most crawls per unit time of some hosts.

    O(pages) per pass over them; a handful of passes, more with host caps, ties or a budget near nothing. Columns that
    are float64 arrays are not copied: leave them as they are while you use the plan.

    >>> result = plan({"importance": [3.0, 1.0], "change_rate": [0.5, 2.0]}, budget=1.0)
    >>> [round(float(rate), 3) for rate in result.rates], round(result.freshness, 3)
    ([0.563, 0.437], 0.551)
    """
    objective = _check_choice(objective, solver)
    checked = read_pages(pages, objective)
    return answer(Question(checked, check_number(budget, "budget"), objective, solver, host_caps))


def answer(question: Question, guess: float | None = None) -> Plan:
    """Plan for checked pages; `guess` is a price to start from."""
    pages, solver, budget = question.pages, question.solver, question.budget
    if solver in ("echo", "echo-paper"):
        return _answer_for_sources(question)
    if solver == "lambdacrawl-approx":
        return _answer_approximately(question)
    from recrawl.planning.limits import even_floor, fit_limits
    from recrawl.planning.market import allocate

    draft = _draft(pages, question.objective, solver)
    floor = even_floor(pages, budget, draft.even_share_kept)
    limits = fit_limits(pages, budget, question.host_caps, floor)
    if budget == 0 or limits.full or not len(pages):
        return _answer_without_choice(question, draft, limits)
    market = _market(draft, limits, pages, question)
    found = allocate(market, budget, guess)
    raised = {name: found.price + float(extra) for name, extra in zip(limits.names, found.surcharge[1:], strict=True)}
    return Plan(
        question=question,
        rates=found.rates,
        price=found.price if draft.charged else math.nan,
        used=min(found.spent, budget) if found.spent <= budget * (1 + _ROUNDING) else found.spent,
        spacing=draft.spacing,
        shortfall=limits.shortfall,
        host_prices={name: price for name, price in raised.items() if price > found.price * (1 + 1e-12)},
        passes=found.passes,
    )


def _check_choice(objective: Objective | None, solver: Solver) -> Objective:
    if solver not in _OBJECTIVES:
        raise InvalidInput(f"is {solver!r}, but must be one of {', '.join(SOLVERS)}", field="solver")
    if objective is None:
        return _OBJECTIVES[solver][0]
    if objective not in OBJECTIVES:
        raise InvalidInput(f"is {objective!r}, but must be one of {', '.join(OBJECTIVES)}", field="objective")
    if objective not in _OBJECTIVES[solver]:
        able = " or ".join(_OBJECTIVES[solver])
        raise InvalidInput(
            f"is {objective!r}, but the solver {solver} optimises {able}; leave the objective out, or use the solver "
            "even",
            field="objective",
        )
    return objective


def _draft(pages: Pages, objective: Objective, solver: Solver) -> Draft:
    """Make the draft of a solver; only `signals` loads the kernels for noisy signals."""
    if solver == "signals":
        from recrawl.planning import signals

        return signals.draft(pages, objective)
    from recrawl.planning import solvers

    if solver == "even":
        return solvers.draft_even(pages, objective)
    return {
        "azar": solvers.draft_azar,
        "azar-discrete": solvers.draft_azar_discrete,
        "blc-eps": solvers.draft_blc_eps,
        "lambdacrawl": solvers.draft_lambdacrawl,
        "uniform": solvers.draft_uniform,
        "proportional": solvers.draft_proportional,
        "importance": solvers.draft_importance,
    }[solver](pages)


def _market(draft: Draft, limits: Limits, pages: Pages, question: Question) -> Market:
    from recrawl.planning.laws import Columns
    from recrawl.planning.market import NONE, Market

    cost = NONE if pages.cost is None else pages.cost
    given_rate, given_slope = (NONE, NONE) if draft.refill is None else (np.empty(len(pages)), np.empty(len(pages)))
    columns = Columns(
        law=draft.law,
        gain=draft.gain,
        decay=draft.decay,
        special=draft.special,
        cost=cost,
        low=limits.low,
        high=limits.high,
        group=limits.groups,
        given_rate=given_rate,
        given_slope=given_slope,
        charged=draft.charged,
    )
    refill = draft.refill

    def refill_at(price: float, surcharge: Floats) -> None:
        prices = np.full(len(pages), price) if pages.cost is None else price * pages.cost
        if surcharge.size:
            prices += surcharge[limits.groups]
        assert refill is not None
        refill(prices, given_rate, given_slope)

    def sampled(rows: slice) -> Market:
        part = pages.part(rows)
        return _market(_draft(part, question.objective, question.solver), limits.part(rows), part, question)

    return Market(columns, limits.caps, None if refill is None else refill_at, sampled)


def _answer_without_choice(question: Question, draft: Draft, limits: Limits) -> Plan:
    """Nothing to decide: no budget, no pages, or floors that use all of it."""
    rates = limits.low if limits.low.size and question.budget > 0 else np.zeros(len(question.pages))
    cost = question.pages.cost
    return Plan(
        question=question,
        rates=np.array(rates),
        price=math.inf if len(question.pages) and draft.charged else math.nan if len(question.pages) else 0.0,
        used=float(rates.sum() if cost is None else rates @ cost),
        spacing=draft.spacing,
        shortfall=limits.shortfall,
    )


def _answer_for_sources(question: Question) -> Plan:
    from recrawl.planning import echo

    if question.host_caps:
        raise InvalidInput("cannot be kept by the solver echo; use the solver even", field="host_caps")
    found = echo.solve(question.pages, question.budget, paper_rule=question.solver == "echo-paper")
    return Plan(
        question=question,
        rates=found.rates,
        price=found.price,
        used=found.used,
        spacing="even",
        source_gain=(found.gain, found.most),
    )


def _answer_approximately(question: Question) -> Plan:
    from recrawl.planning.solvers import approximate_lambdacrawl

    if question.host_caps:
        raise InvalidInput("cannot be kept by the solver lambdacrawl-approx; use lambdacrawl", field="host_caps")
    if question.budget == 0:
        rates, price = np.zeros(len(question.pages)), math.inf
    else:
        rates, price = approximate_lambdacrawl(question.pages, question.budget)
    return Plan(question=question, rates=rates, price=price, used=float(rates.sum()), spacing="poisson")
