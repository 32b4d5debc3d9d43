"""The time a tracker lives by: Unix seconds that never run backwards and do not jump while it runs.

Read from the wall once, at the start, and carried on by the steady clock of the machine: whoever sets the wall clock
to another year moves nothing. A store that was written later than the wall says now goes first: time goes on from
there. The scheduler counts days.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

DAY_S = 86_400.0


class TrackerClock:
    """Unix seconds from a wall that is read once and a steady clock.

    Args:
        not_before: the latest time the store has seen.
        wall: seconds since 1970.
        steady: seconds that only rise.
        pace: how many times as fast as the steady clock time goes: 1 but for a tracker of a web whose time is faster.
    """

    def __init__(
        self,
        not_before: float = 0.0,
        wall: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
        pace: float = 1.0,
    ) -> None:
        start = wall()
        self.behind_s = max(not_before - start, 0.0)
        self.pace = pace
        self._steady = steady
        self._offset = max(start, not_before) - steady() * pace

    def now(self) -> float:
        """Unix seconds."""
        return self._offset + self._steady() * self.pace

    async def sleep(self, seconds: float) -> None:
        """Wait for so many seconds of this clock."""
        await asyncio.sleep(seconds / self.pace)

    def days(self) -> float:
        """The same in days, for the scheduler."""
        return self.now() / DAY_S
