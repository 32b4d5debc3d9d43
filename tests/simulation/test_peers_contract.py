"""What every peer keeps to, whatever its rule."""

from __future__ import annotations

import math

import numpy as np
import pytest
from peers_small_worlds import freshness, small_world

import recrawl
from recrawl.errors import InvalidInput
from recrawl.lab.peers.registry import PEERS, SCALED, make_peer
from recrawl.lab.worlds.world import World, no_events

_BUDGET = 40.0


@pytest.fixture(scope="module")
def world() -> World:
    """Pages that change, are born and go, on three hosts."""
    return small_world(120, 40.0, seed=1)


@pytest.mark.parametrize("name", PEERS)
def test_crawls_in_order_within_budget_and_only_pages_that_exist(name: str, world: World) -> None:
    """At most one crawl for each slot; nothing before its birth; a gone page once at most."""
    log = make_peer(name).crawl(world, _BUDGET, seed=3)
    assert len(log) > 0
    assert log.page.dtype == np.int32
    assert log.time.dtype == np.float64
    assert np.all(np.diff(log.time) > 0)
    assert log.time[0] > 0
    assert log.time[-1] <= world.horizon
    assert np.all(log.time >= world.born[log.page])
    late = log.page[log.time >= world.removed[log.page]]
    assert len(np.unique(late)) == len(late)


@pytest.mark.parametrize("name", PEERS)
def test_no_window_has_more_than_its_share_of_the_budget(name: str, world: World) -> None:
    """In any window w there are at most budget·w + 1 crawls."""
    log = make_peer(name).crawl(world, _BUDGET, seed=3)
    ahead = np.arange(1, len(log) + 1) - _BUDGET * log.time  # crawls up to each, beyond what the budget gave
    behind = np.minimum.accumulate(ahead - 1)
    assert np.max(ahead - behind) <= 1 + 1e-6


@pytest.mark.parametrize("name", PEERS)
def test_same_seed_same_log(name: str, world: World) -> None:
    """To the bit; and another seed gives another log."""
    one, two, other = (make_peer(name).crawl(world, _BUDGET, seed) for seed in (3, 3, 4))
    assert one.page.tobytes() == two.page.tobytes()
    assert one.time.tobytes() == two.time.tobytes()
    assert one.page.tobytes() != other.page.tobytes()


@pytest.mark.parametrize("name", [name for name in PEERS if not name.endswith("-known")])
def test_the_future_is_not_seen(name: str) -> None:
    """Changes, births and removals after some time have no effect on crawls before it, unless rates are given."""
    full = small_world(60, 40.0, seed=8)
    kept = full.changes.times < 20.0
    offsets = np.concatenate([[0], np.cumsum(kept)])[full.changes.offsets]
    cut = World(
        name="cut",
        horizon=40.0,
        importance=full.importance,
        changes=full.changes._replace(offsets=offsets, times=full.changes.times[kept]),
        born=np.where(full.born < 20.0, full.born, 39.0),
        removed=np.where(full.removed < 20.0, full.removed, math.inf),
        hosts=full.hosts,
    )
    peer = make_peer(name)
    one, two = peer.crawl(full, 20.0, seed=5), peer.crawl(cut, 20.0, seed=5)
    early_one, early_two = one.time < 20.0, two.time < 20.0
    assert one.page[early_one].tolist() == two.page[early_two].tolist()
    assert one.time[early_one].tolist() == two.time[early_two].tolist()


@pytest.mark.parametrize("name", PEERS)
def test_an_empty_world_and_one_without_changes_are_crawled_without_complaint(name: str) -> None:
    """No page: no crawl. No change: crawls as usual."""
    empty = World(
        name="empty", horizon=5.0, importance=np.empty(0), changes=no_events(0), born=np.empty(0), removed=np.empty(0)
    )
    assert len(make_peer(name).crawl(empty, 10.0, seed=1)) == 0
    silent = World(
        name="silent",
        horizon=5.0,
        importance=np.array([1.0, 0.0, 2.0]),
        changes=no_events(3),
        born=np.array([0.0, 0.0, 1.0]),
        removed=np.full(3, math.inf),
    )
    assert len(make_peer(name).crawl(silent, 10.0, seed=1)) <= 50


@pytest.mark.parametrize("name", [name for name in PEERS if name.endswith(SCALED)])
def test_scaled_rules_use_the_whole_budget(name: str, world: World) -> None:
    """Every slot is used, while the rule as it is uses what it asks for."""
    log = make_peer(name).crawl(world, _BUDGET, seed=3)
    as_it_is = make_peer(name.removesuffix(SCALED)).crawl(world, _BUDGET, seed=3)
    assert len(log) == int(_BUDGET * world.horizon)
    assert len(as_it_is) <= len(log)


def test_thirty_day_rules_leave_slots_unused() -> None:
    """Nutch's default asks for a crawl every 30 days, whatever the budget."""
    world = small_world(100, 90.0, seed=2, steady=True)
    assert len(make_peer("nutch-default").crawl(world, 50.0, seed=1)) == pytest.approx(300, rel=0.02)


def test_shares_of_the_budget_are_in_proportion_to_the_weights() -> None:
    """Rates and importance, over a long time."""
    world = small_world(30, 2000.0, seed=2, steady=True)
    for name, weight in (("proportional-known", world.change_rate), ("importance", world.importance)):
        assert weight is not None
        crawls = np.bincount(make_peer(name).crawl(world, 20.0, seed=1).page, minlength=30)
        np.testing.assert_allclose(crawls, 40_000 * weight / weight.sum(), rtol=0.01, atol=2)


def test_the_threshold_with_known_rates_reaches_the_optimum() -> None:
    """Its freshness is that of the optimal plan, and learners stay below it and above round robin."""
    world = small_world(200, 400.0, seed=2, steady=True)
    pages = {"importance": world.importance, "change_rate": world.change_rate}
    best = recrawl.plan(pages, budget=60.0, objective="freshness", solver="even").freshness
    reached = {
        name: freshness(world, make_peer(name).crawl(world, 60.0, seed=1))
        for name in ("threshold-known", "learn-mle", "learn-moments", "learn-lln", "learn-sa", "oldest-first")
    }
    assert reached["threshold-known"] == pytest.approx(best, rel=0.02)
    for name in ("learn-mle", "learn-moments", "learn-lln", "learn-sa"):
        assert reached["oldest-first"] < reached[name] <= reached["threshold-known"] + 0.005, name


def test_unknown_names_are_refused_with_the_nearest() -> None:
    with pytest.raises(InvalidInput, match="did you mean 'nutch-adaptive'"):
        make_peer("nutch-adaptiv")
    with pytest.raises(InvalidInput, match="keeps to the budget by itself"):
        make_peer("learn-mle", scaled=True)


def test_scaling_is_a_suffix() -> None:
    """Both ways to ask for a scaled rule give the same peer."""
    assert make_peer("heritrix1", scaled=True) == make_peer("heritrix1-scaled")
    assert all(make_peer(name).name == name and summary for name, summary in PEERS.items())
