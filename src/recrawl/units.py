"""Budgets and durations from text.

Inside the library there is one time unit of the caller's choice. In files and on the command line rates are
per day, so everything here converts to days.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from recrawl.errors import InvalidInput

_DAYS = {
    "s": 1 / 86400, "sec": 1 / 86400, "second": 1 / 86400,
    "min": 1 / 1440, "minute": 1 / 1440,
    "h": 1 / 24, "hour": 1 / 24,
    "d": 1.0, "day": 1.0,
    "w": 7.0, "week": 7.0,
    "month": 30.0,
    "y": 365.0, "year": 365.0,
}  # fmt: skip
_NUMBER = r"(?P<number>[0-9]+(?:_[0-9]+)*(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)"
_BUDGET = re.compile(_NUMBER + r"\s*(?:(?P<percent>%)|/\s*(?P<unit>[a-z]+))\s*", re.IGNORECASE)
_DURATION = re.compile(_NUMBER + r"\s*(?P<unit>[a-z]+)\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Budget:
    """A crawl budget as a user wrote it: a number of crawls per day, or a share of the pages per day."""

    crawls_per_day: float | None = None
    share_of_pages: float | None = None

    def per_day(self, pages: int) -> float:
        """Crawls per day for this many pages."""
        if self.crawls_per_day is not None:
            return self.crawls_per_day
        assert self.share_of_pages is not None
        return self.share_of_pages * pages


def parse_budget(text: str) -> Budget:
    """Read `2000/day`, `2/s` or `20%` (of the pages, per day).

    >>> parse_budget("2/s").per_day(pages=10)
    172800.0
    >>> parse_budget("20%").per_day(pages=1000)
    200.0
    """
    match = _BUDGET.fullmatch(text.strip())
    if match is None:
        raise InvalidInput(
            f"is {text!r}: write a number and a unit, such as 2000/day, 2/s or 20% (of the pages, per day)",
            field="budget",
        )
    number = float(match["number"])
    if match["percent"]:
        return Budget(share_of_pages=_finite(number / 100, text, field="budget"))
    return Budget(crawls_per_day=_finite(number / _days(match["unit"], text, field="budget"), text, field="budget"))


def parse_duration_days(text: str) -> float:
    """Read `90s`, `15min`, `6h`, `3 days` or `2w` as days.

    >>> parse_duration_days("6h")
    0.25
    """
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise InvalidInput(
            f"is {text!r}: write a number and a unit, such as 90s, 15min, 6h, 3d or 2w", field="duration"
        )
    days = float(match["number"]) * _days(match["unit"], text, field="duration")
    return _finite(days, text, field="duration")


def format_duration(days: float) -> str:
    """Write a duration for people, with two digits of meaning.

    >>> format_duration(0.25), format_duration(12.0), format_duration(math.inf)
    ('6 h', '12 d', 'never')
    """
    if math.isinf(days):
        return "never"
    for name, size in (("y", 365.0), ("d", 1.0), ("h", 1 / 24), ("min", 1 / 1440)):
        if days >= 1.5 * size or (name == "min" and days >= size):
            return f"{_two_digits(days / size)} {name}"
    return f"{_two_digits(days * 86400)} s"


def _two_digits(number: float) -> str:
    """Two digits of meaning, or all before the point; above 100,000 as a power of ten."""
    return f"{number:.0f}" if 99.5 <= number < 1e5 else f"{number:.2g}"


def _days(unit: str, text: str, *, field: str) -> float:
    name = unit.lower()
    days = _DAYS.get(name) or _DAYS.get(name.removesuffix("s"))
    if days is None:
        raise InvalidInput(
            f"is {text!r}: {unit!r} is no unit of time; use s, min, h, day, week, month or year", field=field
        )
    return days


def _finite(number: float, text: str, *, field: str) -> float:
    if math.isinf(number):
        raise InvalidInput(f"is {text!r}: that number is too large to compute with", field=field)
    return number
