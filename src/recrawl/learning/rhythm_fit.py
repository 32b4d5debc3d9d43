"""Fits a rhythm to the crawls of a host's pages; no rhythm if the crawls do not show one.

An interval that saw a change says only that it fell somewhere inside. EM shares it out over the hours of the week that
the interval covers, in proportion to how busy they are thought to be, and then counts: an hour's factor is its changes
over what the rates of the pages would give a steady hour. A few imaginary changes draw every factor to 1, and hours
are smoothed a little at every pass. Rates of pages, hours and days are fitted in turn.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import InvalidInput
from recrawl.jit import kernel
from recrawl.learning.crawl_log import CrawlLog, Intervals, intervals_of
from recrawl.learning.group_sums import share_of
from recrawl.learning.host_column import HostColumn, number_hosts
from recrawl.learning.inputs import check_positive, check_real
from recrawl.learning.rhythm import DAYS, HOURS, WEEK_HOURS, Rhythm, clock_of, flat_rhythm
from recrawl.learning.rhythm_evidence import has_daily_rhythm, has_weekly_rhythm, steady_rates
from recrawl.pages import Floats, Hosts

IMAGINARY_CHANGES = 2.0
"""Changes of its own that an hour or a day needs to be believed as much as that it is like the others."""

_SMOOTHING = 0.05  # of an hour's factor that goes to each of its neighbours, at every pass
_PASSES = 200
_SETTLED = 1e-4


class _Rows(NamedTuple):
    """Intervals of the pages of a host: page, hour of the week of the start, hours, whether a change was seen."""

    page: NDArray[np.int64]
    start: Floats
    length: Floats
    changed: NDArray[np.bool_]


class _Sums(NamedTuple):
    """What a pass adds up: marks per hour of the week, sums per page."""

    seen: Floats
    due: Floats
    changes: Floats
    time: Floats


def fit_rhythm(log: CrawlLog, day: float = 1.0, origin: float = 0.0) -> Rhythm:
    """Fit the rhythm of one host to the crawls of its pages. O(crawls) per pass, at most 200 passes.

    Hours and days are fitted only if a test finds that they matter; otherwise they are flat. To see hours, crawls must
    be less than a day apart or come at changing hours, over two weeks or more; to see days of the week, over three
    months or more.

    Args:
        log: crawls of the pages of the host.
        day: length of a day in the unit of the times.
        origin: a time at which hour 0 of day 0 begins, such as a Monday's midnight.

    >>> fit_rhythm(CrawlLog([0, 0, 0], [0.0, 0.3, 0.9], [0, 1, 0])).flat  # too little to tell
    True
    """
    return _fit(intervals_of(log), check_positive(day, "day"), check_real(origin, "origin"))


def fit_rhythms(log: CrawlLog, hosts: HostColumn, day: float = 1.0, origin: float = 0.0) -> tuple[Rhythm, ...]:
    """Fit the rhythm of every host, in the order of their numbers (see `number_hosts`). O(crawls) per pass.

    Args:
        log: crawls of all pages.
        hosts: the host of each page.
        day: length of a day in the unit of the times.
        origin: a time at which hour 0 of day 0 begins.
    """
    day, origin = check_positive(day, "day"), check_real(origin, "origin")
    pages = _length_of(hosts)
    intervals = intervals_of(log, pages)
    numbered = number_hosts(hosts, pages)
    by_host = np.argsort(numbered.codes, kind="stable")
    ends = np.searchsorted(numbered.codes[by_host], np.arange(len(numbered.names) + 1))
    return tuple(
        _fit(_of_pages(intervals, by_host[first:last]), day, origin) for first, last in pairwise(ends.tolist())
    )


def _length_of(hosts: HostColumn) -> int:
    try:
        return len(hosts.codes if isinstance(hosts, Hosts) else hosts)
    except TypeError:
        raise InvalidInput("must be a column: one host per page", field="hosts") from None


def _of_pages(intervals: Intervals, pages: NDArray[np.int64]) -> Intervals:
    """The intervals of some pages."""
    lengths = (intervals.offsets[1:] - intervals.offsets[:-1])[pages]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    rows = np.arange(offsets[-1]) + np.repeat(intervals.offsets[pages] - offsets[:-1], lengths)
    return Intervals(offsets, intervals.start[rows], intervals.end[rows], intervals.changed[rows])


def _fit(intervals: Intervals, day: float, origin: float) -> Rhythm:
    rates = steady_rates(intervals)
    daily = has_daily_rhythm(intervals, rates, day, origin)
    weekly = has_weekly_rhythm(intervals, rates, day, origin)
    if not (daily or weekly):
        return flat_rhythm(day, origin)
    hour = day / HOURS
    rows = _Rows(
        intervals.page_of_rows(),
        np.mod((intervals.start - origin) / hour, WEEK_HOURS),
        (intervals.end - intervals.start) / hour,
        intervals.changed,
    )
    hours, days = _climb(rows, rates * hour, daily=daily, weekly=weekly)
    return Rhythm(hours, days, day, origin)


def _climb(rows: _Rows, rates: Floats, *, daily: bool, weekly: bool) -> tuple[Floats, Floats]:
    """EM passes until the factors settle; rates are per hour."""
    hours, days = np.ones(HOURS), np.ones(DAYS)
    rates = rates.copy()
    for _ in range(_PASSES):
        before = np.outer(days, hours)
        sums = _Sums(
            np.zeros((2, WEEK_HOURS + 1)), np.zeros((2, WEEK_HOURS + 1)), np.zeros(len(rates)), np.zeros(len(rates))
        )
        _share_out(rows, rates, clock_of(hours, days), sums)
        seen, due = _per_hour(sums.seen) * before, _per_hour(sums.due)
        if daily:
            hours = _smoothed(_factors(seen.sum(axis=0), (days[:, None] * due).sum(axis=0)))
        if weekly:
            days = _factors(seen.sum(axis=1), (hours[None, :] * due).sum(axis=1))
        rates = share_of(sums.changes, sums.time)
        if np.abs(np.outer(days, hours) - before).max() < _SETTLED:
            break
    return hours, days


def _factors(seen: Floats, due: Floats) -> Floats:
    """Changes seen over changes due, drawn to 1, with mean 1."""
    factors = (seen + IMAGINARY_CHANGES) / (due + IMAGINARY_CHANGES)
    normalised: Floats = factors / factors.mean()
    return normalised


def _smoothed(hours: Floats) -> Floats:
    """Move each hour a little towards its neighbours: left alone, EM ends in spikes (EMS, Silverman et al. 1990)."""
    return (1 - 2 * _SMOOTHING) * hours + _SMOOTHING * (np.roll(hours, 1) + np.roll(hours, -1))


@kernel
def _share_out(rows: _Rows, rates: Floats, clock: Floats, sums: _Sums) -> None:
    """Add up, per hour of the week, changes over busyness and rates over time; per page, changes and time. O(rows)."""
    for row in range(rows.page.size):
        page = rows.page[row]
        start, length = rows.start[row], rows.length[row]
        elapsed = _shown(clock, start + length) - _shown(clock, start)
        if elapsed <= 0.0 or rates[page] <= 0.0:
            continue
        sums.time[page] += elapsed
        _mark(sums.due, start, length, rates[page])
        if rows.changed[row]:
            expected = rates[page] * elapsed
            number = expected / -np.expm1(-expected)  # changes in an interval that saw at least one
            sums.changes[page] += number
            _mark(sums.seen, start, length, number / elapsed)


@kernel
def _shown(clock: Floats, hour: float) -> float:
    """What the clock shows so many hours after the start of a week."""
    weeks = np.floor(hour / WEEK_HOURS)  # stays a float: a whole number of 64 bits would not hold all
    within = hour - weeks * WEEK_HOURS
    cell = min(int(within), WEEK_HOURS - 1)
    shown: float = weeks * WEEK_HOURS + clock[cell] + (within - cell) * (clock[cell + 1] - clock[cell])
    return shown


@kernel
def _mark(marks: Floats, start: float, length: float, weight: float) -> None:
    """Add weight times the time that an interval spends in each hour of the week. O(1).

    Hours covered whole are only marked where they begin and end in `marks[0]`, which is to be summed up; the hours in
    which the interval begins and ends go to `marks[1]`.
    """
    weeks = np.floor(length / WEEK_HOURS)
    marks[0, 0] += weight * weeks
    end = start + (length - weeks * WEEK_HOURS)
    first, last = int(start), int(end)
    if first == last:
        marks[1, first] += weight * (end - start)
        return
    marks[1, first] += weight * (first + 1 - start)
    marks[1, last % WEEK_HOURS] += weight * (end - last)
    marks[0, first + 1] += weight
    if last > WEEK_HOURS:  # on into the next week
        marks[0, 0] += weight
        last -= WEEK_HOURS
    marks[0, last] -= weight


def _per_hour(marks: Floats) -> Floats:
    """Sums per hour of the week, days by hours, from their marks."""
    return (np.cumsum(marks[0])[:WEEK_HOURS] + marks[1, :WEEK_HOURS]).reshape(DAYS, HOURS)
