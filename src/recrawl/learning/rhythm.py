"""The rhythm of a host: at which hours and on which days its pages change, used as a change of clock.

A rhythm has 24 factors for the hours of a day and 7 for the days of a week; their product is how busy an hour of the
week is, 1 on average. Measured by this clock instead of the one on the wall, changes come evenly again: `elapsed` is
the time to hand to everything that expects a steady rate. It is exact when crawls are further apart than the rhythm
is long or the rate within an hour is steady.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from recrawl.errors import InvalidInput
from recrawl.learning.crawl_log import check_times
from recrawl.pages import Floats, check_number

HOURS, DAYS = 24, 7
WEEK_HOURS = HOURS * DAYS


@dataclass(frozen=True, slots=True)
class Rhythm:
    """Factors of the hours of a day and the days of a week; both have mean 1.

    Attributes:
        hours: 24 factors.
        days: 7 factors.
        day: length of a day in the caller's unit of time.
        origin: a time at which hour 0 of day 0 begins, such as a Monday's midnight.
    """

    hours: Floats
    days: Floats
    day: float = 1.0
    origin: float = 0.0
    _clock: Floats = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        day = check_number(self.day, "day")
        if day == 0:
            raise InvalidInput("is 0, but a day must be longer", field="day")
        check_times([self.origin], "origin", 1)
        hours, days = _check_factors(self.hours, HOURS, "hours"), _check_factors(self.days, DAYS, "days")
        # Frozen, so that a rhythm can be shared; what follows from the arguments is set once, here.
        object.__setattr__(self, "hours", hours / hours.mean())
        object.__setattr__(self, "days", days / days.mean())
        object.__setattr__(self, "_clock", clock_of(self.hours, self.days))

    @property
    def flat(self) -> bool:
        """Whether every hour is like every other."""
        return bool((self.hours == 1).all() and (self.days == 1).all())

    def elapsed(self, start: Any, end: Any) -> Any:
        """Time between two moments by the clock of this rhythm: a week counts a week, a busy hour more than an hour.

        Broadcasts over arrays; O(1) per pair.

        >>> busy_noon = Rhythm(np.where(np.arange(24) == 12, 13.0, 1.0), np.ones(7))
        >>> float(busy_noon.elapsed(0.0, 7.0)), float(busy_noon.elapsed(12 / 24, 13 / 24).round(3))
        (7.0, 0.361)
        """
        return self._time(end) - self._time(start)

    def _time(self, moment: Any) -> Any:
        """What the clock of this rhythm shows."""
        hour = (np.asarray(moment, dtype=np.float64) - self.origin) / (self.day / HOURS)
        week, hour = np.divmod(hour, WEEK_HOURS)
        cell = np.minimum(hour.astype(np.int64), WEEK_HOURS - 1)
        within = hour - cell
        shown = self._clock[cell] + within * (self._clock[cell + 1] - self._clock[cell])
        return (week * WEEK_HOURS + shown) * (self.day / HOURS)


def flat_rhythm(day: float = 1.0, origin: float = 0.0) -> Rhythm:
    """The rhythm of a host that has none."""
    return Rhythm(np.ones(HOURS), np.ones(DAYS), day, origin)


def clock_of(hours: Floats, days: Floats) -> Floats:
    """What the clock of a rhythm shows at the start of each hour of a week, and at its end; in hours."""
    shown = np.concatenate([[0.0], np.cumsum(np.outer(days, hours).ravel())])
    shown *= WEEK_HOURS / shown[-1]
    return shown


def _check_factors(factors: Any, size: int, name: str) -> Floats:
    array = np.asarray(factors, dtype=np.float64)
    if array.shape != (size,):
        raise InvalidInput(f"must be {size} numbers", field=name)
    bad = ~((array >= 0) & (array < 1e60))
    if bad.any() or array.max() == 0:
        row = int(np.argmax(bad))
        raise InvalidInput(
            f"is {float(array[row])!r}, but factors must be 0 or more and not all 0", field=name, row=row
        )
    return array
