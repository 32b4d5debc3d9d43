"""Rules of other crawlers: what a rule is told at a crawl, what it may remember, and every rule with its number.

A rule is one compiled function `wait(parameters, own, visit)`: it reads its parameters, reads and writes the few
numbers `own` that it keeps for the page, and answers how many days to wait until the page is due again (infinite:
never). All of a page's `own` numbers are 0 before its first visit. A rule has no other memory and sees no other page.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from recrawl.jit import borrowing, exact
from recrawl.pages import Floats

REMEMBERED = 6
"""How many numbers a rule may keep for each page."""

MINUTE = 1.0 / 1440.0
HOUR = 1.0 / 24.0
WEEK = 7.0


class Visit(NamedTuple):
    """One crawl of one page.

    Attributes:
        now: when, in days.
        gap: days since the last crawl; 0 at the first.
        changed: whether the copy differs from the last one.
        first: whether there was no copy yet. Pages that are there at the start have their first visit at 0.
        modified: when the page last changed, as its Last-Modified header would say.
        dates: times of all changes of all pages, for rules that read the dates of entries: those of this page that
            have happened are `dates[entries[0]:entries[1]]`.
        entries: where this page's dates begin and end.
        importance: the page's weight.
        rate: its true changes a day, for rules that are told.
        planned: the wait that a plan has for it, in days.
        fair: pages known by now, divided by the budget: the wait if all had the same.
        chance: a number drawn evenly from [0, 1).
    """

    now: float
    gap: float
    changed: bool
    first: bool
    modified: float
    dates: Floats
    entries: tuple[int, int]
    importance: float
    rate: float
    planned: float
    fair: float
    chance: float


(
    FIXED,
    EVEN,
    BY_RATE,
    BY_IMPORTANCE,
    CHANGEDETECTION,
    NUTCH,
    STORMCRAWLER,
    HERITRIX,
    BUBING,
    ADUANA,
    MINIFLUX,
    LM_FACTOR,
    CHO_INTERVAL,
    CHANGE_FIRST,
    POISSON_PROBE,
    MIRROR_PROBE,
    PLANNED,
) = range(17)

MOST_OVERDUE, BY_SCORE, MOST_OVERDUE_SHARE = range(3)
"""Longest past its due date first; highest importance first; longest past as a share of its wait first."""


@exact
def even_wait(parameters: Floats, own: Floats, visit: Visit) -> float:  # noqa: ARG001 - the contract of rules
    """Uniform: all pages at the same rate, budget divided by the number of pages known at the time.

    No parameters. In a world of steady size it uses the whole budget.
    """
    return visit.fair


@exact
def planned_wait(parameters: Floats, own: Floats, visit: Visit) -> float:  # noqa: ARG001 - the contract of rules
    """The wait that a plan holds for the page: for competitors that plan anew from time to time.

    No parameters.
    """
    return visit.planned


@exact
def fixed_wait(parameters: Floats, own: Floats, visit: Visit) -> float:  # noqa: ARG001 - the contract of rules
    """Fixed interval: every page again after the same time.

    It is what Nutch does by default (30 days), StormCrawler by default and Frontera's old revisiting backend (1 day),
    Heritrix 3 with a reschedule delay, and most monitors.

    Parameters: the interval in days.
    """
    return float(parameters[0])


@exact
def by_rate_wait(parameters: Floats, own: Floats, visit: Visit) -> float:  # noqa: ARG001 - the contract of rules
    """Rates in proportion to a column: the true change rate, or importance (LambdaCrawlApprox, Kolobov et al. 2019).

    Only the ratio of waits counts: scaled to the budget, page i gets the share weight_i / Σ weight of the pages known
    at the time. A page of weight 0 is never crawled.

    No parameters.
    """
    return _inverse(visit.rate)


@exact
def by_importance_wait(parameters: Floats, own: Floats, visit: Visit) -> float:  # noqa: ARG001 - the contract of rules
    """No parameters."""
    return _inverse(visit.importance)


@exact
def _inverse(weight: float) -> float:
    return 1.0 / weight if weight > 0.0 else math.inf


@exact
def lm_factor_wait(parameters: Floats, own: Floats, visit: Visit) -> float:  # noqa: ARG001 - the contract of rules
    """Squid's LM-factor as a revisit rule: wait a fifth of the time since Last-Modified, at most 3 days.

    RFC 9111 suggests a tenth. Squid's default shortest time is 0; here it is a minute, which is Squid's unit.

    Parameters: factor, shortest, longest; times in days.
    """
    factor, shortest, longest = parameters[0], parameters[1], parameters[2]
    return float(min(max(factor * (visit.now - visit.modified), shortest), longest))


_LEAST = 3.0 / 86400.0


@exact
def changedetection_wait(parameters: Floats, own: Floats, visit: Visit) -> float:  # noqa: ARG001 - the contract of rules
    """changedetection.io: every watch after a threshold of 3 hours, plus a jitter drawn once for each recheck.

    The jitter is even in ±j and 0 by default. A watch is never rechecked within 3 seconds. (Source of August 2026.)

    Parameters: threshold and jitter in days.
    """
    return max(float(parameters[0] + parameters[1] * (2.0 * visit.chance - 1.0)), _LEAST)


@exact
def heritrix_wait(parameters: Floats, own: Floats, visit: Visit) -> float:
    """Heritrix 1's WaitEvaluator: the interval is divided by 1.5 after a change and else multiplied by it.

    Start 1 day, 1 hour to 28 days.

    Parameters: start, factor, shortest, longest; times in days.
    """
    start, factor, shortest, longest = parameters[0], parameters[1], parameters[2], parameters[3]
    if visit.first:
        own[0] = start
    elif visit.changed:
        own[0] = max(own[0] / factor, shortest)
    else:
        own[0] = min(own[0] * factor, longest)
    return float(own[0])


_FIRST_CRAWL, _CHANGES = range(2)


@exact
def aduana_wait(parameters: Floats, own: Floats, visit: Visit) -> float:
    """Aduana's frequency scheduler (Scrapinghub 2015): crawl at the rate of changes found, plus one.

    The rate is (changes found + 1) / (last crawl − first crawl). Aduana pops the page with the lowest score and adds
    the inverse of its frequency: a virtual clock, which is what scaling to the budget does here. As it is, it is Aduana
    with its pause at margin 0: no page before its time.

    Parameters: the first wait in days.
    """
    if visit.first:
        own[_FIRST_CRAWL] = visit.now
        return float(parameters[0])
    if visit.changed:
        own[_CHANGES] += 1.0
    return float((visit.now - own[_FIRST_CRAWL]) / (own[_CHANGES] + 1.0))


_CHANGE_FIRST_VISITS, _CHANGE_FIRST_CHANGED, _WATCHED = range(3)


@exact
def change_first_wait(parameters: Floats, own: Floats, visit: Visit) -> float:  # noqa: ARG001 - the contract of rules
    """The page most likely to have changed first: the highest 1 − e^(−rate·age), with the rate learned on the way.

    The order by rate·age is that of waits in proportion to 1/rate, so the due-date engine serves it scaled to the
    budget. The rate is Cho's estimate −ln((n − x + 0.5) / (n + 0.5)) / mean gap, as in gp4c (Santos et al.), and half a
    change in the time watched where none was seen.

    No parameters.
    """
    if visit.first:
        return visit.fair
    own[_CHANGE_FIRST_VISITS] += 1.0
    own[_CHANGE_FIRST_CHANGED] += 1.0 if visit.changed else 0.0
    own[_WATCHED] += visit.gap
    visits, changed, watched = own[_CHANGE_FIRST_VISITS], own[_CHANGE_FIRST_CHANGED], own[_WATCHED]
    expected = -math.log((visits - changed + 0.5) / (visits + 0.5)) * visits
    return float(watched / max(expected, 0.5))


@exact
def miniflux_wait(parameters: Floats, own: Floats, visit: Visit) -> float:  # noqa: ARG001 - the contract of rules
    """Miniflux's entry_frequency: as often as entries were dated in the last week.

    It reads the dates of the entries, so it knows every change and not only that there was one. The weekly count is the
    week divided by the mean gap between entries, rounded up; with fewer than two entries the interval is the longest.
    5 minutes to 24 hours, factor 1.

    Parameters: factor, shortest, longest; times in days. O(entries in a week).
    """
    factor, shortest, longest = parameters[0], parameters[1], parameters[2]
    begin, end = visit.entries
    oldest = end
    while oldest > begin and visit.dates[oldest - 1] > visit.now - WEEK:
        oldest -= 1
    entries = end - oldest
    if entries < 2:
        return float(longest)
    mean_gap = (visit.dates[end - 1] - visit.dates[oldest]) / (entries - 1)
    if mean_gap <= 0.0:
        return float(shortest)
    weekly = math.ceil(WEEK / mean_gap)
    return float(min(max(WEEK / (weekly * factor), shortest), longest))


@exact
def stormcrawler_wait(parameters: Floats, own: Floats, visit: Visit) -> float:
    """Apache StormCrawler's AdaptiveScheduler, in whole minutes: shorter intervals after a change, longer ones else.

    StormCrawler: start 1440, 60 to 20160 minutes, both factors 0.5. Common Crawl's news crawler runs it with feeds at
    start 720, 90 minutes to 90 days, decrease 0.2. (Sources of 2025.)

    Parameters: start, increase, decrease, shortest, longest; times in minutes.
    """
    start, increase, decrease, shortest, longest = (
        parameters[0],
        parameters[1],
        parameters[2],
        parameters[3],
        parameters[4],
    )
    if visit.first:
        own[0] = start
    elif visit.changed:
        own[0] = math.floor((1.0 - decrease) * own[0] + decrease * shortest)
    else:
        own[0] = min(longest, math.floor(own[0] * (1.0 + increase)))
    return float(own[0] * MINUTE)


CHANGED, VISITS, APPROXIMATED = range(3)
"""Where the sum of bits, their number and the approximation are in what is remembered of a page."""


@exact
def poisson_probe_wait(parameters: Floats, own: Floats, visit: Visit) -> float:
    """Crawls at random times with a known rate, for two estimators (Avrachenkov, Patil, Thoppe 2020).

    With crawls at Poisson rate p and bits I_k, the law of large numbers gives rate = p·X / (k + a − X) with X the sum
    of the bits; stochastic approximation moves y by η_k·(I·(y + p) − y), η_k = (k + 1)^−γ. Both keep a few numbers.

    Parameters: γ, and the least the approximation may fall to, as a share of the crawl rate.
    """
    exponent, least = parameters[0], parameters[1]
    crawl_rate = 1.0 / visit.planned
    if visit.first:
        own[APPROXIMATED] = crawl_rate
    else:
        bit = 1.0 if visit.changed else 0.0
        own[CHANGED] += bit
        own[VISITS] += 1.0
        step = (own[VISITS] + 1.0) ** -exponent
        moved = own[APPROXIMATED] + step * (bit * (own[APPROXIMATED] + crawl_rate) - own[APPROXIMATED])
        own[APPROXIMATED] = max(moved, least * crawl_rate)
    return -math.log1p(-visit.chance) * visit.planned


_BUBING_INTERVAL, _BUBING_MODIFIED = range(2)


@exact
def bubing_wait(parameters: Floats, own: Floats, visit: Visit) -> float:
    """A BUbiNG fork that revisits (Ondrej 2018): Nutch's rule without the offset.

    Factors 0.2, start 5 days, 1 hour to 180 days; then at least the time since the last change that was found.

    Parameters: start, increase, decrease, shortest, longest; times in days.
    """
    start, increase, decrease, shortest, longest = (
        parameters[0],
        parameters[1],
        parameters[2],
        parameters[3],
        parameters[4],
    )
    if visit.first:
        own[_BUBING_INTERVAL], own[_BUBING_MODIFIED] = start, visit.now
        return float(start)
    factor = 1.0 + increase
    if visit.changed:
        factor = 1.0 - decrease
        own[_BUBING_MODIFIED] = visit.now
    interval = min(max(own[_BUBING_INTERVAL] * factor, shortest), longest)
    own[_BUBING_INTERVAL] = max(interval, visit.now - own[_BUBING_MODIFIED])
    return float(own[_BUBING_INTERVAL])


_CHO_INTERVAL_INTERVAL, _CHO_INTERVAL_VISITS, _CHO_INTERVAL_CHANGED = range(3)


@exact
def cho_interval_wait(parameters: Floats, own: Floats, visit: Visit) -> float:
    """Cho's estimator as an interval, as C01 uses it: after every k visits the mean time between changes becomes it.

    With x of k visits at interval I changed, the new interval is I / −ln((k − x + 0.5) / (k + 0.5)) (Cho and
    Garcia-Molina 2003); without a change the estimate is infinite and the longest interval holds. C01 leaves k and the
    limits to its user; here 5 visits, start 1 day, 1 hour to 90 days.

    Parameters: start, visits, shortest, longest; times in days.
    """
    start, visits, shortest, longest = parameters[0], parameters[1], parameters[2], parameters[3]
    if visit.first:
        own[_CHO_INTERVAL_INTERVAL] = start
        return float(start)
    own[_CHO_INTERVAL_VISITS] += 1.0
    own[_CHO_INTERVAL_CHANGED] += 1.0 if visit.changed else 0.0
    if own[_CHO_INTERVAL_VISITS] >= visits:
        estimate = longest
        if own[_CHO_INTERVAL_CHANGED] > 0.0:
            unchanged = (own[_CHO_INTERVAL_VISITS] - own[_CHO_INTERVAL_CHANGED] + 0.5) / (
                own[_CHO_INTERVAL_VISITS] + 0.5
            )
            estimate = own[_CHO_INTERVAL_INTERVAL] / -math.log(unchanged)
        own[_CHO_INTERVAL_INTERVAL] = min(max(estimate, shortest), longest)
        own[_CHO_INTERVAL_VISITS] = own[_CHO_INTERVAL_CHANGED] = 0.0
    return float(own[_CHO_INTERVAL_INTERVAL])


_STAGE, _REST, _PROBED, MISSED, STEPS = range(5)
"""Where the sum of what probes missed and the number of steps are in what is remembered of a page."""

_END_OF_STEP, _PROBE, _END_OF_PROBED_STEP = range(3)


@exact
def mirror_probe_wait(parameters: Floats, own: Floats, visit: Visit) -> float:
    """MirrorSync's way to crawl: at even steps, with a probe inside some of them (Kolobov, Bubeck, Zimmert 2020).

    A step is as long as the planned wait. With chance ε the page is also crawled at a time drawn evenly from the step.
    What the probe misses of the cost at the end of the step is the slope of the page's cost in its crawl rate: no model
    of change is needed.

    Parameters: ε.
    """
    stage = own[_STAGE]
    if not visit.first:
        bit = 1.0 if visit.changed else 0.0
        if stage == _PROBE:
            own[_PROBED] = bit
            own[_STAGE] = _END_OF_PROBED_STEP
            return float(own[_REST])
        own[STEPS] += 1.0
        if stage == _END_OF_PROBED_STEP:
            own[MISSED] += own[_PROBED] - max(own[_PROBED], bit)
    own[_STAGE] = _END_OF_STEP
    if visit.chance >= parameters[0]:
        return visit.planned
    inside = visit.chance / parameters[0] * visit.planned
    own[_STAGE] = _PROBE
    own[_REST] = visit.planned - inside
    return float(inside)


_NUTCH_INTERVAL, _NUTCH_MODIFIED, _FORGOTTEN = range(3)


@exact
def nutch_wait(parameters: Floats, own: Floats, visit: Visit) -> float:
    """Apache Nutch's AdaptiveFetchSchedule: a shorter interval after a change, a longer one after none.

    With `sync_delta` on, a page that has not changed for longer than its interval gets that time as its interval, and
    the next fetch is moved towards the last change that was found by a share of it. Where the source means to scale an
    offset above the longest interval it divides whole numbers and gets 0, and so do we.

    `nutch-default.xml` has increase 0.4, decrease 0.2, sync rate 0.3; without the file the class falls back to increase
    0.2 and sync rate 0.2. Both have 60 seconds to 365 days. Beside the class, the crawl database has a limit of its
    own, 90 days: an interval beyond is cut to nine tenths of it and the signature forgotten, so the next fetch can tell
    no change; and a page due further ahead than the limit is due at once. (Source of July 2026.)

    Parameters: start, increase, decrease, shortest, longest, sync rate (0: sync off), limit of the database.
    """
    start, increase, decrease, shortest, longest, sync_rate, limit = (
        parameters[0],
        parameters[1],
        parameters[2],
        parameters[3],
        parameters[4],
        parameters[5],
        parameters[6],
    )
    if visit.first:
        own[_NUTCH_INTERVAL] = start
    interval = own[_NUTCH_INTERVAL]
    if visit.first or own[_FORGOTTEN] > 0.0:
        own[_NUTCH_MODIFIED] = visit.now
    elif visit.changed:
        interval *= 1.0 - decrease
        own[_NUTCH_MODIFIED] = visit.now
    else:
        interval *= 1.0 + increase
    offset = 0.0
    if sync_rate > 0.0:
        unchanged = visit.now - own[_NUTCH_MODIFIED]
        interval = max(interval, unchanged)
        offset = sync_rate * unchanged
        if offset > longest:
            offset = 0.0
    interval = min(max(interval, shortest), longest)
    wait = max(interval - offset, 0.0)
    own[_FORGOTTEN] = 0.0
    if interval > limit:
        interval = 0.9 * limit
        own[_FORGOTTEN] = 1.0
        if wait > limit:
            wait = 0.0
    own[_NUTCH_INTERVAL] = interval
    return float(wait)


@borrowing
def ask_rule(kind: int, parameters: Floats, own: Floats, visit: Visit) -> float:  # noqa: C901, PLR0911, PLR0912 - a line each
    """Return how many days the rule of this number waits after a visit.

    The compiled engine cannot be handed functions, so it names rules by number. To add a rule, write it above, give it
    a number and a branch here, and name it in `registry.py`.
    """
    if kind == FIXED:
        return fixed_wait(parameters, own, visit)
    if kind == EVEN:
        return even_wait(parameters, own, visit)
    if kind == BY_RATE:
        return by_rate_wait(parameters, own, visit)
    if kind == BY_IMPORTANCE:
        return by_importance_wait(parameters, own, visit)
    if kind == CHANGEDETECTION:
        return changedetection_wait(parameters, own, visit)
    if kind == NUTCH:
        return nutch_wait(parameters, own, visit)
    if kind == STORMCRAWLER:
        return stormcrawler_wait(parameters, own, visit)
    if kind == HERITRIX:
        return heritrix_wait(parameters, own, visit)
    if kind == BUBING:
        return bubing_wait(parameters, own, visit)
    if kind == ADUANA:
        return aduana_wait(parameters, own, visit)
    if kind == MINIFLUX:
        return miniflux_wait(parameters, own, visit)
    if kind == LM_FACTOR:
        return lm_factor_wait(parameters, own, visit)
    if kind == CHO_INTERVAL:
        return cho_interval_wait(parameters, own, visit)
    if kind == CHANGE_FIRST:
        return change_first_wait(parameters, own, visit)
    if kind == POISSON_PROBE:
        return poisson_probe_wait(parameters, own, visit)
    if kind == MIRROR_PROBE:
        return mirror_probe_wait(parameters, own, visit)
    return planned_wait(parameters, own, visit)
