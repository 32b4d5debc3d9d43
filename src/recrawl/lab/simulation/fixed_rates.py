"""Competitors whose pages keep their rates: round robin, in proportion to something, or by a plan.

Rates are shares of the budget among the pages there are, so that every slot is used. They are told importance; those
that are told change rates say so in their names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from recrawl.lab.simulation.crawl_log import CrawlLog, PageNumbers
from recrawl.lab.simulation.scheduler_run import check_run, crawl_times, known_rates
from recrawl.lab.simulation.world import World
from recrawl.pages import Floats

By = Literal["importance", "change_rate", "plan"]


@dataclass(frozen=True, slots=True)
class RoundRobin:
    """The page that was crawled longest ago comes next; new pages come first, in the order of their births."""

    name: str = "round-robin"

    def crawl(self, world: World, budget: float, seed: int) -> CrawlLog:
        """Crawl a world from 0 to its horizon. O(pages · log pages + crawls)."""
        from recrawl.lab.simulation.fixed_rates_kernels import Scene, go_round

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
        from recrawl.lab.simulation.fixed_rates_kernels import Scene, go_by_rates

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
