"""Measures of the group `signals` for one market: pages to refresh and news share a budget without being told how.

Values are in one currency: requests a day that find a fresh copy, and hits that find a page crawled. One scheduler with
both is held against two schedulers with a fixed part of the budget each, in steps of a tenth. Everything is learned.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recrawl.bench.measure import Bound, Measure, Reading
from recrawl.bench.split_readings import Captured, against_best, better_in_both
from recrawl.lab.parallel import workers

if TYPE_CHECKING:
    from recrawl.lab.simulation.news_market import MarketLog
    from recrawl.lab.worlds.world import World

_REQUESTS_A_SITE = 480.0  # a day, about the hits of the news: one site in three has 24 articles of 60 hits


class Sizes(NamedTuple):
    """How large the worlds are, how long they are crawled, and how often that is repeated."""

    sites: int = 40
    pages: int = 2_000
    days: float = 12.0
    crawls_a_day: float = 2_000.0
    seeds: int = 4
    processes: int = 2
    batch: int = 2
    parts: int = 10


class Task(NamedTuple):
    """One world, crawled in all ways."""

    sizes: Sizes
    seed: int


class Outcome(NamedTuple):
    """What one market captured, and each fixed split by the tenths that refreshing had."""

    market: Captured
    splits: list[Captured]


def mixed_measures(sizes: Sizes | None = None) -> tuple[Measure, ...]:
    """The measures, in the order they run; all share the same runs, and the first one pays."""
    work = _Work(sizes or Sizes())
    best = "best fixed split"
    return (
        Measure("mixed_market", "requests/day", best, Bound("ratio", floor=1), work.read_together),
        Measure("mixed_better_in_both", "splits", "one market", Bound("value", limit=0), work.read_dominating),
    )


class _Work:
    """Runs that the measures share."""

    def __init__(self, sizes: Sizes) -> None:
        self._sizes = sizes

    @cached_property
    def _mean(self) -> Outcome:
        """The mean of all worlds; a split is the same in each of them."""
        with workers(self._sizes.processes) as share:
            found = share(run_task, [Task(self._sizes, seed) for seed in range(self._sizes.seeds)])
        markets = np.mean([outcome.market for outcome in found], axis=0)
        splits = np.mean([outcome.splits for outcome in found], axis=0)
        return Outcome(Captured(*markets.tolist()), [Captured(*split) for split in splits.tolist()])

    def read_together(self) -> Reading:
        """What one market captures of both, against the best split."""
        return against_best(*self._mean)

    def read_dominating(self) -> Reading:
        """How many fixed splits capture more of both than the market does."""
        return better_in_both(*self._mean)


def run_task(task: Task) -> Outcome:
    """Crawl one world as one market, and with every fixed split."""
    from recrawl.lab.simulation.news_market import MarketRun
    from recrawl.lab.worlds.news import hubs

    sizes, seed = task
    news, refresh = hubs(sizes.sites, sizes.days, seed), refresh_world(sizes, seed)
    market = captured(MarketRun(news, refresh, sizes.crawls_a_day, seed, sizes.batch).crawl(), refresh)
    splits = []
    for part in range(1, sizes.parts):
        budget = sizes.crawls_a_day * part / sizes.parts
        fresh = captured(MarketRun(None, refresh, budget, seed, sizes.batch).crawl(), refresh).fresh
        rest = MarketRun(news, None, sizes.crawls_a_day - budget, seed, sizes.batch).crawl()
        splits.append(Captured(fresh, captured(rest, refresh).hits))
    return Outcome(market, splits)


def refresh_world(sizes: Sizes, seed: int) -> World:
    """Pages to refresh that together are asked for about as often as the news."""
    from recrawl.lab.worlds.laws import uniform

    world = uniform(sizes.pages, sizes.days, seed)
    requests = _REQUESTS_A_SITE * sizes.sites
    return replace(world, importance=world.importance * (requests / world.importance.sum()))


def captured(log: MarketLog, refresh: World) -> Captured:
    """What a log captured a day in the last third of the time."""
    from recrawl.lab.simulation.measures import measure

    start = refresh.horizon * 2 / 3
    fresh = measure(refresh, log.refresh, start=start).freshness * float(refresh.importance.sum())
    return Captured(fresh, 0.0 if log.news is None else log.news.hits_per_day)
