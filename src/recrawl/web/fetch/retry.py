"""When to ask again: `Retry-After` in all its forms, and waits that grow with each failure.

Nothing here raises on foreign text: garbage is None, a past date is no wait, an absurd wait is cut to the cap.
Randomness is an argument between 0 and 1: `seeded_uniform` makes one from a name, so that the same page waits equally
long in every run and two pages do not return together.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from hashlib import blake2b

from recrawl.errors import InvalidInput
from recrawl.web.dates import http_date

MAX_RETRY_AFTER_S = 86_400.0
_LONGEST_LIST = 2048
# Two of the three kinds of dates hold a comma themselves, after the day of the week.
_MEMBER = re.compile(r"\s*(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*\s*,)?[^,]+", re.IGNORECASE | re.ASCII)
_SECONDS = re.compile(r"(?P<sign>[+-]?)(?P<whole>[0-9]+)(?:\.[0-9]*)?")


def retry_after_s(value: str | None, now: float) -> float | None:
    """Return the wait that a `Retry-After` value asks for, 0 to 86,400 seconds; None if it cannot be read. O(length).

    Of several values, joined by commas, the longest wait counts.

    Args:
        value: the header, several joined by commas, or None.
        now: seconds since 1970, for dates.

    >>> retry_after_s("120", now=0.0), retry_after_s("99999999999", now=0.0), retry_after_s("soon", now=0.0)
    (120.0, 86400.0, None)
    >>> retry_after_s("120, soon, Thu, 01 Jan 1970 00:05:00 GMT", now=0.0)
    300.0
    """
    if value is None:
        return None
    alone = _wait_s(value.strip(), now)
    if alone is not None or "," not in value:
        return alone
    waits = [_wait_s(each[0].strip(), now) for each in _MEMBER.finditer(value[:_LONGEST_LIST])]
    return max((wait for wait in waits if wait is not None), default=None)


def _wait_s(text: str, now: float) -> float | None:
    seconds = _SECONDS.fullmatch(text)
    if seconds is not None:
        # A number of thousands of digits is a wait beyond any cap; it is never converted.
        wait_s = float(text) if len(seconds["whole"]) <= 15 and len(text) <= 40 else float(seconds["sign"] + "inf")
    else:
        at = http_date(text, now)
        if at is None:
            return None
        wait_s = max(at - now, 0.0)
    return min(max(wait_s, 0.0), MAX_RETRY_AFTER_S)


_WEEK_S = 7 * 86_400.0


@dataclass(frozen=True, slots=True)
class BackoffRules:
    """How waits grow.

    Args:
        first_s: the wait after the first failure, in seconds.
        factor: growth with each further failure.
        longest_s: the wait that is never exceeded.
        jitter: share of the wait that is drawn at random, 0 to 1.
    """

    first_s: float = 60.0
    factor: float = 2.0
    longest_s: float = _WEEK_S
    jitter: float = 0.5

    def __post_init__(self) -> None:
        for name, value, low, high in (
            ("first_s", self.first_s, 0.0, math.inf),
            ("factor", self.factor, 1.0, 1e6),
            ("longest_s", self.longest_s, self.first_s, math.inf),
            ("jitter", self.jitter, 0.0, 1.0),
        ):
            if not (math.isfinite(value) and low <= value <= high):
                raise InvalidInput(f"is {value}, but must be a number from {low:g} to {high:g}", field=name)


DEFAULT_BACKOFF = BackoffRules()


def backoff_s(failures: int, uniform: float, rules: BackoffRules = DEFAULT_BACKOFF) -> float:
    """Return the seconds to wait after a number of failures in a row; 0 after none. O(1).

    The wait lies between (1 − jitter) and 1 times the exponential one.

    >>> [backoff_s(failures, uniform=1.0) for failures in (0, 1, 2, 3, 1000)]
    [0.0, 60.0, 120.0, 240.0, 604800.0]
    """
    if failures <= 0 or rules.first_s == 0.0:
        return 0.0
    room = math.log(rules.longest_s / rules.first_s)
    growth = (failures - 1) * math.log(rules.factor)
    wait_s = rules.longest_s if growth >= room else rules.first_s * rules.factor ** (failures - 1)
    return wait_s * (1.0 - rules.jitter * (1.0 - uniform))


def spread_until(until: float, uniform: float, spread_s: float = 30.0) -> float:
    """The moment after a pause of a whole host at which one of its waiters may return, spread at random."""
    return until + uniform * spread_s


def seeded_uniform(seed: int, name: str, turn: int) -> float:
    """A number in [0, 1) that depends on nothing but its arguments.

    >>> seeded_uniform(1, "example.com", 2) == seeded_uniform(1, "example.com", 2)
    True
    """
    digest = blake2b(f"{seed}\0{turn}\0{name}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return (int.from_bytes(digest, "big") >> 11) * 2.0**-53
