"""What the scheduler learns on the way: around the budget's scale, and with signals as well as without."""

from __future__ import annotations

import numpy as np
import pytest
from lab_worlds import churning_world

import recrawl
from recrawl.lab.simulation.measures import measure
from recrawl.lab.simulation.scheduler_run import SchedulerCompetitor, SchedulerRun, Settings
from recrawl.lab.worlds.laws import uniform
from recrawl.lab.worlds.signals import announce
from recrawl.scheduling.learner import prior_around


def test_the_prior_scales_with_the_budget() -> None:
    """Ten times the crawls: the same weights on rates ten times as high."""
    slow, fast = prior_around(0.2), prior_around(2.0)
    assert np.allclose(fast.grid.rates, 10 * slow.grid.rates)
    assert np.allclose(fast.weights, slow.weights)
    assert slow.weights.sum() == pytest.approx(1.0)


def test_a_page_is_not_taken_for_hopeless_before_its_first_crawl() -> None:
    """It is believed to change about as often as it can be crawled, whatever the unit of time."""
    for unit in (1.0, 86_400.0):
        scheduler = recrawl.Scheduler(budget=100.0 / unit)
        (page, *_) = scheduler.add(importance=np.ones(400))
        believed = scheduler.explain(int(page), 0.0).change_rate
        assert believed is not None
        assert 0.1 < believed * unit / 0.25 < 10


def test_learned_rates_cost_little_freshness() -> None:
    """On pages whose rates span what the budget can follow."""
    world = uniform(400, 100.0, 3)
    known, learned = (
        measure(world, SchedulerCompetitor("x", settings).crawl(world, 80.0, 0), 50.0, expected=True).freshness
        for settings in (
            Settings(objective="freshness", rates="known", hearing="nothing"),
            Settings(objective="freshness", hearing="nothing"),
        )
    )
    assert learned > 0.95 * known


def test_rates_are_learned_right_where_signals_are_heard() -> None:
    """From silent changes and from signals, on average over the pages."""
    world = announce(uniform(300, 200.0, 1), 0.7, 0.6, kind="map", seed=1)
    run = SchedulerRun(world, 300.0, 0, Settings(hearing="known"))
    run.crawl()
    believed = np.array([run.scheduler.explain(int(key), world.horizon).change_rate for key in run.id_of_page])
    assert world.change_rate is not None
    assert np.median(believed / world.change_rate) == pytest.approx(1.0, abs=0.15)


@pytest.mark.parametrize("objective", ["freshness", "harmonic"])
def test_signals_of_unknown_quality_do_no_harm(objective: str) -> None:
    """To pages that come and go, whose rates are unknown too."""
    world = churning_world(pages=200, horizon=120.0)

    def fresh(**settings: object) -> float:
        chosen = Settings(objective=objective, **settings)  # type: ignore[arg-type]
        log = SchedulerCompetitor("x", chosen).crawl(world, 20.0, 1)
        return measure(world, log, world.horizon * 0.3).freshness

    assert fresh() > fresh(hearing="nothing") - 0.02
