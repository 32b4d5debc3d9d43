"""What the exact policies share: a waiting page is QUEUED, and nothing more is kept of it.

The base of `ranked.py`, `planned.py` and `echo.py`. They read the table afresh at every call, so nothing here goes
stale; what they cost is O(pages) per step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from recrawl.scheduling.page_record import IDLE, LIMITED, QUEUED
from recrawl.scheduling.policy import Chosen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recrawl.pages import Floats
    from recrawl.scheduling.page_record import Slots
    from recrawl.scheduling.page_table import PageTable

NOTHING = Chosen(np.empty(0, dtype=np.int64), np.empty(0))


class WaitingPages:
    """The pages that wait, straight from the table.

    `budget` is what may be spent per unit time; the scheduler sets it anew when it changes.
    """

    def __init__(self, table: PageTable, budget: float, seed: int) -> None:
        self.table = table
        self.budget = budget
        self.seed = seed

    def place(self, slots: Slots, now: float) -> None:  # noqa: ARG002 - the contract's
        """Let these pages compete. O(slots)."""
        self.table.pages["state"][slots] = QUEUED

    def withdraw(self, slots: Slots, now: float) -> None:  # noqa: ARG002 - the contract's
        """Let these pages compete no more. O(slots)."""
        self.table.pages["state"][slots] = IDLE

    def signalled(self, slots: Slots, now: float) -> None:
        """Nothing to do: whoever listens reads the counts when it chooses."""

    def hosts_changed(self, hosts: Slots, now: float) -> None:
        """Nothing to do: hosts are asked when a page is admitted."""

    def waiting(self) -> Slots:
        """The pages that wait, by slot. O(pages)."""
        return np.flatnonzero(self.table.pages["state"][: self.table.used] == QUEUED)


def overdue(table: PageTable, slots: Slots, now: float) -> NDArray[np.bool_]:
    """Pages whose longest interval has passed: they are crawled whatever that is worth. O(slots)."""
    longest = limit(table, slots, "max_interval", default=np.inf)
    late: NDArray[np.bool_] = now - table.pages["last"][slots] >= longest
    return late


def limit(table: PageTable, slots: Slots, name: str, default: float) -> Floats:
    """A column of the limits, with this for pages that have none. O(slots)."""
    values = np.full(len(slots), default)
    if len(table.limits):
        limited = table.pages["flags"][slots] & LIMITED != 0
        values[limited] = table.limits[name][slots[limited]]
    return values
