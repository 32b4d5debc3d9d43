"""Tables of a few pages for tests of policies, and a crawler that settles every crawl at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from recrawl.pages import Floats
from recrawl.scheduling.policies.contract import Policy
from recrawl.scheduling.table.pages import PageTable
from recrawl.scheduling.table.records import FRESHNESS, IDLE, LIMITED, LISTENS, NO_COPY, Slots


def table_of(gain: Any, decay: Any, law: Any = FRESHNESS, last: Any = 0.0) -> PageTable:
    """A table with one page for each gain and decay."""
    gain, decay, law, last = np.broadcast_arrays(gain, decay, law, last)
    table = PageTable(burst=1.0)
    slots = table.allocate(gain.size)
    for name, column in (("gain", gain), ("decay", decay), ("law", law), ("last", last)):
        table.pages[name][slots] = column
    return table


def all_slots(table: PageTable) -> Slots:
    return np.arange(table.used, dtype=np.int64)


def set_limits(table: PageTable, slots: Any, **limits: Any) -> None:
    """Give pages limits; what is not named is as for pages without any."""
    table.need_limits()
    table.limits[slots] = (1.0, 0.0, np.inf, 0.0)
    for name, value in limits.items():
        table.limits[name][slots] = value
    table.pages["flags"][slots] |= LIMITED
    table.least_cost = min(table.least_cost, float(np.min(table.limits["cost"][slots])))


def set_signals(table: PageTable, slots: Any, recall: Any, precision: Any, heard: Any) -> None:
    table.need_signals()
    table.signals["recall"][slots], table.signals["precision"][slots] = recall, precision
    table.pages["flags"][slots] |= LISTENS
    table.pages["signals"][slots] = heard


def settle(table: PageTable, policy: Policy, slots: Slots, now: float) -> None:
    """These pages were crawled."""
    table.pages["last"][slots] = now
    table.pages["flags"][slots] &= ~np.uint8(NO_COPY)
    table.pages["signals"][slots] = 0
    table.pages["state"][slots] = IDLE
    policy.place(slots, now)


def crawl_steadily(table: PageTable, policy: Policy, budget: float, crawls: int) -> tuple[Slots, Floats]:
    """One crawl every 1/budget, settled at once: which pages, and at what values."""
    chosen, values = [], []
    for step in range(1, crawls + 1):
        now = step / budget
        taken = policy.choose(now, 1, 1.0)
        chosen.extend(taken.slots.tolist())
        values.extend(taken.values.tolist())
        settle(table, policy, taken.slots, now)
    return np.array(chosen, dtype=np.int64), np.array(values)
