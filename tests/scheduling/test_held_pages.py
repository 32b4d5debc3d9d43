"""Pages that may not be taken yet: by their least interval, or after failures. Others get the budget meanwhile."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from invariants import check

import recrawl
from recrawl import Tuning


def test_the_budget_is_used_while_dear_pages_wait_for_their_least_interval() -> None:
    """200 pages that are worth most may come only every 100; the 50 others take all that is left."""
    scheduler = recrawl.Scheduler(budget=10.0)
    scheduler.add(importance=np.full(200, 100.0), change_rate=1.0, last_crawled=0.0, min_interval=100.0)
    scheduler.add(importance=np.ones(50), change_rate=0.1, last_crawled=0.0)
    last = np.zeros(250)
    for step in range(1, 2501):
        now = step / 10
        (page,) = scheduler.take(now, 1).ids.tolist()
        assert page >= 200 or now - last[page] >= 100.0
        last[page] = now
        scheduler.crawled([page], now)
    check(scheduler)


def test_least_intervals_that_do_not_bind_cost_nothing() -> None:
    """Where pages would come later anyway, the same pages are taken as without least intervals."""
    taken = []
    for least in (0.0, 0.2):
        scheduler = recrawl.Scheduler(budget=10.0)
        importance = np.random.default_rng(1).random(200) + 0.5
        scheduler.add(importance=importance, change_rate=0.5, last_crawled=-5.0, min_interval=least)
        found = []
        for step in range(1, 1001):
            batch = scheduler.take(step / 10, 1)
            scheduler.crawled(batch.ids, step / 10)
            found += batch.ids.tolist()
        taken.append(found)
    assert taken[0] == taken[1]


@pytest.mark.parametrize("retry_after", [None, 60.0])
def test_the_budget_is_used_while_pages_wait_after_failures(retry_after: float | None) -> None:
    """Nine of ten pages fail whenever they are tried; no crawl is lost because they wait."""
    scheduler = recrawl.Scheduler(budget=10.0)
    scheduler.add(importance=np.ones(300), change_rate=1.0, last_crawled=0.0)
    for step in range(1, 1501):
        batch = scheduler.take(step / 10, 1)
        assert len(batch) == 1
        if batch.ids[0] < 30:
            scheduler.crawled(batch.ids, step / 10)
        else:
            scheduler.failed(batch.ids, step / 10, retry_after)
    check(scheduler)


def test_a_held_page_at_a_host_does_not_keep_the_host_idle() -> None:
    """A saturated host sells pages without a least interval while the dear ones wait for theirs."""
    scheduler = recrawl.Scheduler(budget=10.0)
    scheduler.set_host("slow", min_gap=1.0)
    common: dict[str, Any] = {"change_rate": 1.0, "last_crawled": 0.0, "host": "slow"}
    scheduler.add(importance=np.full(40, 100.0), min_interval=60.0, **common)
    scheduler.add(importance=np.ones(10), **common)
    crawls = 0
    for step in range(1, 1201):
        batch = scheduler.take(step / 10, 5)
        scheduler.crawled(batch.ids, step / 10)
        crawls += len(batch)
    assert crawls >= 118
    check(scheduler)


def test_a_page_that_may_be_taken_again_is_as_before_a_snapshot() -> None:
    """Held pages are kept in snapshots, and come back at the same time."""
    scheduler = recrawl.Scheduler(budget=10.0)
    scheduler.add(importance=np.full(20, 9.0), change_rate=1.0, last_crawled=0.0, min_interval=3.0)
    scheduler.add(importance=np.ones(5), change_rate=0.1, last_crawled=0.0)
    for step in range(1, 60):
        scheduler.crawled(scheduler.take(step / 10, 1).ids, step / 10)
    again = recrawl.Scheduler.restore(scheduler.snapshot())
    check(again)
    for step in range(60, 150):
        first, second = (each.take(step / 10, 1) for each in (scheduler, again))
        assert first.ids.tolist() == second.ids.tolist()
        for each in (scheduler, again):
            each.crawled(first.ids, step / 10)


def test_waits_after_failures_double() -> None:
    """A quarter of the interval, then twice as long each time, give or take a quarter."""
    scheduler = recrawl.Scheduler(budget=10.0)
    scheduler.add(importance=np.ones(100), change_rate=1.0, last_crawled=-10.0 * np.random.default_rng(1).random(100))
    waits: list[float] = []
    for step in range(1, 4000):
        now = step / 10
        (page,) = scheduler.take(now, 1).ids.tolist()
        if page != 7 or now < 50.0:
            scheduler.crawled([page], now)
            continue
        scheduler.failed([page], now)
        table = scheduler._table.pages[page]
        waits.append(float(table["last"]) + float(table["not_before"]) - now)
        if len(waits) == 6:
            break
    assert np.array(waits) / (2.5 * 2.0 ** np.arange(6)) == pytest.approx(1.0, abs=0.35)


def test_a_wait_after_a_failure_does_not_grow_with_an_earlier_retry_after() -> None:
    """What a server asked for once says nothing of how often a page is crawled."""
    scheduler = recrawl.Scheduler(budget=1.0, tuning=Tuning(longest_retry=1e6))
    scheduler.add(importance=[1.0], change_rate=1.0, last_crawled=0.0)
    scheduler.failed(scheduler.take(1.0, 1).ids, 1.0, retry_after=1000.0)
    scheduler.failed(scheduler.take(1002.0, 1).ids, 1002.0)
    until = scheduler.explain(0, 1002.0).until
    assert until is not None
    assert until - 1002.0 < 3.0


@pytest.mark.parametrize("policy", ["argmax", "greedy", "wic", "price"])
@pytest.mark.parametrize("kept_by", ["least interval", "host"])
def test_no_policy_saves_for_a_dear_page_that_may_not_be_crawled(policy: str, kept_by: str) -> None:
    """Tokens are saved for a dear page only if they are all that it waits for."""
    scheduler = recrawl.Scheduler(budget=1.0, policy=policy, objective="freshness")
    dear: dict[str, Any] = {"importance": np.full(100, 1e3), "change_rate": 1.0, "last_crawled": 0.0, "cost": 5.0}
    if kept_by == "host":
        scheduler.add(**dear, host="away")
        scheduler.set_host("away", blocked_until=1e3)
    else:
        scheduler.add(**dear, min_interval=1e3)
    scheduler.add(importance=np.ones(10), change_rate=1.0, last_crawled=0.0)
    for now in range(1, 51):
        batch = scheduler.take(float(now), 1)
        assert len(batch) == 1
        scheduler.crawled(batch.ids, float(now))


def test_a_page_that_is_held_stays_held_when_it_is_updated() -> None:
    """Whoever holds a page says until when; a new importance says nothing of that, nor does a least interval."""
    scheduler = recrawl.Scheduler(budget=100.0, now=10.0)
    held, free = scheduler.add(importance=np.ones(2), change_rate=1.0, last_crawled=0.0).tolist()
    scheduler.resume([held], held_until=15.0)
    scheduler.update([held, free], importance=[5.0, 5.0])
    assert scheduler.take(14.9, 2).ids.tolist() == [free]
    scheduler.update([held], min_interval=1.0)
    assert scheduler.take(14.95, 2).ids.tolist() == []
    scheduler.update([held], min_interval=0.0, last_crawled=[12.0])
    assert scheduler.take(14.99, 2).ids.tolist() == []
    assert scheduler.take(15.01, 2).ids.tolist() == [held]
    check(scheduler, {held, free})


def test_a_least_interval_that_is_given_up_holds_nobody_back() -> None:
    scheduler = recrawl.Scheduler(budget=100.0, now=10.0)
    (page,) = scheduler.add(importance=1.0, change_rate=1.0, last_crawled=9.0, min_interval=50.0).tolist()
    assert scheduler.take(10.0, 1).ids.tolist() == []
    scheduler.update([page], min_interval=0.0)
    assert scheduler.take(10.0, 1).ids.tolist() == [page]


def test_a_page_that_is_let_go_may_be_taken_but_for_its_least_interval_and_failures() -> None:
    scheduler = recrawl.Scheduler(budget=100.0, now=10.0)
    held, floored, failing = scheduler.add(
        importance=np.ones(3), change_rate=1.0, last_crawled=9.0, min_interval=[0.0, 4.0, 0.0]
    ).tolist()
    scheduler.resume([held, floored, failing], failures=[0, 0, 2], held_until=20.0)
    assert [scheduler.is_held(page, 10.5) for page in (held, floored, failing)] == [True, True, True]
    assert scheduler.take(10.5, 3).ids.tolist() == []
    scheduler.let_go([held, floored, failing])
    assert [scheduler.is_held(page, 10.5) for page in (held, floored, failing)] == [False, True, True]
    check(scheduler)
    assert scheduler.take(11.0, 3).ids.tolist() == [held]
    assert scheduler.take(13.5, 3).ids.tolist() == [floored]
    assert scheduler.take(20.5, 3).ids.tolist() == [failing]


def test_a_page_that_is_let_go_in_flight_is_not_held_when_it_is_given_back() -> None:
    scheduler = recrawl.Scheduler(budget=100.0, now=10.0)
    (page,) = scheduler.add(importance=1.0, change_rate=1.0, last_crawled=9.0).tolist()
    scheduler.resume([page], held_until=20.0)
    scheduler.claim([page], 10.5)
    scheduler.let_go([page])
    scheduler.release([page], 11.0)
    assert scheduler.take(12.0, 1).ids.tolist() == [page]
    check(scheduler, {page})


def test_the_rate_that_least_intervals_allow_is_the_sum_over_pages() -> None:
    scheduler = recrawl.Scheduler(budget=10.0)
    assert scheduler.most_rate(10.0) == 0.0
    low = scheduler.add(importance=np.ones(8), change_rate=1.0, last_crawled=0.0, min_interval=2.0)
    dear = scheduler.add(importance=1.0, change_rate=1.0, last_crawled=0.0, min_interval=0.5, cost=3.0)
    scheduler.add(importance=0.0, change_rate=1.0, last_crawled=0.0)  # never taken
    assert scheduler.most_rate(99.0) == 4.0 + 6.0
    scheduler.remove(dear)
    assert scheduler.most_rate(99.0) == 4.0
    many = scheduler.add(importance=np.ones(9000), change_rate=1.0, last_crawled=0.0, min_interval=1.0)
    assert scheduler.most_rate(1e9) == 9004.0
    assert 100.0 <= scheduler.most_rate(100.0) < 9004.0  # it need not look at all of them
    scheduler.update(many[-1:], min_interval=0.0)
    assert scheduler.most_rate(1e9) == np.inf
    scheduler.remove(many)
    scheduler.add(importance=1.0, change_rate=1.0, last_crawled=0.0)
    assert scheduler.most_rate(1e9) == np.inf
    scheduler.remove(low)


def test_a_page_is_held_until_its_least_interval_has_passed_since_its_copy() -> None:
    scheduler = recrawl.Scheduler(budget=10.0, now=5.0)
    (page,) = scheduler.add(importance=1.0, change_rate=1.0, last_crawled=5.0, min_interval=2.0).tolist()
    (new,) = scheduler.add(importance=1.0, change_rate=1.0, min_interval=2.0).tolist()
    assert [scheduler.is_held(page, now) for now in (5.0, 6.9, 7.1)] == [True, True, False]
    assert not scheduler.is_held(new, 5.0)
