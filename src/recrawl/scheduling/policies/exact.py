"""The exact argmax: at each step the page that is worth most, found by looking at all of them.

The discrete policy of the NCIS paper (Busa-Fekete et al. 2025) for whatever the scheduler believes of its pages. It
is what the price policy is measured against: `Argmax` in quality, the two functions at the end in speed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from recrawl.jit import kernel
from recrawl.scheduling.laws import HARMONIC
from recrawl.scheduling.page_record import QUEUED
from recrawl.scheduling.policies.ranked import Ranked
from recrawl.values.special import g, h

if TYPE_CHECKING:
    from recrawl.pages import Floats
    from recrawl.scheduling.page_record import Records, Slots
    from recrawl.scheduling.page_table import PageTable


class Argmax(Ranked):
    """Takes the page that is worth most by the scheduler's own belief. O(pages) per step."""

    def worth(self, slots: Slots, now: float) -> Floats:
        """What the table says, at the price of the last crawls."""
        return self.table.values(slots, now, self.price())


def fastest_argmax(table: PageTable, now: float) -> int:
    """The waiting page that is worth most, -1 if none waits: one compiled pass that keeps nothing. O(pages).

    For pages with a copy, of the laws FRESHNESS and HARMONIC only.
    """
    return int(_best(table.pages[: table.used], now))


def numpy_argmax(table: PageTable, now: float) -> int:
    """The same in NumPy. O(pages), a dozen passes."""
    pages = table.pages[: table.used]
    decay, harmonic = pages["decay"], pages["law"] == HARMONIC
    x = decay * (now - pages["last"])
    fresh = np.exp(-x)
    shape = np.where(harmonic, x + np.expm1(-x), -np.expm1(-x) - x * fresh)
    worth = pages["gain"] / decay * shape
    worth[pages["state"] != QUEUED] = -1.0
    best = int(np.argmax(worth)) if len(worth) else -1
    return best if best >= 0 and worth[best] >= 0 else -1


@kernel
def _best(pages: Records, now: float) -> int:
    best, most = -1, -1.0
    for slot in range(pages.size):
        page = pages[slot]
        if page["state"] != QUEUED:
            continue
        decay = page["decay"]
        x = decay * (now - page["last"])
        worth = page["gain"] / decay * (h(x) if page["law"] == HARMONIC else g(x))
        if worth > most:
            best, most = slot, worth
    return best
