"""Is there a rhythm at all? A test that one busy afternoon does not pass.

Under a steady rate the changes seen owe nothing to the hour. The score of a rhythm sums, over all intervals, how much
more change was seen than the page's own rate explains, times how far the interval covers the busy phase. Changes of
one host come in bursts (a release touches every page), so intervals are not independent; days are, or for the weekly
rhythm weeks. The spread of the score between days says how large it may be by chance (a cluster-robust score test,
Hotelling's T²).
"""

from __future__ import annotations

import numpy as np

from recrawl.learning.crawl_log import Intervals
from recrawl.learning.group_sums import group_sums, share_of
from recrawl.learning.hazard_fit import HazardProblems, fit_hazards
from recrawl.learning.rhythm import DAYS
from recrawl.pages import Floats

_HARMONICS = 2


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
