"""What polling a source is worth, in requests for fresh pages: for the new pages it shows and the changes it tells of.

New pages: λ a day, each of which will be asked for P times, interest fading at κ a day. A poll after τ days is worth
(Pλ/κ) g(κτ), g(x) = 1 − (1+x)e^{−x} (ECHO, Lefortier et al. 2013).

Changes: s a day are announced. One that is true with a chance π, of a page of importance μ that would have been crawled
anyway after a mean time W, saves μW requests for a stale copy if it is told at once, and that fades at 1/W as the page
comes nearer to its own crawl. So changes are as good as new pages with P = πμW, λ = s, κ = 1/W, and have the same law.

The scheduler has one law for each source. `together` finds the one whose early growth, Σ Pλκ, and whose limit,
Σ Pλ/κ, are those of the sum; in between it is never more than some per cent off.

How often new pages are asked for is learned from access logs: hits on the pages that a source found, by their age, in
bins of 20 minutes, a week of them. A page is watched at an age if that moment lies within the time that a log covers.
All sources of a host together say what is expected of a source with few pages. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from recrawl.learning.interest import TWENTY_MINUTES, fit_interest
from recrawl.learning.new_links import NewLinks
from recrawl.pages import Floats
from recrawl.store.bodies import packed, unpacked
from recrawl.tracker.clock import DAY_S

BINS = 504
BIN_S = TWENTY_MINUTES * DAY_S


@dataclass(frozen=True, slots=True)
class HitCounts:
    """Hits and pages watched, by age; `BINS` of each."""

    hits: Floats
    watched: Floats

    def __add__(self, other: HitCounts) -> HitCounts:
        return HitCounts(self.hits + other.hits, self.watched + other.watched)


def no_hits() -> HitCounts:
    """Nothing counted yet."""
    return HitCounts(np.zeros(BINS), np.zeros(BINS))


def count_hits(births: Sequence[float], hits: Iterable[tuple[float, int]], since: float, until: float) -> HitCounts:
    """Hits of pages in a stretch of time. O(pages · bins + hits).

    Args:
        births: Unix seconds at which the pages were found.
        hits: age in seconds and how many, of hits in that stretch. A page is older than we know it: hits from before
            count as its first.
        since: the beginning of the stretch that is covered.
        until: its end.

    >>> counted = count_hits([0.0, 600.0], [(30.0, 2), (-5.0, 1)], since=0.0, until=1200.0)
    >>> float(counted.hits[0]), float(counted.watched[0])
    (3.0, 1.5)
    """
    counted = no_hits()
    edges = np.arange(BINS + 1) * BIN_S
    for born in births:
        low = np.maximum(edges[:-1] + born, since)
        high = np.minimum(edges[1:] + born, until)
        counted.watched[:] += np.maximum(high - low, 0.0) / BIN_S
    for age, number in hits:
        place = int(max(age, 0.0) // BIN_S)
        if place < BINS:
            counted.hits[place] += number
    return counted


def pack_counts(counts: Floats) -> bytes:
    """Counts as bytes; empty if there are none."""
    return packed(counts.astype(np.float32).tobytes()) if counts.any() else b""


def unpack_counts(kept: bytes) -> Floats:
    """What `pack_counts` gave."""
    plain = unpacked(kept) if kept else None
    if plain is None or len(plain) != 4 * BINS:
        return np.zeros(BINS)
    return np.nan_to_num(np.frombuffer(plain, np.float32).astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0)


def interest_in(own: HitCounts, host: HitCounts, profit: float, decay: float) -> tuple[float, float]:
    """Profit of a new page and decay of the interest in it, per day.

    Args:
        own: hits of the pages of the source.
        host: hits of the pages of all sources of its host.
        profit: what is expected where nothing is known.
        decay: the same.
    """
    if not host.watched.any():
        return profit, decay
    first = fit_interest(
        host.hits[None], host.watched[None], TWENTY_MINUTES, default_decay=decay, default_profit=profit
    )
    usual = float(first.profit[0]), float(first.decay[0])
    if not own.watched.any():
        return usual
    fit = fit_interest(
        own.hits[None], own.watched[None], TWENTY_MINUTES, default_decay=usual[1], default_profit=max(usual[0], 1e-9)
    )
    return float(fit.profit[0]), float(fit.decay[0])


SMOOTHING_DAYS = 0.5
AT_ONCE = 1000.0
"""Decay per day of what is known to wait already: all of it is worth a poll within minutes, or never."""
FLOOR = 1e-9
"""Least rate and profit: nothing is ever worth nothing, or it would not be looked at again."""


class YieldModel(NamedTuple):
    """Things that a source brings: worth of each when new, how many a day, how fast that fades a day."""

    profit: float
    rate: float
    decay: float


def at_age(profit: float, decay: float, age: float) -> float:
    """What is left of the profit of a new page of an age in days; never 0.

    >>> at_age(8.0, math.log(2.0), 2.0), at_age(8.0, 1.0, -1.0)
    (2.0, 8.0)
    """
    return max(profit * math.exp(-decay * max(age, 0.0)), FLOOR)


def rate_of(polls: Sequence[tuple[float, int]]) -> float:
    """How many things a day the last polls brought, smoothed and never 0; times in Unix seconds. O(polls)."""
    links = NewLinks(1, smoothing=SMOOTHING_DAYS)
    if polls:
        start = polls[0][0]
        times = [max((at - start) / DAY_S, 0.0) for at, _ in polls]
        links.record([0] * len(polls), times=sorted(times), found=[max(found, 0) for _, found in polls])
    return float(links.rates()[0])


def changes_told(told: Sequence[tuple[float, int]], gain: float, wait: float, precision: float) -> YieldModel | None:
    """The worth of changes that a source tells of; None if it never did.

    Args:
        told: times of the last polls, and how many changes each announced.
        gain: mean worth of one that is true, in requests.
        wait: mean days until it would have been seen anyway.
        precision: the share of them that is true.
    """
    if not gain > 0.0 or not wait > 0.0 or not any(count for _, count in told):
        return None
    return YieldModel(max(gain * precision, FLOOR), rate_of(told), 1.0 / wait)


def together(streams: Iterable[YieldModel]) -> YieldModel:
    """One stream with the early growth and the limit of the sum of several.

    >>> together([YieldModel(2.0, 3.0, 0.5)])
    YieldModel(profit=2.0, rate=3.0, decay=0.5)
    """
    known = [each for each in streams if each.profit > 0.0 and each.rate > 0.0]
    if not known:
        return YieldModel(FLOOR, FLOOR, 1.0)
    if len(known) == 1:
        return known[0]
    growth = sum(each.profit * each.rate * each.decay for each in known)
    limit = sum(each.profit * each.rate / each.decay for each in known)
    decay = math.sqrt(growth / limit)
    rate = sum(each.rate for each in known)
    return YieldModel(limit * decay / rate, rate, decay)


def waiting(stream: YieldModel, expected: float) -> YieldModel:
    """The worth of a source with a known number of things that wait: that many at once, and no more later."""
    return YieldModel(stream.profit, max(expected, FLOOR) * AT_ONCE, AT_ONCE)


def for_cost(stream: YieldModel, cost: float) -> YieldModel:
    """The stream by unit of cost; a poll that costs two requests must be worth twice the price."""
    return stream._replace(profit=max(stream.profit / max(cost, 1.0), FLOOR))


def differs(one: YieldModel, other: YieldModel, share: float = 0.05) -> bool:
    """Whether two streams are so different that the scheduler must know."""
    return any(abs(a - b) > share * max(a, b) for a, b in zip(one, other, strict=True))
