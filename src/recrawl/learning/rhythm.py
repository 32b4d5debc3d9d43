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
from recrawl.learning.inputs import check_amounts, check_positive, check_real, check_times
from recrawl.pages import Floats

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
        day, origin = check_positive(self.day, "day"), check_real(self.origin, "origin")
        hours, days = _check_factors(self.hours, HOURS, "hours"), _check_factors(self.days, DAYS, "days")
        # Frozen, so that a rhythm can be shared; what follows from the arguments is set once, here.
        object.__setattr__(self, "day", day)
        object.__setattr__(self, "origin", origin)
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
        begins, ends = _check_moments(start, "start"), _check_moments(end, "end")
        try:
            np.broadcast_shapes(begins.shape, ends.shape)
        except ValueError:
            raise InvalidInput(f"has the form {ends.shape}, but start has {begins.shape}", field="end") from None
        return self._time(ends) - self._time(begins)

    def _time(self, moment: Floats) -> Any:
        """What the clock of this rhythm shows."""
        hour = (moment - self.origin) / (self.day / HOURS)
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
    array = check_amounts(factors, name, size)
    if array.max() == 0:
        raise InvalidInput("is 0 like all others, but some factor must be above 0", field=name, row=0)
    return array


def _check_moments(moments: Any, name: str) -> Floats:
    """Check moments of any form; what is wrong is counted as if they stood in one row."""
    try:
        form = np.shape(moments)
    except ValueError:
        raise InvalidInput("holds lists of different lengths, but must be plain numbers", field=name) from None
    if not form:
        return np.asarray(check_real(moments, name))
    return check_times(moments if len(form) == 1 else np.reshape(moments, -1), name).reshape(form)
