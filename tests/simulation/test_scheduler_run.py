from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from lab_worlds import churning_world, steady_world

from recrawl.errors import InvalidInput
from recrawl.lab.simulation.fixed_rates import FixedRates, RoundRobin
from recrawl.lab.simulation.measures import measure
from recrawl.lab.simulation.policy import CHANGED, GONE, UNCHANGED, look, truth_of
from recrawl.lab.simulation.scheduler_run import (
    LearnedHearing,
    SchedulerCompetitor,
    SchedulerRun,
    Settings,
    crawl_times,
    known_rates,
    section_names,
)
from recrawl.lab.worlds.world import World

KNOWN = Settings(objective="freshness", rates="known", hearing="known")
DEAF = Settings(objective="freshness", rates="known", hearing="nothing")


def fresh(world: World, settings: Settings, budget: float = 60.0) -> float:
    log = SchedulerCompetitor("x", settings).crawl(world, budget, 1)
    return measure(world, log, world.horizon / 4).freshness


def test_crawls_find_what_happened_since_the_crawl_before() -> None:
    """Compared with a search through the page's history for every crawl."""
    world = churning_world()
    log = RoundRobin().crawl(world, 20.0, 1)
    truth = truth_of(world)
    last = np.where(world.born <= 0, 0.0, -1.0)
    for page, time in zip(log.page, log.time.tolist(), strict=True):
        found = int(look(truth, np.array([page], dtype=np.int32), time)[0])
        changes = world.changes.times[world.changes.offsets[page] : world.changes.offsets[page + 1]]
        if world.removed[page] <= time:
            assert found == GONE
        elif last[page] < 0 or ((changes > last[page]) & (changes <= time)).any():
            assert found == CHANGED
        else:
            assert found == UNCHANGED
        last[page] = time


@pytest.mark.parametrize("settings", [KNOWN, DEAF, Settings(), Settings(batch=3, section_depth=2)])
def test_a_run_keeps_to_the_budget_and_to_what_a_crawler_can_know(settings: Settings) -> None:
    world = churning_world()
    log = SchedulerCompetitor("x", settings).crawl(world, 30.0, 1)
    batch = settings.batch or 1
    assert (np.diff(log.time) >= 0).all()
    assert len(log) <= 30.0 * world.horizon
    assert np.unique(log.time, return_counts=True)[1].max() <= batch
    assert (log.time >= world.born[log.page]).all()
    gone = log.time >= world.removed[log.page]
    assert np.bincount(log.page[gone]).max(initial=0) <= 1  # one crawl to learn that, and no more
    assert len(log) > 0.95 * 30.0 * world.horizon


def test_new_pages_are_crawled() -> None:
    world = churning_world()
    log = SchedulerCompetitor("x", KNOWN).crawl(world, 60.0, 1)
    born = np.flatnonzero((world.born > 0) & (world.born < 35) & (world.removed > 39))
    assert np.isin(born, log.page).mean() > 0.8


def test_known_rates_come_close_to_the_plan_and_learned_ones_beat_round_robin() -> None:
    world = steady_world(pages=300, horizon=120.0)
    plan = measure(world, FixedRates(name="plan", by="plan").crawl(world, 60.0, 1), 30.0).freshness
    even = measure(world, RoundRobin().crawl(world, 60.0, 1), 30.0).freshness
    assert fresh(world, DEAF) > plan - 0.01
    assert fresh(world, Settings(objective="freshness")) > even + 0.02


def test_signals_of_known_quality_help() -> None:
    world = churning_world(pages=300, moving=0.0)
    assert fresh(world, KNOWN) > fresh(world, DEAF) + 0.02


def test_quality_that_is_not_told_is_learned_by_section() -> None:
    """With known rates; signals are right 7 times in 10 by construction of the world."""
    world = churning_world(pages=300, horizon=80.0, moving=0.0)
    run = SchedulerRun(world, 150.0, 1, replace(KNOWN, hearing="learned"))
    run.crawl()
    assert isinstance(run.hearing, LearnedHearing)
    assert run.hearing.precision.shape == (3, 1)
    assert (abs(run.hearing.precision - 0.7) < 0.2).all()
    assert (abs(run.hearing.recall - 0.7) < 0.25).all()


def test_signals_that_wait_are_not_lost_when_quality_is_told_anew() -> None:
    """Telling the quality every day, or never, makes no difference when it is always the same."""
    world = churning_world(pages=100, moving=0.0)
    never = replace(KNOWN, hearing="learned", assumed_quality=(0.7, 0.7), audits_needed=10**9)
    run = SchedulerRun(world, 30.0, 1, never)
    assert isinstance(run.hearing, LearnedHearing)
    hearing = run.hearing
    often = SchedulerRun(world, 30.0, 1, replace(never, relearn_interval=1.0))
    assert isinstance(often.hearing, LearnedHearing)
    often.hearing._relearn = often.hearing._tell_quality  # type: ignore[method-assign]
    one, two = run.crawl(), often.crawl()
    assert hearing.precision == pytest.approx(0.7)
    assert measure(world, two, 10.0).freshness == pytest.approx(measure(world, one, 10.0).freshness, abs=0.03)


@pytest.mark.parametrize("settings", [KNOWN, Settings()])
def test_the_same_seed_gives_the_same_log_to_the_bit(settings: Settings) -> None:
    world = churning_world()
    one, two = (SchedulerCompetitor("x", settings).crawl(world, 30.0, 5) for _ in range(2))
    assert (one.page.tobytes(), one.time.tobytes()) == (two.page.tobytes(), two.time.tobytes())


def test_rates_of_a_world_without_a_law_are_means_over_lives() -> None:
    world = replace(churning_world(), change_rate=None)
    rates = known_rates(world)
    page = int(np.argmax(np.diff(world.changes.offsets)))
    life = min(world.removed[page], world.horizon) - world.born[page]
    assert rates[page] == pytest.approx(np.diff(world.changes.offsets)[page] / life)


def test_sections_are_hosts_and_folders() -> None:
    world = churning_world()
    assert section_names(world, 0) == [f"{'abc'[number % 3]}.example" for number in range(60)]
    names = section_names(world, 2)
    assert names is not None
    assert names[1] == "b.example/docs/1"
    assert section_names(steady_world(), 2) is None


def test_crawl_times_fill_the_horizon() -> None:
    assert len(crawl_times(30.0, 0.1)) == 3
    assert crawl_times(30.0, 0.1)[-1] <= 30.0


def test_bad_runs_are_refused() -> None:
    with pytest.raises(InvalidInput, match="budget"):
        SchedulerCompetitor("x").crawl(steady_world(pages=5), 0.0, 1)
    empty = churning_world(pages=0)
    with pytest.raises(InvalidInput, match="world"):
        SchedulerCompetitor("x").crawl(empty, 1.0, 1)
    with pytest.raises(InvalidInput, match="relearn_interval"):
        Settings(relearn_interval=0.0)
