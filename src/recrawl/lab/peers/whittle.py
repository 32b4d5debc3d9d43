"""The Whittle index for ephemeral content (Avrachenkov and Borkar 2018): every change is an item whose worth decays.

Items come at the page's true change rate and are worth its importance at first; a crawl collects what is left of those
since the last one. In continuous time the value that waits at age a is X = gain/decay · (1 − e^(−decay·a)), with
gain = rate · importance, and the index is X less a times its slope: gain/decay · (1 − (1 + decay·a)·e^(−decay·a)).
That is the freshness index of a page of importance `gain` that changes at rate `decay`, so its plan is the freshness
plan for these. The scheduler's objective `news` sells by the same index.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.lab.peers.kinds import PLANNED
from recrawl.lab.peers.replanning import follow, next_plan, optimal_rates, start_evenly
from recrawl.lab.simulation.crawl_log import CrawlLog
from recrawl.lab.simulation.world import World


@dataclass(frozen=True, slots=True)
class Whittle:
    """Crawls at the waits at which all indices are equal.

    Attributes:
        name: what reports call it.
        decay: of the worth of an item, a day.
        rounds: crawls per page between two plans, which take in new pages.
    """

    name: str = "whittle-known"
    decay: float = 1.0
    rounds: float = 0.5

    def crawl(self, world: World, budget: float, seed: int) -> CrawlLog:
        """Crawl a world from 0 to its horizon, at most `budget` crawls a day."""
        run = start_evenly(world, budget, seed, PLANNED)
        gain = run.sight.rate * run.sight.importance
        decay = np.full(len(gain), self.decay)
        while run.serve(next_plan(run, self.rounds)):
            follow(run, optimal_rates(run, decay, gain))
        return run.log()
