"""The prior that pages teach while they are crawled: the same evidence as their histories, and where rates are."""

from __future__ import annotations

import numpy as np
import pytest

from recrawl.learning.filter_state import FilterState, empty_state
from recrawl.learning.grid import RatePrior, grid_table, rate_grid
from recrawl.learning.online_filter import OnlineFilter
from recrawl.learning.population import _likelihoods, fit_population
from recrawl.pages import Floats
from recrawl.scheduling.learner import prior_around

GRID = rate_grid(1e-3, 1e3)
EVEN = RatePrior(GRID, np.full(GRID.points, 1 / GRID.points), np.empty((0, GRID.points)))


def crawled(rates: Floats, crawls: int, gap: float = 1.0) -> FilterState:
    """The states of pages after so many crawls at one gap."""
    random = np.random.default_rng(3)
    online = OnlineFilter(EVEN, len(rates))
    for _ in range(crawls):
        changed = random.random(len(rates)) < -np.expm1(-rates * gap)
        online.update_many(np.arange(len(rates)), np.full(len(rates), gap), changed)
    return online.state


def test_likelihoods_are_those_of_the_crawls() -> None:
    """One gap and any number of crawls: (1 − e^{−Δa})^changed · e^{−Δ·a·unchanged}, the highest of a page made 1."""
    states = crawled(np.array([0.05, 0.5, 5.0]), crawls=12, gap=2.0)
    found = _likelihoods(grid_table(GRID), states)
    for state, row in zip(states, found, strict=True):
        logarithm = float(state["changes"]) * np.log(-np.expm1(-2.0 * GRID.rates))
        logarithm -= float(state["unchanged_time"]) * GRID.rates
        wanted = np.exp(logarithm - logarithm.max())
        assert row == pytest.approx(wanted, rel=1e-3, abs=1e-12)


def test_pages_that_always_changed_move_the_prior_to_fast_rates_and_others_stay_in_it() -> None:
    before = prior_around(1.0)
    rates = np.concatenate([np.full(300, 30.0), np.full(300, 0.03)])
    after = fit_population(crawled(rates, crawls=6), before)
    fast, slow = before.grid.rates > 5.0, before.grid.rates < 0.2
    assert before.weights[fast].sum() < 1e-6
    assert after.weights[fast].sum() > 0.01
    assert 0.4 < after.weights[slow].sum() < 0.6
    assert after.weights.sum() == pytest.approx(1.0)
    assert after.grid == before.grid


def test_pages_that_say_nothing_leave_the_prior_as_it_was() -> None:
    assert fit_population(empty_state(100), EVEN).weights.tolist() == EVEN.weights.tolist()
