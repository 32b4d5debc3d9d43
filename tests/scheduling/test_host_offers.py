"""A host with one page on offer at a time: what it offers must not keep what is worth far more from being sold."""

from __future__ import annotations

import pytest

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
