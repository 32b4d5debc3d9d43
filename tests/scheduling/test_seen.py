"""Copies that came by another fetch: as a crawl that was taken and settled, but free and without a turn of the host."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from invariants import check, picture
from snapshot_workloads import Crawler, scheduler_with_everything

import recrawl
from recrawl import InvalidInput, Scheduler, Signal, UnknownPage
from recrawl.scheduling.table.records import FREE, IDLE, IN_FLIGHT

APART = ("bucket", "counts", "pages")


def claimed_and_crawled(scheduler: Scheduler, ids: Any, now: float, changed: Any) -> None:
    """The slow twin of `seen`: take the pages, settle them, and put the budget back as it was."""
    before = dict(scheduler._bucket.__dict__)
    scheduler.claim(ids, now)
    scheduler.crawled(ids, now, changed=changed)
    scheduler._bucket.__dict__.update(before)


def kept(scheduler: Scheduler) -> dict[str, Any]:
    """All that matters; links of pages that are in no list do not."""
    everything = {name: value for name, value in picture(scheduler).items() if name not in APART}
    pages = scheduler._table.pages[: scheduler._table.used].copy()
    nowhere = (pages["state"] == IDLE) | (scheduler._policy._built[1] == 0)  # type: ignore[attr-defined]
    pages["next"][nowhere & (pages["state"] != FREE)] = pages["prev"][nowhere | (pages["state"] == FREE)] = -1
    return everything | {"pages": pages.tobytes()}


def homeless(scheduler: Scheduler, count: int, random: np.random.Generator) -> Any:
    """Ids of pages without a host that are not in flight."""
    pages = scheduler._table.pages[: scheduler._table.used]
    free = np.flatnonzero((pages["host"] < 0) & ~np.isin(pages["state"], (FREE, IN_FLIGHT)))
    return scheduler._table.ids_of(random.choice(free, min(count, len(free)), replace=False))


@pytest.mark.parametrize("told", [True, False])
def test_a_copy_seen_is_as_a_crawl_but_for_the_budget(told: bool) -> None:
    """Byte for byte, over pages of every kind, some seen first before any price is known."""
    crawler = Crawler(scheduler_with_everything())
    twin = crawler.twin(scheduler_with_everything())
    random = np.random.default_rng(5)
    for _ in range(60):
        ids = homeless(crawler.scheduler, int(random.integers(0, 5)), random)
        changed = random.random(len(ids)) < 0.5 if told else None
        now = crawler.scheduler.now + float(random.exponential(0.1))
        crawler.scheduler.seen(ids, now, changed=changed)
        claimed_and_crawled(twin.scheduler, ids, now, changed)
        assert kept(crawler.scheduler) == kept(twin.scheduler)
        check(crawler.scheduler, set(crawler.flying))
        assert crawler.run(1) == twin.run(1)
    assert crawler.scheduler.counts.seen == twin.scheduler.counts.taken - crawler.scheduler.counts.taken


@pytest.mark.parametrize("policy", ["price", "argmax", "wic", "greedy", "greedy-ncis"])
def test_every_policy_lets_a_page_compete_again(policy: str) -> None:
    """The page that would have been next is not, once a copy of it came."""
    made = []
    for show in (False, True):
        scheduler = Scheduler(budget=1.0, objective="freshness", policy=policy)
        ids = scheduler.add(importance=[9.0, 1.0], change_rate=1.0, last_crawled=-3.0)
        scheduler.take(0.0, 0)
        if show:
            scheduler.seen(ids[:1], 0.9)
        made.append(scheduler.take(1.0, 1).ids.tolist())
    assert made[0] == [0]
    assert made[1] in ([1], [])


def test_a_copy_seen_costs_nothing_and_takes_no_turn_of_its_host() -> None:
    scheduler = Scheduler(budget=1.0)
    scheduler.set_host("slow", min_gap=10.0, max_in_flight=1)
    ids = scheduler.add(importance=[9.0, 1.0], change_rate=1.0, last_crawled=-3.0, host="slow")
    tokens, host = scheduler.tokens, scheduler._table.hosts.records.copy()
    scheduler.take(0.0, 0)
    scheduler.seen(ids[:1], 0.5)
    assert scheduler.tokens == tokens
    for name in ("in_flight", "next_start", "cap_time"):
        assert scheduler._table.hosts.records[name].tolist() == host[name].tolist()
    assert scheduler.take(0.5, 1).ids.tolist() == [1]
    assert (scheduler.counts.seen, scheduler.counts.taken, scheduler.counts.crawled) == (1, 1, 0)


def test_what_was_heard_is_forgotten() -> None:
    scheduler = Scheduler(budget=1.0)
    ids = scheduler.add(importance=[1.0], change_rate=1.0, last_crawled=0.0, signals={"feed": Signal(0.5, 0.5)})
    scheduler.signal(ids, 1.0, kind="feed")
    scheduler.seen(ids, 1.5)
    assert scheduler._table.pages["signals"][0] == 0.0
    assert scheduler._table.pages["last"][0] == 1.5


def test_a_failing_page_that_was_seen_waits_no_longer() -> None:
    scheduler = Scheduler(budget=1.0)
    (page,) = scheduler.add(importance=[1.0], change_rate=1.0, last_crawled=-9.0).tolist()
    scheduler.failed(scheduler.take(0.0, 1).ids, 0.0, retry_after=100.0)
    scheduler.seen(page, 1.0)
    assert scheduler.take(9.0, 1).ids.tolist() == [page]


def test_what_another_fetch_showed_is_learned_from() -> None:
    scheduler = Scheduler(budget=1.0)
    ids = scheduler.add(importance=[1.0, 1.0], last_crawled=0.0)
    for day in range(1, 9):
        scheduler.seen(ids, float(day), changed=[True, False])
    busy, quiet = scheduler._table.pages["decay"][:2].tolist()
    assert busy > 4 * quiet


def test_pages_that_are_crawled_once_are_removed() -> None:
    scheduler = Scheduler(budget=1.0)
    ids = scheduler.add(profit=[1.0, 2.0], decay=0.1, objective="once", host="a")
    scheduler.seen(ids[:1], 1.0, changed=True)
    assert len(scheduler) == 1
    with pytest.raises(UnknownPage):
        scheduler.seen(ids[:1], 2.0)
    assert scheduler.take(2.0, 5).ids.tolist() == [1]
    check(scheduler, {1})


def test_pages_in_flight_and_pages_twice_are_refused_and_nothing_changes() -> None:
    scheduler = Scheduler(budget=2.0, burst=2.0)
    ids = scheduler.add(importance=[3.0, 1.0, 1.0], change_rate=1.0, last_crawled=-1.0)
    flying = scheduler.take(1.0, 1).ids
    waiting = [page for page in ids.tolist() if page not in flying.tolist()]
    before = picture(scheduler)
    with pytest.raises(InvalidInput, match=r"ids\[1\] is in flight"):
        scheduler.seen([waiting[0], flying[0]], 2.0)
    with pytest.raises(InvalidInput, match="twice"):
        scheduler.seen([waiting[0], waiting[0]], 2.0)
    with pytest.raises(InvalidInput, match="changed"):
        scheduler.seen(waiting, 2.0, changed=[True, False, True])
    with pytest.raises(InvalidInput, match="now"):
        scheduler.seen(waiting, float("nan"))
    assert picture(scheduler) == before
    scheduler.seen([], 1.0)
    assert scheduler.counts.seen == 0


def test_snapshots_keep_the_count() -> None:
    scheduler = Scheduler(budget=1.0)
    scheduler.seen(scheduler.add(importance=[1.0], change_rate=1.0), 1.0)
    assert recrawl.Scheduler.restore(scheduler.snapshot()).counts.seen == 1
