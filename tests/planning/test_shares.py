"""The rules of thumb equal their closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest

import recrawl
from recrawl.planning.solve import Solver

IMPORTANCE = np.array([1.0, 4.0, 0.5, 0.0, 2.0])
CHANGE_RATE = np.array([0.1, 2.0, 0.0, 0.3, 5.0])
PAGES = {"importance": IMPORTANCE, "change_rate": CHANGE_RATE}


@pytest.mark.parametrize(
    ("solver", "weight"),
    [("uniform", np.ones(5)), ("proportional", CHANGE_RATE), ("importance", IMPORTANCE)],
)
def test_rates_are_shares_of_the_budget(solver: Solver, weight: np.ndarray) -> None:
    plan = recrawl.plan(PAGES, 3.0, solver=solver)
    assert plan.rates == pytest.approx(3.0 * weight / weight.sum(), rel=1e-12)
    assert math.isnan(plan.price)


def test_shares_ignore_costs_but_the_budget_counts_them() -> None:
    plan = recrawl.plan({**PAGES, "cost": [1.0, 2.0, 3.0, 4.0, 5.0]}, 3.0, solver="uniform")
    assert plan.rates == pytest.approx(np.full(5, 3.0 / 15.0), rel=1e-12)


def test_shares_keep_floors_and_ceilings() -> None:
    plan = recrawl.plan({**PAGES, "max_rate": [0.1, np.inf, np.inf, np.inf, np.inf]}, 3.0, solver="uniform")
    assert plan.rates == pytest.approx([0.1, 0.725, 0.725, 0.725, 0.725], rel=1e-12)


def test_the_floored_binary_plan_gives_every_page_its_part_of_an_even_share() -> None:
    plan = recrawl.plan(PAGES, 3.0, solver="blc-eps")
    assert plan.rates.min() == pytest.approx(0.4 * 3.0 / 5, rel=1e-12)
    assert plan.used == pytest.approx(3.0, rel=1e-12)


def test_the_approximation_of_lambdacrawl_equals_its_closed_form() -> None:
    random = np.random.default_rng(2)
    importance, change_rate = random.pareto(1.2, 50) + 0.1, 10 ** random.uniform(-1, 0.7, 50)
    announced = random.random(50) < 0.4
    pages = {"importance": importance, "change_rate": change_rate, "recall": announced, "precision": announced}
    plan = recrawl.plan(pages, 10.0, solver="lambdacrawl-approx")
    weight, rate = importance[~announced], change_rate[~announced]
    share = plan.rates[~announced].sum()
    assert plan.rates[~announced] == pytest.approx(weight * share / weight.sum(), rel=1e-12)
    price = (weight * rate / (weight * share / weight.sum() + rate)).sum() / share
    assert plan.price == pytest.approx(price, rel=1e-9)
    told = np.minimum(1.0, importance[announced] / (price * change_rate[announced]))
    assert plan.probabilities[announced] == pytest.approx(told, rel=1e-9)
    assert plan.rates.sum() == pytest.approx(10.0, rel=1e-9)


def test_the_floor_of_the_binary_plan_counts_costs() -> None:
    dear = recrawl.plan({**PAGES, "cost": np.full(5, 10.0)}, 30.0, solver="blc-eps")
    assert dear.rates == pytest.approx(recrawl.plan(PAGES, 3.0, solver="blc-eps").rates, rel=1e-9)


def test_the_approximation_spends_nothing_on_pages_that_never_change() -> None:
    pages = {"importance": [1, 1], "change_rate": [0, 10], "recall": [0, 1], "precision": [1, 1]}
    assert recrawl.plan(pages, 1.0, solver="lambdacrawl-approx").rates == pytest.approx([0.0, 1.0])
