"""How many pages may be fetched a second time to tell noise from change: shares of all visits.

The first second fetch of a page shows nearly all noise, so it is soon granted. The others find what a page shows by
turns, and teach nothing of pages that truly change. Where thousands of pages are new at once, all of them together
would be half of all requests, just when the budget is needed most. What is refused is asked for again at a later
difference.
"""

from __future__ import annotations

FIRST_SHARE = 0.1
LATER_SHARE = 0.01
_MOST_SAVED = 100.0  # of each kind, for a tracker of few pages


class SecondLooks:
    """Second fetches against visits."""

    def __init__(self) -> None:
        self._first = self._later = _MOST_SAVED

    def visited(self) -> None:
        """A page was fetched."""
        self._first = min(self._first + FIRST_SHARE, _MOST_SAVED)
        self._later = min(self._later + LATER_SHARE, _MOST_SAVED)

    def take(self, *, first: bool) -> bool:
        """Whether a second fetch may be made now, which counts then: the first of its page, or a later one."""
        left = self._first if first else self._later
        if left < 1.0:
            return False
        if first:
            self._first -= 1.0
        else:
            self._later -= 1.0
        return True
