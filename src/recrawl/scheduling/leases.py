"""Leases: when pages were taken, by the clock of the budget, and what giving one back is worth. Kernels.

While a page is in flight its links are free, and hold the clock. A lease that is given back is worth its cost less the
tokens that came since it was taken. Had it not been taken, the bucket would hold at least that much more now: it had
room for the cost then, and for no more of it than did not come since. So crawls that were made, by when they were
taken, are never more than rate·w + burst in any window w.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from recrawl.jit import kernel
from recrawl.pages import Floats
from recrawl.scheduling.budget import TURN
from recrawl.scheduling.page_record import Records, Slots

_BITS = 31
_LOW = (1 << _BITS) - 1
_SLOT_BITS = 32


@kernel
def lease(pages: Records, slots: Slots, clock: int) -> NDArray[np.int64]:
    """Note when pages in flight were taken; their ids. O(slots)."""
    ids = np.empty(len(slots), dtype=np.int64)
    for i in range(len(slots)):
        page = pages[slots[i]]
        page["next"] = clock >> _BITS
        page["prev"] = clock & _LOW
        ids[i] = (np.int64(page["generation"]) << _SLOT_BITS) | slots[i]
    return ids


@kernel
def unspent(pages: Records, slots: Slots, costs: Floats, clock: int, tick: float) -> float:
    """What leases are worth together that are given back now. O(slots)."""
    total = 0.0
    for i in range(len(slots)):
        page = pages[slots[i]]
        taken = (np.int64(page["next"]) << _BITS) | np.int64(page["prev"])
        total += max(costs[i] - ((clock - taken) % TURN) * tick, 0.0)
    return total
