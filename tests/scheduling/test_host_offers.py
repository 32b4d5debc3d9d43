"""A host with one page on offer at a time: what it offers must not keep what is worth far more from being sold."""

from __future__ import annotations

import numpy as np
import pytest
from invariants import check, states_of

from recrawl.scheduling.scheduler import Scheduler


@pytest.mark.parametrize("max_in_flight", [1, 8])
def test_a_new_page_that_loses_worth_does_not_keep_a_source_of_its_host_from_being_sold(max_in_flight: int) -> None:
    """Other hosts have pages that are worth more than the one on offer, and less than the source behind it."""
    scheduler = Scheduler(budget=10.0)
    for host in range(2):
        scheduler.set_host(host, max_in_flight=max_in_flight, min_gap=1e-6)
    (source,) = scheduler.add(
        profit=50.0, new_page_rate=20.0, decay=4.0, objective="news", host=0, last_crawled=0.0
    ).tolist()
    scheduler.add(profit=[0.1] * 40, decay=0.5, objective="once", host=0, last_crawled=0.0)
    scheduler.add(importance=[1.0] * 40, change_rate=1.0, host=1, last_crawled=0.0)
    crawls = 0
    for step in range(1, 201):
        now = step / 20.0
        batch = scheduler.take(now, 10)
        crawls += batch.ids.tolist().count(source)
        scheduler.crawled(batch.ids, now)
    assert crawls >= 10, "worth ten times as much as all others within hours"


def test_a_larger_burst_opens_capped_hosts() -> None:
    """A cap allows as many crawls at once as the budget does: a host that waited for its cap need not wait longer."""
    scheduler = Scheduler(budget=100.0)
    scheduler.set_host("slow", rate_cap=1.0)
    scheduler.add(importance=np.ones(5), change_rate=1.0, host="slow")
    assert [len(scheduler.take(now, 5)) for now in (0.0, 0.5)] == [1, 0]
    scheduler.set_budget(100.0, 0.5, burst=10.0)
    assert len(scheduler.take(0.6, 5)) == 4
    check(scheduler)


def test_taking_nothing_moves_no_page() -> None:
    """A page that came on offer while its host was closed would keep the pages that wait there from being offered."""
    random = np.random.default_rng(0)
    scheduler = Scheduler(budget=10.0)
    scheduler.set_hosts(range(5), min_gap=0.4)
    scheduler.add(importance=random.random(60), change_rate=random.random(60), host=np.arange(60) % 10)
    for step in range(1, 200):
        now, before = step / 10, states_of(scheduler).copy()
        if step > 1:
            assert not len(scheduler.take(now - 0.05, 0))
            np.testing.assert_array_equal(states_of(scheduler), before)
            check(scheduler)
        scheduler.crawled(scheduler.take(now, 3).ids, now)
