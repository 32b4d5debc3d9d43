"""MirrorSync (Kolobov, Bubeck, Zimmert 2020): mirror descent on crawl rates, without a model of change.

A round is as long as the wait of a page at the lowest rate. At its end the slopes that the probes found
(`mirror_probe.py`) move the rates: r ← r / (1 + r·(step·slope + ν)), within limits, with ν such that the budget is
kept. Parameters are the reference's: ε 0.05, step 2.7, rates from 1/16 to 7.5 of the mean, which is its budget of 0.4
a page with rates from 0.025 to 3. Importance counts relative to its mean.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recrawl.lab.peers.kinds import MIRROR_PROBE
from recrawl.lab.peers.mirror_probe import MISSED, STEPS
from recrawl.lab.peers.replanning import follow, next_plan, start_evenly
from recrawl.lab.simulation.crawl_log import CrawlLog
from recrawl.lab.simulation.world import World
from recrawl.pages import Floats

_PROBING = 0.05
_STEP = 2.7
_MEAN_RATE, _LOWEST, _HIGHEST = 0.4, 0.025, 3.0
_BISECTIONS = 80


@dataclass(frozen=True, slots=True)
class MirrorSync:
    """Learns crawl rates round by round."""

    name: str = "mirror-sync"

    def crawl(self, world: World, budget: float, seed: int) -> CrawlLog:
        """Crawl a world from 0 to its horizon, at most `budget` crawls a day."""
        run = start_evenly(world, budget, seed, MIRROR_PROBE, (_PROBING,))
        rates = np.full(len(world), _MEAN_RATE / (1.0 + _PROBING))
        while run.serve(next_plan(run, _MEAN_RATE / _LOWEST)):
            known = run.known()
            if not known.any():
                continue
            rates[known] = mirror_step(rates[known], slopes(run.queue.own, run.sight.importance, rates, known))
            run.queue.own[:] = 0.0
            unit = budget / (_MEAN_RATE * np.count_nonzero(known))  # crawls a day
            follow(run, np.where(known, rates * unit, 0.0))
        return run.log()


def slopes(own: Floats, importance: Floats, rates: Floats, known: NDArray[np.bool_]) -> Floats:
    """How the cost of each known page rises with its crawl rate (it falls: below 0), as probes found it."""
    own, importance, rates = own[known], importance[known], rates[known]
    weight = importance / max(float(importance.mean()), np.finfo(np.float64).tiny)
    return weight * own[:, MISSED] / (_PROBING * rates * np.maximum(own[:, STEPS], 1.0))


def mirror_step(rates: Floats, slope: Floats) -> Floats:
    """Rates after a step of mirror descent, with the mean that leaves room for probes. O(n)."""
    mean = _MEAN_RATE / (1.0 + _PROBING)
    inverse = 1.0 / rates + _STEP * slope
    low, high = 1.0 / _HIGHEST - inverse.max(), 1.0 / _LOWEST - inverse.min()
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        if _moved(inverse + middle).mean() > mean:
            low = middle
        else:
            high = middle
    return _moved(inverse + high)


def _moved(inverse: Floats) -> Floats:
    return 1.0 / np.clip(inverse, 1.0 / _HIGHEST, 1.0 / _LOWEST)
