"""Every exact solver meets the optimality conditions to 1e-9, on random and adversarial populations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strategies import Columns, add_hosts, budgets, populations

import recrawl
from recrawl.bench.optimality import optimality_gap
from recrawl.pages import Objective
from recrawl.planning.solve import Solver

TOLERANCE = 1e-9
EXACT: list[tuple[Solver, Objective]] = [
    ("even", "harmonic"),
    ("even", "freshness"),
    ("azar", "freshness"),
    ("blc-eps", "freshness"),
    ("lambdacrawl", "harmonic"),
]
COMPILED = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow], derandomize=True)


@pytest.mark.parametrize(("solver", "objective"), EXACT)
@COMPILED
@given(pages=populations(), budget=budgets())
def test_exact_plans_meet_the_conditions_with_floors_ceilings_and_costs(
    solver: Solver, objective: Objective, pages: Columns, budget: float
) -> None:
    plan = recrawl.plan(pages, budget, objective=objective, solver=solver)
    assert optimality_gap(plan) <= TOLERANCE
    assert plan.used + plan.surplus == pytest.approx(budget, rel=1e-9)


@pytest.mark.parametrize(("solver", "objective"), EXACT)
@COMPILED
@given(pages=populations(), budget=budgets(), seed=st.integers(0, 2**32))
def test_exact_plans_meet_the_conditions_with_host_caps(
    solver: Solver, objective: Objective, pages: Columns, budget: float, seed: int
) -> None:
    with_hosts, caps = add_hosts(pages, seed)
    plan = recrawl.plan(with_hosts, budget, objective=objective, solver=solver, host_caps=caps)
    assert optimality_gap(plan) <= TOLERANCE
    for host, cap in caps.items():
        assert plan.host_use[host] <= cap * (1 + 1e-9)


@COMPILED
@given(pages=populations(), budget=budgets(), seed=st.integers(0, 2**32))
def test_mixed_lambdacrawl_meets_the_conditions(pages: Columns, budget: float, seed: int) -> None:
    announced = np.random.default_rng(seed).integers(0, 2, len(pages["importance"])).astype(float)
    mixed = {**pages, "recall": announced, "precision": announced}
    plan = recrawl.plan(mixed, budget, solver="lambdacrawl")
    assert optimality_gap(plan) <= TOLERANCE
    told = plan.probabilities[announced == 1]
    assert ((told >= 0) & (told <= 1)).all()
    assert np.isnan(plan.probabilities[announced == 0]).all()


@COMPILED
@given(pages=populations(), budget=budgets(), seed=st.integers(0, 2**32))
def test_slots_meet_the_conditions_with_limits_and_caps(pages: Columns, budget: float, seed: int) -> None:
    pages["change_rate"] = pages["change_rate"] / (1e-3 + pages["change_rate"].max()) * 0.999
    with_hosts, caps = add_hosts(pages, seed)
    plan = recrawl.plan(with_hosts, budget, solver="azar-discrete", host_caps=caps)
    assert optimality_gap(plan) <= TOLERANCE
    assert plan.rates.max() <= 1
    assert plan.used <= budget * (1 + 1e-12)


@COMPILED
@given(pages=populations(), budget=budgets(), seed=st.integers(0, 2**32))
def test_captures_meet_the_conditions_also_where_windows_make_pages_jump(
    pages: Columns, budget: float, seed: int
) -> None:
    random = np.random.default_rng(seed)
    size = len(pages["importance"])
    pages["decay"] = 10 ** random.uniform(-2, 1, size)
    pages["window"] = 10 ** random.uniform(-1, 1, size)
    pages["life"] = random.choice(["append", "overwrite", "window"], size)
    plan = recrawl.plan(pages, budget, objective="captures")
    assert optimality_gap(plan) <= TOLERANCE
    assert 0 <= plan.gain_share <= 1 + 1e-12


@COMPILED
@given(pages=populations(limits=False), budget=budgets(), seed=st.integers(0, 2**32))
def test_news_meets_the_conditions(pages: Columns, budget: float, seed: int) -> None:
    random = np.random.default_rng(seed)
    sources = {
        "profit": pages["importance"],
        "new_page_rate": pages["change_rate"],
        "decay": 10 ** random.uniform(-2, 1, len(pages["importance"])),
    }
    assert optimality_gap(recrawl.plan(sources, budget, objective="news")) <= TOLERANCE


def test_the_gap_sees_a_plan_that_is_not_optimal() -> None:
    pages = {"importance": np.array([1.0, 2.0, 5.0]), "change_rate": np.array([0.3, 1.0, 2.0])}
    plan = recrawl.plan(pages, 1.0)
    plan.rates[0] *= 1.001
    assert optimality_gap(plan) > 1e-4


def test_caps_hold_where_pages_stand_at_their_ceilings() -> None:
    """With every page at its ceiling a host's sum has no slope; its surcharge is found all the same."""
    pages = {"importance": [0.01, 1000.0], "change_rate": [0.5, 0.5], "max_rate": [1.0, 5.0], "host": ["a", "b"]}
    plan = recrawl.plan(pages, 10.0, host_caps={"a": 0.1, "b": 0.1})
    assert plan.host_use == pytest.approx({"a": 0.1, "b": 0.1})
    assert plan.price == 0
    assert plan.surplus == pytest.approx(9.8)


@pytest.mark.parametrize("seed", [1518, 1519, 1705, 2205, 3061, 3968])
def test_steps_costs_and_caps_together_spend_the_budget(seed: int) -> None:
    """Pages that jump between rates, on capped hosts, at different costs: two ties at once."""
    random = np.random.default_rng(seed)
    size = 4
    change_rate = 10 ** random.uniform(-1, 1, size)
    pages = {
        "importance": 10 ** random.uniform(-1, 1, size),
        "change_rate": change_rate,
        "cost": random.uniform(0.3, 4, size),
        "host": random.choice(["x", "y"], size),
        "recall": np.ones(size),
        "precision": random.choice([0.2, 0.5, 1.0], size),
    }
    budget = float((pages["cost"] * change_rate / pages["precision"]).sum() * random.uniform(0.05, 0.6))
    caps = {host: float(change_rate.sum() * random.uniform(0.05, 0.8)) for host in sorted(set(pages["host"]))}
    for objective in ("freshness", "harmonic"):
        plan = recrawl.plan(pages, budget, objective=objective, solver="signals", host_caps=caps)
        spent = float(plan.rates @ pages["cost"])
        assert spent <= budget * (1 + 1e-9)
        assert plan.used == pytest.approx(spent, rel=1e-9)
        assert plan.price == 0 or spent == pytest.approx(budget, rel=1e-9)
        assert all(plan.host_use[host] <= cap * (1 + 1e-9) for host, cap in caps.items())


def test_nearly_full_recall_is_continuous_with_full_recall() -> None:
    """One page at one crawl in 5½ changes: the price hardly depends on the last missed change."""
    prices = [
        recrawl.plan(
            {"importance": [1.0], "change_rate": [1.0], "recall": [recall], "precision": [1.0]},
            1 / 5.5,
            solver="signals",
        ).price
        for recall in (0.9999, 0.99999, 0.999999, 1.0)
    ]
    assert prices == sorted(prices, reverse=True)
    assert prices == pytest.approx([5.0] * 4, abs=1e-3)
