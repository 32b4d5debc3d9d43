"""The policy `wic`: crawl what would capture most now (WIC, Pandey et al. 2004).

`lab/papers/wic.py` has the index that does better in the long run, `lab/papers/wic_guarantee.py` the greedy for
pages whose change probability varies from instant to instant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from recrawl.scheduling.policies.argmax import Ranked
from recrawl.scheduling.table.records import CAPTURES, NO_COPY, ONCE, SOURCE, WINDOW

if TYPE_CHECKING:
    from recrawl.pages import Floats
    from recrawl.scheduling.table.records import Records, Slots

_MOST = 1e300  # means "infinitely much" and can still be compared


class Wic(Ranked):
    """`wic`: takes the pages that would yield most now. O(pages) per step.

    Captured changes that fade, and content sources, yield (gain/decay)(1 − e^{−decay·elapsed}); changes that stay for
    a window gain·min(elapsed, window). Pages to be kept fresh count as changes that overwrite each other and lose
    nothing with time: importance·(1 − e^{−change_rate·elapsed}). A new page yields what it is worth. A page without a
    copy yields as much as one that was never crawled. Signals are ignored.
    """

    def worth(self, slots: Slots, now: float) -> Floats:
        """What a crawl would yield now."""
        pages = self.table.pages[slots]
        worth = _yields(pages, now)
        once = pages["law"] == ONCE
        worth[once] = self.table.values(slots[once], now)
        return worth


def _yields(pages: Records, now: float) -> Floats:
    gain, decay, law = pages["gain"], pages["decay"], pages["law"]
    elapsed = np.maximum(now - pages["last"], 0.0)
    elapsed[pages["flags"] & NO_COPY != 0] = np.inf
    stale = _stale(decay, elapsed)
    worth = gain * stale
    fades = (law == SOURCE) | (pages["flags"] & CAPTURES != 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        worth[fades] = np.where(decay > 0, gain / decay * stale, gain * elapsed)[fades]
    windowed = law == WINDOW
    worth[windowed] = gain[windowed] * np.minimum(elapsed, decay)[windowed]
    return np.where(gain > 0, np.minimum(worth, _MOST), 0.0)


def _stale(rate: Floats, elapsed: Floats) -> Floats:
    """Probability of a change in this time; 1 where there is no copy."""
    missing = np.isinf(elapsed)
    return np.where(missing, 1.0, -np.expm1(-rate * np.where(missing, 0.0, elapsed)))
