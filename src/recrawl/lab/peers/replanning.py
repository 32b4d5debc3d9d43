"""Competitors that plan anew from time to time: between two plans the due-date engine keeps to the waits of the plan.

Plans are the optimum for evenly spaced crawls under the freshness objective (`recrawl.plan`), made with the change
rates as estimated by then. A small part of the budget is spread evenly, so that no page is lost sight of.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from recrawl.lab.peers.kinds import PLANNED
from recrawl.lab.simulation.crawl_log import CrawlLog
from recrawl.lab.simulation.world import World
from recrawl.pages import Floats
from recrawl.planning.solve import plan

if TYPE_CHECKING:
    from recrawl.lab.simulation.due_queue_run import Run

EXPLORED = 0.05
"""Share of the budget that is spread evenly."""

LEAST_RATE, MOST_RATE = 0.0005, 7.0
"""Limits of estimates, as in LambdaCrawl's reference; changes a day."""

_FEWEST_CRAWLS = 64


@dataclass(frozen=True, slots=True)
class Replanning:
    """Base of competitors that plan; they say what to do at the end of each stretch.

    Attributes:
        name: what reports call it.
        rounds: crawls per page between two plans.
    """

    name: str
    rounds: float = 0.5

    def crawl(self, world: World, budget: float, seed: int) -> CrawlLog:
        """Crawl a world from 0 to its horizon, at most `budget` crawls a day."""
        run = start_evenly(world, budget, seed, PLANNED)
        rates = 1.0 / run.queue.planned
        while run.serve(next_plan(run, self.rounds)):
            rates = self.estimate(run, rates)
            follow(run, optimal_rates(run, rates))
        return run.log()

    def estimate(self, run: Run, guess: Floats) -> Floats:
        """Change rates as of now; `guess` are those of the last stretch."""
        raise NotImplementedError


def next_plan(run: Run, rounds: float) -> int:
    """How many crawls will have been made at the next plan: so many rounds of the pages known by now."""
    return run.made + max(_FEWEST_CRAWLS, int(rounds * run.pages_known))


def start_evenly(world: World, budget: float, seed: int, kind: int, parameters: tuple[float, ...] = ()) -> Run:
    """Start with equal waits for all pages that are there."""
    from recrawl.lab.peers.kinds import MOST_OVERDUE
    from recrawl.lab.simulation.due_queue import Rule
    from recrawl.lab.simulation.due_queue_run import start_run

    there = max(int(np.count_nonzero(world.born <= 0)), 1)
    rule = Rule(kind, np.array(parameters, dtype=np.float64), MOST_OVERDUE, True)
    return start_run(world, rule, budget, seed, np.full(len(world), there / budget))


def optimal_rates(run: Run, change_rate: Floats, importance: Floats | None = None) -> Floats:
    """Crawl rates of known pages that are best for freshness at these change rates; 0 for others. O(n)."""
    importance = run.sight.importance if importance is None else importance
    known = np.flatnonzero(run.known())
    rates = np.zeros(len(change_rate))
    if len(known):
        columns = {
            "importance": importance[known],
            "change_rate": change_rate[known],
            "min_rate": np.full(len(known), EXPLORED * run.slots.budget / len(known)),
        }
        rates[known] = plan(columns, budget=run.slots.budget, objective="freshness", solver="even").rates
    return rates


def follow(run: Run, rates: Floats) -> None:
    """Keep to these crawl rates from now on: each page is due a wait after its last crawl. O(n log n)."""
    waits = np.full(len(rates), math.inf)
    np.divide(1.0, rates, out=waits, where=rates > 0)
    unknown = ~run.known()
    waits[unknown] = max(int(np.count_nonzero(~unknown)), 1) / run.slots.budget
    run.queue.planned[:] = waits
    run.replan(run.queue.last + waits)
