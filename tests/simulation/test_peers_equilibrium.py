"""Where adaptive rules settle on one Poisson page without a limit: crawls per change, and freshness at one a day.

The expected figures come from a simulation of the rules that was written apart from this one, with 20,000 crawls.
Multiplicative rules settle where the mean step of the logarithm of the interval is 0.
"""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from peers_small_worlds import freshness, one_poisson_page

from recrawl.lab.peers.registry import IntervalPeer, make_peer

_RATES = (0.01, 0.1, 1.0, 7.0)
_SETTLES = {
    "nutch-adaptive": ((0.90, 0.89, 0.90, 0.89), 0.564),
    "nutch-adaptive-nosync": ((0.99, 0.99, 1.00, 0.98), 0.596),
    "nutch-adaptive-java-nosync": ((1.59, 1.59, 1.58, 1.59), 0.716),
    "stormcrawler-adaptive": ((7.95, 2.00, 1.74, 1.24), 0.696),
    "commoncrawl-news": ((1.39, 0.86, 0.84, 0.68), 0.550),
    "heritrix1": ((3.97, 1.28, 1.27, 1.25), 0.639),
}
_CHANGES = 60_000
_UNLIMITED = 1e5  # slots a day: due dates are kept to the second
_LEAST_CRAWLS = 20_000


def _without_database_limit(name: str) -> IntervalPeer:
    """The rule alone: Nutch's crawl database has a limit that the figures leave out."""
    peer = make_peer(name)
    assert isinstance(peer, IntervalPeer)
    if name.startswith("nutch"):
        return replace(peer, parameters=(*peer.parameters[:-1], math.inf))
    return peer


@pytest.mark.parametrize("name", _SETTLES)
def test_rules_settle_where_expected(name: str) -> None:
    """Crawls per change at four rates, and freshness at one change a day, within 2 % of the expected figures."""
    peer = _without_database_limit(name)
    expected, expected_freshness = _SETTLES[name]
    for rate, crawls_per_change in zip(_RATES, expected, strict=True):
        world = one_poisson_page(rate, _CHANGES, seed=11)
        log = peer.crawl(world, _UNLIMITED, seed=0)
        assert len(log) >= _LEAST_CRAWLS
        assert len(log) / _CHANGES == pytest.approx(crawls_per_change, rel=0.02), rate
        if rate == 1.0:
            assert freshness(world, log) == pytest.approx(expected_freshness, rel=0.02)


def test_nutch_with_sync_wastes_crawls_on_slow_pages() -> None:
    """The offset of a page that is long unchanged grows until its wait is nothing: 5.3 crawls per change."""
    world = one_poisson_page(0.002, _CHANGES, seed=11)
    log = _without_database_limit("nutch-adaptive").crawl(world, _UNLIMITED, seed=0)
    assert len(log) / _CHANGES == pytest.approx(5.3, rel=0.05)


@pytest.mark.parametrize(("name", "up", "down"), [("nutch-adaptive-nosync", 1.4, 0.8), ("heritrix1", 1.5, 1 / 1.5)])
def test_multiplicative_rules_find_a_change_as_often_as_their_factors_say(name: str, up: float, down: float) -> None:
    """The share of crawls that find a change is ln(up) / (ln(up) − ln(down)), away from the limits."""
    world = one_poisson_page(1.0, _CHANGES, seed=7)
    log = _without_database_limit(name).crawl(world, _UNLIMITED, seed=0)
    intervals = set(world.changes.times.searchsorted(log.time, side="right").tolist())
    found = len(intervals) / len(log)
    assert found == pytest.approx(math.log(up) / (math.log(up) - math.log(down)), rel=0.01)


def test_the_database_limit_keeps_nutch_from_waiting_longer_than_ninety_days() -> None:
    """With the limit of the crawl database a page that never changes is crawled at least every 90 days."""
    world = replace(one_poisson_page(0.001, 3, seed=1), horizon=3000.0)
    log = make_peer("nutch-adaptive").crawl(world, 100.0, seed=0)
    gaps = log.time[1:] - log.time[:-1]
    assert gaps.max() <= 90.0 + 0.01
