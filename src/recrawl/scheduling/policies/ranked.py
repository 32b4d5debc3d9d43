"""Policies that work out the worth of every waiting page at each step and take the best ones: the exact way.

A policy of this family is a value function and nothing else: it says what pages are worth, `Ranked` does the rest.
Ties go to the lower slot, so that equal calls choose equal pages. A page whose longest interval has passed comes
before all others; a page whose crawl is worth nothing is never chosen.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from recrawl.scheduling.admission import admit_or_save
from recrawl.scheduling.policies.waiting import NOTHING, WaitingPages, overdue
from recrawl.scheduling.policy import Chosen

if TYPE_CHECKING:
    from recrawl.pages import Floats
    from recrawl.scheduling.page_record import Slots
    from recrawl.scheduling.page_table import PageTable

_SPARE = 64  # more candidates than asked for: hosts may refuse some
_SMOOTHING = 0.1  # of the price, per batch
_MOST_PRICE = 1e299  # what is worth more stands for "infinitely much" and tells nothing about the price


class Ranked(WaitingPages):
    """Takes the pages that are worth most. O(pages) per step."""

    def __init__(self, table: PageTable, budget: float, seed: int) -> None:
        super().__init__(table, budget, seed)
        self._price: float | None = None

    def worth(self, slots: Slots, now: float) -> Floats:
        """What a crawl of each of these waiting pages is worth, by unit of cost."""
        raise NotImplementedError

    def choose(self, now: float, most: int, tokens: float) -> Chosen:
        """Choose the pages that are worth most among those that tokens and hosts allow."""
        slots = self.waiting()
        if most <= 0 or not len(slots):
            return NOTHING
        worth = self.worth(slots, now)
        late = overdue(self.table, slots, now)
        taken: list[Slots] = []
        values: list[Floats] = []
        for group in _groups(worth, late, _enough(self.table, most, tokens)):
            admitted, saves = admit_or_save(self.table, slots[group], now, most, tokens)
            at = np.searchsorted(slots, admitted)
            taken.append(admitted)
            values.append(worth[at])
            self._follow(worth[at[~late[at]]])
            most -= len(admitted)
            tokens -= float(self.table.costs(admitted).sum())
            if most <= 0 or saves:
                break
        return Chosen(np.concatenate(taken), np.concatenate(values)) if taken else NOTHING

    def price(self) -> float:
        """The least value sold in a batch, smoothed; 0 before the first crawl."""
        return self._price or 0.0

    def _follow(self, sold: Floats) -> None:
        sold = sold[sold < _MOST_PRICE]
        if len(sold):
            lowest = float(sold.min())
            self._price = lowest if self._price is None else self._price + _SMOOTHING * (lowest - self._price)


def best_first(worth: Floats) -> Slots:
    """Positions in order of worth, the largest first, ties by position. O(n log n)."""
    return np.argsort(-worth, kind="stable")


def _groups(worth: Floats, late: np.ndarray, enough: int) -> Iterator[Slots]:
    """Positions of candidates, best first, group by group; later groups are sorted only when asked for."""
    if late.any():
        positions = np.flatnonzero(late)
        yield positions[best_first(worth[positions])]
    positions = np.flatnonzero(~late & (worth > 0))
    if len(positions) <= enough:
        yield positions[best_first(worth[positions])]
        return
    eligible = worth[positions]
    least = np.partition(eligible, len(eligible) - enough)[len(eligible) - enough]
    for chosen in (eligible >= least, eligible < least):  # all that tie go together, so that ties go by slot
        part = positions[chosen]
        yield part[best_first(worth[part])]


def _enough(table: PageTable, most: int, tokens: float) -> int:
    """How many candidates are enough unless hosts refuse many."""
    affordable = math.floor(min(tokens / table.least_cost, 1e9))
    return min(most, affordable + 1) + _SPARE
