"""Policies whose pages keep their rates: round robin, in proportion to something, or by a plan.

Rates are shares of the budget among the pages there are, so that every slot is used. They are told importance; those
that are told change rates say so in their names.

Slot k is at k/budget and crawls one page. Round robin is a ring of pages; other rates are a heap of due times. Due
times are on a clock of their own, which stands at the due time of the page that is served, so that all slots are used
whatever pages are there. A page is due again one over its rate after it was due, or a random time with that mean after
it. New pages are due at once, before all others. A page found gone is dropped.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from recrawl.jit import borrowing, kernel
from recrawl.lab.simulation.due_queue import chance_of
from recrawl.lab.simulation.scheduler_run import check_run, crawl_times, known_rates
from recrawl.lab.worlds.world import CrawlLog, PageNumbers, World
from recrawl.pages import Floats
from recrawl.scheduling.value_heap import Offers, heapify, pop_highest, push_value

By = Literal["importance", "change_rate", "plan"]


class Scene(NamedTuple):
    """Pages as a crawler meets them: those there at the start, in the order they are first crawled, and births."""

    first: PageNumbers
    births: PageNumbers  # in order of time
    born: Floats
    removed: Floats


@kernel
def go_round(scene: Scene, times: Floats, crawled: PageNumbers) -> None:
    """Crawl the page that was crawled longest ago, one at each time. O(times).

    Writes the pages into `crawled`, -1 where there is none. Until a page is born or removed, rounds are all alike.
    """
    size, pages = len(scene.born), len(scene.first)
    alike = 0 if pages == 0 else np.searchsorted(times, _first_event(scene))
    for slot in range(min(alike, pages)):
        crawled[slot] = scene.first[slot]
    for slot in range(pages, alike):
        crawled[slot] = crawled[slot - pages]
    ring = np.empty(size, dtype=np.int32)
    head = alike % pages if pages else 0
    ring[: pages - head] = scene.first[head:]
    ring[pages - head : pages] = scene.first[:head]
    head, count, next_birth = 0, pages, 0
    for slot in range(alike, len(times)):
        now = times[slot]
        crawled[slot] = -1
        if next_birth < len(scene.births) and scene.born[scene.births[next_birth]] <= now:
            page = scene.births[next_birth]
            next_birth += 1
        elif count > 0:
            page = ring[head]
            head = head + 1 if head + 1 < size else 0
            count -= 1
        else:
            continue
        crawled[slot] = page
        if scene.removed[page] > now:
            tail = head + count
            ring[tail if tail < size else tail - size] = page
            count += 1


@kernel
def _first_event(scene: Scene) -> float:
    """When the first page is born after the start, or removed. O(pages)."""
    first = scene.born[scene.births[0]] if len(scene.births) else math.inf
    for page in range(len(scene.removed)):
        first = min(first, scene.removed[page])
    return first


@kernel
def go_by_rates(scene: Scene, rates: Floats, times: Floats, seed: int, at_random: bool) -> PageNumbers:
    """Crawl the page that is due first, one at each time; the pages, -1 where there is none. O(times · log pages)."""
    queue = Offers(np.empty(len(rates)), np.empty(len(rates), dtype=np.int32))
    turns = np.zeros(len(rates), dtype=np.int64)
    count, next_birth, clock = 0, 0, 0.0
    for i in range(len(scene.first)):
        page = scene.first[i]
        if rates[page] > 0.0:
            chance = chance_of(seed, page, 0)
            share = -math.log1p(-chance) if at_random else chance
            queue.values[count], queue.slots[count] = -share / rates[page], page
            count += 1
    heapify(queue, count)
    crawled = np.full(len(times), -1, dtype=np.int32)
    for slot in range(len(times)):
        now = times[slot]
        page = -1
        while page < 0 and next_birth < len(scene.births) and scene.born[scene.births[next_birth]] <= now:
            if rates[scene.births[next_birth]] > 0.0:
                page = scene.births[next_birth]
            next_birth += 1
        if page < 0:
            if count == 0:
                continue
            page = queue.slots[0]
            clock = -queue.values[0]
            count = pop_highest(queue, count)
        crawled[slot] = page
        if scene.removed[page] > now:
            turns[page] += 1
            wait = _wait(rates[page], seed, page, turns[page], at_random)
            count = push_value(queue, count, -(clock + wait), page)
    return crawled


@borrowing
def _wait(rate: float, seed: int, page: int, turn: int, at_random: bool) -> float:
    return -math.log1p(-chance_of(seed, page, turn)) / rate if at_random else 1.0 / rate


@dataclass(frozen=True, slots=True)
class RoundRobin:
    """The page that was crawled longest ago comes next; new pages come first, in the order of their births."""

    name: str = "round-robin"

    def crawl(self, world: World, budget: float, seed: int) -> CrawlLog:
        """Crawl a world from 0 to its horizon. O(pages · log pages + crawls)."""
        times = crawl_times(world.horizon, check_run(world, budget))
        first, births = _arrivals(world)
        first = np.random.Generator(np.random.PCG64(seed)).permutation(first)
        crawled = np.empty(len(times), dtype=np.int32)
        go_round(Scene(first, births, world.born, world.removed), times, crawled)
        return _log(crawled, times)


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedRates:
    """Rates in proportion to importance or change rate, or those of a plan; evenly spaced, or at random times.

    Attributes:
        name: what reports call it.
        by: what rates go by.
        objective: of the plan.
        solver: of the plan.
        at_random: crawls of a page come as a Poisson process in place of evenly spaced.
    """

    name: str
    by: By
    objective: Literal["freshness", "harmonic"] = "freshness"
    solver: Literal["even", "azar", "lambdacrawl"] = "even"
    at_random: bool = False

    def crawl(self, world: World, budget: float, seed: int) -> CrawlLog:
        """Crawl a world from 0 to its horizon. O(pages · log pages + crawls · log pages)."""
        times = crawl_times(world.horizon, check_run(world, budget))
        scene = Scene(*_arrivals(world), world.born, world.removed)
        return _log(go_by_rates(scene, self.rates(world, budget), times, seed, self.at_random), times)

    def rates(self, world: World, budget: float) -> Floats:
        """The rate of each page, as if all were there from the start."""
        if self.by == "importance":
            return np.ascontiguousarray(world.importance, dtype=np.float64)
        if self.by == "change_rate":
            return known_rates(world)
        from recrawl.planning.solve import plan

        pages = {"importance": world.importance, "change_rate": known_rates(world)}
        return plan(pages, budget, self.objective, self.solver).rates


def _arrivals(world: World) -> tuple[PageNumbers, PageNumbers]:
    """Pages there at the start, and those born later in order of time."""
    order = np.argsort(world.born, kind="stable").astype(np.int32)
    here = int(np.count_nonzero(world.born <= 0))
    return np.sort(order[:here]), order[here:]


def _log(crawled: PageNumbers, times: Floats) -> CrawlLog:
    """The crawls of slots; slots without a page are left out."""
    made = crawled >= 0
    return CrawlLog(crawled, times) if made.all() else CrawlLog(crawled[made], times[made])
