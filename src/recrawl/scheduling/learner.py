"""Change rates that are learned: crawls enter the online filter, and what it believes becomes the page's value."""

from __future__ import annotations

import math

import numpy as np

from recrawl.learning.filter_beliefs import believe_many
from recrawl.learning.filter_memory import Memory
from recrawl.learning.filter_weights import Law, law_of
from recrawl.learning.inputs import Flags
from recrawl.learning.prior import RatePrior
from recrawl.learning.rate_grid import rate_grid
from recrawl.scheduling.hosts import HostName
from recrawl.scheduling.lessons import TAIL, Crawls, Ledger, learn_from, settle_and_learn, write_beliefs
from recrawl.scheduling.page_record import FREE, LEARNS, Slots
from recrawl.scheduling.page_table import PageTable

_SLOWEST, _FASTEST = 1e-3, 1e3  # changes per crawl of an average page
_ROUNDS = 4.0  # of crawls, between the imagined looks at a page of which nothing is known
_LEAST_WEIGHT = 1e-200
_LEAST, _MOST = 1e-30, 1e30  # crawl rates that a prior is made for
# More evidence for a turn than the filter asks for by itself: pages change in bursts, which look like turns.
TURN_DOUBT = 6.0


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
        """Settle pages that were crawled, as `settling.renew` does, and learn from that. O(slots · grid)."""
        return settle_and_learn(self._ledger(), self._law, slots, changed, now, seen)

    def _ledger(self) -> Ledger:
        table = self._table
        return Ledger(table.pages, table.limits, table.signals, table.hosts.records, table.beliefs)
