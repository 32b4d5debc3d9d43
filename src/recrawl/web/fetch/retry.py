"""`Retry-After` in all its forms: seconds, and the three kinds of HTTP dates.

Nothing here raises on foreign text: garbage is None, a past date is no wait, an absurd wait is cut to the cap. A header
that came several times reaches here joined by commas; the longest wait in it counts.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from recrawl.web.dates import http_date

DEFAULT_CAP_S = 86_400.0
_LONGEST_LIST = 2048
# Two of the three kinds of dates hold a comma themselves, after the day of the week.
_MEMBER = re.compile(r"\s*(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*\s*,)?[^,]+", re.IGNORECASE | re.ASCII)
_SECONDS = re.compile(r"(?P<sign>[+-]?)(?P<whole>[0-9]+)(?:\.[0-9]*)?")


class RetryAfter(NamedTuple):
    """How long a server asked to be left alone, in seconds, and whether the cap or zero cut it."""

    wait_s: float
    clamped: bool


def retry_after(value: str | None, now: float, cap_s: float = DEFAULT_CAP_S) -> RetryAfter | None:
    """The wait that a `Retry-After` value asks for, 0 to `cap_s` seconds; None if there is none to read. O(length).

    Args:
        value: the header, several joined by commas, or None.
        now: seconds since 1970, for dates.
        cap_s: the longest wait that is obeyed.

    >>> retry_after("120", now=0.0), retry_after("99999999999", now=0.0), retry_after("soon", now=0.0)
    (RetryAfter(wait_s=120.0, clamped=False), RetryAfter(wait_s=86400.0, clamped=True), None)
    >>> retry_after("120, soon, Thu, 01 Jan 1970 00:05:00 GMT", now=0.0)
    RetryAfter(wait_s=300.0, clamped=False)
    """
    if value is None:
        return None
    alone = _wait(value.strip(), now, cap_s)
    if alone is not None or "," not in value:
        return alone
    waits = [_wait(each[0].strip(), now, cap_s) for each in _MEMBER.finditer(value[:_LONGEST_LIST])]
    return max((wait for wait in waits if wait is not None), default=None)


def _wait(text: str, now: float, cap_s: float) -> RetryAfter | None:
    seconds = _SECONDS.fullmatch(text)
    if seconds is not None:
        # A number of thousands of digits is a wait beyond any cap; it is never converted.
        wait_s = float(text) if len(seconds["whole"]) <= 15 and len(text) <= 40 else float(seconds["sign"] + "inf")
    else:
        at = http_date(text, now)
        if at is None:
            return None
        wait_s = max(at - now, 0.0)
    clamped_s = min(max(wait_s, 0.0), cap_s)
    return RetryAfter(clamped_s, clamped_s != wait_s)
