"""What must not change an answer: the unit of time, the unit of importance, the order and repetition of pages."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import Columns, populations

import recrawl
from recrawl.planning.solve import Solver

SOLVERS: list[Solver] = ["even", "azar", "lambdacrawl", "blc-eps", "uniform", "proportional", "importance"]
FEW = settings(deadline=None, max_examples=15, derandomize=True)
FACTOR = st.floats(-6, 6).map(lambda power: 10.0**power)


@pytest.mark.parametrize("solver", SOLVERS)
@FEW
@given(pages=populations(limits=False), factor=FACTOR)
def test_a_longer_unit_of_time_raises_all_rates_alike(solver: Solver, pages: Columns, factor: float) -> None:
    plan = recrawl.plan(pages, 1.0, solver=solver)
    slow = {**pages, "change_rate": pages["change_rate"] / factor}
    scaled = recrawl.plan(slow, 1.0 / factor, solver=solver)
    assert scaled.rates * factor == pytest.approx(plan.rates, rel=1e-7, abs=1e-9)
    assert scaled.freshness == pytest.approx(plan.freshness, rel=1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
@FEW
@given(pages=populations(limits=False), factor=FACTOR)
def test_importance_counts_only_relative_to_others(solver: Solver, pages: Columns, factor: float) -> None:
    plan = recrawl.plan(pages, 1.0, solver=solver)
    scaled = recrawl.plan({**pages, "importance": pages["importance"] * factor}, 1.0, solver=solver)
    assert scaled.rates == pytest.approx(plan.rates, rel=1e-7, abs=1e-9)
    assert scaled.costs.binary == pytest.approx(factor * plan.costs.binary, rel=1e-9)
    if plan.price == plan.price:
        assert scaled.price == pytest.approx(factor * plan.price, rel=1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_order_of_pages_does_not_matter(solver: Solver) -> None:
    random = np.random.default_rng(4)
    pages = {"importance": random.pareto(1.2, 500), "change_rate": 10 ** random.uniform(-2, 1, 500)}
    order = random.permutation(500)
    plan = recrawl.plan(pages, 50.0, solver=solver)
    shuffled = recrawl.plan({name: values[order] for name, values in pages.items()}, 50.0, solver=solver)
    assert shuffled.rates == pytest.approx(plan.rates[order], rel=1e-9)


def test_a_sampled_start_finds_the_same_price_as_a_cold_one() -> None:
    """Large sets start from a sample's price: the answer must be that of the whole set."""
    random = np.random.default_rng(4)
    small = {"importance": random.pareto(1.2, 2_000), "change_rate": 10 ** random.uniform(-2, 1, 2_000)}
    large = {name: np.concatenate([np.sort(values)] * 20) for name, values in small.items()}
    small = {name: np.sort(values) for name, values in small.items()}
    assert recrawl.plan(large, 4_000.0).price == pytest.approx(recrawl.plan(small, 200.0).price, rel=1e-11)
