"""What every policy promises, through the scheduler: one suite, run for each of them by name."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

import recrawl
from recrawl.pages import Floats
from recrawl.scheduling.policies.registry import POLICY_NAMES, make_policy
from recrawl.scheduling.table.records import Ids

ECHO = [name for name in POLICY_NAMES if name.startswith("echo")]
NAMES = pytest.mark.parametrize("name", POLICY_NAMES)
BUDGET = 4.0


def scheduler(name: str, budget: float = BUDGET, seed: int = 0) -> recrawl.Scheduler:
    return recrawl.Scheduler(budget=budget, policy=name, seed=seed)


def populate(made: recrawl.Scheduler, pages: int = 24, seed: int = 1) -> Ids:
    """Pages of every kind: to be kept fresh, with signals, captured, sources, new; some without a copy, some dear."""
    random = np.random.default_rng(seed)
    part = pages // 6

    def some(low: float = 0.1) -> Floats:
        return low + random.random(part)

    trust = recrawl.Signal(recall=0.7, precision=0.6)
    ids = [
        made.add(importance=some(), change_rate=some(), last_crawled=0.0, host="a"),
        made.add(importance=some(), change_rate=some(), objective="freshness", host="b"),
        made.add(importance=some(), change_rate=some(), last_crawled=0.0, signals={"feed": trust}),
        made.add(importance=some(), change_rate=some(), decay=some(), objective="captures", last_crawled=0.0),
        made.add(profit=some(), new_page_rate=some(), decay=some(), objective="news", last_crawled=0.0, host="b"),
        made.add(profit=some(), decay=some(), objective="once", cost=0.5),
    ]
    return np.concatenate(ids)


class Run(NamedTuple):
    """What was taken when, with what value and price."""

    times: list[float]
    ids: list[int]
    values: list[float]
    prices: list[float]


def run(name: str, steps: int = 120, seed: int = 0) -> Run:
    """A crawler with random workers, failures, releases and signals: the same for the same seed."""
    random = np.random.default_rng(7)
    made = scheduler(name, seed=seed)
    listening = populate(made)[8:12]
    log = Run([], [], [], [])
    flying: list[int] = []
    for step in range(1, steps + 1):
        now = 0.13 * step
        made.signal(random.choice(listening, 2), now, kind="feed")
        batch = made.take(now, int(random.integers(0, 4)))
        assert not set(batch.ids.tolist()) & set(flying), "a page was taken twice"
        flying.extend(batch.ids.tolist())
        log.times.extend([now] * len(batch.ids))
        log.ids.extend(batch.ids.tolist())
        log.values.extend(batch.values.tolist())
        log.prices.append(batch.price)
        random.shuffle(flying)
        settled, flying = flying[: len(flying) // 2], flying[len(flying) // 2 :]
        third = len(settled) // 3
        made.failed(settled[:third], now)
        made.release(settled[third : 2 * third], now)
        made.crawled(settled[2 * third :], now, changed=random.random(len(settled) - 2 * third) < 0.5)
    return log


@NAMES
def test_the_same_calls_and_seed_choose_the_same_pages(name: str) -> None:
    assert run(name) == run(name)


@NAMES
def test_something_is_crawled_and_the_price_is_a_number(name: str) -> None:
    log = run(name)
    assert len(log.ids) > (5 if name in ECHO else 20)
    assert np.isfinite(log.values).all()
    assert (np.array(log.values) >= 0).all()
    assert np.isfinite(log.prices).all()
    assert (np.array(log.prices) >= 0).all()


@NAMES
def test_a_policy_goes_on_from_its_state(name: str) -> None:
    """Another policy of the same kind, over the same table, has the price of the first."""
    made = scheduler(name)
    populate(made)
    for step in range(1, 40):
        made.crawled(made.take(step / 4, 2).ids, step / 4)
    other = make_policy(name, made._table, BUDGET, seed=0, now=made.now)
    assert other.price() == 0.0
    assert made.price > 0.0 or name == "echo-greedy"  # which solves for no price
    other.restore(made._policy.state())
    assert other.price() == made.price


@NAMES
def test_no_window_sees_more_than_its_budget_and_the_burst(name: str) -> None:
    made = scheduler(name)
    cheap = set(populate(made, pages=60)[50:].tolist())
    times, spent = [0.0], [0.0]
    for step in range(1, 300):
        now = step * 0.05
        batch = made.take(now, 100)
        made.crawled(batch.ids, now, changed=np.zeros(len(batch.ids), dtype=bool))
        times.append(now)
        spent.append(sum(0.5 if page in cheap else 1.0 for page in batch.ids.tolist()))
    total = np.cumsum(spent)
    assert total[-1] > 1
    for start in range(len(times)):
        windows = np.array(times[start:]) - times[start]
        assert (total[start:] - total[start] + spent[start] <= BUDGET * windows + 1.0 + 1e-6).all()


@NAMES
def test_a_page_in_flight_is_not_taken_again_until_it_is_settled(name: str) -> None:
    made = scheduler(name, budget=100.0)
    populate(made, pages=6)
    taken: list[int] = []
    for step in range(1, 200):
        taken.extend(made.take(step / 10, 10).ids.tolist())
    assert len(taken) == len(set(taken))
    assert len(taken) >= (2 if name in ECHO else 5)


@NAMES
def test_only_pages_that_are_there_are_taken(name: str) -> None:
    made = scheduler(name, budget=50.0)
    ids = populate(made)
    made.take(0.5, 3)
    gone = ids[::3]
    made.remove(gone)
    more = made.add(importance=[1.0, 2.0], change_rate=0.5, last_crawled=0.0)
    there = set(ids.tolist()) - set(gone.tolist()) | set(more.tolist())
    for step in range(10, 100):
        batch = made.take(step / 10, 10)
        assert set(batch.ids.tolist()) <= there
        made.crawled(batch.ids, step / 10, changed=np.ones(len(batch.ids), dtype=bool))


@NAMES
def test_a_host_is_crawled_no_faster_than_its_gap(name: str) -> None:
    made = scheduler(name, budget=50.0)
    made.set_host("slow", min_gap=1.0)
    slow = set(add_to(made, "slow", 10).tolist())
    add_to(made, "free", 10)
    starts, others = [], 0
    for step in range(1, 400):
        now = step / 40
        batch = made.take(now, 5)
        made.crawled(batch.ids, now, changed=np.ones(len(batch.ids), dtype=bool))
        starts.extend([now] * len(slow & set(batch.ids.tolist())))
        others += len(set(batch.ids.tolist()) - slow)
    assert len(starts) >= 3
    assert np.diff(starts).min() >= 1.0 - 1e-9
    assert others > 20, "a slow host stands in nobody's way"


@NAMES
def test_a_host_has_no_more_in_flight_than_it_may(name: str) -> None:
    made = scheduler(name, budget=50.0)
    made.set_host("shy", max_in_flight=2)
    add_to(made, "shy", 10)
    taken = [made.take(step / 10, 5) for step in range(1, 100)]
    first = np.concatenate([batch.ids for batch in taken])
    assert len(first) == 2
    made.crawled(first, 10.0, changed=[True, True])
    again = np.concatenate([made.take(10.0 + step / 10, 5).ids for step in range(1, 100)])
    assert len(again) == 2


@NAMES
def test_a_blocked_host_is_left_alone_and_then_served(name: str) -> None:
    made = scheduler(name, budget=50.0)
    made.set_host("down", blocked_until=10.0)
    add_to(made, "down", 5)
    assert sum(len(made.take(step / 10, 5).ids) for step in range(1, 100)) == 0
    assert sum(len(made.take(step / 10, 5).ids) for step in range(100, 200)) > 0


@NAMES
def test_a_page_is_not_taken_before_its_shortest_interval(name: str) -> None:
    made = scheduler(name, budget=50.0)
    add_to(made, "any", 8, min_interval=2.0)
    last: dict[int, float] = {}
    for step in range(1, 400):
        now = step / 20
        batch = made.take(now, 5)
        for page in batch.ids.tolist():
            assert now - last.get(page, 0.0) >= 2.0 - 1e-5
            last[page] = now
        made.crawled(batch.ids, now, changed=np.ones(len(batch.ids), dtype=bool))
    assert last


@NAMES
def test_a_failed_page_waits_as_long_as_the_server_asked(name: str) -> None:
    made = scheduler(name, budget=50.0)
    add_to(made, "one", 3)
    batch = made.take(5.0, 5)
    while not len(batch.ids):
        batch = made.take(made.now + 0.1, 5)
    failed_at = made.now
    made.failed(batch.ids, failed_at, retry_after=3.0)
    for step in range(1, 30):
        assert not len(made.take(failed_at + step / 10, 5).ids)
    assert sum(len(made.take(failed_at + 3.0 + step / 10, 5).ids) for step in range(100)) > 0


@NAMES
def test_an_empty_scheduler_has_nothing_to_crawl_and_gets_going_when_pages_come(name: str) -> None:
    made = scheduler(name)
    for now in (0.0, 1.0, 50.0):
        assert len(made.take(now, 10).ids) == 0
    ids = add_to(made, "any", 4)
    made.remove(ids)
    assert len(made.take(60.0, 10).ids) == 0
    later = set(add_to(made, "any", 4).tolist())
    taken = [page for step in range(1, 60) for page in made.take(60.0 + step, 4).ids.tolist()]
    assert taken
    assert set(taken) <= later


@NAMES
def test_no_budget_is_no_crawls_and_a_new_budget_is_taken_up(name: str) -> None:
    made = scheduler(name)
    add_to(made, "any", 10)
    crawl_until(made, 10.0)
    made.set_budget(0.0, 10.0)
    crawl_until(made, 11.0)
    assert crawl_until(made, 30.0) == 0
    made.set_budget(8.0, 30.0)
    crawled = crawl_until(made, 60.0)
    assert 0.4 * 8 * 30 <= crawled <= 8 * 30 + 1


@NAMES
def test_asking_for_none_takes_none(name: str) -> None:
    made = scheduler(name)
    add_to(made, "any", 10)
    assert len(made.take(10.0, 0).ids) == 0


def add_to(made: recrawl.Scheduler, host: str, pages: int, **limits: float) -> Ids:
    """Sources: the one kind of page that every policy serves."""
    random = np.random.default_rng(pages)
    return made.add(
        profit=0.5 + random.random(pages),
        new_page_rate=0.1 + 0.2 * random.random(pages),
        decay=0.5 + random.random(pages),
        objective="news",
        last_crawled=made.now,
        host=host,
        **limits,
    )


def crawl_until(made: recrawl.Scheduler, end: float) -> int:
    """Crawl as fast as the scheduler lets, every crawl settled at once."""
    crawled = 0
    while made.now + 0.05 <= end:
        batch = made.take(made.now + 0.05, 10)
        made.crawled(batch.ids, made.now, changed=np.ones(len(batch.ids), dtype=bool))
        crawled += len(batch.ids)
    return crawled
