"""A bandit over strategies (Han et al. 2020, with the EXP3 of Auer et al. 2002): each stretch is crawled by one.

Strategies: all pages alike, by change rate, by importance, the optimal plan; rates are learned by maximum likelihood
in all of them. The reward of a stretch is what a crawler sees of its success: the share of its crawls, weighted by
importance, that found a change.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from recrawl.lab.peers.kinds import PLANNED
from recrawl.lab.peers.learners import learned_from_gaps
from recrawl.lab.peers.replanning import follow, next_plan, optimal_rates, start_evenly
from recrawl.lab.simulation.crawl_log import CrawlLog
from recrawl.lab.simulation.due_queue_run import Run
from recrawl.lab.simulation.world import World
from recrawl.pages import Floats

_STRATEGIES = 4
_MIXED = 0.1  # share of choices made evenly


@dataclass(frozen=True, slots=True)
class Exp3:
    """Chooses one of four strategies for each stretch of crawls, by how they fared before."""

    name: str = "exp3"
    rounds: float = 0.5

    def crawl(self, world: World, budget: float, seed: int) -> CrawlLog:
        """Crawl a world from 0 to its horizon, at most `budget` crawls a day."""
        run = start_evenly(world, budget, seed, PLANNED)
        random = np.random.Generator(np.random.PCG64([seed, 3]))
        rates = 1.0 / run.queue.planned
        gains = np.zeros(_STRATEGIES)
        chosen, since = 0, 0
        chances = np.full(_STRATEGIES, 1.0 / _STRATEGIES)
        while run.serve(next_plan(run, self.rounds)):
            gains[chosen] += _MIXED * reward(run, since) / (_STRATEGIES * chances[chosen])
            weights = np.exp(gains - gains.max())
            chances = (1.0 - _MIXED) * weights / weights.sum() + _MIXED / _STRATEGIES
            chosen, since = int(random.choice(_STRATEGIES, p=chances)), run.made
            rates = learned_from_gaps(run, rates, moments=False)
            follow(run, strategy_rates(chosen, run, rates))
        return run.log()


def reward(run: Run, since: int) -> float:
    """The share of crawls since then, by importance, that found a change. O(crawls since then)."""
    stretch = slice(since, run.made)
    weight = run.sight.importance[run.crawls.page[stretch]]
    total = float(weight.sum())
    return float(weight[run.crawls.changed[stretch]].sum()) / total if total > 0 else 0.0


def strategy_rates(strategy: int, run: Run, change_rate: Floats) -> Floats:
    """Crawl rates of known pages by a strategy."""
    if strategy == _STRATEGIES - 1:
        return optimal_rates(run, change_rate)
    column = (np.ones(len(change_rate)), change_rate, run.sight.importance)[strategy]
    weight = np.where(run.known(), column, 0.0)
    return run.slots.budget * weight / max(float(weight.sum()), math.ulp(0.0))
