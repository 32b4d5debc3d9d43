"""Change rates that are learned: crawls enter the online filter, and what it believes becomes the page's value."""

from __future__ import annotations

import math

import numpy as np

from recrawl.learning.filter_beliefs import believe_many
from recrawl.learning.filter_memory import Memory
from recrawl.learning.filter_turns import update_many
from recrawl.learning.filter_weights import Law, law_of
from recrawl.learning.inputs import Flags
from recrawl.learning.prior import RatePrior
from recrawl.learning.rate_grid import rate_grid
from recrawl.pages import Floats
from recrawl.scheduling.hosts import HostName
from recrawl.scheduling.laws import NOISY_FRESHNESS
from recrawl.scheduling.page_record import LEARNS, Slots
from recrawl.scheduling.page_table import PageTable

_SLOWEST, _FASTEST = 1e-3, 1e3  # changes per crawl of an average page
_ROUNDS = 4.0  # of crawls, between the imagined looks at a page of which nothing is known
_LEAST_WEIGHT = 1e-200
_LEAST, _MOST = 1e-30, 1e30  # crawl rates that a prior is made for
_MEAN, _SHAPE = 0, 5  # places in the numbers of the filter
_TAIL = 0.05
# More evidence for a turn than the filter asks for by itself: pages change in bursts, which look like turns.
TURN_DOUBT = 6.0
_MOST_DOUBT = 4.0
_SHORT = 0.6  # of the time in which announced changes happened; shorter gaps would be taken for turns
_MOST_AT_ONCE = 8  # announced changes that are learned from between two crawls
_LEAST_SILENT = 0.1  # share of changes that signals miss, at least as far as learning goes


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
        self.believe(slots)

    def observe(self, slots: Slots, gaps: Floats, changed: Flags) -> None:
        """Take in crawls of pages that learn: time since the crawl before, and whether it saw a change. O(slots)."""
        self._take_in(slots, gaps, changed, self._law)

    def _take_in(self, slots: Slots, gaps: Floats, changed: Flags, law: Law) -> None:
        update_many(self._table.beliefs, law, slots, gaps, changed)
        self.believe(slots)

    def believe(self, slots: Slots) -> None:
        """Write what is believed into the pages. O(slots · grid)."""
        if not len(slots):
            return
        pages = self._table.pages
        numbers = believe_many(self._table.beliefs, self._law, slots, _TAIL)
        rates, shapes = numbers[:, _MEAN], numbers[:, _SHAPE]
        doubtful = pages["law"][slots] == NOISY_FRESHNESS
        # Freshness with signals is valued at one rate. That of the mean logarithm, ψ(k) − ln θ with ψ(k) ≈ ln(k + ½) −
        # 1/k, does not give up a page of which little is known.
        rates[doubtful] *= ((1 + 0.5 / shapes) * np.exp(-np.minimum(1 / shapes, _MOST_DOUBT)))[doubtful]
        pages["decay"][slots] = rates
        pages["belief"][slots] = shapes

    def interval(self, slot: int, tail: float = _TAIL) -> tuple[float, float]:
        """The rates between which that of the page is believed to lie, 90 % by default."""
        numbers = believe_many(self._table.beliefs, self._law, np.array([slot]), tail)[0]
        return float(numbers[2]), float(numbers[3])

    def learn(self, slots: Slots, gaps: Floats, heard: Floats, changed: Flags) -> None:
        """Take in crawls, also of pages that do not learn and first ones, which say nothing. O(slots).

        A page that listens tells of its rate twice: by changes that no signal announced, and by signals. How many of
        the signals were true, and whether a change after a signal had a silent one among it, is drawn by its chance
        given what is believed, so that rates come out right on average.
        """
        taught = (self._table.pages["flags"][slots] & LEARNS != 0) & ~np.isnan(gaps)
        if not taught.any():
            return
        slots, gaps, heard, changed = slots[taught], gaps[taught], heard[taught], changed[taught]
        listening = self._table.pages["law"][slots] >= NOISY_FRESHNESS
        self.observe(slots[~listening], gaps[~listening], changed[~listening])
        if listening.any():
            self._learn_with_signals(slots[listening], gaps[listening], heard[listening], changed[listening])

    def _learn_with_signals(self, slots: Slots, gaps: Floats, heard: Floats, changed: Flags) -> None:
        """Learn apart from silent changes and from announced ones, each in its share of the time."""
        signals = self._table.signals[slots]
        precision = signals["precision"].astype(np.float64)
        announced = np.minimum(signals["recall"].astype(np.float64), 1 - _LEAST_SILENT)
        silent_gaps, announced_gaps = gaps * (1 - announced), gaps * announced
        chance = _uniform(slots, gaps)
        true_signals = np.minimum(np.floor(heard * precision + chance), _MOST_AT_ONCE).astype(np.int64)
        quiet = np.exp(-self._table.pages["decay"][slots] * silent_gaps)
        silent = changed & (chance * (1 - (1 - precision) ** heard * quiet) < 1 - quiet)
        again = np.repeat(np.arange(len(slots)), true_signals)
        # So many changes in a time are as likely as so many short gaps with a change, and the rest of it without one.
        short = _SHORT * announced_gaps[again] / true_signals[again]
        rest = np.where(true_signals > 0, (1 - _SHORT) * announced_gaps, announced_gaps)
        # These gaps are made up: right in their sum, but a test for turns looks at them one by one.
        self._take_in(
            np.concatenate([slots, slots, slots[again]]),
            np.concatenate([silent_gaps, rest, short]),
            np.concatenate([silent, np.zeros(len(slots), dtype=np.bool_), np.ones(len(again), dtype=np.bool_)]),
            self._law._replace(notices_turns=False),
        )


def _uniform(slots: Slots, gaps: Floats) -> Floats:
    """Numbers from 0 up to 1 that depend on page and gap alone, so that the same calls give the same answers."""
    words = slots.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) ^ gaps.view(np.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        words = (words ^ (words >> np.uint64(shift))) * np.uint64(factor)
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
