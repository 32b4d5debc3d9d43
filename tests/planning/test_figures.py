"""Figures that the documentation quotes, reproduced to four digits."""

from __future__ import annotations

import numpy as np
import pytest

import recrawl
from recrawl.lab.worlds.laws import web_population


@pytest.fixture(scope="module")
def pages() -> dict[str, np.ndarray]:
    """2,000 pages with heavy-tailed importance and change rates over three decades."""
    random = np.random.default_rng(11)
    importance = random.pareto(1.2, 2000) + 0.1
    return {"importance": importance, "change_rate": 10 ** random.uniform(-2.5, 0.8, 2000)}


def test_the_harmonic_index_beats_lambdacrawl_on_its_own_cost(pages: dict[str, np.ndarray]) -> None:
    lambdacrawl = recrawl.plan(pages, 400, solver="lambdacrawl")
    assert round(lambdacrawl.costs.harmonic, 2) == 2793.93
    assert round(lambdacrawl.spaced("even").costs.harmonic, 2) == 1946.06
    assert round(recrawl.plan(pages, 400).costs.harmonic, 2) == 1926.71


def test_even_spacing_beats_random_times_in_freshness(pages: dict[str, np.ndarray]) -> None:
    azar = recrawl.plan(pages, 400, solver="azar")
    assert round(azar.freshness, 4) == 0.7518
    assert round(azar.starved, 2) == 0.30
    assert round(azar.spaced("even").freshness, 4) == 0.8000
    assert round(recrawl.plan(pages, 400, objective="freshness").freshness, 4) == 0.8042
    harmonic = recrawl.plan(pages, 400)
    assert round(harmonic.freshness, 4) == 0.7803
    assert harmonic.starved == 0
    assert round(recrawl.plan(pages, 400, solver="uniform").spaced("even").freshness, 4) == 0.6420
    assert round(recrawl.plan(pages, 400, solver="proportional").spaced("even").freshness, 4) == 0.2404


def test_costs_on_the_web_population_at_a_million_pages() -> None:
    """Exact mixed plan about 1.20 a page, uniform about 4.1, in proportion to the change rate about 8."""
    web = web_population(1_000_000)
    budget = 200_000.0
    exact = recrawl.plan(web, budget, solver="lambdacrawl").costs.harmonic / 1e6
    uniform = recrawl.plan(web, budget, solver="uniform").costs.harmonic / 1e6
    proportional = recrawl.plan(web, budget, solver="proportional").costs.harmonic / 1e6
    assert exact == pytest.approx(1.20, abs=0.01)
    assert uniform == pytest.approx(4.1, abs=0.05)
    assert proportional == pytest.approx(8.0, abs=0.15)


def test_the_order_of_the_rules_is_that_of_the_lambdacrawl_paper() -> None:
    """Exact < approximate and floored binary < uniform < proportional; binary without a floor starves pages."""
    web, budget = web_population(20_000), 4_000.0
    cost = {
        solver: recrawl.plan(web, budget, solver=solver).costs.harmonic
        for solver in ("lambdacrawl", "lambdacrawl-approx", "blc-eps", "uniform", "proportional", "azar")
    }
    assert cost["lambdacrawl"] < min(cost["lambdacrawl-approx"], cost["blc-eps"])
    assert max(cost["lambdacrawl-approx"], cost["blc-eps"]) < cost["uniform"] < cost["proportional"]
    assert cost["azar"] == np.inf
