"""Another trust in signals: waits and objectives stay as they are, whatever pages come together."""

from __future__ import annotations

import numpy as np
import pytest

from recrawl.errors import InvalidInput
from recrawl.scheduling.scheduler import Scheduler
from recrawl.scheduling.types import Signal

QUALITY = {"feed": Signal(0.6, 0.7)}


def test_a_page_that_waits_goes_on_waiting_and_hears_from_then_on() -> None:
    scheduler = Scheduler(budget=10.0)
    ids = scheduler.add(importance=[1.0, 2.0, 3.0], last_crawled=0.0, min_interval=[0.0, 0.5, 0.0])
    scheduler.resume(ids[:1], held_until=50.0)
    before = [scheduler.explain(int(page), 1.0) for page in ids]
    scheduler.trust(ids, QUALITY)
    after = [scheduler.explain(int(page), 1.0) for page in ids]
    assert [(each.waits_for, each.until) for each in after] == [(each.waits_for, each.until) for each in before]
    assert scheduler.signal(ids, 1.0, "feed") == 3
    loud = [scheduler.explain(int(page), 1.0).value for page in ids]
    assert all(now > then.value for now, then in zip(loud, after, strict=True))
    scheduler.trust(ids, {})
    quiet = [scheduler.explain(int(page), 1.0).value for page in ids]
    assert quiet == pytest.approx([each.value for each in before])


def test_it_is_what_update_does() -> None:
    one, other = Scheduler(budget=5.0, now=0.0), Scheduler(budget=5.0, now=0.0)
    for scheduler in (one, other):
        ids = scheduler.add(importance=np.arange(1.0, 21.0), last_crawled=0.0)
        for turn in range(1, 30):
            taken = scheduler.take(turn, 5).ids
            scheduler.crawled(taken, turn, changed=(taken & 1).astype(bool))
    one.update(ids, signals=QUALITY)
    other.trust(ids, QUALITY)
    for scheduler in (one, other):
        scheduler.signal(ids[:7], 30.0, "feed")
    assert one.take(31.0, 5).ids.tolist() == other.take(31.0, 5).ids.tolist()


def test_pages_of_other_objectives_know_no_signals() -> None:
    scheduler = Scheduler(budget=10.0)
    ids = np.concatenate([
        scheduler.add(importance=1.0),
        scheduler.add(importance=1.0, change_rate=1.0, objective="freshness"),
        scheduler.add(importance=1.0, change_rate=1.0, decay=1.0, objective="captures"),
        scheduler.add(importance=1.0, change_rate=1.0, life="window", window=1.0, objective="captures"),
        scheduler.add(profit=1.0, new_page_rate=1.0, decay=1.0, objective="news"),
        scheduler.add(profit=1.0, decay=1.0, objective="once"),
    ])  # fmt: skip
    assert scheduler.takes_signals(ids).tolist() == [True, True, False, False, False, False]
    scheduler.trust(ids[:2], QUALITY)
    taken = scheduler.take(1.0, 6).ids
    scheduler.trust(ids[:2], {"feed": Signal([0.1, 0.9], 0.5)})
    scheduler.crawled(taken, 1.5, changed=[True] * len(taken))


def test_pages_that_cannot_use_signals_are_refused_and_nothing_changes() -> None:
    scheduler = Scheduler(budget=10.0)
    ids = np.append(scheduler.add(importance=1.0), scheduler.add(profit=1.0, decay=1.0, objective="once"))
    before = [scheduler.explain(int(page), 0.0) for page in ids]
    with pytest.raises(InvalidInput, match=r"ids\[1\].*signals"):
        scheduler.trust(ids, QUALITY)
    assert [scheduler.explain(int(page), 0.0) for page in ids] == before
