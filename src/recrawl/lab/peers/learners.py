"""Learners of change rates that crawl by the plan which is best for the rates learned so far.

learn-mle       maximum likelihood with one unseen changed and one unseen unchanged half-day, as LambdaCrawl's
                reference has it (Kolobov et al. 2019); then greedy
learn-moments   the method of moments (Upadhyay et al. 2020); then greedy
learn-lln       equal random crawls for a quarter of the time, law of large numbers, then the plan
learn-sa        the same with stochastic approximation (both Avrachenkov, Patil, Thoppe 2020)
threshold-known no learning: told the true rates, it is what learners could reach at best
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from recrawl.lab.peers.kinds import PLANNED, POISSON_PROBE
from recrawl.lab.peers.replanning import (
    LEAST_RATE,
    MOST_RATE,
    Replanning,
    follow,
    next_plan,
    optimal_rates,
    start_evenly,
)
from recrawl.lab.simulation.crawl_log import CrawlLog
from recrawl.lab.simulation.world import World
from recrawl.pages import Floats

if TYPE_CHECKING:
    from recrawl.lab.simulation.due_queue_run import Run

_UNSEEN_DAYS = 0.5
_EXPLORING = 0.25  # of the crawls
_STEP_EXPONENT = 0.75
_LEAST_APPROXIMATION = 0.01  # of the crawl rate
_PRIOR_VISITS = 1.0


def learned_from_gaps(run: Run, guess: Floats, moments: bool) -> Floats:
    """Estimates from all crawls so far. O(crawls)."""
    from recrawl.lab.peers.rate_estimates import Law, estimate_rates, group_gaps

    made, crawls = run.made, run.crawls
    gaps = group_gaps(crawls.page[:made], crawls.gap[:made], crawls.changed[:made], len(guess))
    rates = guess.copy()
    estimate_rates(gaps, Law(moments, 0.0 if moments else _UNSEEN_DAYS, LEAST_RATE, MOST_RATE), rates)
    return rates


@dataclass(frozen=True, slots=True)
class LearnMle(Replanning):
    """Maximum likelihood with a prior."""

    def estimate(self, run: Run, guess: Floats) -> Floats:
        """Estimates from all crawls so far. O(crawls)."""
        return learned_from_gaps(run, guess, moments=False)


@dataclass(frozen=True, slots=True)
class LearnMoments(Replanning):
    """The method of moments."""

    def estimate(self, run: Run, guess: Floats) -> Floats:
        """Estimates from all crawls so far. O(crawls)."""
        return learned_from_gaps(run, guess, moments=True)


@dataclass(frozen=True, slots=True)
class Told(Replanning):
    """Told the true rates."""

    def estimate(self, run: Run, guess: Floats) -> Floats:  # noqa: ARG002 - nothing to guess
        """The true rates."""
        return run.sight.rate


@dataclass(frozen=True, slots=True)
class ExploreThenCommit(Replanning):
    """Crawls at random with equal rates, estimates once, and keeps to the plan for that.

    Attributes:
        approximate: whether to take stochastic approximation rather than the law of large numbers.
    """

    approximate: bool = False

    def crawl(self, world: World, budget: float, seed: int) -> CrawlLog:
        """Crawl a world from 0 to its horizon, at most `budget` crawls a day."""
        parameters = (_STEP_EXPONENT, _LEAST_APPROXIMATION)
        run = start_evenly(world, budget, seed, POISSON_PROBE, parameters)
        crawl_rate = 1.0 / run.queue.planned
        going = run.serve(int(_EXPLORING * run.slots.last))
        rates = self.estimate(run, crawl_rate)
        run.rule = run.rule._replace(kind=PLANNED)
        while going:  # new pages come in at every plan
            follow(run, optimal_rates(run, rates))
            going = run.serve(next_plan(run, self.rounds))
        return run.log()

    def estimate(self, run: Run, guess: Floats) -> Floats:
        """Estimates from what the probes left; `guess` holds the crawl rates. The mean where there were none."""
        from recrawl.lab.peers.poisson_probe import APPROXIMATED, CHANGED, VISITS

        changed, visits = run.queue.own[:, CHANGED], run.queue.own[:, VISITS]
        rates = guess * changed / (visits + _PRIOR_VISITS - changed)
        if self.approximate:
            rates = run.queue.own[:, APPROXIMATED].copy()
        rates = np.clip(rates, LEAST_RATE, MOST_RATE)
        seen = visits > 0
        rates[~seen] = rates[seen].mean() if seen.any() else LEAST_RATE
        return rates
