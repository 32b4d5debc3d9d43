"""Small worlds for the tests of peers, and how fresh a log keeps them."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from recrawl.lab.worlds.world import CrawlLog, Events, Hosts, World, group_events

Floats = NDArray[np.float64]


def one_poisson_page(rate: float, changes: int, seed: int) -> World:
    """A page that changes so often, until it has changed so many times."""
    times = np.cumsum(np.random.default_rng(seed).exponential(1.0 / rate, changes))
    return World(
        name="one page",
        horizon=float(times[-1]),
        importance=np.ones(1),
        changes=Events(np.array([0, changes], dtype=np.int64), times),
        born=np.zeros(1),
        removed=np.full(1, math.inf),
    )


def small_world(pages: int, days: float, seed: int, *, steady: bool = False) -> World:
    """Pages with Poisson changes on three hosts; unless steady, a third is born later and a third is removed."""
    random = np.random.default_rng([seed, pages])
    rate = np.exp(random.normal(-1.5, 1.5, pages))
    page = np.repeat(np.arange(pages), random.poisson(rate * days))
    times = random.random(len(page)) * days
    born, removed = np.zeros(pages), np.full(pages, math.inf)
    if not steady:
        later, going = random.random(pages) < 1 / 3, random.random(pages) < 1 / 3
        born[later] = days * random.random(int(later.sum()))
        removed[going] = born[going] + (days - born[going]) * random.random(int(going.sum()))
        alive = (times > born[page]) & (times < removed[page])
        page, times = page[alive], times[alive]
    return World(
        name="small",
        horizon=days,
        importance=np.exp(random.normal(0.0, 1.0, pages)),
        changes=group_events(page, times, pages),
        change_rate=rate,
        poisson=True,
        born=born,
        removed=removed,
        hosts=Hosts(random.integers(0, 3, pages), ("a", "b", "c")),
    )


def freshness(world: World, log: CrawlLog) -> float:
    """Share of time and importance at which the copy is current, in a world without births and removals."""
    fresh = 0.0
    for page in range(len(world)):
        times = world.changes.times[world.changes.offsets[page] : world.changes.offsets[page + 1]]
        crawls = np.append(0.0, log.time[log.page == page])
        ends = np.append(crawls[1:], world.horizon)
        changed = np.append(times, math.inf)[np.searchsorted(times, crawls, side="right")]
        fresh += float(world.importance[page]) * float((np.minimum(ends, changed) - crawls).sum())
    return fresh / (float(world.importance.sum()) * world.horizon)
