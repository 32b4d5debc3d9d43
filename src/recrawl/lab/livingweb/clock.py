"""The time of the living web: Unix seconds of its own, at real or accelerated pace, or moved by hand.

Everything the living web says about time (`Date`, `Last-Modified`, `lastmod`, `Retry-After`, `Crawl-delay`) is in its
own time. A crawler of an accelerated web must run on the same clock, made from the same three numbers.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from recrawl.errors import InvalidInput

Clock = Callable[[], float]
"""Returns now, in Unix seconds of the web."""

DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class RunningClock:
    """Time that passes `speedup` times as fast as real time.

    Args:
        epoch: what the clock shows at the start, in Unix seconds.
        started_at: real time of the start, in Unix seconds; another process with the same value shows the same time.
        speedup: seconds of the web in one real second.
        read: real time in Unix seconds.
    """

    epoch: float
    started_at: float
    speedup: float = 1.0
    read: Callable[[], float] = time.time

    def __post_init__(self) -> None:
        if not 0 < self.speedup <= 1e6:
            raise InvalidInput(f"is {self.speedup}, but must lie above 0 and up to 1000000", field="speedup")

    def __call__(self) -> float:
        """Now, never before the epoch."""
        return self.epoch + max(0.0, self.read() - self.started_at) * self.speedup


@dataclass(slots=True)
class HandClock:
    """Time that stands still until it is moved.

    >>> clock = HandClock(1000.0)
    >>> clock.advance(0.5)
    >>> clock()
    1000.5
    """

    now: float

    def __call__(self) -> float:
        """The time last set."""
        return self.now

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds
