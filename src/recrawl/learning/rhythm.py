"""The rhythm of a host: at which hours and on which days its pages change, used as a change of clock.

A rhythm has 24 factors for the hours of a day and 7 for the days of a week; their product is how busy an hour of the
week is, 1 on average. Measured by this clock, changes come at a steady rate: `elapsed` is the time to hand to
everything that expects a steady rate. It is exact when crawls are further apart than the rhythm is long or the rate
within an hour is steady.

**Test.** Under a steady rate the changes do not depend on the hour. The score of a rhythm sums, over all intervals,
the changes beyond the page's own rate, times how far the interval covers the busy phase. Changes of one host come in
bursts (a release touches every page), so intervals are not independent; days are, or for the weekly rhythm weeks. The
spread of the score between days gives its standard error (a cluster-robust score test, Hotelling's T²).

**Fit.** An interval with a change says only that the change lies somewhere inside. EM shares it out over the hours of
the week that the interval covers, in proportion to how busy they are, and then counts: an hour's factor is its changes
over those of a steady hour. A few pseudo-changes draw every factor to 1, and hours are smoothed a little at every pass.
Rates of pages, hours and days are fitted in turn.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import InvalidInput
from recrawl.jit import kernel
from recrawl.learning.hazard_fit import HazardProblems, fit_hazards
from recrawl.learning.histories import CrawlLog, Intervals, intervals_of
from recrawl.learning.inputs import HostColumn, check_amounts, check_positive, check_real, check_times, number_hosts
from recrawl.learning.trust import group_sums, share_of
from recrawl.pages import Floats, Hosts

HOURS, DAYS = 24, 7
WEEK_HOURS = HOURS * DAYS


_HARMONICS = 2

IMAGINARY_CHANGES = 2.0
"""Changes of its own that an hour or a day needs to be believed as much as that it is like the others."""

_SMOOTHING = 0.05  # of an hour's factor that goes to each of its neighbours, at every pass
_PASSES = 200
_SETTLED = 1e-4


@dataclass(frozen=True, slots=True)
class Rhythm:
    """Factors of the hours of a day and the days of a week; both have mean 1.

    Attributes:
        hours: 24 factors.
        days: 7 factors.
        day: length of a day in the caller's unit of time.
        origin: a time at which hour 0 of day 0 begins, such as a Monday's midnight.
    """

    hours: Floats
    days: Floats
    day: float = 1.0
    origin: float = 0.0
    _clock: Floats = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        day, origin = check_positive(self.day, "day"), check_real(self.origin, "origin")
        hours, days = _check_factors(self.hours, HOURS, "hours"), _check_factors(self.days, DAYS, "days")
        # Frozen, so that a rhythm can be shared; what follows from the arguments is set once, here.
        object.__setattr__(self, "day", day)
        object.__setattr__(self, "origin", origin)
        object.__setattr__(self, "hours", hours / hours.mean())
        object.__setattr__(self, "days", days / days.mean())
        object.__setattr__(self, "_clock", clock_of(self.hours, self.days))

    @property
    def flat(self) -> bool:
        """Whether every hour is like every other."""
        return bool((self.hours == 1).all() and (self.days == 1).all())

    def elapsed(self, start: Any, end: Any) -> Any:
        """Time between two moments by the clock of this rhythm: a week counts a week, a busy hour more than an hour.

        Broadcasts over arrays; O(1) per pair.

        >>> busy_noon = Rhythm(np.where(np.arange(24) == 12, 13.0, 1.0), np.ones(7))
        >>> float(busy_noon.elapsed(0.0, 7.0)), float(busy_noon.elapsed(12 / 24, 13 / 24).round(3))
        (7.0, 0.361)
        """
        begins, ends = _check_moments(start, "start"), _check_moments(end, "end")
        try:
            np.broadcast_shapes(begins.shape, ends.shape)
        except ValueError:
            raise InvalidInput(f"has the form {ends.shape}, but start has {begins.shape}", field="end") from None
        return self._time(ends) - self._time(begins)

    def _time(self, moment: Floats) -> Any:
        """What the clock of this rhythm shows."""
        hour = (moment - self.origin) / (self.day / HOURS)
        week, hour = np.divmod(hour, WEEK_HOURS)
        cell = np.minimum(hour.astype(np.int64), WEEK_HOURS - 1)
        within = hour - cell
        shown = self._clock[cell] + within * (self._clock[cell + 1] - self._clock[cell])
        return (week * WEEK_HOURS + shown) * (self.day / HOURS)


def flat_rhythm(day: float = 1.0, origin: float = 0.0) -> Rhythm:
    """The rhythm of a host that has none."""
    return Rhythm(np.ones(HOURS), np.ones(DAYS), day, origin)


def clock_of(hours: Floats, days: Floats) -> Floats:
    """What the clock of a rhythm shows at the start of each hour of a week, and at its end; in hours."""
    shown = np.concatenate([[0.0], np.cumsum(np.outer(days, hours).ravel())])
    shown *= WEEK_HOURS / shown[-1]
    return shown


def _check_factors(factors: Any, size: int, name: str) -> Floats:
    array = check_amounts(factors, name, size)
    if array.max() == 0:
        raise InvalidInput("is 0 like all others, but some factor must be above 0", field=name, row=0)
    return array


def _check_moments(moments: Any, name: str) -> Floats:
    """Check moments of any form; what is wrong is counted as if they stood in one row."""
    try:
        form = np.shape(moments)
    except ValueError:
        raise InvalidInput("holds lists of different lengths, but must be plain numbers", field=name) from None
    if not form:
        return np.asarray(check_real(moments, name))
    return check_times(moments if len(form) == 1 else np.reshape(moments, -1), name).reshape(form)


def steady_rates(intervals: Intervals) -> Floats:
    """Changes per unit time of each page if its rate is steady: the maximum likelihood estimate. O(intervals)."""
    gaps = intervals.end - intervals.start
    page, pages = intervals.page_of_rows(), len(intervals.offsets) - 1
    telling = gaps > 0
    mean = share_of(group_sums(page, gaps, pages), np.bincount(page[telling], minlength=pages).astype(np.float64))
    mean[mean == 0] = 1.0
    seen, quiet = telling & intervals.changed, telling & ~intervals.changed
    offsets = np.concatenate([[0], np.cumsum(np.bincount(page[seen], minlength=pages))])
    amounts = (gaps[seen] / mean[page[seen]])[:, None]
    against = (group_sums(page[quiet], gaps[quiet], pages) / mean)[:, None]
    fit = fit_hazards(HazardProblems(offsets, amounts, np.ones(len(amounts)), against))
    return fit.strengths[:, 0] / mean


def has_daily_rhythm(intervals: Intervals, rates: Floats, day: float, origin: float) -> bool:
    """Whether some hours of the day see more changes than others, with one false alarm in a thousand hosts."""
    phase = 2 * np.pi / day
    waves = []
    for harmonic in range(1, _HARMONICS + 1):
        pace = harmonic * phase
        start, end = pace * (intervals.start - origin), pace * (intervals.end - origin)
        waves += [(np.sin(end) - np.sin(start)) / pace, (np.cos(start) - np.cos(end)) / pace]
    clusters = np.floor((intervals.end - origin) / day)
    return _stands_out(intervals, rates, np.column_stack(waves), clusters)


def has_weekly_rhythm(intervals: Intervals, rates: Floats, day: float, origin: float) -> bool:
    """Whether some days of the week see more changes than others, with one false alarm in a thousand hosts."""
    start, end = (intervals.start - origin) / day, (intervals.end - origin) / day
    covered = np.column_stack([_covered(end, weekday) - _covered(start, weekday) for weekday in range(DAYS - 1)])
    covered -= ((end - start) / DAYS)[:, None]
    clusters = np.floor(end / DAYS)
    return _stands_out(intervals, rates, covered * day, clusters)


def _covered(moment: Floats, weekday: int) -> Floats:
    """Days that were this day of the week, from the origin to a moment."""
    week, within = np.divmod(moment, DAYS)
    return np.asarray(week + np.clip(within - weekday, 0.0, 1.0))


def _stands_out(intervals: Intervals, rates: Floats, waves: Floats, clusters: Floats) -> bool:
    """Whether the scores of the waves are larger than their spread between clusters allows."""
    _, cluster = np.unique(clusters, return_inverse=True)
    scores = _scores(intervals, rates, waves)
    per_cluster = group_sums(cluster, scores, int(cluster.max(initial=-1)) + 1)
    per_cluster = per_cluster[(per_cluster != 0).any(axis=1)]
    number, size = per_cluster.shape
    free = number - size
    if free < size:
        return False
    spread = per_cluster.T @ per_cluster
    scale = np.sqrt(np.diag(spread))
    if (scale <= 1e-9 * scale.max()).any():  # a wave that no interval can feel
        return False
    total = per_cluster.sum(axis=0) / scale
    # A little stiffness keeps waves that always come together from being counted twice.
    together = spread / np.outer(scale, scale) + 1e-9 * np.eye(size)
    distance = float(total @ np.linalg.solve(together, total))
    ratio = distance * free / (size * max(number - distance, 1e-9 * number))
    return bool(ratio > _one_in_a_thousand(size, free))


def _scores(intervals: Intervals, rates: Floats, waves: Floats) -> Floats:
    """What each interval adds to the scores, less what a slightly different rate of its page would explain."""
    page, pages = intervals.page_of_rows(), len(intervals.offsets) - 1
    gaps = intervals.end - intervals.start
    rate = rates[page]
    exponent = np.minimum(rate * gaps, 700.0)
    odds = 1.0 / np.maximum(np.expm1(exponent), 1e-100)
    telling = (exponent > 0) & (exponent < 50)
    surprise = np.where(telling, np.where(intervals.changed, odds, -1.0), 0.0)
    information = np.where(telling, odds, 0.0)
    by_wave = rate[:, None] * waves
    own = group_sums(page, information * gaps**2, pages)
    shared = group_sums(page, (information * gaps)[:, None] * by_wave, pages)
    explained = share_of(shared, own[:, None])[page] * gaps[:, None]
    scores: Floats = surprise[:, None] * (by_wave - explained)
    return scores


def _one_in_a_thousand(size: int, free: int) -> float:
    """What F(size, free) exceeds once in a thousand times, to about 3 %, for sizes 4 and 6."""
    limit, first, second = (4.617, 40.0, 265.0) if size == 2 * _HARMONICS else (3.743, 36.0, 250.0)
    return limit + first / free + second / free**2


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
