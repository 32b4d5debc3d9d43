"""Another trust in signals for pages that are scheduled: what `Scheduler.update` does, for nothing else but that.

Waits, holds and objectives stay, and pages of several objectives may come in one call. What was heard is forgotten:
whoever counts signals says them again.
"""

# ruff: noqa: SLF001 - a part of the scheduler, which is large enough without it

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from recrawl.learning.inputs import Flags
from recrawl.scheduling.table.records import CAPTURES, IN_FLIGHT, LEARNS, ONCE, SOURCE, WINDOW
from recrawl.scheduling.types import Signal

if TYPE_CHECKING:
    from recrawl.scheduling.scheduler import Scheduler


def knows_signals(scheduler: Scheduler, ids: ArrayLike) -> Flags:
    """Which of these pages have an objective that knows signals: `freshness` or `harmonic`. O(ids)."""
    table = scheduler._table
    pages = table.pages[table.slots_of(ids)]
    deaf = (pages["law"] == WINDOW) | (pages["law"] == SOURCE) | (pages["law"] == ONCE)
    known: Flags = ~deaf & (pages["flags"] & CAPTURES == 0)
    return known


def listen_anew(scheduler: Scheduler, ids: ArrayLike, signals: Mapping[str, Signal]) -> None:
    """Let pages trust these kinds of signals from now on, and no others. O(ids · kinds).

    Args:
        scheduler: that has the pages.
        ids: pages of objectives that know signals.
        signals: by kind, a value for all pages or one for each.
    """
    table, now = scheduler._table, scheduler.now
    slots = table.distinct_slots_of(ids)
    if not len(slots):
        return
    staged = scheduler._kinds.read(signals, len(slots))
    waiting = slots[table.pages["state"][slots] != IN_FLIGHT]
    scheduler._policy.withdraw(waiting, now)
    scheduler._kinds.forget(table, slots)
    scheduler._kinds.listen(table, slots, staged)
    learning = slots[table.pages["flags"][slots] & np.uint8(LEARNS) != 0]
    if len(learning):
        scheduler._teacher().believe(learning)
    scheduler._policy.place(waiting, now)
