"""A prior that comes later counts from then on as one that was given at the start."""

from __future__ import annotations

import numpy as np
import pytest

from recrawl.errors import InvalidInput
from recrawl.learning.filter_state import FOREVER
from recrawl.learning.grid import RatePrior, rate_grid
from recrawl.scheduling.scheduler import Scheduler
from recrawl.scheduling.types import Tuning

PAGES = 40
GRID = rate_grid(1e-3, 1e3)


def peaked(rate: float) -> RatePrior:
    """A prior that is nearly sure of a rate."""
    weights = np.exp(-2.0 * np.abs(np.log(GRID.rates / rate)))
    return RatePrior(GRID, weights / weights.sum(), np.empty((0, GRID.points)))


def run(scheduler: Scheduler, later: RatePrior | None) -> Scheduler:
    """Crawl for a while, be given a prior, and crawl every page once more."""
    ids = scheduler.add(importance=np.ones(PAGES), last_crawled=0.0)
    for now in (1.0, 2.0, 3.0):
        scheduler.claim(ids, now)
        scheduler.crawled(ids, now, changed=np.arange(PAGES) % 3 == 0)
    if later is not None:
        scheduler.set_prior(later)
    scheduler.claim(ids, 4.0)
    scheduler.crawled(ids, 4.0, changed=np.arange(PAGES) % 2 == 0)
    return scheduler


def believed(scheduler: Scheduler) -> list[tuple[float, float] | None]:
    """Between which rates the first pages are believed to change."""
    return [scheduler.explain(page, 5.0).change_rate_interval for page in range(3)]


def test_what_was_learned_before_is_read_with_the_new_prior() -> None:
    given, later, never = (
        run(Scheduler(float(PAGES), burst=PAGES, tuning=Tuning(prior=prior, memory=FOREVER)), after)
        for prior, after in ((peaked(30.0), None), (peaked(0.1), peaked(30.0)), (peaked(0.1), None))
    )
    assert later.learned(PAGES).tobytes() == given.learned(PAGES).tobytes()
    assert believed(later) == believed(given)
    assert believed(later) != believed(never)


def test_a_snapshot_keeps_it() -> None:
    scheduler = run(Scheduler(float(PAGES), burst=PAGES), peaked(30.0))
    again = Scheduler.restore(scheduler.snapshot())
    assert believed(again) == believed(scheduler)


def test_learned_gives_pages_that_say_something_and_no_more_than_asked_for() -> None:
    scheduler = run(Scheduler(float(PAGES), burst=PAGES), None)
    scheduler.add(importance=np.ones(PAGES))
    scheduler.add(importance=np.ones(PAGES), change_rate=1.0)
    assert len(scheduler.learned(1000)) == PAGES
    assert len(scheduler.learned(7)) == 7


def test_priors_of_hosts_are_refused() -> None:
    prior = peaked(1.0)
    with_hosts = RatePrior(prior.grid, prior.weights, prior.weights[None, :], {"a.test": 0})
    with pytest.raises(InvalidInput, match="priors of hosts"):
        Scheduler(1.0).set_prior(with_hosts)


def test_pages_of_which_nothing_is_known_are_valued_by_it_at_once() -> None:
    """As if it had been given at the start; pages that were crawled twice follow when they are crawled next."""
    schedulers = []
    for before, after in ((peaked(0.1), peaked(30.0)), (peaked(30.0), None)):
        scheduler = Scheduler(float(PAGES), "freshness", burst=PAGES, tuning=Tuning(prior=before))
        fresh = scheduler.add(importance=np.arange(1.0, PAGES + 1))
        known = scheduler.add(importance=1.0, last_crawled=np.zeros(3))
        given = scheduler.add(importance=1.0, change_rate=2.0)
        scheduler.claim(known, 1.0)
        scheduler.crawled(known, 1.0, changed=True)
        learned = scheduler.explain(int(known[0]), 1.0).change_rate
        if after is not None:
            scheduler.set_prior(after)
        assert scheduler.explain(int(known[0]), 1.0).change_rate == learned
        assert scheduler.explain(int(given[0]), 1.0).change_rate == 2.0
        schedulers.append(scheduler)
    later, at_start = schedulers
    assert [later.explain(int(page), 1.0).change_rate for page in fresh] == pytest.approx(
        [at_start.explain(int(page), 1.0).change_rate for page in fresh]
    )
    assert later.take(1.0, 5).ids.tolist() == at_start.take(1.0, 5).ids.tolist()


def test_copied_gives_waiting_pages_with_a_copy_that_learn() -> None:
    scheduler = Scheduler(float(PAGES), burst=PAGES)
    scheduler.add(importance=np.ones(PAGES))
    scheduler.add(importance=np.ones(PAGES), change_rate=1.0, last_crawled=0.0)
    copied = scheduler.add(importance=np.ones(5), last_crawled=0.0, host="a.test")
    scheduler.claim(copied[:1], 1.0)
    assert sorted(scheduler.copied(100).tolist()) == sorted(copied[1:].tolist())
    assert len(scheduler.copied(2)) == 2
    assert scheduler.host_of(int(copied[0])) == "a.test"
    assert scheduler.host_of(0) is None
