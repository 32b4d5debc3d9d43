"""Pages that are kept one by one go on after a restart where they were."""

from __future__ import annotations

import math

import numpy as np
import pytest

from recrawl.errors import InvalidInput
from recrawl.scheduling.scheduler import Scheduler


def _used_scheduler() -> tuple[Scheduler, list[int], list[float]]:
    """A scheduler that has crawled twenty pages with known laws for a while; ids and last crawls."""
    scheduler = Scheduler(budget=20.0, burst=1.0)
    ids = scheduler.add(importance=np.ones(20)).tolist()
    last = [math.nan] * 20
    for step in range(400):
        now = (step + 1) / 20
        batch = scheduler.take(now, 5).ids.tolist()
        places = [ids.index(page) for page in batch]
        scheduler.crawled(batch, now, changed=[place % 2 == 0 for place in places])
        for place in places:
            last[place] = now
    return scheduler, ids, last


def test_pages_added_anew_with_their_beliefs_are_worth_what_they_were() -> None:
    before, ids, last = _used_scheduler()
    after = Scheduler(budget=20.0, now=before.now)
    again = after.add(importance=np.ones(20), last_crawled=last)
    after.resume(again, beliefs=before.beliefs(ids).tobytes())
    now = before.now + 0.3
    for old, new in zip(ids, again.tolist(), strict=True):
        assert after.explain(new, now).value == pytest.approx(before.explain(old, now).value, rel=1e-9)
    assert after.beliefs(again).tobytes() == before.beliefs(ids).tobytes()


def test_without_beliefs_the_pages_would_be_strangers() -> None:
    """The comparison above can fail."""
    before, ids, last = _used_scheduler()
    after = Scheduler(budget=20.0, now=before.now)
    again = after.add(importance=np.ones(20), last_crawled=last)
    now = before.now + 0.3
    values = [
        (before.explain(a, now).value, after.explain(b, now).value) for a, b in zip(ids, again.tolist(), strict=True)
    ]
    assert any(abs(old - new) > 0.1 * old for old, new in values)


def test_a_page_is_not_taken_before_its_wait_is_over() -> None:
    scheduler = Scheduler(budget=1000.0, burst=100.0, now=5.0)
    ids = scheduler.add(importance=[1.0, 1.0], change_rate=1.0, last_crawled=4.0)
    scheduler.resume(ids, failures=[3, 0], held_until=[7.0, math.nan])
    assert ids[0] not in [page for step in range(10) for page in _taken(scheduler, 5.0 + step * 0.19)]
    assert ids[0] in [page for step in range(10) for page in _taken(scheduler, 7.01 + step * 0.2)]


def _taken(scheduler: Scheduler, now: float) -> list[int]:
    ids = scheduler.take(now, 10).ids
    scheduler.crawled(ids, now, changed=False)
    taken: list[int] = ids.tolist()
    return taken


def test_what_something_else_costs_is_missing_from_the_budget() -> None:
    scheduler = Scheduler(budget=10.0, burst=5.0)
    scheduler.add(importance=np.ones(100), change_rate=1.0)
    scheduler.spend(5.0, 0.0)
    assert not len(scheduler.take(0.0, 100).ids)
    scheduler.spend(1.0, 0.0)
    assert not len(scheduler.take(0.1, 100).ids)
    assert len(scheduler.take(0.5, 100).ids) == 4


@pytest.mark.parametrize(
    "wrong",
    [
        {"beliefs": b"short"},
        {"beliefs": "text"},
        {"beliefs": np.full(80, 255, dtype=np.uint8)},
        {"failures": -1},
        {"failures": 0.5},
        {"held_until": math.inf},
    ],
)
def test_what_no_scheduler_gave_is_refused_and_nothing_changes(wrong: dict[str, object]) -> None:
    scheduler = Scheduler(budget=1.0)
    ids = scheduler.add(importance=[1.0, 2.0])
    before = scheduler.snapshot()
    with pytest.raises(InvalidInput):
        scheduler.resume(ids, **wrong)  # type: ignore[arg-type]
    assert scheduler.snapshot() == before


def test_a_page_in_flight_is_refused() -> None:
    scheduler = Scheduler(budget=1.0, now=1.0)
    scheduler.add(importance=[1.0])
    batch = scheduler.take(2.0, 1)
    with pytest.raises(InvalidInput, match="in flight"):
        scheduler.resume(batch.ids)


def test_a_claimed_page_is_in_flight_and_paid_for() -> None:
    scheduler = Scheduler(budget=10.0, burst=2.0)
    scheduler.set_host("a", min_gap=1.0, max_in_flight=1)
    ids = scheduler.add(importance=[1.0, 1.0, 1.0], change_rate=1.0, host=["a", "a", "b"])
    scheduler.claim(ids[:1], 0.0)
    assert scheduler.take(0.0, 10).ids.tolist() == [ids[2]]  # one token is left, and the host of the others is taken
    with pytest.raises(InvalidInput, match="in flight"):
        scheduler.claim(ids[:1], 0.0)
    scheduler.crawled(ids[:1], 0.5, changed=False)
    assert not len(scheduler.take(0.9, 10).ids)
    assert scheduler.take(1.1, 10).ids.tolist() == [ids[1]]
