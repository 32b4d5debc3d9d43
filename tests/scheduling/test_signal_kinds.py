"""Signals of several kinds, signals in flight, and the room that profiles of kinds take."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from invariants import check

import recrawl
from recrawl import Signal, Tuning

KINDS = {"weak": Signal(0.3, 0.05), "strong": Signal(0.6, 0.95)}


@pytest.mark.parametrize("objective", ["freshness", "harmonic"])
@pytest.mark.parametrize("recall", [0.3, 0.4])
def test_each_weak_signal_adds_to_the_value(objective: Any, recall: float) -> None:
    """Three weak signals are worth more than one, and one more than none; recall 0.4: every change is announced."""
    scheduler = recrawl.Scheduler(budget=10.0, objective=objective)
    trust = {"weak": Signal(recall, 0.05), "strong": Signal(0.6, 0.95)}
    scheduler.add(importance=np.ones(6), change_rate=1.0, last_crawled=0.0, signals=trust)
    scheduler.take(0.1, 0)
    for page in range(6):
        scheduler.signal([page] * page, 0.5, "weak")
    values = [scheduler.explain(page, 0.5).value for page in range(6)]
    assert (np.diff(values) > 0).all()
    dues = [scheduler.explain(page, 0.5).due for page in range(6)]
    known = [np.inf if due is None else due for due in dues]
    assert (np.diff(np.nan_to_num(known, posinf=1e9)) <= 0).all()
    check(scheduler)


def test_a_signal_after_the_crawl_counts_though_it_came_in_flight() -> None:
    """A crawl that is told with its own time has not seen what was announced after it."""
    scheduler = recrawl.Scheduler(budget=10.0)
    scheduler.add(importance=np.ones(3), change_rate=1.0, last_crawled=0.0, signals={"feed": Signal(0.9, 0.9)})
    assert len(scheduler.take(1.0, 1)) == 1
    page = int(np.flatnonzero(scheduler._table.pages["state"][:3] == 4)[0])
    scheduler.signal([page], 0.9, "feed")
    scheduler.signal([page, page], 1.5, "feed")
    again = recrawl.Scheduler.restore(scheduler.snapshot())
    for each in (scheduler, again):
        each.crawled([page], 1.2, changed=True)
        assert each.explain(page, 1.5).signals in (2.0, 3.0)
        check(each)


@pytest.mark.parametrize(
    ("told", "delay", "kept"), [(1.5, 0.0, 0.0), (2.0, 0.0, 0.0), (1.2, 0.0, 1.0), (1.2, 0.5, 0.0)]
)
def test_a_signal_before_the_crawl_does_not_count(told: float, delay: float, kept: float) -> None:
    """Also one that comes within the delay of the crawl: the crawl has seen what it announces."""
    scheduler = recrawl.Scheduler(budget=10.0, tuning=Tuning(signal_delay=delay))
    scheduler.add(importance=[1.0], change_rate=1.0, last_crawled=0.0, signals={"feed": Signal(0.9, 0.9)})
    scheduler.take(1.0, 1)
    scheduler.signal([0], 1.5, "feed")
    scheduler.crawled([0], told)
    assert scheduler.explain(0, 2.0).signals == kept


def test_what_was_heard_in_flight_stays_if_the_crawl_brought_nothing() -> None:
    """A failure and a release forget no signal."""
    for ends in ("failed", "release"):
        scheduler = recrawl.Scheduler(budget=10.0)
        scheduler.add(importance=[1.0], change_rate=1.0, last_crawled=0.0, signals={"feed": Signal(0.9, 0.9)})
        scheduler.signal([0], 0.5, "feed")
        scheduler.take(1.0, 1)
        scheduler.signal([0], 1.5, "feed")
        getattr(scheduler, ends)([0], 2.0)
        assert scheduler.explain(0, 2.0).signals == 2.0
        check(scheduler)


def test_profiles_of_kinds_that_no_page_has_are_forgotten() -> None:
    """Trust that is fitted again and again takes no more room, and every page keeps its own."""
    random = np.random.default_rng(0)
    scheduler = recrawl.Scheduler(budget=10.0)
    ids = scheduler.add(importance=np.ones(300), change_rate=1.0, last_crawled=0.0, signals=KINDS)
    sizes = []
    for _ in range(12):
        weak, strong = random.uniform(0.1, 0.5, 300), random.uniform(0.5, 0.9, 300)
        scheduler.update(ids, signals={"weak": Signal(0.3, weak), "strong": Signal(0.6, strong)})
        sizes.append(len(scheduler._kinds.profiles))
        rows = scheduler._table.signals["profile"][:300]
        assert scheduler._kinds.profiles[rows, 0] == pytest.approx(weak, rel=1e-6)
        assert scheduler._kinds.profiles[rows, 1] == pytest.approx(strong, rel=1e-6)
    assert max(sizes) <= 4 * 300
    assert scheduler.state_bytes_per_page > 80
    again = recrawl.Scheduler.restore(scheduler.snapshot())
    assert np.array_equal(again._kinds.profiles, scheduler._kinds.profiles)


def test_pages_of_several_kinds_added_one_by_one_copy_nothing() -> None:
    """The table of profiles is replaced a few times, not with each page."""
    scheduler = recrawl.Scheduler(budget=10.0)
    tables = set()
    for page in range(200):
        trust = {"a": Signal(0.3, 0.2 + page / 1000), "b": Signal(0.3, 0.5)}
        scheduler.add(importance=[1.0], change_rate=1.0, signals=trust)
        tables.add(scheduler._kinds._room.ctypes.data)
    assert len(scheduler._kinds.profiles) == 200
    assert len(tables) <= 12


def test_a_doubtful_kind_counts_beside_one_that_is_nearly_always_meant() -> None:
    """Also if their mean precision is so near to 1 that single precision does not tell them apart."""
    values = []
    for precision in (0.9999, 1.0):
        scheduler = recrawl.Scheduler(budget=10.0, objective="freshness")
        trust = {"sure": Signal(0.9, precision), "doubtful": Signal(1e-8, 0.5)}
        (page,) = scheduler.add(importance=1.0, change_rate=0.01, last_crawled=0.0, signals=trust).tolist()
        found = [scheduler.explain(page, 0.5).value]
        for kind in ("doubtful", "sure"):
            assert scheduler.signal([page], 0.5, kind) == 1
            found.append(scheduler.explain(page, 0.5).value)
        assert found == sorted(found)
        values.append(found)
    assert values[1] == pytest.approx(values[0], rel=0.05)
