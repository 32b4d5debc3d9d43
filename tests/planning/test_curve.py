"""The budget–freshness curve and its inverse."""

from __future__ import annotations

import numpy as np
import pytest

import recrawl
from recrawl.planning.solve import Solver

RANDOM = np.random.default_rng(6)
PAGES = {"importance": RANDOM.pareto(1.2, 300) + 0.1, "change_rate": 10 ** RANDOM.uniform(-2, 0.8, 300)}


@pytest.mark.parametrize("solver", ["even", "azar", "lambdacrawl", "uniform"])
def test_every_point_is_the_plan_for_its_budget(solver: Solver) -> None:
    plan = recrawl.plan(PAGES, 60.0, solver=solver)
    curve = plan.curve([120.0, 30.0, 60.0])
    for i, budget in enumerate(curve.budgets):
        other = recrawl.plan(PAGES, float(budget), solver=solver)
        assert curve.freshness[i] == pytest.approx(other.freshness, rel=1e-9)
        assert curve.harmonic[i] == pytest.approx(other.costs.harmonic, rel=1e-9)
        assert curve.binary[i] == pytest.approx(other.costs.binary, rel=1e-9)
        assert curve.price[i] == pytest.approx(other.price, rel=1e-9, nan_ok=True)


def test_the_default_curve_spans_two_decades_and_rises() -> None:
    curve = recrawl.plan(PAGES, 60.0).curve()
    assert curve.budgets[[0, -1]] == pytest.approx([6.0, 600.0])
    assert (np.diff(curve.freshness) > 0).all()
    assert (np.diff(curve.price) < 0).all()


def test_the_price_is_what_one_more_crawl_is_worth() -> None:
    """The slope of the cost by the budget is the price."""
    plan = recrawl.plan(PAGES, 60.0)
    curve = plan.curve([59.999, 60.001])
    assert (curve.harmonic[0] - curve.harmonic[1]) / 0.002 == pytest.approx(plan.price, rel=1e-6)


@pytest.mark.parametrize("solver", ["even", "azar", "lambdacrawl", "proportional"])
@pytest.mark.parametrize("freshness", [0.3, 0.8, 0.99])
def test_the_budget_for_a_freshness_gives_that_freshness(solver: Solver, freshness: float) -> None:
    plan = recrawl.plan(PAGES, 60.0, solver=solver)
    budget = plan.budget_for(freshness=freshness)
    assert recrawl.plan(PAGES, budget, solver=solver).freshness == pytest.approx(freshness, abs=1e-9)


def test_freshness_that_is_there_without_crawls_needs_no_budget() -> None:
    pages = {"importance": [1.0, 1.0], "change_rate": [0.0, 1.0]}
    assert recrawl.plan(pages, 1.0).budget_for(freshness=0.4) == 0.0


def test_freshness_out_of_reach_is_said_with_the_most_there_is() -> None:
    plan = recrawl.plan({**PAGES, "max_rate": np.full(300, 0.01)}, 1.0)
    with pytest.raises(recrawl.Unreachable, match=r"no budget reaches a freshness of 0.99: .* the most is 0\.\d+"):
        plan.budget_for(freshness=0.99)
    with pytest.raises(recrawl.Unreachable, match="no budget reaches a freshness of 1"):
        recrawl.plan(PAGES, 1.0).budget_for(freshness=1.0)
    with pytest.raises(recrawl.InvalidInput, match=r"freshness is 1.5, but must be between 0 and 1"):
        plan.budget_for(freshness=1.5)


def test_the_curve_of_a_plan_spaced_otherwise_keeps_its_spacing() -> None:
    plan = recrawl.plan(PAGES, 60.0, solver="azar").spaced("even")
    assert plan.curve([60.0]).freshness[0] == pytest.approx(plan.freshness, rel=1e-12)


@pytest.mark.parametrize("freshness", [1e-12, 1e-6])
def test_hardly_any_freshness_needs_hardly_any_budget(freshness: float) -> None:
    plan = recrawl.plan(PAGES, 60.0)
    budget = plan.budget_for(freshness=freshness)
    assert recrawl.plan(PAGES, budget).freshness == pytest.approx(freshness, rel=1e-4)
