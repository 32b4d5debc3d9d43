"""Plans agree with optimisers that know nothing of prices."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar

import recrawl
from recrawl.pages import Floats, Objective
from recrawl.planning.solve import Solver

RANDOM = np.random.default_rng(5)
IMPORTANCE = RANDOM.pareto(1.5, 8) + 0.2
CHANGE_RATE = 10 ** RANDOM.uniform(-1, 0.7, 8)
PAGES = {"importance": IMPORTANCE, "change_rate": CHANGE_RATE}
BUDGET = 3.0


def even_binary(rates: Floats) -> float:
    x = CHANGE_RATE / rates
    return float(IMPORTANCE @ (1 + np.expm1(-x) / x))


def even_harmonic(rates: Floats) -> float:
    nodes, weights = np.polynomial.legendre.leggauss(60)
    u = (nodes + 1) / 2
    x = CHANGE_RATE / rates
    # The average over an interval of E H(Poisson(x·t)), as a double integral over t and u.
    cost = np.zeros(len(x))
    for t, wt in zip(u, weights / 2, strict=True):
        inner = (1 - np.exp(-np.outer(x * t, u))) / u
        cost += wt * (inner @ (weights / 2))
    return float(IMPORTANCE @ cost)


def poisson_binary(rates: Floats) -> float:
    return float(IMPORTANCE @ (CHANGE_RATE / (rates + CHANGE_RATE)))


def poisson_harmonic(rates: Floats) -> float:
    return float(-IMPORTANCE @ np.log(rates / (rates + CHANGE_RATE)))


def optimum(
    objective: Callable[[Floats], float],
    *,
    bounds: tuple[float, float | None] = (1e-9, None),
    costs: Floats | None = None,
    caps: Sequence[Callable[[Floats], float]] = (),
) -> Floats:
    """Minimise over rates that spend the budget, from an even start; `caps` must stay 0 or more."""
    spend = np.ones(8) if costs is None else costs
    found = minimize(
        objective,
        np.full(8, BUDGET / 8),
        method="SLSQP",
        bounds=[bounds] * 8,
        constraints=[
            {"type": "eq", "fun": lambda rates: rates @ spend - BUDGET},
            *({"type": "ineq", "fun": cap} for cap in caps),
        ],
        options={"maxiter": 2000, "ftol": 1e-15},
    )
    return np.asarray(found.x)


def room(hosts: np.ndarray, host: str, cap: float) -> Callable[[Floats], float]:
    """What a host's cap leaves."""
    return lambda rates: cap - float(rates[hosts == host].sum())


@pytest.mark.parametrize(
    ("solver", "objective", "cost"),
    [
        ("even", "freshness", even_binary),
        ("even", "harmonic", even_harmonic),
        ("azar", "freshness", poisson_binary),
        ("lambdacrawl", "harmonic", poisson_harmonic),
    ],
)
def test_plans_equal_a_general_optimiser(solver: Solver, objective: Objective, cost: Callable[[Floats], float]) -> None:
    plan = recrawl.plan(PAGES, BUDGET, objective=objective, solver=solver)
    found = optimum(cost)
    planned = np.maximum(plan.rates, 1e-9)
    assert cost(planned) <= cost(found) * (1 + 1e-9)
    assert plan.rates == pytest.approx(found, abs=2e-4)
    mine = plan.costs.harmonic if objective == "harmonic" else plan.costs.binary
    assert mine == pytest.approx(cost(planned), rel=1e-6)


def test_floors_ceilings_and_costs_equal_a_general_optimiser() -> None:
    costs = np.array([1.0, 2.0, 0.5, 1.0, 1.0, 3.0, 1.0, 1.0])
    low, high = np.full(8, 0.1), np.full(8, 0.8)
    limited = {**PAGES, "cost": costs, "min_rate": low, "max_rate": high}
    plan = recrawl.plan(limited, BUDGET, solver="lambdacrawl")
    found = optimum(poisson_harmonic, bounds=(0.1, 0.8), costs=costs)
    assert plan.rates == pytest.approx(found, abs=2e-4)


@pytest.mark.parametrize(("solver", "cost"), [("azar", poisson_binary), ("lambdacrawl", poisson_harmonic)])
def test_host_caps_equal_a_general_optimiser(solver: Solver, cost: Callable[[Floats], float]) -> None:
    hosts = np.array(["a", "a", "a", "b", "b", "c", "c", "c"])
    caps = {"a": 0.5, "b": 0.9}
    plan = recrawl.plan({**PAGES, "host": hosts}, BUDGET, solver=solver, host_caps=caps)
    found = optimum(cost, caps=[room(hosts, host, cap) for host, cap in caps.items()])
    assert cost(np.maximum(plan.rates, 1e-9)) == pytest.approx(cost(found), rel=1e-8)
    assert plan.rates == pytest.approx(found, abs=3e-4)


def test_host_caps_count_crawls_and_the_budget_counts_costs() -> None:
    """With both costs and caps the surcharge of a host is added to the price, not multiplied into it."""
    hosts = np.array(["a"] * 5 + ["b"] * 3)
    costs = np.array([1.0, 5.0, 0.2, 1.0, 2.0, 3.0, 1.0, 0.4])
    plan = recrawl.plan({**PAGES, "host": hosts, "cost": costs}, BUDGET, solver="lambdacrawl", host_caps={"a": 0.8})
    found = optimum(poisson_harmonic, costs=costs, caps=[room(hosts, "a", 0.8)])
    assert plan.rates == pytest.approx(found, abs=3e-4)


def test_slots_equal_a_general_optimiser() -> None:
    chance = CHANGE_RATE / 6
    plan = recrawl.plan({"importance": IMPORTANCE, "change_rate": chance}, BUDGET, solver="azar-discrete")

    def stale(p: Floats) -> float:
        return float(-IMPORTANCE @ (p / (p + chance - p * chance)))

    found = optimum(stale, bounds=(1e-9, 1.0))
    assert plan.rates == pytest.approx(found, abs=2e-4)


def test_mixed_lambdacrawl_equals_the_split_search_of_the_paper() -> None:
    """The paper searches how much of the budget announced pages get; one price finds the same split."""
    random = np.random.default_rng(3)
    importance, change_rate = random.pareto(1.2, 200) + 0.1, 10 ** random.uniform(-2, 0.8, 200)
    announced = random.random(200) < 0.3
    budget = 0.4 * change_rate.sum()
    plan = recrawl.plan(
        {"importance": importance, "change_rate": change_rate, "recall": announced, "precision": announced},
        budget,
        solver="lambdacrawl",
    )

    def silent_cost(share: float) -> float:
        part = {"importance": importance[~announced], "change_rate": change_rate[~announced]}
        return recrawl.plan(part, share, solver="lambdacrawl").costs.harmonic

    def announced_cost(share: float) -> float:
        weight, rate = importance[announced], change_rate[announced]
        if share >= rate.sum():
            return 0.0
        low, high = 1e-12, 1e12
        for _ in range(200):
            price = math.sqrt(low * high)
            spent = np.minimum(rate, weight / price).sum()
            low, high = (price, high) if spent > share else (low, price)
        return float(-weight @ np.log(np.minimum(1.0, weight / (price * rate))))

    found = minimize_scalar(
        lambda share: announced_cost(share) + silent_cost(budget - share),
        bounds=(1e-6 * budget, (1 - 1e-6) * budget),
        method="bounded",
        options={"xatol": 1e-9 * budget},
    )
    assert plan.costs.harmonic == pytest.approx(float(found.fun), rel=1e-9)
    assert plan.rates[announced].sum() == pytest.approx(float(found.x), rel=1e-4)
