"""The budget: constant over time, never overspent, and shared by one price when a flood of new pages comes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from invariants import check

import recrawl
from recrawl.pages import Floats
from recrawl.scheduling.table.records import NO_COPY

BUDGET = 100.0
OLD = 1_000


class Log(NamedTuple):
    """When which page was crawled, by its slot."""

    times: Floats
    slots: Any


def crawl(scheduler: recrawl.Scheduler, end: float, step: float = 0.01) -> Log:
    """Poll steadily and settle at once."""
    times, slots = [], []
    for now in np.arange(scheduler.now + step, end + 1e-9, step).tolist():
        ids = scheduler.take(now, 1000).ids
        scheduler.crawled(ids, now)
        times.append(np.full(len(ids), now))
        slots.append(ids & 0xFFFFFFFF)
    return Log(np.concatenate(times), np.concatenate(slots))


def test_no_window_is_overspent_with_dear_crawls_failures_and_releases() -> None:
    """Cost taken less cost released in any window is at most budget · window + burst, or one dear crawl."""
    random = np.random.default_rng(3)
    scheduler = recrawl.Scheduler(budget=5.0, burst=3.0)
    cost = random.choice([0.2, 1.0, 2.5, 20.0], 300)
    scheduler.add(importance=random.random(300) + 0.1, change_rate=1.0, last_crawled=0.0, cost=cost)
    events: list[tuple[float, float]] = []
    flying: list[int] = []
    now = 0.0
    for _ in range(2500):
        now += random.choice([0.0, 0.01, 0.1, 0.5])
        ids = scheduler.take(now, int(random.integers(0, 5))).ids.tolist()
        events.extend((now, cost[page]) for page in ids)
        flying.extend(ids)
        random.shuffle(flying)
        back = [flying.pop() for _ in range(int(random.integers(0, len(flying) + 1)))]
        third = len(back) // 3
        scheduler.release(back[:third], now)
        events.extend((now, -cost[page]) for page in back[:third])
        scheduler.failed(back[third : 2 * third], now)
        scheduler.crawled(back[2 * third :], now)
    check(scheduler, set(flying))
    times = np.array([time for time, _ in events])
    spent = np.concatenate([[0.0], np.cumsum([amount for _, amount in events])])
    for start in range(len(times)):
        window = spent[start + 1 :] - spent[start]
        assert (window <= 5.0 * (times[start:] - times[start]) + max(3.0, 20.0) + 1e-4).all()
    assert spent[-1] >= 0.5 * 5.0 * now


def flooded(policy: str, objective: Any, spread: float) -> tuple[recrawl.Scheduler, float]:
    """A scheduler in its steady state that is handed ten times as many pages without a copy; the price before.

    The new ones are worth from a hundredth of the price to twice of it, or one and a half of it if there is no spread,
    and next to nothing once there is a copy.
    """
    random = np.random.default_rng(1)
    importance, rate = random.random(OLD) + 0.1, 10 ** random.uniform(-1.5, 0.5, OLD)
    plan = recrawl.plan({"importance": importance, "change_rate": rate}, budget=BUDGET, objective=objective)
    since = random.random(OLD) / np.maximum(plan.rates, 0.01)
    scheduler = recrawl.Scheduler(budget=BUDGET, objective=objective, burst=4.0, policy=policy)
    scheduler.add(importance=importance, change_rate=rate, last_crawled=-since)
    scheduler.take(0.0, 0)
    worth = plan.price * (10 ** random.uniform(-2.0, 0.3, 10 * OLD) if spread else np.full(10 * OLD, 1.5))
    missed = 0.605612  # h(x) with Ein(x) = 1: what a page without a copy is worth when it is added, under any objective
    scheduler.add(importance=worth * 1e-6 / missed, change_rate=1e-6)
    return scheduler, plan.price


@pytest.mark.parametrize("spread", [0.0, 2.3])
@pytest.mark.parametrize("objective", ["freshness", "harmonic"])
def test_a_flood_of_new_pages_makes_no_burst_and_is_served_as_the_exact_argmax_would(
    objective: Any, spread: float
) -> None:
    """New pages get what the search for the best page would give them, at all times, and refreshes the rest."""
    counts = {}
    for policy in ("price", "argmax"):
        scheduler, _ = flooded(policy, objective, spread)
        log = crawl(scheduler, 20.0)
        for start in (0.0, 5.0, 10.0):
            span = (log.times > start) & (log.times <= start + 1.0)
            assert span.sum() <= BUDGET * 1.0 + 4.0, "there is no burst"
        assert len(log.times) == pytest.approx(BUDGET * 20.0, abs=5)
        counts[policy] = [int((log.slots[log.times <= end] >= OLD).sum()) for end in (2.0, 5.0, 10.0, 20.0)]
    assert counts["price"] == pytest.approx(counts["argmax"], rel=0.15, abs=20)


@pytest.mark.parametrize("objective", ["freshness", "harmonic"])
def test_the_price_returns_when_the_flood_is_over(objective: Any) -> None:
    """1 500 new pages at one and a half of the price: it rises to that, no further, and comes back."""
    scheduler, before = flooded("price", objective, 0.0)
    rest = np.arange(OLD + 1_500, 11 * OLD, dtype=np.int64)
    scheduler.remove(rest)
    crawl(scheduler, 10.0)
    assert scheduler.price == pytest.approx(1.5 * before, rel=0.1)
    crawl(scheduler, 120.0)
    assert (scheduler._table.pages["flags"][OLD : OLD + 1_500] & NO_COPY == 0).all()
    log = crawl(scheduler, 150.0)
    assert scheduler.price == pytest.approx(before, rel=0.05)
    assert len(log.times) == pytest.approx(BUDGET * 30, rel=0.005)
    check(scheduler)


def test_cheaper_pages_are_seen_at_once_when_costs_change() -> None:
    """A page that becomes cheaper than any so far is taken as soon as the tokens pay for it."""
    scheduler = recrawl.Scheduler(budget=1.0, burst=1.0)
    ids = scheduler.add(importance=[1.0, 1.0, 1.0], change_rate=1.0, last_crawled=0.0, cost=[1.0, 1.0, 2.0])
    first = scheduler.take(1.0, 1)
    scheduler.crawled(first.ids, 1.0)
    scheduler.update(ids, cost=0.1)
    assert len(scheduler.take(1.25, 5).ids) == 2


def test_an_empty_start_does_not_fix_the_price() -> None:
    """A scheduler that was asked before it had pages serves whatever comes, however small its worth."""
    scheduler = recrawl.Scheduler(budget=10.0)
    assert len(scheduler.take(1.0, 5).ids) == 0
    scheduler.add(profit=np.full(20, 0.01), new_page_rate=0.5, decay=0.3, objective="news", last_crawled=1.0)
    assert len(crawl(scheduler, 60.0, 0.1).times) > 300


def test_pages_that_never_change_do_not_set_the_price() -> None:
    """A first copy that serves for ever is worth more than anything; when all are there the rest is served on."""
    scheduler = recrawl.Scheduler(budget=10.0)
    scheduler.add(importance=np.ones(200), change_rate=0.0)
    scheduler.add(importance=np.ones(200), change_rate=1.0, last_crawled=0.0)
    log = crawl(scheduler, 100.0, 0.1)
    assert (log.slots < 200).sum() == 200
    assert len(log.slots) >= 0.99 * 10.0 * 100
    assert 1e-3 < scheduler.price < 1e3


def test_a_pause_without_a_budget_does_not_keep_the_next_take_waiting() -> None:
    """The queues are built again after a long pause, however short the cycle was before it."""
    scheduler = recrawl.Scheduler(budget=1e12)
    scheduler.add(importance=np.ones(10), change_rate=1.0, last_crawled=0.0)
    assert len(scheduler.take(1.0, 1)) == 1
    scheduler.set_budget(0.0, 2.0)  # and a token is left
    assert len(scheduler.take(50.0, 1)) == 1
