"""Explanations: what a page waits for, what it is worth and when it is due; and the status of the whole."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from snapshot_workloads import Crawler, scheduler_with_everything

import recrawl
from recrawl.scheduling.explain import Explanation

REASONS = {
    "nothing",
    "price",
    "budget",
    "host gap",
    "host in flight",
    "host cap",
    "retry after",
    "floor",
    "in flight",
}


def at_work(budget: float = 10.0, **columns: Any) -> tuple[recrawl.Scheduler, list[int]]:
    """A scheduler in a steady state, with 50 pages that make the price and some of the given kind."""
    made = recrawl.Scheduler(budget=budget)
    made.add(importance=np.linspace(0.5, 1.5, 50), change_rate=1.0, last_crawled=0.0)
    ids = made.add(**{"importance": 1.0, "change_rate": 1.0, "last_crawled": 0.0, **columns})
    for step in range(1, 400):
        batch = made.take(step / budget, 1)
        made.crawled(batch.ids, made.now, changed=np.zeros(len(batch.ids), dtype=bool))
    return made, ids.tolist()


def taken_and_back(made: recrawl.Scheduler, page: int) -> None:
    """Go on until this page was taken and crawled."""
    taken(made, page)
    made.crawled(page, made.now)


def taken(made: recrawl.Scheduler, page: int) -> None:
    """Go on until this page is in flight."""
    for _ in range(1000):
        batch = made.take(made.now + 1 / made.budget, 1)
        if page in batch.ids:
            return
        made.crawled(batch.ids, made.now)
    pytest.fail(str(made.explain(page, made.now)))


KINDS: dict[str, dict[str, Any]] = {
    "harmonic": {},
    "freshness": {"objective": "freshness", "importance": 10.0},
    "without a copy": {"last_crawled": None},
    "learned": {"change_rate": None},
    "learned freshness": {"change_rate": None, "objective": "freshness", "importance": 5.0},
    "signals": {"signals": {"map": recrawl.Signal(0.5, 0.6)}},
    "costs": {"cost": 2.0, "importance": 2.0},
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_is_worth_the_price_when_it_is_due(kind: str) -> None:
    made, (page,) = at_work(**KINDS[kind])
    if kind != "without a copy":
        taken_and_back(made, page)
    else:
        (page,) = made.add(importance=0.01, change_rate=1.0).tolist()
    first = made.explain(page, made.now)
    assert first.waits_for == "price"
    assert first.value_by_cost < first.price
    assert first.due is not None
    assert first.until == first.due > made.now
    then = made.explain(page, first.due)
    assert then.value_by_cost == pytest.approx(first.price, rel=1e-3)
    assert then.value == pytest.approx(then.value_by_cost * then.cost)


def test_what_was_said_of_a_page_is_explained() -> None:
    made = recrawl.Scheduler(budget=1.0, objective="freshness")
    (page,) = made.add(
        importance=3.0,
        change_rate=0.5,
        host="example.org",
        cost=2.0,
        min_interval=0.25,
        max_interval=8.0,
        last_crawled=-1.0,
        signals={"feed": recrawl.Signal(recall=0.5, precision=0.75)},
    )
    made.signal(page, 0.0, kind="feed")
    told = made.explain(page, 0.0)
    assert (told.id, told.host, told.objective, told.law) == (
        page,
        "example.org",
        "freshness",
        "freshness with signals",
    )
    assert (told.importance, told.change_rate, told.cost, told.last_crawled) == (3.0, 0.5, 2.0, -1.0)
    assert (told.min_interval, told.max_interval, told.failures) == (0.25, 8.0, 0)
    assert (told.signals, told.recall, told.precision) == (1.0, 0.5, 0.75)
    assert (told.change_rate_interval, told.shape, told.decay, told.window) == (None, None, None, None)


def test_pages_of_other_objectives_have_no_change_rate() -> None:
    made = recrawl.Scheduler(budget=1.0)
    (source,) = made.add(profit=2.0, new_page_rate=3.0, decay=0.1, objective="news", last_crawled=0.0)
    (once,) = made.add(profit=2.0, decay=0.2, objective="once")
    (windowed,) = made.add(importance=1.0, change_rate=2.0, objective="captures", life="window", window=5.0)
    told = [made.explain(page, 1.0) for page in (source, once, windowed)]
    assert [each.objective for each in told] == ["news", "once", "captures"]
    assert [each.change_rate for each in told] == [None, None, None]
    assert [each.decay for each in told] == [0.1, 0.2, None]
    assert [each.window for each in told] == [None, None, 5.0]
    assert [each.importance for each in told] == pytest.approx([6.0, 2.0, 2.0])
    assert all("change" not in str(each) for each in told)


def test_a_learned_rate_comes_with_its_uncertainty_which_crawls_lessen() -> None:
    made, (page,) = at_work(change_rate=None)
    early = made.explain(page, made.now)
    assert early.change_rate_interval is not None
    assert early.shape is not None
    for _ in range(30):
        taken_with(made, page, changed=True)
    late = made.explain(page, made.now)
    assert late.change_rate_interval is not None
    assert late.shape is not None
    assert late.change_rate_interval[0] < (late.change_rate or 0) < late.change_rate_interval[1]
    assert late.shape > early.shape
    ratio = [high / low for low, high in (early.change_rate_interval, late.change_rate_interval)]
    assert ratio[1] < ratio[0] / 2
    assert "90 %" in str(late)


def taken_with(made: recrawl.Scheduler, page: int, *, changed: bool) -> None:
    taken(made, page)
    made.crawled(page, made.now, changed=changed)


def test_the_interval_of_a_page_that_listens_is_of_all_changes() -> None:
    half = {"map": recrawl.Signal(recall=0.5, precision=0.5)}
    made = recrawl.Scheduler(budget=2.4)
    made.add(importance=np.ones(2))
    told, heard = made.explain(0, 0.0), made.explain(int(made.add(importance=1.0, signals=half)[0]), 0.0)
    assert told.change_rate_interval is not None
    assert heard.change_rate_interval == told.change_rate_interval
    assert heard.change_rate == told.change_rate
    assert heard.law == "harmonic with signals, learned"


def test_a_page_that_never_reaches_the_price_is_never_due() -> None:
    made, (page,) = at_work(importance=1e-6, objective="freshness")
    told = made.explain(page, made.now)
    assert (told.due, told.waits_for, told.until) == (None, "price", None)
    assert "never be worth the price" in str(told)


def test_in_flight() -> None:
    made, (page,) = at_work()
    taken(made, page)
    told = made.explain(page, made.now)
    assert (told.waits_for, told.until, told.state) == ("in flight", None, "is being crawled")


def test_the_shortest_interval() -> None:
    made, (page,) = at_work(min_interval=30.0, importance=100.0)
    taken_and_back(made, page)
    told = made.explain(page, made.now)
    assert (told.waits_for, told.limits[-1]) == ("floor", "floor")
    assert told.until == told.due == pytest.approx(made.now + 30.0)


def test_the_longest_interval_decides_when_a_worthless_page_is_due() -> None:
    made, (page,) = at_work(max_interval=20.0, importance=1e-9, objective="freshness")
    taken_and_back(made, page)
    told = made.explain(page, made.now)
    assert told.due == pytest.approx(made.now + 20.0)
    assert "ceiling" in told.limits


def test_the_wait_after_failures() -> None:
    made, (page,) = at_work()
    taken(made, page)
    made.failed(page, made.now)
    told = made.explain(page, made.now)
    assert told.failures == 1
    taken(made, page)
    made.failed(page, made.now, retry_after=50.0)
    told = made.explain(page, made.now)
    assert (told.waits_for, told.failures) == ("retry after", 2)
    assert told.until == pytest.approx(made.now + 50.0)
    assert "failed 2 times in a row" in str(told)


def test_a_host_that_asked_to_be_left_alone() -> None:
    made, (page, other) = at_work(host="a", importance=[5.0, 5.0])
    made.set_host("a", blocked_until=made.now + 90.0)
    for each in (page, other):
        told = made.explain(each, made.now)
        assert (told.waits_for, told.until, told.host) == ("retry after", made.now + 90.0, "a")


def one_of_two(made: recrawl.Scheduler, pages: list[int]) -> tuple[int, int]:
    """Let time pass until one of two pages that are worth most is taken: that one, and the other."""
    (flying,) = made.take(made.now + 200.0, 1).ids.tolist()
    (waiting,) = set(pages) - {flying}
    return flying, waiting


def test_the_gap_of_a_host() -> None:
    made, pages = at_work(host="a", importance=[500.0, 500.0])
    made.set_host("a", min_gap=70.0)
    flying, waiting = one_of_two(made, pages)
    told = made.explain(waiting, made.now)
    assert told.waits_for == "host gap"
    assert told.until == pytest.approx(made.now + 70.0)
    assert made.explain(flying, made.now).waits_for == "in flight"


def test_the_cap_of_a_host() -> None:
    made, pages = at_work(host="a", importance=[500.0, 500.0])
    made.set_host("a", rate_cap=0.01)
    _, waiting = one_of_two(made, pages)
    told = made.explain(waiting, made.now)
    assert told.waits_for == "host cap"
    assert told.until == pytest.approx(made.now + 100.0)
    made.set_host("a", rate_cap=0.0)
    assert made.explain(waiting, made.now).until is None


def test_crawls_in_flight_at_a_host() -> None:
    made, pages = at_work(host="a", importance=[500.0, 500.0])
    made.set_host("a", max_in_flight=1)
    _, waiting = one_of_two(made, pages)
    told = made.explain(waiting, made.now + 1)
    assert (told.waits_for, told.until, told.limits) == ("host in flight", None, ("host in flight",))


def test_the_budget_and_nothing() -> None:
    made, _ = at_work(budget=2.0)
    (page,) = made.add(importance=500.0, change_rate=1.0).tolist()
    told = made.explain(page, made.now)
    assert (told.waits_for, told.limits) == ("budget", ("budget",))
    assert told.until is not None
    assert told.until == pytest.approx(made.now + 0.5)
    assert made.explain(page, told.until).waits_for == "nothing"
    assert page in made.take(told.until, 1).ids
    made.set_budget(0.0, made.now)
    (never,) = made.add(importance=500.0, change_rate=1.0).tolist()
    told = made.explain(never, made.now)
    assert (told.waits_for, told.until) == ("budget", None)


def test_before_the_first_crawl_there_is_no_price() -> None:
    made = recrawl.Scheduler(budget=1.0)
    (page,) = made.add(importance=1.0, change_rate=1.0, last_crawled=0.0)
    told = made.explain(page, 0.0)
    assert (told.price, told.waits_for) == (0.0, "nothing")
    assert "no price yet" in str(told)


def test_a_saturated_host_has_a_price_of_its_own() -> None:
    made = recrawl.Scheduler(budget=10.0)
    made.add(importance=np.ones(100), change_rate=1.0, last_crawled=0.0)
    made.set_host("slow", min_gap=5.0)
    slow = made.add(importance=np.ones(50), change_rate=1.0, last_crawled=0.0, host="slow")
    for step in range(1, 2000):
        batch = made.take(step / 10, 1)
        made.crawled(batch.ids, made.now)
    status = made.status()
    assert status.hosts_saturated == {"slow": made.host_price("slow")}
    assert made.host_price("slow") > 2 * made.price
    assert made.explain(slow[3], made.now).price == made.host_price("slow")
    assert made.price == status.price == status.marginal_value
    with pytest.raises(recrawl.InvalidInput, match="host is 'other'"):
        made.host_price("other")


def test_the_status_counts_every_page_once() -> None:
    crawler = Crawler(scheduler_with_everything())
    made = crawler.scheduler
    for _ in range(30):
        crawler.run(5)
        status = made.status()
        assert status.pages == len(made) == status.in_flight + status.on_offer + status.waiting
        assert status.in_flight == len(crawler.flying)
        assert (status.now, status.budget, status.hosts) == (made.now, made.budget, len(made._table.hosts))
    assert status.counts == made.counts
    assert status.counts is not made.counts


def test_explaining_changes_nothing_and_always_makes_sense() -> None:
    crawler = Crawler(scheduler_with_everything())
    made, seen = crawler.scheduler, set()
    for _ in range(25):
        crawler.run(8)
        before = made.snapshot()
        for ahead in (0.0, 0.3, 40.0):
            for told in all_explained(made, made.now + ahead):
                seen.add(told.waits_for)
                check_sense(told)
        made.status()
        assert made.snapshot() == before
    assert len(seen) >= 6


def all_explained(made: recrawl.Scheduler, now: float) -> list[Explanation]:
    slots = np.flatnonzero(made._table.pages["state"][: made._table.used] != 0)
    return [made.explain(page, now) for page in made._table.ids_of(slots).tolist()]


def check_sense(told: Explanation) -> None:
    numbers = [value for value in (told.value, told.price, told.due, told.until, told.importance) if value is not None]
    assert all(math.isfinite(number) for number in numbers)
    assert told.value >= 0
    assert (told.waits_for == "nothing") == (not set(told.limits) - {"ceiling"})
    assert told.waits_for in REASONS
    assert told.until is None or told.until > told.now
    if told.waits_for == "price" and told.until is not None:
        assert told.until == told.due
    assert str(told).startswith(f"Page {told.id}")
    assert str(told).endswith(".")
    assert "None" not in str(told)
    assert "nan" not in str(told)


@pytest.mark.parametrize("policy", ["argmax", "edf", "echo-newpages", "greedy-ncis"])
def test_exact_policies_explain_too(policy: str) -> None:
    crawler = Crawler(scheduler_with_everything(policy))
    crawler.run(20)
    for told in all_explained(crawler.scheduler, crawler.scheduler.now):
        check_sense(told)
    assert crawler.scheduler.status().on_offer == 0


def test_a_time_before_the_clock_counts_as_the_clock() -> None:
    made, (page,) = at_work()
    assert made.explain(page, -5.0) == made.explain(page, made.now)
    assert made.counts.clock_went_back == 0
    with pytest.raises(recrawl.InvalidInput, match="now is nan"):
        made.explain(page, math.nan)


def test_only_one_known_page_is_explained() -> None:
    made, (page,) = at_work()
    made.remove(page)
    with pytest.raises(recrawl.UnknownPage):
        made.explain(page, 0.0)
    with pytest.raises(recrawl.InvalidInput, match="page holds 2 ids"):
        made.explain(made.add(importance=[1.0, 1.0], change_rate=1.0), 0.0)  # type: ignore[arg-type]


def test_the_sentences_read_well() -> None:
    made = recrawl.Scheduler(budget=2.0)
    (page,) = made.add(importance=3.0, change_rate=0.5, last_crawled=0.0, host="example.org")
    made.add(importance=1.0, change_rate=0.5, last_crawled=0.0)
    made.set_host("example.org", blocked_until=12.0)
    made.take(1.0, 1)
    made.crawled([], 1.0)
    text = str(made.explain(page, 2.0))
    assert text.startswith("Page 0 of host example.org (harmonic) waits at its host. A crawl now is worth 2.207, ")
    assert "It waits for the time it was told, or has learned, to stay away until 12, 10 from now." in text
    assert text.endswith("It changes 0.5 times per unit time. It was last crawled at 0.")


def test_a_worthless_page_with_a_longest_interval_is_told_to_wait_for_that() -> None:
    """It is never worth the price, but crawled when its longest interval has passed."""
    made = recrawl.Scheduler(budget=1.0)
    made.add(importance=[0.0, 1.0], change_rate=1.0, last_crawled=0.0, max_interval=[5.0, np.inf])
    for now in range(1, 4):
        made.crawled(made.take(float(now), 1).ids, float(now))
    assert "Its longest interval passes at 5, 2 from now." in str(made.explain(0, 3.0))


def test_a_cap_of_a_host_is_told_as_it_is_kept_with_a_small_burst() -> None:
    """A bucket of less than one crawl lets a host have one at a time."""
    made = recrawl.Scheduler(budget=10.0, burst=0.5)
    made.set_host("slow", rate_cap=1.0)
    made.add(importance=np.ones(5), change_rate=1.0, last_crawled=0.0, host="slow")
    (page,) = made.take(1.0, 1).ids.tolist()
    other = made.explain((page + 1) % 5, 1.5)
    assert other.waits_for == "host cap"
    assert other.until == pytest.approx(2.0)
    assert len(made.take(1.99, 1)) == 0
    assert len(made.take(2.0, 1)) == 1
