"""ECHO plans for content sources: by the optimal rule and by the paper's."""

from __future__ import annotations

import itertools
from typing import Literal

import numpy as np
import pytest

import recrawl

RANDOM = np.random.default_rng(8)
SOURCES = {
    "profit": RANDOM.pareto(1.5, 7) + 0.2,
    "decay": 10 ** RANDOM.uniform(-1, 1, 7),
    "new_page_rate": 10 ** RANDOM.uniform(-1.5, 0.5, 7),
}


def gain_of(kept: tuple[int, ...], budget: float) -> float:
    """The best gain from these sources alone, by brute force over the price."""
    index = np.array(kept)
    profit, decay, pages = (SOURCES[name][index] for name in ("profit", "decay", "new_page_rate"))
    left = budget - pages.sum()
    if left <= 0:
        return 0.0
    worth = profit / -np.expm1(-decay / pages)
    sources = {"profit": worth * decay, "new_page_rate": np.ones(len(index)), "decay": decay}
    # With pages paid for, what is left is the plain market of sources: gain p(1−e^{−κI})/I.
    plan = recrawl.plan(sources, left, objective="news")
    return float((worth * plan.rates) @ -np.expm1(-decay / np.maximum(plan.rates, 1e-300)))


@pytest.mark.parametrize("budget", [0.5, 1.5, 4.0, 20.0])
def test_the_optimal_rule_equals_the_best_set_of_sources_up_to_its_fractional_one(budget: float) -> None:
    plan = recrawl.plan(SOURCES, budget, solver="echo")
    best = max(gain_of(kept, budget) for size in range(1, 8) for kept in itertools.combinations(range(7), size))
    assert plan.gain >= best * (1 - 1e-9)
    assert plan.used == pytest.approx(budget, rel=1e-9)


@pytest.mark.parametrize("budget", [0.5, 1.5, 4.0, 20.0])
def test_the_paper_rule_gathers_no_more(budget: float) -> None:
    optimal = recrawl.plan(SOURCES, budget, solver="echo")
    paper = recrawl.plan(SOURCES, budget, solver="echo-paper")
    assert paper.gain <= optimal.gain * (1 + 1e-9)
    assert paper.used <= budget * (1 + 1e-9)


def test_kept_sources_share_one_price() -> None:
    plan = recrawl.plan(SOURCES, 4.0, solver="echo")
    worth = SOURCES["profit"] / -np.expm1(-SOURCES["decay"] / SOURCES["new_page_rate"])
    x = SOURCES["decay"] / np.maximum(plan.rates, 1e-3)
    value = worth * (1 - (1 + x) * np.exp(-x))
    whole = (plan.rates > 0) & (np.abs(value / plan.price - 1) < 1e-6)
    assert (plan.rates > 0).sum() - whole.sum() <= 1
    assert value[whole] == pytest.approx(plan.price, rel=1e-9)


def test_the_optimal_rule_gains_on_many_sources() -> None:
    """On 2,000 sources dropping those that do not pay for their pages gathers several per cent more."""
    random = np.random.default_rng(1)
    sources = {
        "profit": random.pareto(1.5, 2000) + 0.1,
        "decay": 10 ** random.uniform(-1, 1.5, 2000),
        "new_page_rate": 10 ** random.uniform(-2, 1, 2000),
    }
    budget = 0.2 * sources["new_page_rate"].sum()
    optimal = recrawl.plan(sources, budget, solver="echo").gain
    paper = recrawl.plan(sources, budget, solver="echo-paper").gain
    assert optimal > 1.02 * paper


def test_sources_that_yield_nothing_are_never_crawled() -> None:
    sources = {"profit": [1.0, 0.0, 2.0], "decay": [1.0, 1.0, 1.0], "new_page_rate": [1.0, 1.0, 0.0]}
    plan = recrawl.plan(sources, 5.0, solver="echo")
    assert plan.rates[1:].tolist() == [0.0, 0.0]
    assert plan.used == pytest.approx(5.0)


def test_limits_that_echo_cannot_keep_are_refused() -> None:
    with pytest.raises(recrawl.InvalidInput, match="max_rate cannot be kept by the solver echo"):
        recrawl.plan({**SOURCES, "max_rate": np.ones(7)}, 1.0, solver="echo")
    with pytest.raises(recrawl.InvalidInput, match="host_caps cannot be kept"):
        recrawl.plan({**SOURCES, "host": ["a"] * 7}, 1.0, solver="echo", host_caps={"a": 1.0})


@pytest.mark.parametrize("solver", ["echo", "echo-paper"])
def test_no_budget_and_ample_budget_have_answers(solver: Literal["echo", "echo-paper"]) -> None:
    """Nothing at all, and all but everything: never more than there is."""
    lone = {"profit": [1.0], "new_page_rate": [3.0], "decay": [0.5]}
    assert recrawl.plan(lone, 0.0, solver=solver).rates.tolist() == [0.0]
    ample = recrawl.plan(SOURCES, 1e6, solver=solver)
    assert 0.999 < ample.gain_share <= 1.0
