"""The speed measures of the scheduler time what they say: right yardsticks, steady pages, whole budgets."""

from __future__ import annotations

import numpy as np
import pytest

import recrawl
from recrawl.bench.measure import RUNS, run
from recrawl.bench.scheduler_speed import (
    BATCH,
    Crawler,
    Sizes,
    draw_trust,
    learned_speeds,
    listening_scheduler,
    set_up,
    settled_pages,
    signal_speeds,
    snapshot_and_restore,
    speed_measures,
    speeds,
)
from recrawl.bench.scheduler_yardsticks import crawl_by_kernel, crawl_by_numpy, plain_pages
from recrawl.pages import Floats
from recrawl.scheduling.market.policy import ByPrice
from recrawl.values import harmonic_value

SMALL = Sizes(
    many=20_000, some=10_000, few=5_000, decisions=5_000, single_decisions=200, learned_decisions=2_000, signals=2_000,
    argmax_steps=3,
)  # fmt: skip


def _crawl_plainly(columns: tuple[Floats, Floats, Floats], times: Floats) -> list[int]:
    """The page that is worth most at each time by the value function of the library."""
    importance, change_rate, last = (column.copy() for column in columns)
    chosen = []
    for now in times.tolist():
        chosen.append(int(np.argmax(harmonic_value(importance, change_rate, now - last))))
        last[chosen[-1]] = now
    return chosen


@pytest.mark.parametrize("pages", [1, 3, 2_048, 5_003])
def test_yardsticks_crawl_what_is_worth_most(pages: int) -> None:
    """Both choose what the value function says, time after time, whatever the number of pages is a multiple of."""
    columns = settled_pages(5_003).part(0, pages)
    times = np.arange(1, 41) * 10.0 / pages
    expected = _crawl_plainly(columns, times)
    assert crawl_by_kernel(plain_pages(*columns), times) == expected
    assert crawl_by_numpy(plain_pages(*columns), times) == expected
    assert pages < 2_000 or len(set(expected)) > 20


def test_yardsticks_leave_the_columns_they_are_given() -> None:
    """Crawls change their own copy, so that both begin with the same pages."""
    columns = settled_pages(100)
    before = columns.last_crawled.copy()
    crawl_by_kernel(plain_pages(*columns), np.array([1.0, 2.0]))
    np.testing.assert_array_equal(columns.last_crawled, before)


def test_pages_begin_in_the_steady_state() -> None:
    """Ages are uniform over the planned intervals, and the scheduler stays at the price of the plan."""
    pages = settled_pages(20_000)
    columns = {"importance": pages.importance, "change_rate": pages.change_rate}
    plan = recrawl.plan(columns, budget=2_000.0, objective="harmonic", solver="even")
    ages = -pages.last_crawled * plan.rates
    assert ages.mean() == pytest.approx(0.5, abs=0.01)
    assert ages.max() <= 1
    crawler, _, _ = set_up(pages)
    prices = [crawler.crawl(500, 50) and crawler.scheduler.price for _ in range(20)]
    assert np.array(prices) == pytest.approx(plan.price, rel=0.05)


@pytest.mark.parametrize("batch", [1, BATCH])
def test_crawler_uses_the_whole_budget_and_settles(batch: int) -> None:
    """Every decision that is counted was made, and nothing stays in flight."""
    crawler, _, _ = set_up(settled_pages(20_000))
    assert crawler.crawl(3_000, batch) == 3_000
    status = crawler.scheduler.status()
    assert status.in_flight == 0
    assert status.counts.crawled == 3_001


def test_speeds_are_told_of_each_run() -> None:
    """Three runs after one that is not counted."""
    crawler = set_up(settled_pages(2_000))[0]
    found = speeds(crawler, 1_000, 100)
    assert len(found) == RUNS
    assert min(found) > 0
    assert crawler.scheduler.counts.crawled == 1 + (RUNS + 1) * 1_000


def test_snapshot_is_written_read_and_goes_on() -> None:
    """The file holds at least the pages, and the scheduler is as usable after as before."""
    crawler = set_up(settled_pages(5_000))[0]
    write, size, read = snapshot_and_restore(crawler.scheduler)
    assert size > 52 * 5_000
    assert min(write, read) >= 0
    assert crawler.scheduler.status().in_flight == 0


def test_listening_pages_hear_and_have_the_price_of_all() -> None:
    """The price found with the first pages is about that of all, and nearly every page listens."""
    pages = settled_pages(10_000)
    recall, precision = draw_trust(10_000)
    columns = {"importance": pages.importance, "change_rate": pages.change_rate, "recall": recall}
    plan = recrawl.plan({**columns, "precision": precision}, budget=1_000.0, objective="harmonic", solver="signals")
    scheduler, ids = listening_scheduler(200_000, "harmonic")
    assert scheduler.price == pytest.approx(plan.price, rel=0.25)
    assert scheduler.signal(ids, 0.0, kind="sitemap") > 190_000
    assert Crawler(scheduler).crawl(2_000, 100) == 2_000


def test_signal_and_learned_speeds_are_positive() -> None:
    """Both run on few pages, three times."""
    assert min(signal_speeds(2_000, "freshness", 2_000)) > 0
    assert len(learned_speeds(2_000, 2_000)) == RUNS


def test_state_counts_every_array() -> None:
    """Bytes per page are those of the arrays behind the scheduler, with all that pages can have."""
    scheduler = recrawl.Scheduler(budget=100.0)
    signals = {"sitemap": recrawl.Signal(recall=0.5, precision=0.5)}
    scheduler.add(importance=np.ones(1_000), last_crawled=0.0, signals=signals, max_interval=50.0)
    scheduler.take(0.0, 0)
    table, policy = scheduler._table, scheduler._policy
    assert isinstance(policy, ByPrice)
    arrays = [table.pages, table.limits, table.signals, table.beliefs, table.flights, policy._roots, policy._bits]
    assert scheduler.state_bytes_per_page == pytest.approx(sum(array.nbytes for array in arrays) / 1_000)


def test_every_measure_runs_on_few_pages() -> None:
    """None fails, each reads a number above 0, and names are unique; speeds of few pages are held to nothing."""
    results = [run(measure) for measure in speed_measures(SMALL)]
    assert [result.reason for result in results] == [None] * len(results)
    assert all(result.reading is not None and result.reading.value > 0 for result in results)
    assert len({result.measure.name for result in results}) == len(results)


def test_measures_can_run_in_any_order() -> None:
    """A measure makes what it needs, even after the scheduler of many pages was given up."""
    measures = {measure.name: measure for measure in speed_measures(SMALL)}
    for name in ("signals_10m", "decisions_single_10m", "scaling_10m"):
        assert run(measures[name]).reason is None
