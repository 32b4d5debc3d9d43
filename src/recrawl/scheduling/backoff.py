"""How long pages wait after failures without Retry-After: by how often they are crawled."""

from __future__ import annotations

import numpy as np

from recrawl.pages import Floats
from recrawl.scheduling.page_record import Slots
from recrawl.scheduling.page_table import PageTable
from recrawl.scheduling.settling import intervals, put_off
from recrawl.scheduling.tuning import LONGEST, Tuning


def back_off(
    table: PageTable, slots: Slots, now: float, market: tuple[float, float], tuning: Tuning, seed: int
) -> None:
    """Note that crawls of pages failed, and let them wait. O(slots).

    Args:
        table: of the pages.
        slots: which failed.
        now: the time.
        market: the price, and the budget.
        tuning: the shortest and longest wait.
        seed: of the jitter.
    """
    price, budget = market
    signals = table.signals if len(table.signals) else None
    own = intervals(table.pages, table.limits, signals, table.hosts.records, slots, now, price)
    cycle = table.live / budget if budget > 0 else 1.0
    usual: Floats = np.where((own > 0) & (own < LONGEST), own, cycle)  # some have no interval of their own
    put_off(table.pages, slots, now, usual, (tuning.shortest_retry, tuning.longest_retry), seed)
