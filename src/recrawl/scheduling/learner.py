"""Change rates that are learned: crawls enter the online filter, and what it believes becomes the page's value."""

from __future__ import annotations

import numpy as np

from recrawl.learning.filter_beliefs import believe_many
from recrawl.learning.filter_memory import Memory
from recrawl.learning.filter_turns import update_many
from recrawl.learning.filter_weights import law_of
from recrawl.learning.inputs import Flags
from recrawl.learning.prior import RatePrior
from recrawl.learning.rate_grid import rate_grid
from recrawl.pages import Floats
from recrawl.scheduling.hosts import HostName
from recrawl.scheduling.laws import NOISY_FRESHNESS
from recrawl.scheduling.page_record import LEARNS, Slots
from recrawl.scheduling.page_table import PageTable

_MEAN, _SHAPE = 0, 5  # places in the numbers of the filter
_TAIL = 0.05
_LEAST_SILENT = 0.1  # share of changes that signals miss, at least as far as learning goes


def wide_prior() -> RatePrior:
    """Rates from 10⁻⁴ to 10² per unit time, all magnitudes alike: for whoever has no history to fit a prior to."""
    grid = rate_grid(1e-4, 1e2)
    return RatePrior(grid, np.full(grid.points, 1 / grid.points), np.empty((0, grid.points)))


class Learner:
    """The online filter over the beliefs of a page table."""

    def __init__(self, table: PageTable, prior: RatePrior, memory: Memory) -> None:
        self._table = table
        self.prior = prior
        self._law = law_of(prior, memory)

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
        update_many(self._table.beliefs, self._law, slots, gaps, changed)
        self.believe(slots)

    def believe(self, slots: Slots) -> None:
        """Write what is believed into the pages. O(slots · grid)."""
        if not len(slots):
            return
        pages = self._table.pages
        numbers = believe_many(self._table.beliefs, self._law, slots, _TAIL)
        rates = numbers[:, _MEAN]
        listening = pages["law"][slots] >= NOISY_FRESHNESS
        if listening.any():
            # The filter sees changes that no signal announced; the others are the rest.
            silent = 1 - self._table.signals["recall"][slots[listening]].astype(np.float64)
            rates[listening] /= np.maximum(silent, _LEAST_SILENT)
        pages["decay"][slots] = rates
        pages["belief"][slots] = numbers[:, _SHAPE]

    def interval(self, slot: int, tail: float = _TAIL) -> tuple[float, float]:
        """The rates between which that of the page is believed to lie, 90 % by default."""
        numbers = believe_many(self._table.beliefs, self._law, np.array([slot]), tail)[0]
        return float(numbers[2]), float(numbers[3])

    def instructive(self, slots: Slots, gaps: Floats, heard: Floats) -> Flags:
        """Which crawls tell of the silent rate: not first ones, nor those after a signal.

        What changed after a signal may have been announced. To leave out only the changes would make pages seem quiet.
        """
        taught = self._table.pages["flags"][slots] & LEARNS != 0
        return np.asarray(taught & ~np.isnan(gaps) & (heard == 0))
