"""Many pages that are worth a crawl at once, sold a few at a time: the best first, and not all valued each time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from invariants import check

from recrawl import Scheduler, Signal
from recrawl.pages import Floats

MANY, FEW = 2_000, 75


def sold(policy: str, each: int, signals: bool) -> tuple[Floats, list[int]]:
    """Values of 600 crawls after 400 of the pages heard a signal or were left alone; how many were on offer."""
    scheduler = Scheduler(budget=200.0, burst=20.0, objective="harmonic", policy=policy)
    random = np.random.default_rng(2)
    heard: Any = {"signals": {"feed": Signal(0.6, 0.7)}} if signals else {}
    columns: Any = {"importance": 0.5 + random.random(MANY), "change_rate": 10.0 ** random.uniform(-2, 0, MANY)}
    ids = scheduler.add(**columns, last_crawled=-10.0 * random.random(MANY), **heard)
    now, values, offered = 0.0, [], []
    for step in range(4_000 // each):
        now += each / 200.0
        if step == 2_000 // each:
            busy = random.choice(ids, 400, replace=False)
            if signals:
                assert scheduler.signal(busy, now, kind="feed") == len(busy)
            else:
                scheduler.update(busy, importance=2.0)
        batch = scheduler.take(now, each)
        scheduler.crawled(batch.ids, now)
        if 2_000 <= step * each < 2_600:
            values.append(batch.values.sum())
            offered.append(scheduler.status().on_offer)
    if policy == "price":
        check(scheduler)
    return np.array(values), offered


@pytest.mark.parametrize("each", [1, 4])
@pytest.mark.parametrize("signals", [False, True])
def test_the_best_of_a_crowd_are_sold_first(each: int, signals: bool) -> None:
    """What is sold is worth what an exact search finds, though most of the crowd is not looked at each time."""
    values, offered = sold("price", each, signals)
    exact, _ = sold("argmax", each, signals)
    assert values.sum() > 0.995 * exact.sum()
    assert values[: len(values) // 3].sum() > 0.995 * exact[: len(exact) // 3].sum()
    assert np.mean(offered) < FEW + 8 * each


def test_a_page_of_a_crowd_keeps_its_longest_interval() -> None:
    """It comes on offer when that has passed, however many are worth more."""
    scheduler = Scheduler(budget=10.0)
    scheduler.add(importance=np.linspace(1.0, 2.0, 200), change_rate=1.0, last_crawled=-20.0)
    (poor,) = scheduler.add(importance=[0.9], change_rate=1.0, last_crawled=-20.0, max_interval=22.05).tolist()
    taken = []
    for step in range(1, 40):
        ids = scheduler.take(step / 10, 1).ids
        scheduler.crawled(ids, step / 10)
        taken += [(step / 10, page) for page in ids.tolist()]
    assert [time for time, page in taken if page == poor] == [2.1]
    check(scheduler)
