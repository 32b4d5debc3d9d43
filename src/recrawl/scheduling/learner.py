"""Learned change rates: crawls update the online filter of each page, and the filter's mean becomes the page's rate.

A page that listens to signals gives evidence of its rate twice: by changes that no signal announced, and by signals.
How many signals were true, and whether a change after a signal included a silent one, is drawn from its probability
given the present estimate, so that rates are unbiased. The draw depends on page and gap alone: equal calls give equal
results, one by one or together.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from recrawl.jit import borrowing, kernel
from recrawl.learning.filter_beliefs import believe_many
from recrawl.learning.filter_memory import Memory
from recrawl.learning.filter_state import FilterState
from recrawl.learning.filter_turns import update_many
from recrawl.learning.filter_weights import Law, law_of
from recrawl.learning.inputs import Flags
from recrawl.learning.prior import RatePrior
from recrawl.learning.rate_grid import rate_grid
from recrawl.pages import Floats
from recrawl.scheduling.completion import complete, look_back
from recrawl.scheduling.table.pages import PageTable
from recrawl.scheduling.table.records import FREE, LEARNS, NOISY_FRESHNESS, HostName, Record, Records, Slots

TAIL = 0.05
_MEAN, _SHAPE = 0, 5  # places in the numbers of the filter
_MOST_DOUBT = 4.0
_SHORT = 0.6  # of the time in which announced changes happened; shorter gaps would be taken for turns
_MOST_AT_ONCE = 8  # announced changes that are learned from between two crawls
_LEAST_SILENT = 0.1  # share of changes that signals miss, at least as far as learning goes

_SLOWEST, _FASTEST = 1e-3, 1e3  # changes per crawl of an average page
_ROUNDS = 4.0  # of crawls, between the imagined looks at a page of which nothing is known
_LEAST_WEIGHT = 1e-200
_LEAST, _MOST = 1e-30, 1e30  # crawl rates that a prior is made for
# More evidence for a turn than the filter asks for by itself: pages change in bursts, which look like turns.
TURN_DOUBT = 6.0


class Crawls(NamedTuple):
    """Crawls of pages, each of another page."""

    slots: Slots
    gaps: Floats  # since the crawl before; NaN for a first one
    heard: Floats  # signals, meanwhile
    changed: Flags


class Ledger(NamedTuple):
    """The arrays that a crawl is entered into."""

    pages: Records
    limits: Records
    signals: Records
    hosts: Records
    flights: Records
    beliefs: FilterState


@kernel
def settle_and_learn(
    ledger: Ledger, law: Law, slots: Slots, changed: Flags, now: float, seen: float
) -> tuple[int, int]:
    """Settle pages that were crawled, as `complete` does, and take in what the crawls saw. O(slots · grid)."""
    gaps, heard = look_back(ledger.pages, slots, now)
    bad, once = complete(ledger.pages, ledger.limits, ledger.flights, ledger.hosts, slots, now, seen)
    if bad < 0:
        learn_from(ledger, law, Crawls(slots, gaps, heard, changed))
    return bad, once


@kernel
def learn_from(ledger: Ledger, law: Law, crawls: Crawls) -> None:
    """Take in crawls, also of pages that do not learn and first ones, which say nothing. O(crawls · grid)."""
    pages, beliefs = ledger.pages, ledger.beliefs
    taught = np.empty(len(crawls.slots), dtype=np.int64)
    plain, gaps, changed = np.empty_like(taught), np.empty(len(taught)), np.empty(len(taught), dtype=np.bool_)
    count = silent = 0
    for i in range(len(crawls.slots)):
        page = pages[crawls.slots[i]]
        if page["flags"] & LEARNS == 0 or math.isnan(crawls.gaps[i]):
            continue
        taught[count] = crawls.slots[i]
        count += 1
        if page["law"] >= NOISY_FRESHNESS:
            _learn_with_signals(ledger, law, crawls, i)
        else:
            plain[silent], gaps[silent], changed[silent] = crawls.slots[i], crawls.gaps[i], crawls.changed[i]
            silent += 1
    if silent > 0:
        update_many(beliefs, law, plain[:silent], gaps[:silent], changed[:silent])
    if count > 0:
        write_beliefs(pages, beliefs, law, taught[:count])


@kernel
def _learn_with_signals(ledger: Ledger, law: Law, crawls: Crawls, which: int) -> None:
    """Learn apart from silent changes and from announced ones, each in its share of the time."""
    slot, gap, heard = crawls.slots[which], crawls.gaps[which], crawls.heard[which]
    signal = ledger.signals[slot]
    precision = np.float64(signal["precision"])
    announced = min(np.float64(signal["recall"]), 1.0 - _LEAST_SILENT)
    silent_gap, announced_gap = gap * (1.0 - announced), gap * announced
    chance = _uniform(slot, crawls.gaps[which : which + 1].view(np.uint64)[0])
    true_signals = int(min(np.floor(heard * precision + chance), _MOST_AT_ONCE))
    quiet = math.exp(-ledger.pages[slot]["decay"] * silent_gap)
    # So many changes in a time are as likely as so many short gaps with a change, and the rest of it without one.
    gaps, changed = np.empty(2 + true_signals), np.ones(2 + true_signals, dtype=np.bool_)
    gaps[0], changed[0] = silent_gap, False
    if crawls.changed[which]:
        changed[0] = chance * (1.0 - (1.0 - precision) ** heard * quiet) < 1.0 - quiet
    gaps[1], changed[1] = (1.0 - _SHORT) * announced_gap if true_signals > 0 else announced_gap, False
    for k in range(2, 2 + true_signals):
        gaps[k] = _SHORT * announced_gap / true_signals
    # These gaps are made up: right in their sum, but a test for turns looks at them one by one.
    calm = Law(law.table, law.log_rates, law.priors, law.fading, False, law.doubt)
    update_many(ledger.beliefs, calm, np.full(2 + true_signals, slot), gaps, changed)


@kernel
def write_beliefs(pages: Records, beliefs: FilterState, law: Law, slots: Slots) -> None:
    """Write what is believed into the pages. O(slots · grid)."""
    numbers = believe_many(beliefs, law, slots, TAIL)
    for i in range(len(slots)):
        page = pages[slots[i]]
        page["decay"] = _rate_to_act_on(page, numbers[i, _MEAN], numbers[i, _SHAPE])
        page["belief"] = numbers[i, _SHAPE]


@borrowing
def _rate_to_act_on(page: Record, mean: float, shape: float) -> float:
    """The mean rate; where a page is valued at one rate, by freshness with signals, that of the mean logarithm.

    ψ(k) − ln θ with ψ(k) ≈ ln(k + ½) − 1/k: it does not give up a page of which little is known.
    """
    if page["law"] != NOISY_FRESHNESS:
        return mean
    return mean * (1.0 + 0.5 / shape) * math.exp(-min(1.0 / shape, _MOST_DOUBT))


@borrowing
def _uniform(slot: int, bits: int) -> float:
    """A number from 0 up to 1 that depends on page and gap alone."""
    word = np.uint64(slot) * np.uint64(0x9E3779B97F4A7C15) ^ np.uint64(bits)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.float64(word >> np.uint64(11)) * 2.0**-53


def prior_around(crawl_rate: float) -> RatePrior:
    """Rates around what a page is crawled on average: for whoever has no history to fit a prior to.

    Pages that change about as often as they can be crawled are those that decide how a budget is best spent, and a
    prior without a scale, all magnitudes alike, expects far more than that: many pages would seem to change more often
    than a crawler could follow, and be given up before they are known. Here it is as if all magnitudes were alike and
    the page had been looked at twice, four rounds of crawls apart, and seen changed once and unchanged once. It is free
    of units: the scale is the budget's.
    """
    grid = rate_grid(_SLOWEST * crawl_rate, _FASTEST * crawl_rate)
    changes = _ROUNDS * grid.rates / crawl_rate
    weights = -np.expm1(-changes) * np.maximum(np.exp(-changes), _LEAST_WEIGHT)
    return RatePrior(grid, weights / weights.sum(), np.empty((0, grid.points)))


class Learner:
    """The online filter over the beliefs of a page table.

    Without a prior of its own it has one for each magnitude of the crawl rate that it meets, a power of two: the state
    of a page holds no prior, so it can be read with any.
    """

    def __init__(self, table: PageTable, prior: RatePrior | None, memory: Memory) -> None:
        self._table = table
        self._memory = memory
        self._around: dict[int, tuple[RatePrior, Law]] = {}
        self._given = prior is not None
        if prior is not None:
            self.prior, self._law = prior, law_of(prior, memory, TURN_DOUBT)
        else:
            self.scale(1.0)

    def scale(self, crawl_rate: float) -> None:
        """Believe from now on in rates around this one, unless a prior was given. O(1) within the same magnitude."""
        if self._given:
            return
        power = round(math.log2(min(max(crawl_rate, _LEAST), _MOST)))
        if power not in self._around:
            prior = prior_around(2.0**power)
            self._around[power] = prior, law_of(prior, self._memory, TURN_DOUBT)
        self.prior, self._law = self._around[power]

    def believe_in(self, prior: RatePrior) -> None:
        """Read all pages with another prior from now on, one for all hosts. O(pages)."""
        self._table.need_beliefs()
        self._table.beliefs["prior_row"] = 0
        self.prior, self._law, self._given = prior, law_of(prior, self._memory, TURN_DOUBT), True

    def begin(self, slots: Slots, hosts: list[HostName] | None) -> None:
        """Give new pages the prior of their hosts. O(slots)."""
        table = self._table
        table.need_beliefs()
        table.beliefs[slots] = 0
        table.pages["flags"][slots] |= LEARNS
        if hosts is not None and self.prior.host_rows:
            rows = np.array([self.prior.host_rows.get(name, -1) + 1 for name in hosts], dtype=np.int32)
            numbers = table.pages["host"][slots]
            known = numbers >= 0
            table.beliefs["prior_row"][slots[known]] = rows[numbers[known]]
        if self.prior.host_rows:
            self.believe(slots)
        else:
            self.believe_alike(slots)

    def unknown(self) -> Slots:
        """Pages that learn and of which nothing is learned yet: they have the prior and nothing else. O(pages)."""
        table = self._table
        states, pages = table.beliefs[: table.used], table.pages[: table.used]
        known = (states["changes"] > 0) | (states["unchanged_time"] > 0)
        return np.flatnonzero(~known & (pages["state"] != FREE) & (pages["flags"] & LEARNS != 0))

    def believe_alike(self, slots: Slots) -> None:
        """Write the prior into pages of which nothing is learned yet: those of a law are all alike. O(slots)."""
        pages = self._table.pages
        laws = pages["law"][slots]
        for law in np.unique(laws):
            alike = slots[laws == law]
            self.believe(alike[:1])
            for name in ("decay", "belief"):
                pages[name][alike] = pages[name][alike[:1]]

    def believe(self, slots: Slots) -> None:
        """Write what is believed into the pages. O(slots · grid)."""
        if len(slots):
            write_beliefs(self._table.pages, self._table.beliefs, self._law, slots)

    def interval(self, slot: int, tail: float = TAIL) -> tuple[float, float]:
        """The rates between which that of the page is believed to lie, 90 % by default."""
        numbers = believe_many(self._table.beliefs, self._law, np.array([slot]), tail)[0]
        return float(numbers[2]), float(numbers[3])

    def learn(self, crawls: Crawls) -> None:
        """Take in crawls, also of pages that do not learn and first ones, which say nothing. O(crawls · grid)."""
        learn_from(self._ledger(), self._law, crawls)

    def settle(self, slots: Slots, changed: Flags, now: float, seen: float) -> tuple[int, int]:
        """Settle pages that were crawled, as `complete` does, and learn from that. O(slots · grid)."""
        return settle_and_learn(self._ledger(), self._law, slots, changed, now, seen)

    def _ledger(self) -> Ledger:
        table = self._table
        return Ledger(table.pages, table.limits, table.signals, table.hosts.records, table.flights, table.beliefs)
