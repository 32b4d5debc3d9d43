"""Plans that listen to noisy signals: the optimum of NCIS, and its harmonic counterpart."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from strategies import add_hosts

import recrawl
from recrawl.bench.optimality import optimality_gap
from recrawl.pages import Floats, read_pages
from recrawl.planning import signals

Objective = Literal["freshness", "harmonic"]
BOTH: list[Objective] = ["freshness", "harmonic"]
FEW = settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.too_slow], derandomize=True)


def population(size: int, seed: int) -> dict[str, Any]:
    """Pages with every kind of signal: none, useless, weak, good, never wrong, never missing, both."""
    random = np.random.default_rng(seed)
    recall = random.choice([0.0, 0.05, 0.4, 0.9, 1.0], size)
    precision = random.choice([0.02, 0.3, 0.9, 1.0], size)
    return {
        "importance": random.pareto(1.5, size) + 0.1,
        "change_rate": 10 ** random.uniform(-1.5, 0.7, size),
        "recall": recall,
        "precision": precision,
    }


@pytest.mark.parametrize("objective", BOTH)
@FEW
@given(seed=st.integers(0, 2**32), size=st.integers(1, 25), level=st.floats(-1.5, 0.7))
def test_plans_with_signals_meet_the_optimality_conditions(
    objective: Objective, seed: int, size: int, level: float
) -> None:
    pages = population(size, seed)
    budget = float(pages["change_rate"].sum() * 10**level)
    plan = recrawl.plan(pages, budget, objective=objective, solver="signals")
    assert optimality_gap(plan) <= 1e-9
    assert plan.used + plan.surplus == pytest.approx(budget, rel=1e-9)


@pytest.mark.parametrize("objective", BOTH)
def test_limits_costs_and_host_caps_are_kept_too(objective: Objective) -> None:
    random = np.random.default_rng(3)
    pages, caps = add_hosts(population(30, 7), seed=1)
    pages["cost"] = 10 ** random.uniform(-0.5, 0.5, 30)
    pages["min_rate"] = random.random(30) * 0.01
    pages["max_rate"] = 0.5 + random.random(30)
    plan = recrawl.plan(pages, 6.0, objective=objective, solver="signals", host_caps=caps)
    assert optimality_gap(plan) <= 1e-9
    assert plan.host_prices


@pytest.mark.parametrize("objective", BOTH)
def test_without_signals_the_plan_is_the_even_one(objective: Objective) -> None:
    pages = population(40, 5)
    pages["recall"] = np.zeros(40)
    listening = recrawl.plan(pages, 10.0, objective=objective, solver="signals")
    even = recrawl.plan(pages, 10.0, objective=objective)
    assert listening.rates == pytest.approx(even.rates, rel=1e-9)
    assert listening.freshness == pytest.approx(even.freshness, rel=1e-9)
    assert listening.costs.harmonic == pytest.approx(even.costs.harmonic, rel=1e-9)


@pytest.mark.parametrize("objective", BOTH)
def test_listening_pays_and_better_signals_pay_more(objective: Objective) -> None:
    pages = population(60, 5)
    cost = []
    for recall, precision in ((0.0, 1.0), (0.3, 0.3), (0.6, 0.6), (0.9, 0.9), (1.0, 1.0)):
        pages["recall"], pages["precision"] = np.full(60, recall), np.full(60, precision)
        costs = recrawl.plan(pages, 15.0, objective=objective, solver="signals").costs
        cost.append(costs.harmonic if objective == "harmonic" else costs.binary)
    assert cost == sorted(cost, reverse=True)
    assert cost[-1] < 0.7 * cost[0]


@pytest.mark.parametrize("objective", BOTH)
def test_plans_with_signals_equal_a_general_optimiser(objective: Objective) -> None:
    pages = population(6, 1)
    pages["recall"] = np.array([0.2, 0.5, 0.9, 0.7, 0.0, 0.4])
    pages["precision"] = np.array([0.3, 0.6, 0.8, 0.5, 1.0, 0.9])
    checked = read_pages(pages)
    budget = 0.5 * pages["change_rate"].sum()

    def cost(rates: Floats) -> float:
        harmonic, binary = signals.costs(checked, objective, np.maximum(rates, 1e-9))
        return harmonic if objective == "harmonic" else binary

    found = minimize(
        cost,
        np.full(6, budget / 6),
        method="SLSQP",
        bounds=[(1e-7, None)] * 6,
        constraints=[{"type": "eq", "fun": lambda rates: rates.sum() - budget}],
        options={"maxiter": 500, "ftol": 1e-13},
    )
    plan = recrawl.plan(pages, budget, objective=objective, solver="signals")
    mine = plan.costs.harmonic if objective == "harmonic" else plan.costs.binary
    assert mine <= found.fun * (1 + 1e-9)
    assert mine == pytest.approx(found.fun, rel=1e-5)


@pytest.mark.parametrize("objective", BOTH)
def test_announced_pages_share_what_is_left_where_they_tie(objective: Objective) -> None:
    """Pages that are always announced jump between rates: equal ones must share the budget equally."""
    pages = {"importance": np.ones(5), "change_rate": np.ones(5), "recall": np.ones(5), "precision": np.ones(5)}
    plan = recrawl.plan(pages, 3.7, objective=objective, solver="signals")
    assert plan.rates == pytest.approx(np.full(5, 0.74), rel=1e-9)
    assert plan.probabilities == pytest.approx(np.full(5, 0.74), rel=1e-9)
    ample = recrawl.plan(pages, 9.0, objective=objective, solver="signals")
    assert (ample.used, ample.surplus, ample.freshness) == (5.0, 4.0, 1.0)


def test_hardly_any_budget_for_announced_pages_still_has_an_answer() -> None:
    """At one crawl in 1e17 changes a float no longer counts changes one by one."""
    pages = {"importance": [1.0, 1e4], "change_rate": [1.0, 1.0], "recall": [1, 0], "precision": [1, 1]}
    for budget in (1e-11, 1e-13, 1e-20, 1e-59):
        plan = recrawl.plan(pages, budget, solver="signals")
        assert plan.used == pytest.approx(budget, rel=1e-9)
        assert plan.freshness == pytest.approx(0.0, abs=1e-10)
    dear = recrawl.plan({**pages, "importance": [1.0, 1e17]}, 0.5, solver="signals")
    assert optimality_gap(dear) <= 1e-9
