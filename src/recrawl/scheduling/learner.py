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
from recrawl.learning.filter import Law, believe_many, law_of, update_many
from recrawl.learning.filter_state import FilterState, Memory
from recrawl.learning.grid import RatePrior, rate_grid
from recrawl.learning.inputs import Flags
from recrawl.pages import Floats
from recrawl.scheduling.completion import uniform
from recrawl.scheduling.table.pages import PageTable
from recrawl.scheduling.table.records import FREE, LEARNS, NOISY_FRESHNESS, HostName, Record, Records, Slots
from recrawl.values.special import bits_of

TAIL = 0.05
_MEAN, _SHAPE = 0, 5  # places in the numbers of the filter
_MOST_DOUBT = 4.0
_SHORT = 0.6  # of the time in which announced changes happened; shorter gaps would be taken for turns
_MOST_AT_ONCE = 8  # announced changes between two crawls that are learned from
_LEAST_SILENT = 0.1  # share of changes that signals miss, at least as far as learning goes

_SLOWEST, _FASTEST = 1e-3, 1e3  # changes per crawl of an average page
_ROUNDS = 4.0  # of crawls, between the imagined looks at a page of which nothing is known
_LEAST_WEIGHT = 1e-200
_LEAST, _MOST = 1e-30, 1e30  # crawl rates that a prior is made for
# More evidence for a turn than the filter asks for by itself: pages change in bursts, which look like turns.
TURN_DOUBT = 6.0


class Crawls(NamedTuple):
    """Crawls, each of another page."""

    slots: Slots
    gaps: Floats  # since the crawl before; NaN for a first crawl
    heard: Floats  # signals counted in the gap
    changed: Flags


class Tables(NamedTuple):
    """The arrays that learning reads and writes."""

    pages: Records
    signals: Records
    beliefs: FilterState


class Steps(NamedTuple):
    """Observations for the filter: a page, a gap, and whether the page changed in it."""

    slots: Slots
    gaps: Floats
    changed: Flags


def learn(tables: Tables, law: Law, crawls: Crawls) -> None:
    """Learn from crawls; first crawls, and crawls of pages that do not learn, are skipped. O(crawls · grid)."""
    count = len(crawls.slots)
    learned = np.empty(count, dtype=np.int64)
    room = (2 + _MOST_AT_ONCE) * count if len(tables.signals) else count
    steps = Steps(np.empty(room, dtype=np.int64), np.empty(room), np.empty(room, dtype=np.bool_))
    count = _learn(tables, law, crawls, learned, steps)
    if count > 0:
        write_beliefs(tables.pages, tables.beliefs, law, learned[:count], TAIL)


@kernel
def _learn(tables: Tables, law: Law, crawls: Crawls, learned: Slots, steps: Steps) -> int:
    """Update the filters, first of pages that do not listen to signals; return how many pages are noted as learned."""
    pages, beliefs = tables.pages, tables.beliefs
    count = used = 0
    for i in range(len(crawls.slots)):
        page = pages[crawls.slots[i]]
        if page["flags"] & LEARNS == 0 or math.isnan(crawls.gaps[i]):
            continue
        learned[count] = crawls.slots[i]
        count += 1
        if page["law"] < NOISY_FRESHNESS:
            _note(steps, used, crawls.slots[i], crawls.gaps[i], crawls.changed[i])
            used += 1
    listening = count > used
    update_many(beliefs, law, steps.slots[:used], steps.gaps[:used], steps.changed[:used])
    if listening:
        used = 0
        for i in range(len(crawls.slots)):
            page = pages[crawls.slots[i]]
            if page["flags"] & LEARNS != 0 and page["law"] >= NOISY_FRESHNESS and not math.isnan(crawls.gaps[i]):
                used = _split(tables, crawls, i, steps, used)
        # The gaps are made up: their sum is right, but the test for turns would look at each of them.
        calm = Law(law.table, law.log_rates, law.priors, law.fading, False, law.doubt)
        update_many(beliefs, calm, steps.slots[:used], steps.gaps[:used], steps.changed[:used])
    return count


@borrowing
def _note(steps: Steps, place: int, slot: int, gap: float, changed: bool) -> None:
    steps.slots[place] = slot
    steps.gaps[place] = gap
    steps.changed[place] = changed


@borrowing
def _split(tables: Tables, crawls: Crawls, which: int, steps: Steps, used: int) -> int:
    """Split a crawl into steps of silent and of announced changes, each with its share of the gap.

    Args:
        tables: the arrays.
        crawls: all crawls.
        which: the crawl.
        steps: room for the steps.
        used: how many steps are noted already.

    Returns:
        How many steps are noted then.
    """
    slot, gap, heard = crawls.slots[which], crawls.gaps[which], crawls.heard[which]
    signal = tables.signals[slot]
    precision = np.float64(signal["precision"])
    announced = min(np.float64(signal["recall"]), 1.0 - _LEAST_SILENT)
    silent_gap, announced_gap = gap * (1.0 - announced), gap * announced
    chance = uniform(0, slot, bits_of(gap))
    true_signals = int(min(np.floor(heard * precision + chance), float(_MOST_AT_ONCE)))
    quiet = math.exp(-tables.pages[slot]["decay"] * silent_gap)
    silent = crawls.changed[which] and chance * (1.0 - (1.0 - precision) ** heard * quiet) < 1.0 - quiet
    _note(steps, used, slot, silent_gap, silent)
    # n changes in a time are as likely as n short gaps with a change each, and the rest of the time without one.
    rest = (1.0 - _SHORT) * announced_gap if true_signals > 0 else announced_gap
    _note(steps, used + 1, slot, rest, False)
    for k in range(true_signals):
        _note(steps, used + 2 + k, slot, _SHORT * announced_gap / true_signals, True)
    return used + 2 + true_signals


@kernel
def write_beliefs(pages: Records, beliefs: FilterState, law: Law, slots: Slots, tail: float) -> Floats:
    """Write the believed rates of pages into their records; return what `believe_many` does. O(slots · grid)."""
    numbers: Floats = believe_many(beliefs, law, slots, tail)
    for i in range(len(slots)):
        page = pages[slots[i]]
        page["decay"] = _rate_to_act_on(page, numbers[i, _MEAN], numbers[i, _SHAPE])
        page["belief"] = numbers[i, _SHAPE]
    return numbers


@borrowing
def _rate_to_act_on(page: Record, mean: float, shape: float) -> float:
    """Return the rate that a page is valued by: the mean, or for freshness with signals e to the mean logarithm.

    ψ(k) − ln θ with ψ(k) ≈ ln(k + ½) − 1/k: a page of which little is known is not given up.
    """
    if page["law"] != NOISY_FRESHNESS:
        return mean
    return mean * (1.0 + 0.5 / shape) * math.exp(-min(1.0 / shape, _MOST_DOUBT))


def prior_around(crawl_rate: float) -> RatePrior:
    """Build a default prior centred on the mean crawl rate, for use without history.

    Pages that change about as often as they can be crawled decide how a budget is best spent. A prior that weighs all
    magnitudes alike expects much higher rates: many pages would seem to change too often to be followed, and would be
    given up before they are known. This prior is the one that weighs all magnitudes alike, after two imagined crawls
    four rounds apart, of which one saw a change and one did not. It has no unit: the scale comes from the budget.
    """
    grid = rate_grid(_SLOWEST * crawl_rate, _FASTEST * crawl_rate)
    changes = _ROUNDS * grid.rates / crawl_rate
    weights = -np.expm1(-changes) * np.maximum(np.exp(-changes), _LEAST_WEIGHT)
    return RatePrior(grid, weights / weights.sum(), np.empty((0, grid.points)))


class Learner:
    """The online filter over the beliefs of a page table.

    Without a given prior it builds one for each power of two of the crawl rate. The state of a page does not depend on
    the prior, so it can be read with any.
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
        """Use the prior for this crawl rate from now on, unless a prior was given. O(1) within a power of two."""
        if self._given:
            return
        power = round(math.log2(min(max(crawl_rate, _LEAST), _MOST)))
        if power not in self._around:
            prior = prior_around(2.0**power)
            self._around[power] = prior, law_of(prior, self._memory, TURN_DOUBT)
        self.prior, self._law = self._around[power]

    def set_prior(self, prior: RatePrior) -> None:
        """Use this prior for all pages from now on. O(pages)."""
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
        """Return the pages that learn and have not learned yet: their belief is the prior. O(pages)."""
        table = self._table
        states, pages = table.beliefs[: table.used], table.pages[: table.used]
        known = (states["changes"] > 0) | (states["unchanged_time"] > 0)
        return np.flatnonzero(~known & (pages["state"] != FREE) & (pages["flags"] & LEARNS != 0))

    def believe_alike(self, slots: Slots) -> None:
        """Write the prior into pages that have not learned yet: it is the same for all pages of a law. O(slots)."""
        pages = self._table.pages
        laws = pages["law"][slots]
        for law in np.unique(laws):
            alike = slots[laws == law]
            self.believe(alike[:1])
            for name in ("decay", "belief"):
                pages[name][alike] = pages[name][alike[:1]]

    def believe(self, slots: Slots) -> None:
        """Write the believed rates of pages into their records. O(slots · grid)."""
        if len(slots):
            write_beliefs(self._table.pages, self._table.beliefs, self._law, slots, TAIL)

    def interval(self, slot: int, tail: float = TAIL) -> tuple[float, float]:
        """Return the interval that holds the rate of a page with a probability of 90 %, or 1 − 2·tail."""
        page, beliefs = self._table.pages[slot : slot + 1].copy(), self._table.beliefs[slot : slot + 1]
        numbers = write_beliefs(page, beliefs, self._law, np.zeros(1, dtype=np.int64), tail)[0]
        return float(numbers[2]), float(numbers[3])

    def learn(self, crawls: Crawls) -> None:
        """Learn from crawls; see `learn`. O(crawls · grid)."""
        learn(Tables(self._table.pages, self._table.signals, self._table.beliefs), self._law, crawls)
