"""The exact argmax: at each step the page that is worth most, found by looking at all of them.

The discrete policy of the NCIS paper (Busa-Fekete et al. 2025) for whatever the scheduler believes of its pages. It
is what the price policy is measured against.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recrawl.scheduling.policies.ranked import Ranked

if TYPE_CHECKING:
    from recrawl.pages import Floats
    from recrawl.scheduling.page_record import Slots


class Argmax(Ranked):
    """Takes the page that is worth most by the scheduler's own belief. O(pages) per step."""

    def worth(self, slots: Slots, now: float) -> Floats:
        """What the table says, at the price of the last crawls."""
        return self.table.values(slots, now, self.price())
