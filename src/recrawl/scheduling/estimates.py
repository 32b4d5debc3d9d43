"""Estimate how fresh the copies are now: one compiled pass over the page table. Pure.

A copy that was fetched τ ago is still current with probability e^{−Δτ}. If the change rate Δ is learned, as a Gamma
distribution of shape k and mean k/θ, the probability is (θ/(θ + τ))ᵏ. For a page that listens to signals, only silent
changes count in the elapsed time, and each counted signal is a factor 1 − precision. A page without a copy is stale.

The `Estimator` remembers what was believed of each page at its last look, so that crawls that end later can be compared
with it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.jit import borrowing, kernel
from recrawl.learning.calibration import NO_CORRECTION, Correction
from recrawl.pages import Floats
from recrawl.scheduling.table.pages import PageTable
from recrawl.scheduling.table.records import (
    AT_HOST,
    BY_VALUE,
    CAPTURES,
    FREE,
    FRESHNESS,
    HARMONIC,
    IN_FLIGHT,
    LEARNED_FRESHNESS,
    LEARNED_HARMONIC,
    LEARNS,
    LIMITED,
    LISTENS,
    NO_COPY,
    NOISY_FRESHNESS,
    READY,
    SLOT_BITS,
    Ids,
    Record,
    Records,
)
from recrawl.scheduling.value import OWN_WAIT

_BINS_PER_OCTAVE = 8
_OCTAVES = 34  # of seconds: from one to five hundred years
_BINS = _BINS_PER_OCTAVE * _OCTAVES
_SLOT = np.int64((1 << SLOT_BITS) - 1)

# Places in the sums of a look.
_PAGES, _IMPORTANCE, _FRESH, _FRESH_PAGES, _NO_COPY = 0, 1, 2, 3, 4
_FLYING, _ON_OFFER, _AT_HOSTS, _LATEST_DUE = 5, 6, 7, 8
_LISTENING, _RECALL, _PRECISION, _LEARNED, _MISSING, _BELIEVED = 9, 10, 11, 12, 13, 14
_SPREAD, _SLOPE = 15, 16
_SUMS = 17
_SIGMAS = 2.0  # of a range: 95 %


class Beliefs(NamedTuple):
    """What was believed of each slot at the last look; of a page that listens also what it had heard.

    A negative rate is of what is no page to be kept fresh.
    """

    rate: NDArray[np.float32]
    shape: NDArray[np.float32]
    heard: NDArray[np.float32]
    importance: NDArray[np.float32]


class Believed(NamedTuple):
    """What was believed of some pages: chance that copies are current, shape and importance; NaN if not known."""

    chance: Floats
    shape: Floats
    importance: Floats


class HostSums(NamedTuple):
    """Pages of each host, by its number in the scheduler: how many, their importance, and what of it is fresh."""

    pages: NDArray[np.int64]
    importance: Floats
    fresh: Floats


@dataclass(frozen=True, slots=True)
class Ages:
    """How old the copies are, as a histogram over the logarithm of seconds."""

    counts: NDArray[np.int64]

    def percentile(self, share: float) -> float | None:
        """Return the age in seconds that this share of the copies does not exceed; None without copies.

        >>> ages = Ages(np.bincount([80] * 10, minlength=272))
        >>> round(ages.percentile(0.5))
        1069
        """
        total = int(self.counts.sum())
        if not total:
            return None
        below = np.cumsum(self.counts)
        place = int(np.searchsorted(below, max(share * total, 1e-9)))
        within = (share * total - (below[place] - self.counts[place])) / self.counts[place]
        return float(2.0 ** ((place + min(max(within, 0.0), 1.0)) / _BINS_PER_OCTAVE))


@dataclass(frozen=True, slots=True)
class Estimates:
    """All pages at one moment.

    Args:
        at: the time of the look.
        pages: tracked pages, sources and pages that are gone left out.
        importance: theirs, together.
        freshness: share of the importance whose copy is current, corrected; 1 without pages.
        fresh_pages: the same by number of pages.
        believed: the same as freshness, without the correction.
        luck: standard deviation of the freshness by luck of single pages; large where few pages have most importance.
        slope: by how much freshness falls if all change rates are e times as high, for small changes.
        no_copy: pages that were never fetched.
        missing: share of the importance that has no copy.
        ages: of the copies.
        in_flight: pages being fetched.
        on_offer: pages worth the price that wait for budget.
        at_hosts: pages that wait at their hosts and are due.
        latest_due_s: how long the page that is due longest has waited.
        listening: pages that listen to signals.
        recall, precision: mean over those pages; None without such pages.
        learned: pages whose rate is learned.
        hosts: sums by host.
    """

    at: float
    pages: int
    importance: float
    freshness: float
    fresh_pages: float
    believed: float
    luck: float
    slope: float
    no_copy: int
    missing: float
    ages: Ages
    in_flight: int
    on_offer: int
    at_hosts: int
    latest_due_s: float
    listening: int
    recall: float | None
    precision: float | None
    learned: int
    hosts: HostSums

    def freshness_range(self, doubt: float) -> tuple[float, float]:
        """Between which values the freshness is, 95 %.

        Args:
            doubt: standard deviation of the logarithm of all change rates together, as audits leave it.
        """
        half = _SIGMAS * math.hypot(self.luck, self.slope * doubt)
        return max(self.freshness - half, 0.0), min(self.freshness + half, 1.0 - self.missing)


class Estimator:
    """Estimates the freshness of all pages of a scheduler, and remembers what was believed at its last look.

    Made by `Scheduler.estimator`.

    Args:
        table: of the pages; only read.
        unit_s: seconds in one unit of the scheduler's time.
        price: returns the price of a crawl, by unit of cost.
    """

    def __init__(self, table: PageTable, unit_s: float, price: Callable[[], float]) -> None:
        self._table = table
        self._price = price
        self._unit_s = unit_s
        self._believed = _no_beliefs(0)

    def look(self, now: float, gone: Ids | None = None, correction: Correction = NO_CORRECTION) -> Estimates:
        """Estimate all pages at a time. O(pages), some tens of milliseconds for a million. May run in a thread.

        Args:
            now: the time.
            gone: ids of pages to leave out, because they no longer exist on the web.
            correction: factors on the believed change rates.
        """
        table = self._table
        pages, signals, hosts = table.pages[: table.used], table.signals, len(table.hosts)
        left_out = np.zeros(len(pages), dtype=np.bool_)
        if gone is not None and len(gone):
            slots = gone & _SLOT
            left_out[slots[slots < len(pages)]] = True
        believed = _no_beliefs(len(pages))
        sums, ages = np.zeros(_SUMS), np.zeros(_BINS, dtype=np.int64)
        by_host = HostSums(np.zeros(hosts, dtype=np.int64), np.zeros(hosts), np.zeros(hosts))
        signals = signals if len(signals) >= len(pages) else np.zeros(len(pages), dtype=signals.dtype)
        limits = table.limits if len(table.limits) >= len(pages) else np.zeros(len(pages), dtype=table.limits.dtype)
        clock = (now, self._unit_s)
        _look((pages, limits, signals, left_out), correction, clock, sums, ages, by_host, believed)
        self._believed = believed
        sums[_LATEST_DUE] = max(sums[_LATEST_DUE], self._latest_at_hosts(pages, now)) * self._unit_s
        return _estimates(now, sums, ages, by_host)

    def _latest_at_hosts(self, pages: Records, now: float) -> float:
        """Return how long a page with a copy has been due at most, of those that wait at closed hosts by value."""
        slots = np.flatnonzero((pages["state"] == BY_VALUE) & (pages["flags"] & NO_COPY == 0))
        if not len(slots):
            return 0.0
        late = now - pages["last"][slots] - self._table.appraise(slots, now, self._price(), OWN_WAIT)[0]
        return max(float(late.max()), 0.0)

    def believed(self, ids: Ids, elapsed: Floats) -> Believed:
        """Return the probability that copies of this age were current, as believed at the last look. O(ids).

        The probability is not corrected.

        Args:
            ids: of the pages.
            elapsed: time from one crawl to the next.
        """
        table = self._table
        slots = ids & _SLOT
        seen = (slots < len(self._believed.rate)) & (slots < table.used)
        known = Believed(*np.full((3, len(ids)), math.nan))
        signals = table.signals
        recall = precision = np.zeros(int(seen.sum()))
        if len(signals):
            listens = table.pages["flags"][slots[seen]] & LISTENS != 0
            recall = np.where(listens, signals["recall"][slots[seen]], 0.0).astype(np.float64)
            precision = np.where(listens, signals["precision"][slots[seen]], 0.0).astype(np.float64)
        rate, shape, heard, importance = (column[slots[seen]].astype(np.float64) for column in self._believed)
        missed = rate * (1.0 - recall) * np.maximum(elapsed[seen], 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            chance = np.where(shape > 0.0, np.exp(-shape * np.log1p(missed / shape)), np.exp(-missed))
        chance *= (1.0 - precision) ** heard
        known.chance[seen] = np.where(rate < 0, math.nan, chance)
        known.shape[seen], known.importance[seen] = shape, importance
        return known


def _no_beliefs(count: int) -> Beliefs:
    return Beliefs(*np.zeros((4, count), dtype=np.float32))


def _estimates(now: float, sums: Floats, ages: NDArray[np.int64], by_host: HostSums) -> Estimates:
    pages, importance, listening = int(sums[_PAGES]), float(sums[_IMPORTANCE]), int(sums[_LISTENING])
    return Estimates(
        at=now,
        pages=pages,
        importance=importance,
        freshness=float(sums[_FRESH]) / importance if importance > 0 else 1.0,
        fresh_pages=float(sums[_FRESH_PAGES]) / pages if pages else 1.0,
        believed=float(sums[_BELIEVED]) / importance if importance > 0 else 1.0,
        luck=math.sqrt(float(sums[_SPREAD])) / importance if importance > 0 else 0.0,
        slope=float(sums[_SLOPE]) / importance if importance > 0 else 0.0,
        no_copy=int(sums[_NO_COPY]),
        missing=float(sums[_MISSING]) / importance if importance > 0 else 0.0,
        ages=Ages(ages),
        in_flight=int(sums[_FLYING]),
        on_offer=int(sums[_ON_OFFER]),
        at_hosts=int(sums[_AT_HOSTS]),
        latest_due_s=float(sums[_LATEST_DUE]),
        listening=listening,
        recall=float(sums[_RECALL]) / listening if listening else None,
        precision=float(sums[_PRECISION]) / listening if listening else None,
        learned=int(sums[_LEARNED]),
        hosts=by_host,
    )


@borrowing
def _chance(rate: float, shape: float, exposed: float, heard: float, precision: float) -> float:
    """That nothing was missed: in silence in the time exposed, and by the signals heard."""
    chance = math.exp(-shape * math.log1p(rate * exposed / shape)) if shape > 0.0 else math.exp(-rate * exposed)
    if heard > 0.0:
        chance *= math.exp(heard * math.log1p(-precision)) if precision < 1.0 else 0.0
    return chance


@borrowing
def _counts(page: Record) -> bool:
    """Whether an entry of the table is a page to be kept fresh, and not a source or a page to be fetched once."""
    law = page["law"]
    if page["state"] == FREE or page["flags"] & CAPTURES != 0:
        return False
    return bool(law in (FRESHNESS, HARMONIC, LEARNED_FRESHNESS, LEARNED_HARMONIC) or law >= NOISY_FRESHNESS)


@borrowing
def _count_place(page: Record, now: float, sums: Floats) -> None:
    """Count a page by where it is: in flight, on offer, at its host and due."""
    late = now - page["last"] - np.float64(page["wait"])
    if page["state"] == IN_FLIGHT:
        sums[_FLYING] += 1
    elif page["state"] == READY:
        sums[_ON_OFFER] += 1
    elif page["state"] == BY_VALUE or (page["state"] == AT_HOST and late > 0.0):
        sums[_AT_HOSTS] += 1
    if (page["state"] == AT_HOST or page["state"] == READY) and page["flags"] & NO_COPY == 0:
        sums[_LATEST_DUE] = max(sums[_LATEST_DUE], late)


@borrowing
def _class_of(shape: float, edges: Floats) -> int:
    kind = len(edges)
    while shape > 0.0 and kind > 0 and shape < edges[kind - 1]:
        kind -= 1
    return kind


@kernel
def _look(
    records: tuple[Records, Records, Records, NDArray[np.bool_]],
    correction: Correction,
    clock: tuple[float, float],
    sums: Floats,
    ages: NDArray[np.int64],
    by_host: HostSums,
    believed: Beliefs,
) -> None:
    pages, limits, signals, left_out = records
    now, unit_s = clock
    for slot in range(len(pages)):
        page = pages[slot]
        _count_place(page, now, sums)
        if left_out[slot] or not _counts(page):
            believed.rate[slot] = -1.0
            continue
        importance = page["gain"]
        if page["flags"] & LIMITED != 0:
            importance *= np.float64(limits[slot]["cost"])
        shape = np.float64(page["belief"]) if page["flags"] & LEARNS != 0 else 0.0
        recall, precision, heard = 0.0, 0.0, 0.0
        if page["flags"] & LISTENS != 0:
            recall, precision = np.float64(signals[slot]["recall"]), np.float64(signals[slot]["precision"])
            heard = np.float64(page["signals"])
            sums[_LISTENING] += 1
            sums[_RECALL] += recall
            sums[_PRECISION] += precision
        believed.rate[slot], believed.shape[slot] = page["decay"], shape
        believed.heard[slot], believed.importance[slot] = heard, importance
        sums[_LEARNED] += shape > 0.0
        sums[_PAGES] += 1
        sums[_IMPORTANCE] += importance
        chance = 0.0
        if page["flags"] & NO_COPY != 0:
            sums[_NO_COPY] += 1
            sums[_MISSING] += importance
        else:
            elapsed = max(now - page["last"], 0.0)
            chance = _chance(page["decay"], shape, (1.0 - recall) * elapsed, heard, precision)
            sums[_BELIEVED] += importance * chance
            chance = chance ** correction.factors[_class_of(shape, correction.edges)]
            place = int(_BINS_PER_OCTAVE * math.log2(max(elapsed * unit_s, 1.0)))
            ages[min(place, _BINS - 1)] += 1
            sums[_SPREAD] += importance * importance * chance * (1.0 - chance)
            if chance > 0.0:
                sums[_SLOPE] -= importance * chance * math.log(chance)
        sums[_FRESH] += importance * chance
        sums[_FRESH_PAGES] += chance
        host = page["host"]
        if 0 <= host < len(by_host.pages):
            by_host.pages[host] += 1
            by_host.importance[host] += importance
            by_host.fresh[host] += importance * chance
