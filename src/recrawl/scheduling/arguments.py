"""Checks of what callers say to the scheduler beside pages: times, flags, waits, whole numbers. Pure."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from recrawl.errors import InvalidInput
from recrawl.learning.inputs import Flags
from recrawl.pages import LARGEST, Floats, check_number
from recrawl.scheduling.intake import check_objective
from recrawl.scheduling.tuning import LONGEST, Tuning


def is_whole(number: Any) -> bool:
    """Whether this is a whole number, and not True or False."""
    return type(number) is int or (isinstance(number, (int, np.integer)) and not isinstance(number, bool))


def check_burst(burst: Any) -> float:
    """A burst, if it is one."""
    if check_number(burst, "burst") <= 0:
        raise InvalidInput(f"is {burst!r}, but must be above 0", field="burst")
    return float(burst)


def check_start(objective: Any, burst: Any, seed: Any, tuning: Any) -> None:
    """Check what a scheduler is made with."""
    check_objective(objective)
    check_burst(burst)
    if not isinstance(tuning, Tuning):
        raise InvalidInput(f"is {tuning!r}, but must be a Tuning", field="tuning")
    if not is_whole(seed) or not 0 <= seed < 2**63:
        raise InvalidInput(f"is {seed!r}, but must be a whole number from 0 to 2⁶³ − 1", field="seed")


def check_time(now: Any) -> float:
    """Check a time of the caller's."""
    try:
        time = float(now)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(f"is {now!r}, but must be a time", field="now") from None
    if not -LARGEST <= time <= LARGEST:
        raise InvalidInput(f"is {time!r}, but must be a time", field="now")
    return time


def not_in_flight(row: int) -> InvalidInput:
    """The error for a page that is settled and was not taken."""
    problem = "is not in flight: only a page that was taken can be settled, and once"
    return InvalidInput(problem, field="ids", row=int(row))


def read_flags(changed: ArrayLike, count: int) -> Flags:
    """Which crawls saw a change: one value for all or one for each. O(count)."""
    try:
        flags = np.asarray(changed)
        if flags.dtype == np.bool_ and flags.shape == (count,):  # as nearly always: checks would cost more than a crawl
            return flags if flags.flags.carray else flags.copy()
        flags = np.broadcast_to(flags, count)
    except ValueError:
        raise InvalidInput(f"must be one value or {count}, as many as ids", field="changed") from None
    if (count and flags.dtype.kind not in "biu") or (count and not ((flags == 0) | (flags == 1)).all()):
        raise InvalidInput("must hold True and False", field="changed")
    return flags.astype(np.bool_)


def read_waits(retry_after: ArrayLike, count: int) -> Floats:
    """How long servers asked to be left alone: one time for all or one for each. O(count)."""
    try:
        waits = np.broadcast_to(np.asarray(retry_after, dtype=np.float64), count)
    except (TypeError, ValueError):
        raise InvalidInput(f"must be a time, or {count} of them", field="retry_after") from None
    if not ((waits >= 0) & (waits <= LONGEST)).all():
        row = int(np.argmax(~((waits >= 0) & (waits <= LONGEST))))
        raise InvalidInput(f"is {float(waits[row])!r}, but must be 0 or more", field="retry_after", row=row)
    return waits
