"""What a host sells that cannot serve all its pages: the most valuable, and it is never idle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from invariants import check

import recrawl


@pytest.mark.parametrize("objective", ["freshness", "harmonic"])
def test_a_saturated_host_sells_its_most_valuable_pages_without_a_copy(objective: Any) -> None:
    """1,000 pages were never crawled and the host serves 60: those an exact search would choose, or as good."""
    sold = {}
    for policy in ("price", "argmax"):
        scheduler = recrawl.Scheduler(budget=10.0, objective=objective, policy=policy)
        scheduler.set_host("slow", min_gap=1.0)
        random = np.random.default_rng(2)
        importance = random.permutation(np.arange(1.0, 1001.0))
        rate = 10 ** random.uniform(-2, 0, 1000)
        scheduler.add(importance=importance, change_rate=rate, host="slow")
        scheduler.add(importance=np.full(300, 1e-3), change_rate=0.1, last_crawled=0.0)
        values: list[float] = []
        for step in range(1, 601):
            batch = scheduler.take(step / 10, 1)
            scheduler.crawled(batch.ids, step / 10)
            values += batch.values[batch.ids < 1000].tolist()
        sold[policy] = values
    assert len(sold["price"]) == len(sold["argmax"])
    assert sum(sold["price"]) >= 0.98 * sum(sold["argmax"])


@pytest.mark.parametrize("objective", ["freshness", "harmonic"])
def test_saturated_hosts_that_open_by_the_dozen_leave_no_budget_unused(objective: Any) -> None:
    """Each offers many pages and sells one; pages of no host are worth the rest of the budget."""
    hosts, random = 400, np.random.default_rng(0)
    budget, step = 1.5 * hosts, 0.125
    scheduler = recrawl.Scheduler(budget, objective, burst=budget * step + 1.0)
    scheduler.set_hosts([f"h{number}" for number in range(hosts)], min_gap=8 * step)
    for each, importance, host in ((10, 5.0, [f"h{number % hosts}" for number in range(10 * hosts)]), (4, 1.0, None)):
        pages = each * hosts
        scheduler.add(
            importance=importance * random.uniform(0.5, 1.5, pages),
            change_rate=random.uniform(0.5, 1.5, pages),
            last_crawled=-10.0 * random.random(pages),
            host=host,
        )
    crawls = 0
    for poll in range(1, 401):
        batch = scheduler.take(poll * step, 14 * hosts)
        scheduler.crawled(batch.ids, poll * step)
        crawls += len(batch) if poll > 100 else 0
    assert crawls >= 0.999 * budget * 300 * step
    check(scheduler)


def test_a_host_is_not_idle_when_its_price_falls_back_to_the_common_one() -> None:
    """A host with a long gap and pages without a copy is crawled whenever it is open."""
    random = np.random.default_rng(5)
    scheduler = recrawl.Scheduler(budget=50.0, objective="freshness")
    scheduler.set_host("slow", min_gap=2.0)
    importance = random.pareto(1.2, 3000) + 0.1
    slow = np.arange(3000) < 2700
    scheduler.add(
        importance=importance,
        change_rate=10 ** random.uniform(-3, 0, 3000),
        last_crawled=np.where(slow, np.nan, 0.0),
        host=np.where(slow, "slow", "other"),
    )
    crawls = 0
    for step in range(1, 3001):
        batch = scheduler.take(step / 50, 1)
        scheduler.crawled(batch.ids, step / 50)
        crawls += int((batch.ids < 2700).sum())
    assert crawls >= 29
    check(scheduler)


def test_pages_of_a_host_come_back_when_the_price_falls() -> None:
    """Pages without a copy that are not worth the price wait for it to fall, also at a host with limits."""
    scheduler = recrawl.Scheduler(budget=10.0, objective="freshness")
    scheduler.set_host("slow", min_gap=0.2)
    dear = scheduler.add(importance=np.full(200, 100.0), change_rate=1.0, last_crawled=0.0)
    scheduler.add(importance=np.full(20, 0.5), change_rate=1.0, host="slow")
    for step in range(1, 301):
        scheduler.crawled(scheduler.take(step / 10, 1).ids, step / 10)
    scheduler.add(importance=np.full(5, 0.1), change_rate=1.0, last_crawled=0.0)
    scheduler.remove(dear)
    seen: set[int] = set()
    for step in range(301, 701):
        batch = scheduler.take(step / 10, 1)
        scheduler.crawled(batch.ids, step / 10)
        seen |= set(batch.ids.tolist())
    assert len(seen & set(range(200, 220))) == 20
    check(scheduler)


def test_a_signal_brings_a_page_before_the_one_that_its_host_offers() -> None:
    """What a host had on offer does not hold up a page that has become worth more."""
    scheduler = recrawl.Scheduler(budget=1.0)
    scheduler.set_host("slow", min_gap=0.5)
    trust = {"feed": recrawl.Signal(0.9, 0.9)}
    scheduler.add(importance=np.ones(50), change_rate=0.1, last_crawled=0.0, host="slow", signals=trust)
    for step in range(1, 201):
        scheduler.crawled(scheduler.take(float(step), 1).ids, float(step))
    heard = 17
    scheduler.take(200.2, 0)
    scheduler.signal([heard] * 5, 200.5, "feed")
    assert int(np.argmax(scheduler._table.values(np.arange(50), 201.0))) == heard
    assert scheduler.take(201.0, 1).ids.tolist() == [heard]


def test_a_batch_is_in_order_of_value_with_hosts() -> None:
    """The next page of a host may be worth more than what was sold before it; the batch is in order all the same."""
    random = np.random.default_rng(0)
    scheduler = recrawl.Scheduler(budget=100.0, burst=50.0)
    scheduler.set_host("slow", max_in_flight=50)
    importance, rate = random.random(300) + 0.1, random.random(300) + 0.01
    scheduler.add(importance=importance, change_rate=rate, last_crawled=0.0, host="slow")
    scheduler.add(importance=random.random(300), change_rate=1.0, last_crawled=0.0)
    for step in range(1, 60):
        batch = scheduler.take(step / 2, 50)
        assert (np.diff(batch.values) <= 0).all()
        values = scheduler._table.values(batch.ids, step / 2, scheduler.price)
        assert batch.values == pytest.approx(values)
        scheduler.crawled(batch.ids, step / 2)


def test_a_batch_begins_with_pages_whose_longest_interval_has_passed() -> None:
    """They come before all others, which are in order of value."""
    scheduler = recrawl.Scheduler(budget=10.0, burst=10.0)
    scheduler.add(importance=np.arange(1.0, 6.0), change_rate=1.0, last_crawled=0.0)
    scheduler.add(importance=[1e-3, 2e-3], change_rate=1.0, last_crawled=0.0, max_interval=0.5)
    batch = scheduler.take(1.0, 10)
    assert batch.ids.tolist() == [5, 6, 4, 3, 2, 1, 0]
    assert (np.diff(batch.values[2:]) <= 0).all()
