"""Change rates that are learned on the way: pages explore by themselves and come near what is known of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from invariants import check

import recrawl
from recrawl import Signal
from recrawl.pages import Floats
from recrawl.scheduling.table.records import LEARNS


class World:
    """Pages that change at random; each crawl says whether the page has changed since the one before."""

    def __init__(self, pages: int, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.importance = self.random.random(pages) + 0.1
        self.rate = 10 ** self.random.uniform(-2.0, 1.0, pages)
        self.last = np.zeros(pages)

    def crawl(self, slots: Any, now: float) -> Any:
        changed = self.random.random(len(slots)) < -np.expm1(-self.rate[slots] * (now - self.last[slots]))
        self.last[slots] = now
        return changed


def run(scheduler: recrawl.Scheduler, world: World, end: float, step: float) -> tuple[Floats, Any]:
    times, slots = [], []
    for now in np.arange(scheduler.now + step, end, step).tolist():
        ids = scheduler.take(now, 1000).ids
        scheduler.crawled(ids, now, changed=world.crawl(ids, now))
        times.append(np.full(len(ids), now))
        slots.append(ids)
    return np.concatenate(times), np.concatenate(slots)


def freshness(world: World, times: Floats, slots: Any, start: float, end: float) -> float:
    """The importance-weighted share of time in which copies are fresh, by the true rates."""
    total = 0.0
    for page in range(len(world.rate)):
        marks = times[slots == page]
        before = marks[marks <= start]
        marks = np.concatenate([before[-1:], marks[(marks > start) & (marks < end)], [end]])
        low = np.maximum(marks[:-1], start) - marks[:-1]
        gained = np.exp(-world.rate[page] * low) - np.exp(-world.rate[page] * np.diff(marks))
        total += world.importance[page] * gained.sum() / world.rate[page]
    return float(total / (end - start) / world.importance.sum())


@pytest.mark.parametrize("objective", ["freshness", "harmonic"])
def test_learned_pages_come_near_to_known_ones(objective: Any) -> None:
    """1 000 pages, nothing known at the start: within a few percent of known rates after thirty cycles."""
    pages, budget, cycle = 1_000, 500.0, 2.0
    reached = {}
    for known in (True, False):
        world = World(pages, seed=4)
        scheduler = recrawl.Scheduler(budget=budget, objective=objective, burst=3.0)
        rate = world.rate if known else None
        scheduler.add(importance=world.importance, change_rate=rate, last_crawled=None)
        times, slots = run(scheduler, world, 30 * cycle, 0.004)
        reached[known] = [freshness(world, times, slots, k * cycle, (k + 5) * cycle) for k in (5, 10, 25)]
        if not known:
            check(scheduler)
            crawls = np.bincount(slots, minlength=pages)
            assert (crawls > 0).all(), "every page is crawled for a first copy"
            believed = scheduler._table.pages["decay"][:pages]
            assert np.corrcoef(np.log(believed), np.log(world.rate))[0, 1] > 0.85
    share = np.array(reached[False]) / np.array(reached[True])
    assert share[-1] >= 0.95


def test_failures_and_crawls_of_unknown_outcome_teach_nothing() -> None:
    scheduler = recrawl.Scheduler(budget=100.0, burst=3.0)
    ids = scheduler.add(importance=[1.0, 1.0, 1.0], last_crawled=0.0)
    before = scheduler._table.beliefs[:3].tobytes()
    batch = scheduler.take(1.0, 3)
    assert len(batch.ids) == 3
    scheduler.failed(ids[:1], 1.0)
    scheduler.release(ids[1:2], 1.0)
    scheduler.crawled(ids[2:], 1.0)
    assert scheduler._table.beliefs[:3].tobytes() == before


def test_a_first_crawl_teaches_nothing_and_the_second_does() -> None:
    scheduler = recrawl.Scheduler(budget=100.0)
    page = scheduler.add(importance=[1.0])
    before = scheduler._table.beliefs[:1].tobytes()
    scheduler.crawled(scheduler.take(1.0, 1).ids, 1.0, changed=True)
    assert scheduler._table.beliefs[:1].tobytes() == before
    mean = float(scheduler._table.pages["decay"][page[0]])
    scheduler.crawled(scheduler.take(50.0, 1).ids, 50.0, changed=False)
    assert scheduler._table.pages["decay"][page[0]] < 0.1 * mean


def test_what_is_learned_stays_when_something_else_is_updated() -> None:
    scheduler = recrawl.Scheduler(budget=100.0)
    page = scheduler.add(importance=[1.0], last_crawled=0.0)
    for step in range(1, 6):
        ids = scheduler.take(10.0 * step, 1).ids
        scheduler.crawled(ids, 10.0 * step, changed=False)
    believed = scheduler._table.pages["decay"][page[0]]
    scheduler.update(page, importance=5.0, cost=2.0, host="a")
    assert scheduler._table.pages["decay"][page[0]] == believed
    scheduler.update(page, change_rate=3.0)
    assert scheduler._table.pages["decay"][page[0]] == 3.0
    assert not scheduler._table.pages["flags"][page[0]] & LEARNS
    scheduler.update(page, change_rate=None)
    assert scheduler._table.pages["flags"][page[0]] & LEARNS


def test_rates_are_learned_without_bias_from_pages_with_signals() -> None:
    """Announced changes are no silent ones: what is learned is the true rate, with and without signals heard."""
    pages, rate, recall, precision = 400, 0.5, 0.5, 0.5
    random = np.random.default_rng(8)
    scheduler = recrawl.Scheduler(budget=200.0, burst=5.0)
    trust = {"feed": Signal(recall, precision)}
    ids = scheduler.add(importance=np.ones(pages), last_crawled=0.0, signals=trust)
    pending = np.zeros(pages, dtype=bool)
    for step in range(1, 3000):
        now = step * 0.02
        changes = random.random(pages) < rate * 0.02
        pending |= changes
        told = changes & (random.random(pages) < recall)
        told |= random.random(pages) < rate * recall * (1 - precision) / precision * 0.02
        scheduler.signal(ids[told], now, kind="feed")
        batch = scheduler.take(now, 100).ids
        scheduler.crawled(batch, now, changed=pending[batch])
        pending[batch] = False
    believed = np.median(scheduler._table.pages["decay"][:pages])
    assert believed == pytest.approx(rate, rel=0.3)


def test_the_price_of_a_learned_population_is_steady() -> None:
    """Learned rates move due times at every crawl: the price must not swing with them."""
    random = np.random.default_rng(8)
    pages, budget = 1_000, 100.0
    importance, rates = random.pareto(1.5, pages) + 0.1, 10 ** random.uniform(-2.0, 0.5, pages)
    scheduler = recrawl.Scheduler(budget=budget, burst=2.0)
    scheduler.add(importance=importance)
    last, prices = np.full(pages, np.nan), []
    for step in range(1, 30_001):
        now = step / budget
        batch = scheduler.take(now, 2)
        slots = batch.ids & 0xFFFFFFFF
        missed = -np.expm1(-rates[slots] * (now - last[slots]))
        scheduler.crawled(batch.ids, now, changed=np.isnan(missed) | (random.random(len(slots)) < missed))
        last[slots] = now
        prices.append(batch.price)
    late = np.log(prices[15_000:])
    assert np.std(late) < 0.1
    assert abs(late[:7_500].mean() - late[7_500:].mean()) < 0.1
    plan = recrawl.plan({"importance": importance, "change_rate": rates}, budget=budget)
    assert np.exp(late.mean()) == pytest.approx(plan.price, rel=0.25)
