"""Rhythm: found where the crawls show it, flat where they do not, and a clock that is exact."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from recrawl.bench.signal_worlds import WORKING_HOURS, rhythmic_log
from recrawl.learning.histories import CrawlLog, intervals_of
from recrawl.learning.rhythm import (
    Rhythm,
    _mark,
    _per_hour,
    clock_of,
    fit_rhythm,
    fit_rhythms,
    flat_rhythm,
    steady_rates,
)
from recrawl.pages import Floats

WORK = WORKING_HOURS / WORKING_HOURS.mean()
EVEN = np.ones(7)
WEEKDAYS = np.array([1.3, 1.3, 1.3, 1.2, 1.1, 0.4, 0.4])


def spread(errors: Floats) -> float:
    """Root mean square."""
    return float(np.sqrt(np.mean(np.square(errors))))


# The clock


def by_hand(rhythm: Rhythm, start: float, end: float) -> float:
    """The busyness summed over thousands of moments between start and end."""
    moments = start + (end - start) * (np.arange(400_000) + 0.5) / 400_000
    hour = np.floor((moments - rhythm.origin) / rhythm.day * 24).astype(np.int64)
    busy = rhythm.hours[hour % 24] * rhythm.days[hour // 24 % 7]
    return float(busy.mean() * (end - start))


@pytest.mark.parametrize(("start", "end"), [(0.0, 0.3), (2.9, 3.1), (-1.3, 9.7), (5.0, 33.3), (1.0, 1.0)])
def test_elapsed_is_the_integral_of_busyness(start: float, end: float) -> None:
    """Within an hour, over midnight, over weeks, before the origin."""
    random = np.random.default_rng(1)
    rhythm = Rhythm(random.random(24), random.random(7), day=1.7, origin=0.4)
    assert rhythm.elapsed(start, end) == pytest.approx(by_hand(rhythm, start, end), abs=1e-3)


def test_a_week_counts_a_week_whenever_it_begins() -> None:
    """The clock is normalised, in any unit of time."""
    rhythm = Rhythm(WORK, WEEKDAYS, day=86_400.0)
    start = np.linspace(-1e6, 1e9, 1001)
    np.testing.assert_allclose(rhythm.elapsed(start, start + 7 * 86_400.0), 7 * 86_400.0, rtol=1e-6)


def test_the_flat_clock_is_the_one_on_the_wall() -> None:
    """Nothing changes where there is no rhythm."""
    start, end = np.array([0.1, 3.7, 19_000.2]), np.array([0.2, 30.9, 19_000.3])
    np.testing.assert_allclose(flat_rhythm().elapsed(start, end), end - start, rtol=1e-9)
    assert flat_rhythm().flat


def test_elapsed_is_additive_and_broadcasts() -> None:
    """The parts of a span add up to the whole, for arrays of any shape."""
    rhythm = Rhythm(WORK, WEEKDAYS)
    times = np.sort(np.random.default_rng(2).uniform(0, 50, 20))
    assert rhythm.elapsed(times[:-1], times[1:]).sum() == pytest.approx(rhythm.elapsed(times[0], times[-1]))
    assert rhythm.elapsed(times[:, None], times[None, :]).shape == (20, 20)


# Fitting


def test_a_daily_rhythm_is_recovered() -> None:
    """Twenty pages crawled six times a day for a month: two thirds of the error of a flat clock are gone."""
    errors = [fit_rhythm(rhythmic_log(WORK, EVEN, 20, 30.0, seed)).hours - WORK for seed in range(6)]
    assert spread(np.array(errors)) < 0.4 * spread(WORK - 1)


def test_more_crawls_recover_it_better() -> None:
    """Four times the pages for four times as long, and the weekly rhythm comes out too."""
    rhythm = fit_rhythm(rhythmic_log(WORK, WEEKDAYS, 60, 120.0, 1))
    assert spread(rhythm.hours - WORK) < 0.25 * spread(WORK - 1)
    assert spread(rhythm.days - WEEKDAYS / WEEKDAYS.mean()) < 0.15 * spread(WEEKDAYS - 1)


def test_the_fitted_clock_predicts_changes_better_than_the_one_on_the_wall() -> None:
    """On crawls it has not seen, changes are likelier under the rhythm."""
    rhythm = fit_rhythm(rhythmic_log(WORK, EVEN, 20, 30.0, 1))
    unseen = intervals_of(rhythmic_log(WORK, EVEN, 20, 30.0, 2))
    rate = steady_rates(unseen)[unseen.page_of_rows()]

    def likelihood(elapsed: Floats) -> float:
        chance = -np.expm1(-rate * elapsed)
        return float(np.log(np.where(unseen.changed, chance, 1 - chance)).sum())

    assert likelihood(rhythm.elapsed(unseen.start, unseen.end)) > likelihood(unseen.end - unseen.start) + 50


@pytest.mark.parametrize("span", [16.0, 60.0, 150.0])
def test_steady_pages_stay_flat(span: float) -> None:
    """Poisson changes at a steady rate: of 40 hosts at most one is given a rhythm."""
    assert sum(not fit_rhythm(rhythmic_log(np.ones(24), EVEN, 4, span, seed, 0.3)).flat for seed in range(40)) <= 1


def test_little_data_stay_flat() -> None:
    """Three pages for ten days: a rhythm may be there, but nobody could tell."""
    assert all(fit_rhythm(rhythmic_log(WORK, EVEN, 3, 10.0, seed, 0.3)).flat for seed in range(20))


def test_bursts_over_all_pages_are_no_rhythm() -> None:
    """A release touches every page at once: a few such moments at whatever hour must not make a rhythm."""
    found = 0
    for seed in range(30):
        random = np.random.default_rng(seed)
        releases = np.sort(random.uniform(0, 40.0, 12))
        page, time, changed = [], [], []
        for number in range(30):
            crawls = np.sort(random.uniform(0, 40.0, 200))
            page += [number] * 200
            time += crawls.tolist()
            changed += (np.diff(np.searchsorted(releases, crawls), prepend=0) > 0).tolist()
        found += not fit_rhythm(CrawlLog(page, time, changed)).flat
    assert found <= 1


def test_crawls_at_the_same_hour_every_day_show_no_hours() -> None:
    """Whole days between crawls feel no hour, however much there is; nothing fails."""
    times = np.tile(np.arange(100.0) + 0.5, 10)
    random = np.random.default_rng(1)
    log = CrawlLog(np.repeat(np.arange(10), 100), times, random.random(1000) < 0.4)
    assert (fit_rhythm(log).hours == 1).all()


def test_hosts_are_fitted_apart() -> None:
    """A host with a rhythm and a steady one, pages mixed: each gets its own, as if alone."""
    busy, steady = rhythmic_log(WORK, EVEN, 20, 30.0, 1), rhythmic_log(np.ones(24), EVEN, 20, 30.0, 2)
    page = np.concatenate([2 * np.asarray(busy.page), 2 * np.asarray(steady.page) + 1])
    both = CrawlLog(page, *(np.concatenate([a, b]) for a, b in zip(busy[1:], steady[1:], strict=True)))
    fitted = fit_rhythms(both, hosts=["busy", "steady"] * 20)
    np.testing.assert_allclose(fitted[0].hours, fit_rhythm(busy).hours)
    assert not fitted[0].flat
    assert fitted[1].flat


def test_the_unit_of_time_and_the_origin_only_name_the_hours() -> None:
    """The same log in seconds since another Monday gives the same factors."""
    log = rhythmic_log(WORK, EVEN, 20, 30.0, 1)
    moved = CrawlLog(log.page, np.asarray(log.time) * 86_400 + 1e9, log.changed)
    first, second = fit_rhythm(log), fit_rhythm(moved, day=86_400.0, origin=1e9)
    np.testing.assert_allclose(second.hours, first.hours, rtol=1e-6)


# Kernels


def test_marks_hold_the_time_spent_in_each_hour() -> None:
    """Against a plain sum over fine steps, for intervals of all lengths that begin anywhere in the week."""
    random = np.random.default_rng(1)
    for length in (0.0, 0.2, 0.9, 1.0, 5.5, 100.0, 168.0, 400.0):
        for start in (0.0, 0.5, 100.25, 167.0, 167.9):
            marks = np.zeros((2, 169))
            weight = float(random.random())
            _mark(marks, start, length, weight)
            moments = start + length * (np.arange(200_000) + 0.5) / 200_000
            plain = np.bincount((moments % 168).astype(np.int64), minlength=168) * length / 200_000 * weight
            np.testing.assert_allclose(_per_hour(marks).ravel(), plain, atol=6e-3)


def test_steady_rates_are_the_maximum_likelihood_estimates() -> None:
    """With equal gaps the rate is −ln(share unchanged) per gap."""
    log = CrawlLog([0] * 11, np.arange(11.0) * 2, [0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 0])
    assert steady_rates(intervals_of(log))[0] == pytest.approx(-np.log(0.7) / 2)


# Edges


@pytest.mark.parametrize("changed", [0, 1])
@pytest.mark.parametrize("gap", [0.0, 1e-9, 0.1, 30 * 365.0])
@pytest.mark.parametrize("crawls", [1, 2, 300])
def test_any_legal_log_has_a_rhythm(changed: int, gap: float, crawls: int) -> None:
    """All changed or none, no time or thirty years, one crawl or many: finite, with no warning."""
    log = CrawlLog(np.zeros(crawls, int), np.arange(crawls) * gap, np.full(crawls, changed))
    rhythm = fit_rhythm(log)
    assert np.isfinite(rhythm.hours).all()
    assert np.isfinite(rhythm.elapsed(0.0, 1.0))


def test_no_crawls_at_all_are_flat() -> None:
    """Nothing known, nothing assumed."""
    assert fit_rhythm(CrawlLog([], [], [])).flat
    assert fit_rhythms(CrawlLog([], [], []), hosts=["a", "b"])[1].flat


def test_a_rhythm_pickles_and_does_not_touch_its_factors() -> None:
    """A copy shows the same time; the caller's arrays stay as they were."""
    hours = np.arange(1.0, 25.0)
    rhythm = Rhythm(hours, EVEN)
    assert hours[0] == 1.0
    assert pickle.loads(pickle.dumps(rhythm)).elapsed(0.1, 0.9) == rhythm.elapsed(0.1, 0.9)
    assert clock_of(rhythm.hours, rhythm.days)[-1] == 168
