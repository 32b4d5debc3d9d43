"""Hits on the pages that a source found, by their age: counted from access logs, and what follows for new pages. Pure.

Ages are in bins of 20 minutes, a week of them (ECHO, Lefortier et al. 2013). A page is watched at an age if that moment
lies within the time that a log covers. All sources of a host together say what is expected of a source with few pages.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from recrawl.learning.hit_histograms import TWENTY_MINUTES
from recrawl.learning.interest import fit_interest
from recrawl.pages import Floats
from recrawl.store.packing import packed, unpacked
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
