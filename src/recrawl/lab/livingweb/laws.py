"""Laws by which things happen: draws of event times, one window of 14 days at a time, from the seed alone.

Times are in seconds since the web began, on a grid of 1/1024 s, so that adding a whole epoch loses nothing. A window
is drawn from its own stream of chance: what happens on day 100 does not depend on who asked for day 3.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from recrawl.lab.livingweb.clock import DAY_S

Law = Literal["static", "poisson", "bursty", "rhythm"]
LAWS: tuple[Law, ...] = ("static", "poisson", "bursty", "rhythm")
WINDOW_DAYS = 14
WINDOW_S = WINDOW_DAYS * DAY_S
GRID = 1024.0

_BURST_EDITS = 6.0
_BURST_S = 3600.0
_HOURS = 7 * 24
Times = NDArray[np.float64]


def draw_window(law: Law, rate_per_day: float, phase_hours: int, random: np.random.Generator) -> Times:
    """Times of the events in one window, ascending, in seconds from its start. O(events).

    Args:
        law: `poisson` has no memory, `bursty` comes in flurries of some six within an hour, `rhythm` follows the hours
            of the day and rests on two days of seven; all have the same mean rate.
        rate_per_day: mean rate; no events for a `static` page.
        phase_hours: shifts the day of `rhythm`.
        random: chance of this window.
    """
    if law == "static" or rate_per_day <= 0:
        return np.empty(0)
    expected = rate_per_day * WINDOW_DAYS
    if law == "bursty":
        sizes = random.geometric(1 / _BURST_EDITS, random.poisson(expected / _BURST_EDITS))
        starts = np.repeat(random.random(sizes.size) * WINDOW_S, sizes)
        # Round the corner rather than over the edge: the mean rate stays exact.
        times = (starts + random.exponential(_BURST_S / 2, starts.size)) % WINDOW_S
    elif law == "rhythm":
        count = random.poisson(expected)
        hour = np.searchsorted(_WEEK, random.random(count), side="right") + phase_hours
        week = random.integers(0, WINDOW_DAYS // 7, count)
        times = (week * _HOURS + hour % _HOURS + random.random(count)) * 3600.0
    else:
        times = random.random(random.poisson(expected)) * WINDOW_S
    times = np.floor(times * GRID) / GRID
    times.sort()
    return times


def hourly_weights() -> Times:
    """Share of the events of a `rhythm` page in each hour of its week; sums to one."""
    day = 1 + 0.95 * np.cos(2 * np.pi * (np.arange(24) - 14) / 24)
    week = np.concatenate([day * weight for weight in (1, 1, 1, 1, 1, 0.2, 0.2)])
    return np.asarray(week / week.sum())


_WEEK = np.cumsum(hourly_weights())[:-1]


class EventTimes:
    """The times of one series of events, drawn window by window as far as someone asks. 8 bytes an event."""

    __slots__ = ("_draw", "_times", "_windows")

    def __init__(self, draw: Callable[[int], Times]) -> None:
        self._draw = draw
        self._times = array("d")
        self._windows = 0

    def until(self, at: float) -> array[float]:
        """All times known so far, at least those up to `at`, ascending; do not change it. O(1) if drawn already."""
        while self._windows * WINDOW_S <= at:
            times = self._draw(self._windows) + self._windows * WINDOW_S
            self._times.frombytes(np.ascontiguousarray(times).tobytes())
            self._windows += 1
        return self._times

    def count(self, at: float) -> int:
        """How many events have happened at `at`, one that happens just then included. O(log events)."""
        return bisect_right(self.until(at), at)

    def last(self, at: float) -> float | None:
        """When the latest of them happened."""
        count = self.count(at)
        return self._times[count - 1] if count else None

    def between(self, since: float, until: float) -> list[float]:
        """Times in (since, until]."""
        times = self.until(until)
        return times[bisect_right(times, since) : bisect_right(times, until)].tolist()
