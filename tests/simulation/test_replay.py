"""A history that is replayed: what a repetition changes of it, and what it must not."""

from __future__ import annotations

import numpy as np
import pytest
from lab_worlds import churning_world

from recrawl.files.history import ChangeHistory, ObservedCrawls, place_changes
from recrawl.lab.simulation.measures import measure
from recrawl.lab.worlds.trace import LoggedWorld, Replay, SameWorld, put_off, todays_schedule
from recrawl.lab.worlds.world import CrawlLog


def test_a_history_put_off_is_the_same_history_later() -> None:
    """Lives, changes and signals move together; pages there at the start stay there, and only wait."""
    world = churning_world()
    later = put_off(world, 2.5)
    assert later.horizon == world.horizon + 2.5
    assert np.array_equal(later.changes.offsets, world.changes.offsets)
    assert np.allclose(later.changes.times, world.changes.times + 2.5)
    assert np.allclose(later.signals["feed"].events.times, world.signals["feed"].events.times + 2.5)
    there = world.born <= 0
    assert np.array_equal(later.born[there], world.born[there])
    assert np.allclose(later.born[~there], world.born[~there] + 2.5)
    gone = np.isfinite(world.removed)
    assert np.allclose(later.removed[gone], world.removed[gone] + 2.5)
    assert np.isinf(later.removed[~gone]).all()


def test_seeds_say_when_the_crawler_starts() -> None:
    world = churning_world()
    worlds = SameWorld(world, earliest=3.0)
    leads = [worlds(seed).horizon - world.horizon for seed in range(20)]
    assert 0 <= min(leads) < 1 < 2 < max(leads) <= 3.0
    assert worlds(7).horizon == worlds(7).horizon


def test_without_a_lead_the_history_is_as_it_was() -> None:
    world = churning_world()
    assert SameWorld(world)(5) is world


def test_a_log_is_put_off_with_its_history() -> None:
    """So that it sees what it saw: the same freshness over the same part of the history."""
    world = churning_world()
    random = np.random.default_rng(3)
    time = np.sort(random.uniform(0, world.horizon, 300))
    log = CrawlLog(random.integers(0, len(world), 300).astype(np.int32), time)
    today = Replay("today", log, world.horizon)
    later = put_off(world, 4.0)
    before = measure(world, today.crawl(world, 1.0, 0), 10.0).freshness
    after = measure(later, today.crawl(later, 1.0, 0), 14.0).freshness
    assert after == pytest.approx(before, abs=1e-9)


def logged_history() -> ChangeHistory:
    """Five pages crawled on each of forty days, every other crawl of which saw a change."""
    day, page = (grid.ravel() for grid in np.meshgrid(np.arange(40.0), np.arange(5, dtype=np.int32), indexing="ij"))
    crawls = ObservedCrawls(page, 1.7e9 + 86_400 * day, (day + page) % 2 == 0)
    return ChangeHistory(
        name="log",
        page_names=tuple("abcde"),
        importance=None,
        events=place_changes(crawls, 0),
        start=float(crawls.time[0]),
        end=float(crawls.time[-1]),
        crawls=crawls,
    )


def test_changes_of_a_log_lie_elsewhere_in_their_intervals_by_the_seed() -> None:
    """The crawls of the log see the same of every such world, and the same seed gives the same world."""
    history = logged_history()
    log = todays_schedule(history)
    assert log is not None
    worlds = LoggedWorld(history, "given", earliest=0.0)
    one, two, again = worlds(1), worlds(2), worlds(1)
    assert np.array_equal(one.changes.times, again.changes.times)
    assert not np.array_equal(one.changes.times, two.changes.times)
    assert np.array_equal(np.ceil(one.changes.times), np.ceil(two.changes.times))  # a crawl at every whole day
    fresh = [measure(world, log, 5.0) for world in (one, two)]
    assert fresh[0].wasted == fresh[1].wasted
    assert fresh[0].completeness == fresh[1].completeness == 1.0
    assert fresh[0].freshness != fresh[1].freshness


def test_worlds_of_a_log_start_at_other_times_too() -> None:
    horizons = {LoggedWorld(logged_history(), "uniform", earliest=2.0)(seed).horizon for seed in range(5)}
    assert len(horizons) == 5
    assert all(39.0 <= horizon <= 41.0 for horizon in horizons)
