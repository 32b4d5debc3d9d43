"""Policies for content sources and the new pages found on them (ECHO, Lefortier et al. 2013).

    echo-newpages  new pages first, largest value first; then the source that is most behind its schedule
    echo-schedule  sources whose interval has passed, most behind first; spare crawls to the newest pages
    echo-greedy    new pages first; then the source that has gathered most profit since its last crawl

The intervals are the paper's. They are solved for again when sources came, went or were changed, or the budget was,
at most once per choice. Sources and new pages are reckoned to cost the same in the solution. In the greedy mode the
paper crawls the new pages of the source just crawled; here a new page does not know its source, and all new pages
come first, which is the same as long as they are crawled as they are found. A source that the paper drops has no
interval: it is crawled only when it is all that waits, and never by `echo-schedule`.

Pages of other laws are not what these policies are for and are never chosen.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recrawl.pages import Pages
from recrawl.planning.solve import plan
from recrawl.scheduling.policies.argmax import NOTHING, WaitingPages, admit, best_first
from recrawl.scheduling.policies.contract import Chosen
from recrawl.scheduling.table.records import IN_FLIGHT, ONCE, QUEUED, SOURCE

if TYPE_CHECKING:
    from recrawl.pages import Floats
    from recrawl.scheduling.table.pages import PageTable
    from recrawl.scheduling.table.records import Slots


class Sources(NamedTuple):
    """What the solution reads of the sources, and the budget: if it is the same, so is the solution."""

    slots: Slots
    profit: Floats
    new_page_rate: Floats
    decay: Floats
    budget: float

    def same_as(self, other: Sources) -> bool:
        """Whether nothing changed. O(sources)."""
        return self.budget == other.budget and all(map(np.array_equal, self[:4], other[:4]))


class SourcesAndNewPages(WaitingPages):
    """Crawls sources and new pages in an order that a mode of ECHO gives. O(pages) per step."""

    def __init__(self, table: PageTable, budget: float, seed: int) -> None:
        super().__init__(table, budget, seed)
        none = np.empty(0)
        self._solved = Sources(np.empty(0, dtype=np.int64), none, none, none, math.nan)
        self._solution = none  # crawls per unit time of the sources solved for
        self._rates = none  # the same by slot
        self._changed = True

    def order(self, sources: Slots, new_pages: Slots, now: float) -> Slots:
        """These waiting pages, the one to be crawled first in front; pages left out are not crawled."""
        raise NotImplementedError

    def place(self, slots: Slots, now: float) -> None:
        """Let these pages compete."""
        super().place(slots, now)
        self._changed = True

    def withdraw(self, slots: Slots, now: float) -> None:
        """Let these pages compete no more."""
        super().withdraw(slots, now)
        self._changed = True

    def choose(self, now: float, most: int, tokens: float) -> Chosen:
        """Choose pages in the order of this mode."""
        slots = self.waiting()
        law = self.table.pages["law"][slots]
        order = self.order(slots[law == SOURCE], slots[law == ONCE], now)
        if most <= 0 or not len(order):
            return NOTHING
        taken = admit(self.table, order, now, most, tokens)
        return Chosen(taken, self.table.values(taken, now))

    def price(self) -> float:
        """The price of the solution, what one more crawl per unit time would be worth; 0 before the first solution."""
        return self._price

    def behind(self, sources: Slots, now: float) -> Floats:
        """How far each source is behind its schedule: elapsed/interval, due from 1 on. O(pages) if any changed."""
        if self._changed or self.budget != self._solved.budget:
            self._solve()
            self._changed = False
        return self._rates[sources] * np.maximum(now - self.table.pages["last"][sources], 0.0)

    def by_value(self, slots: Slots, now: float) -> Slots:
        """Pages by what a crawl is worth, the largest first."""
        return slots[best_first(self.table.values(slots, now))]

    def _solve(self) -> None:
        found = _sources(self.table, self.budget)
        if not found.same_as(self._solved):
            pages = Pages(importance=found.profit, change_rate=found.new_page_rate, decay=found.decay)
            made = plan(pages, self.budget, "news", "echo-paper")
            self._solved, self._solution = found, made.rates
            self._price = made.price if math.isfinite(made.price) else 0.0
        self._rates = np.zeros(self.table.used)
        self._rates[found.slots] = self._solution


class NewPagesFirst(SourcesAndNewPages):
    """`echo-newpages`."""

    def order(self, sources: Slots, new_pages: Slots, now: float) -> Slots:
        """New pages by value, then sources by how far they are behind."""
        return np.append(self.by_value(new_pages, now), sources[best_first(self.behind(sources, now))])


class OnSchedule(SourcesAndNewPages):
    """`echo-schedule`."""

    def order(self, sources: Slots, new_pages: Slots, now: float) -> Slots:
        """Sources that are due, then the newest pages."""
        behind = self.behind(sources, now)
        due = behind >= 1
        newest = best_first(self.table.pages["last"][new_pages])
        return np.append(sources[due][best_first(behind[due])], new_pages[newest])


class GreedySources(SourcesAndNewPages):
    """`echo-greedy`."""

    def order(self, sources: Slots, new_pages: Slots, now: float) -> Slots:
        """New pages by value, then sources by profit × rate of new pages × elapsed."""
        pages = self.table.pages[sources]
        gathered = pages["gain"] * np.maximum(now - pages["last"], 0.0)
        return np.append(self.by_value(new_pages, now), sources[best_first(gathered)])


def _sources(table: PageTable, budget: float) -> Sources:
    """The sources that can yield anything, waiting or in flight. O(pages)."""
    pages = table.pages[: table.used]
    here = (pages["state"] == QUEUED) | (pages["state"] == IN_FLIGHT)
    slots = np.flatnonzero(here & (pages["law"] == SOURCE) & (pages["gain"] > 0) & (pages["decay"] > 0))
    profit = table.limits["profit"][slots].astype(np.float64) if len(slots) else np.empty(0)
    useful = profit > 0
    slots, profit = slots[useful], profit[useful]
    return Sources(slots, profit, pages["gain"][slots] / profit, pages["decay"][slots], budget)
