"""Dates as the web writes them, and which of them to believe.

HTTP dates in their three forms (RFC 9110, 5.6.7) and the W3C's profile of ISO 8601, which sitemaps and feeds use.
Nothing here raises on foreign text; all times are seconds since 1970.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_tz

FIRST_WEB_PAGE_AT = 681_436_800.0  # 6 August 1991
CLOCK_SLACK_S = 86_400.0
_LONGEST_DATE = 128
_MONTHS = {name: number for number, name in enumerate(
    ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), start=1)}  # fmt: skip
_ZONE = "GMT|UTC|[+-]0000"
_CLOCK = r"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})"
_FIXED = rf"[a-z]{{3}},\s*(?P<day>[0-9]{{1,2}})\s+(?P<month>[a-z]{{3}})\s+(?P<year>[0-9]{{4}})\s+{_CLOCK}\s*(?:{_ZONE})"
_OLD = rf"[a-z]{{3,9}},\s*(?P<day>[0-9]{{1,2}})-(?P<month>[a-z]{{3}})-(?P<year>[0-9]{{2,4}})\s+{_CLOCK}\s*(?:{_ZONE})"
_ASCTIME = rf"[a-z]{{3}}\s+(?P<month>[a-z]{{3}})\s+(?P<day>[0-9]{{1,2}})\s+{_CLOCK}\s+(?P<year>[0-9]{{4}})"
# Sun, 06 Nov 1994 08:49:37 GMT; Sunday, 06-Nov-94 08:49:37 GMT; Sun Nov  6 08:49:37 1994
_DATES = tuple(re.compile(pattern, re.IGNORECASE | re.ASCII) for pattern in (_FIXED, _OLD, _ASCTIME))
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_W3C = re.compile(
    r"(?P<year>[0-9]{4})(?:-(?P<month>[0-9]{2})(?:-(?P<day>[0-9]{2})"
    r"(?:[T ](?P<hour>[0-9]{2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:[.,][0-9]{1,12})?)?"
    r"\s?(?P<zone>Z|[+-][0-9]{2}:?[0-9]{2})?)?)?)?",
    re.IGNORECASE | re.ASCII,
)


def http_date(text: str, now: float) -> float | None:
    """Seconds since 1970 of an HTTP date in any of its three forms, or None.

    A year of two digits that would lie more than 50 years ahead of `now` is of the century before.

    >>> http_date("Sun, 06 Nov 1994 08:49:37 GMT", now=0.0)
    784111777.0
    """
    if len(text) > _LONGEST_DATE:
        return None
    match = next((found for pattern in _DATES if (found := pattern.fullmatch(text.strip()))), None)
    if match is None or match["month"].lower() not in _MONTHS:
        return None
    try:
        moment = datetime(
            _year(match["year"], now),
            _MONTHS[match["month"].lower()],
            int(match["day"]),
            int(match["hour"]),
            int(match["minute"]),
            min(int(match["second"]), 59) if match["second"] == "60" else int(match["second"]),
            tzinfo=UTC,
        )
    except ValueError:
        return None
    return (moment - _EPOCH).total_seconds()


def _year(digits: str, now: float) -> int:
    if len(digits) != 2:
        return int(digits)
    this_year = (_EPOCH + timedelta(seconds=min(max(now, 0.0), 2e11))).year
    year = this_year - this_year % 100 + int(digits)
    return year - 100 if year > this_year + 50 else year


def w3c_date(text: str) -> float | None:
    """Seconds since 1970 of a year, month, day or moment of the W3C's profile, or None; without a zone it is UTC.

    >>> w3c_date("2024-02-29"), w3c_date("2024-02-29T01:00:00+01:00"), w3c_date("2023-02-29")
    (1709164800.0, 1709164800.0, None)
    """
    match = _W3C.fullmatch(text.strip()) if len(text) <= _LONGEST_DATE else None
    if match is None:
        return None
    parts = [int(match[name] or least) for name, least in _W3C_PARTS]
    try:
        moment = datetime(*parts, tzinfo=UTC)  # type: ignore[arg-type, misc]
    except ValueError:
        return None
    return (moment - _EPOCH).total_seconds() - _zone_s(match["zone"])


def mail_date(text: str) -> float | None:
    """Seconds since 1970 of a date as mail and RSS write it (RFC 5322), in many spellings, or None.

    >>> mail_date("Sun, 06 Nov 1994 08:49:37 +0200"), mail_date("02 Jan 2023"), mail_date("soon")
    (784104577.0, 1672617600.0, None)
    """
    if len(text) > _LONGEST_DATE:
        return None
    try:
        parts = parsedate_tz(text) or parsedate_tz(f"{text} 00:00:00")
        if parts is None:
            return None
        year, month, day, hour, minute, second = parts[:6]
        moment = datetime(year, month, day, hour, minute, min(second, 59) if second == 60 else second, tzinfo=UTC)
    except (ValueError, IndexError, TypeError, OverflowError):  # the parser of mail checks little
        return None
    return (moment - _EPOCH).total_seconds() - (parts[9] or 0)


def believable(at: float | None, now: float) -> float | None:
    """The time if it lies between the first web page and a day from now, else None."""
    return at if at is not None and FIRST_WEB_PAGE_AT <= at <= now + CLOCK_SLACK_S else None


_W3C_PARTS = (("year", "1"), ("month", "1"), ("day", "1"), ("hour", "0"), ("minute", "0"), ("second", "0"))


def _zone_s(zone: str | None) -> float:
    if zone is None or zone in "Zz":
        return 0.0
    digits = zone[1:].replace(":", "")
    seconds = 3600.0 * int(digits[:2]) + 60.0 * int(digits[2:])
    return -seconds if zone[0] == "-" else seconds
