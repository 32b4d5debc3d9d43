"""Compile what a scheduler needs before it is needed: half a minute once on a machine, moments from then on.

Kernels are compiled for schedulers without signals and anew for those with them, so each is warmed up by itself.
"""

from __future__ import annotations

import numpy as np

from recrawl.jit import versions_on_disk
from recrawl.learning.population import fit_population
from recrawl.scheduling.learner import prior_around
from recrawl.scheduling.results import Signal
from recrawl.scheduling.scheduler import Scheduler
from recrawl.scheduling.selling import sell

_PAGES = 24
_TURNS = 12


def is_warm(*, signals: bool) -> bool:
    """Whether an earlier scheduler on this machine had it all compiled, as far as the largest kernel tells."""
    return versions_on_disk(sell) > signals


def warm_up(*, signals: bool) -> None:
    """Do with a handful of pages what a tracker does with many.

    Args:
        signals: whether pages listen to signals.
    """
    scheduler = Scheduler(1000.0, burst=100.0)
    scheduler.set_host(0, min_gap=1e-9, max_in_flight=8)
    ids = scheduler.add(
        importance=np.ones(_PAGES),
        host=np.zeros(_PAGES, dtype=np.int64),
        min_interval=np.full(_PAGES, 1e-6),
        max_interval=np.full(_PAGES, 10.0),
        signals={"sitemap": Signal(0.7, 0.6)} if signals else None,
    )
    scheduler.resume(ids, scheduler.beliefs(ids).tobytes(), failures=0)
    now = 0.0
    for turn in range(_TURNS):
        now += 0.05
        taken = scheduler.take(now, 8).ids
        half = len(taken) // 2
        if half:
            scheduler.crawled(taken[:half], now, changed=np.arange(half) % 2 == turn % 2)
            scheduler.beliefs(taken[:1])
        scheduler.failed(taken[half : half + 1], now)
        scheduler.release(taken[half + 1 :], now)
        if signals:
            scheduler.signal(ids[:2], now, "sitemap")
    scheduler.spend(1.0, now)
    scheduler.remove(ids[:1])
    scheduler.explain(int(ids[1]), now)
    scheduler.believe_in(fit_population(scheduler.learned(_PAGES), prior_around(1000.0 / _PAGES)))


if __name__ == "__main__":
    for heard in (False, True):
        if not is_warm(signals=heard):
            warm_up(signals=heard)
