"""Giving back what was taken: how much of the budget comes back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from invariants import check

import recrawl

CALLS = st.lists(
    st.tuples(st.sampled_from([0.0, 0.01, 0.3, 1.0, 4.0]), st.integers(0, 4), st.integers(0, 3), st.booleans()),
    max_size=40,
)


@settings(max_examples=60)
@given(CALLS, st.sampled_from([0.7, 1.0, 3.0]), st.sampled_from([0.5, 2.0]))
def test_crawls_that_are_made_never_exceed_the_budget_in_any_window(
    calls: list[tuple[float, int, int, bool]], burst: float, faster: float
) -> None:
    """By when they were taken, crawls that were not given back cost at most budget · w + burst, or one dear crawl."""
    scheduler = recrawl.Scheduler(budget=1.0, burst=burst)
    cost = np.array([0.5, 1.0, 2.0] * 10)
    scheduler.add(importance=np.ones(30), change_rate=1.0, last_crawled=0.0, cost=cost)
    now, held, made = 0.0, [], []
    for wait, take, back, change in calls:
        now += wait
        if change:
            scheduler.set_budget(faster, now)
        held += [(now, page) for page in scheduler.take(now, take).ids.tolist()]
        for _ in range(min(back, len(held))):
            scheduler.release([held.pop(len(held) // 2)[1]], now)
            held += [(now, page) for page in scheduler.take(now, 1).ids.tolist()]
        if take == 0 and held:
            taken, page = held.pop(0)
            scheduler.crawled([page], now)
            made.append((taken, cost[page]))
    made += [(taken, cost[page]) for taken, page in held]
    made.sort()
    check(scheduler, {page for _, page in held})
    for start in range(len(made)):
        spent = 0.0
        for taken, paid in made[start:]:
            spent += paid
            assert spent <= max(faster, 1.0) * (taken - made[start][0]) + max(burst, 2.0) + 1e-4


def test_old_leases_do_not_add_up_to_a_burst() -> None:
    """Twenty leases, one a second, given back one by one: no more than one crawl more."""
    scheduler = recrawl.Scheduler(budget=1.0)
    scheduler.add(importance=np.ones(50), change_rate=1.0, last_crawled=0.0)
    held = [int(scheduler.take(float(now), 1).ids[0]) for now in range(1, 21)]
    crawls = 0
    for page in held:
        scheduler.release([page], 20.0)
        batch = scheduler.take(20.0, 9)
        scheduler.crawled(batch.ids, 20.0)
        crawls += len(batch)
    assert crawls <= 1


@pytest.mark.parametrize("held_for", [0.0, 0.25, 1.0, 50.0])
def test_what_comes_back_is_the_cost_less_what_came_since(held_for: float) -> None:
    """A lease given back at once is paid back in full, one that was held for long not at all."""
    scheduler = recrawl.Scheduler(budget=1.0, burst=8.0)
    scheduler.add(importance=np.ones(50), change_rate=1.0, last_crawled=-1.0)
    (page,) = scheduler.take(0.0, 1).ids.tolist()
    rest = len(scheduler.take(held_for, 50))  # all there is
    scheduler.release([page], held_for)
    left = min(8.0, 7.0 + held_for) - rest
    assert scheduler._bucket.tokens == pytest.approx(left + max(1.0 - held_for, 0.0), abs=1e-6)


def test_leases_are_kept_in_snapshots() -> None:
    """A lease that is given back after a restore is worth as much as before."""
    scheduler = recrawl.Scheduler(budget=1.0)
    scheduler.add(importance=np.ones(5), change_rate=1.0, last_crawled=0.0)
    scheduler.take(1.0, 1)
    (page,) = scheduler.take(2.0, 1).ids.tolist()
    again = recrawl.Scheduler.restore(scheduler.snapshot())
    for each in (scheduler, again):
        each.release([page], 2.25)
        assert each._bucket.tokens == pytest.approx(1.0)


def test_a_new_burst_brings_no_tokens_and_gives_nothing_back_for_what_was_taken_before() -> None:
    scheduler = recrawl.Scheduler(budget=1.0, burst=4.0)
    scheduler.add(importance=np.ones(50), change_rate=1.0, last_crawled=0.0)
    held = scheduler.take(1.0, 9).ids
    assert len(held) == 4
    scheduler.set_budget(2.0, 1.0, burst=10.0)
    assert scheduler.tokens == 0.0
    scheduler.release(held, 1.0)
    assert scheduler.tokens == 0.0
    assert len(scheduler.take(50.0, 99).ids) == 10
    scheduler.spend(0.0, 60.0)
    scheduler.set_budget(2.0, 60.0, burst=3.0)
    assert scheduler.tokens == 3.0
    held = scheduler.take(60.0, 99).ids
    scheduler.release(held, 60.0)
    assert scheduler.tokens == 3.0
    with pytest.raises(recrawl.InvalidInput, match="burst"):
        scheduler.set_budget(2.0, 60.0, burst=0.0)


def test_records_of_pages_in_flight_are_used_again() -> None:
    """There are as many as pages were in flight at once, not as there were crawls; each page has its own."""
    scheduler = recrawl.Scheduler(budget=1e6, burst=1e6)
    scheduler.add(importance=np.ones(100), change_rate=1.0, last_crawled=0.0)
    table = scheduler._table
    for turn in range(1, 60):
        first, second = scheduler.take(float(turn), 30).ids, scheduler.take(float(turn), 20).ids
        numbers = table.pages["next"][table.slots_of(np.concatenate([first, second]))]
        assert len(set(numbers.tolist())) == 50
        assert numbers.min() > 0
        scheduler.crawled(first, float(turn))
        scheduler.release(second[::2], float(turn))
        scheduler.failed(second[1::2], float(turn), retry_after=0.0)
        check(scheduler, set())
    assert len(table.flights) <= 100


def test_a_page_that_stops_listening_in_flight_keeps_no_signals() -> None:
    scheduler = recrawl.Scheduler(budget=10.0, burst=10.0)
    listens = {"feed": recrawl.Signal(0.5, 0.5)}
    ids = scheduler.add(importance=1.0, change_rate=1.0, last_crawled=0.0, signals=listens)
    scheduler.take(1.0, 1)
    assert scheduler.signal(ids, 1.5, "feed") == 1
    scheduler.update(ids, importance=1.0, change_rate=1.0, decay=1.0, objective="captures")
    scheduler.crawled(ids, 1.2)
    scheduler.update(ids, importance=1.0, change_rate=1.0, objective="harmonic", signals=listens)
    assert scheduler.explain(int(ids[0]), 2.0).signals == 0.0
