from __future__ import annotations

from dataclasses import replace
from typing import Any

import mpmath
import numpy as np
import pytest
from lab_worlds import churning_world, steady_world

from recrawl.errors import InvalidInput
from recrawl.lab.simulation.fixed_rates import RoundRobin
from recrawl.lab.simulation.measure_kernels import (
    AGE,
    ALIVE,
    CAPTURED,
    CHANGES,
    CRAWLS,
    FRESH,
    HARMONIC,
    MISSING,
    STARVED,
    WASTED,
    Window,
    by_page,
    first_until,
    fresh_until,
    harmonic_until,
    most_within,
    quantiles,
    shelf_bits,
)
from recrawl.lab.simulation.measures import DELAY_LEVELS, deciles_of, drawn_requests, measure, page_table, shelves_of
from recrawl.lab.worlds.world import CrawlLog, World, group_events


def random_log(world: World, crawls: int, seed: int) -> CrawlLog:
    """Crawls of pages at random times after their birth, also of pages that are gone."""
    random = np.random.default_rng(seed)
    time = np.sort(random.uniform(0, world.horizon, crawls))
    page = np.array([random.choice(np.flatnonzero(world.born <= now)) for now in time], dtype=np.int32)
    return CrawlLog(page, time)


def slow_row(world: World, log: CrawlLog, page: int, start: float, end: float) -> tuple[dict[int, float], list[float]]:
    """The row of a page by an event loop, one event after the other, and the delays of its captured changes."""
    changes = world.changes.times[world.changes.offsets[page] : world.changes.offsets[page + 1]]
    events = [(float(time), 0) for time in changes] + [(float(time), 1) for time in log.time[log.page == page]]
    born, removed = float(world.born[page]), float(world.removed[page])
    has_copy = born <= 0
    unseen = [] if has_copy else [born]
    waiting: float | None = None
    row: dict[int, float] = dict.fromkeys(range(10), 0.0)
    delays = []
    now = max(born, 0.0)
    for time, kind in [*sorted(events), (world.horizon, 2)]:
        left, right = max(now, start), min(time, end, removed)
        if right > left:
            row[ALIVE] += right - left
            row[FRESH] += 0.0 if unseen else right - left
            row[HARMONIC] += sum(1 / (j + 1) for j in range(len(unseen))) * (right - left)
            row[AGE] += (right - left) * ((left + right) / 2 - unseen[0]) if unseen else 0.0
        now = max(now, time)
        inside = start < time <= end
        if kind == 0:
            unseen.append(time)
            waiting = time if inside else None
            row[CHANGES] += inside
        elif kind == 1 and time >= removed:
            row[MISSING] += inside
        elif kind == 1:
            row[CRAWLS] += inside
            row[WASTED] += inside and not unseen
            if waiting is not None:
                delays.append(time - waiting)
                row[CAPTURED] += 1
            unseen, waiting = [], None
    row[STARVED] = float(born <= start and removed >= end and row[CRAWLS] == 0)
    return row, delays


@pytest.mark.parametrize("window", [(0.0, 40.0), (12.0, 31.0)])
@pytest.mark.parametrize("crawls", [0, 40, 1500])
def test_rows_and_delays_are_those_of_an_event_loop(window: tuple[float, float], crawls: int) -> None:
    world = churning_world()
    log = random_log(world, crawls, seed=4)
    table = page_table(world, log, *window)
    all_delays = []
    for page in range(len(world)):
        row, delays = slow_row(world, log, page, *window)
        all_delays += delays
        assert table[page] == pytest.approx([row[column] for column in range(10)], abs=1e-9)
    measured = measure(world, log, *window)
    expected = np.quantile(all_delays, DELAY_LEVELS) if all_delays else np.zeros(len(DELAY_LEVELS))
    assert measured.delays == pytest.approx(expected.tolist())
    weight = world.importance
    assert measured.freshness == pytest.approx(weight @ table[:, FRESH] / (weight @ table[:, ALIVE]))
    assert measured.harmonic_cost == pytest.approx(weight @ table[:, HARMONIC] / (weight @ table[:, ALIVE]))
    assert measured.completeness == pytest.approx(table[:, CAPTURED].sum() / table[:, CHANGES].sum())
    assert measured.crawls == np.count_nonzero((log.time > window[0]) & (log.time <= window[1]))
    assert sum(tenth.pages for tenth in measured.deciles) == len(world)


def test_a_page_without_a_copy_is_stale_and_ages_from_its_birth() -> None:
    world = churning_world(pages=1)
    born = replace(
        world, born=np.array([10.0]), removed=np.array([np.inf]), changes=world.changes._replace(
            offsets=np.array([0, 1]), times=np.array([15.0])), importance=np.ones(1)
    )  # fmt: skip
    log = CrawlLog(np.array([0], dtype=np.int32), np.array([20.0]))
    measured = measure(born, log, 0.0, 40.0)
    assert measured.freshness == pytest.approx(20 / 30)
    assert measured.harmonic_cost == pytest.approx((5 * 1 + 5 * 1.5) / 30)
    assert measured.age == pytest.approx(50 / 30)
    assert (measured.completeness, measured.delay, measured.wasted) == (1.0, 5.0, 0.0)


def test_the_expectation_given_crawl_times_is_what_many_worlds_average_to() -> None:
    """The same crawl times on many drawn worlds: the mean of what happened is the expectation."""
    first = churning_world(pages=80, seed=2)
    log = random_log(first, 800, seed=3)
    expected = measure(first, log, 5.0, expected=True)
    happened = []
    random = np.random.default_rng(5)
    life = np.minimum(first.removed, first.horizon) - first.born
    assert first.change_rate is not None
    for _ in range(150):
        page = np.repeat(np.arange(len(first)), random.poisson(first.change_rate * life))
        changes = group_events(page, first.born[page] + random.random(len(page)) * life[page], len(first))
        happened.append(measure(replace(first, changes=changes), log, 5.0))
    for name in ("freshness", "harmonic_cost"):
        numbers = np.array([getattr(each, name) for each in happened])
        error = numbers.std(ddof=1) / len(numbers) ** 0.5
        assert abs(numbers.mean() - getattr(expected, name)) < 4 * error


@pytest.mark.parametrize("rate", [0.0, 1e-9, 0.3, 20.0])
@pytest.mark.parametrize("elapsed", [1e-6, 0.7, 30.0])
def test_expected_costs_are_integrals_of_their_rates(rate: float, elapsed: float) -> None:
    def ein(x: Any) -> Any:
        return mpmath.quad(lambda t: -mpmath.expm1(-x * t) / t if t else x, [0, 1])

    fresh = mpmath.quad(lambda s: mpmath.exp(-rate * s), [0, elapsed])
    assert fresh_until(rate, elapsed) == pytest.approx(float(fresh), rel=1e-9)
    points = [0, elapsed / 100, elapsed / 10, elapsed]
    harmonic = mpmath.quad(lambda s: ein(rate * s), points)
    assert harmonic_until(rate, elapsed) == pytest.approx(float(harmonic), rel=1e-7)
    more = mpmath.quad(lambda s: -mpmath.expm1(-rate * s) / (rate * s) if rate * s else 1, points)
    assert first_until(rate, elapsed) == pytest.approx(float(more), rel=1e-9)


def test_drawn_requests_agree_with_freshness_by_time() -> None:
    world = churning_world(pages=200)
    log = random_log(world, 3000, seed=1)
    share = drawn_requests(world, log, Window(10.0, 40.0), requests=40_000, seed=2)
    assert share == pytest.approx(measure(world, log, 10.0).freshness, abs=4 * 0.5 / 200)


def test_worlds_of_many_shelves_are_measured_as_page_by_page() -> None:
    """Crawls are put in order shelf by shelf; the sums are those of the rows of all pages."""
    world = churning_world(pages=(1 << shelf_bits(1)) * 2 + 7, horizon=20.0)
    log = random_log(world, 6000, seed=4)
    table = page_table(world, log, 3.0, 18.0)
    measured = measure(world, log, 3.0, 18.0)
    weight = world.importance
    assert measured.freshness == pytest.approx(weight @ table[:, FRESH] / (weight @ table[:, ALIVE]))
    assert measured.harmonic_cost == pytest.approx(weight @ table[:, HARMONIC] / (weight @ table[:, ALIVE]))
    assert measured.completeness == table[:, CAPTURED].sum() / table[:, CHANGES].sum()
    assert measured.wasted == table[:, WASTED].sum() / measured.crawls
    expected = measure(world, log, 3.0, 18.0, expected=True).freshness
    assert measured.freshness == pytest.approx(expected, abs=0.05)


@pytest.mark.parametrize("bits", [0, 1, 3, 9])
def test_shelves_hold_crawls_in_order_and_give_them_by_page(bits: int) -> None:
    """As sorting by shelf, and by page, would have them; pages without crawls and a short last shelf included."""
    world = steady_world(pages=37)
    random = np.random.default_rng(bits)
    log = CrawlLog(random.integers(0, 30, 400).astype(np.int32), np.sort(random.random(400)))
    shelves = shelves_of(world, log, bits)
    order = np.argsort(log.page >> bits, kind="stable")
    assert shelves.page.tolist() == log.page[order].tolist()
    assert shelves.time.tolist() == log.time[order].tolist()
    offsets, times = np.full(38, -1), np.empty(400)
    for shelf in range(len(shelves.starts) - 1):
        by_page(shelves, shelf, offsets, times)
        for page in range(shelf << bits, min((shelf + 1) << bits, 37)):
            assert times[offsets[page] : offsets[page + 1]].tolist() == log.time[log.page == page].tolist()


def test_the_most_within_a_time_is_counted_window_by_window() -> None:
    random = np.random.default_rng(6)
    for times in (np.sort(random.random(300)), np.arange(50) / 10, np.repeat(0.5, 9), np.empty(0)):
        most = max((int(np.count_nonzero((times >= time) & (times - time < 0.2))) for time in times), default=0)
        assert most_within(times, 0.2) == most


def test_quantiles_are_those_of_numpy() -> None:
    random = np.random.default_rng(3)
    for values in (random.exponential(1, 5000), np.array([2.0]), np.full(7, 1.5), np.repeat([0.0, 1e9], 50)):
        assert quantiles(values, np.array(DELAY_LEVELS)) == pytest.approx(np.quantile(values, DELAY_LEVELS))


def test_tenths_are_even_with_ties_and_without() -> None:
    random = np.random.default_rng(1)
    for importance in (np.ones(57), random.random(57), random.integers(1, 4, 57).astype(float)):
        group, sizes = deciles_of(importance)
        assert np.bincount(group).tolist() == sizes == [6] * 7 + [5] * 3
        order = np.lexsort((np.arange(57), importance))
        assert (np.diff(group[order]) >= 0).all()


def test_the_peak_rate_counts_the_busiest_day() -> None:
    world = steady_world(pages=5, horizon=50.0)
    time = np.sort(np.concatenate([np.arange(50.0), np.linspace(20.1, 20.9, 30)]))
    measured = measure(world, CrawlLog(np.zeros(len(time), dtype=np.int32), time))
    assert measured.peak_rate == 31.0


def test_numbers_hold_every_measure_by_name() -> None:
    world = steady_world()
    numbers = measure(world, RoundRobin().crawl(world, 100.0, 1)).numbers()
    assert {"freshness", "delay_0.5", "freshness_decile_10", "starved", "peak_rate"} <= set(numbers)
    assert all(np.isfinite(number) for number in numbers.values())


def test_what_cannot_be_measured_is_refused_in_one_sentence() -> None:
    world = steady_world(pages=5)
    log = CrawlLog(np.zeros(2, dtype=np.int32), np.array([1.0, 2.0]))
    for bad in (CrawlLog(np.array([7], dtype=np.int32), np.ones(1)), CrawlLog(log.page, log.time[::-1])):
        with pytest.raises(InvalidInput, match=r"log\[\d\]"):
            measure(world, bad)
    with pytest.raises(InvalidInput, match="window"):
        measure(world, log, 60.0)
    with pytest.raises(InvalidInput, match="window"):
        measure(replace(world, importance=np.zeros(5)), log)
    with pytest.raises(InvalidInput, match="expected"):
        measure(replace(world, poisson=False), log, expected=True)
