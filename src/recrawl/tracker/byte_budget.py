"""A budget in bytes beside the one in crawls: while it is overdrawn, nothing is taken. Pure.

What a body will have is known when it has come, so one fetch at a time may overdraw it by what it brings; over a day
it evens out, since nothing is taken until the debt is paid off.
"""

from __future__ import annotations

from recrawl.tracker.clock import DAY_S

_ROOM_S = 60.0


class ByteBudget:
    """Bytes that come at a constant rate, a minute's worth at most.

    Args:
        per_day: bytes a day, None for no bound.
        now: the time.
    """

    def __init__(self, per_day: float | None, now: float) -> None:
        self._rate = None if per_day is None else per_day / DAY_S
        self._left = 0.0
        self._filled = now

    def spend(self, count: int) -> None:
        """Bytes came over the wire."""
        self._left -= count

    def wait_s(self, now: float) -> float:
        """Seconds until something may be taken; 0 if that is now."""
        if self._rate is None:
            return 0.0
        self._left = min(self._left + self._rate * max(now - self._filled, 0.0), self._rate * _ROOM_S)
        self._filled = max(now, self._filled)
        if self._left > -1.0:  # less than a byte is rounding
            return 0.0
        return -self._left / self._rate if self._rate > 0 else float("inf")
