"""Hours of the day in which a group may be crawled, in its own time zone. Pure but for the table of time zones."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from recrawl.errors import InvalidInput

_HOURS = re.compile(r"([0-9]{1,2})-([0-9]{1,2})")


def check_hours(hours: str, time_zone: str, field: str) -> None:
    """Refuse hours or a time zone that do not exist."""
    _span(hours, field)
    _zone(time_zone, field)


def open_again_at(hours: str, time_zone: str, now: float) -> float | None:
    """When a group that is closed now opens; None if it is open.

    Args:
        hours: such as `9-17`, or `22-6` over midnight; "" for always open.
        time_zone: in which they are meant.
        now: Unix seconds.

    >>> open_again_at("9-17", "UTC", 10 * 3600.0)
    >>> open_again_at("9-17", "UTC", 18 * 3600.0) / 3600
    33.0
    """
    if not hours:
        return None
    first, last = _span(hours, "hours")
    here = datetime.fromtimestamp(now, _zone(time_zone, "time-zone"))
    inside = first <= here.hour < last if first < last else here.hour >= first or here.hour < last
    if inside:
        return None
    opens = here.replace(hour=first, minute=0, second=0, microsecond=0)
    if opens.timestamp() <= now:
        opens = (opens + timedelta(days=1)).replace(hour=first)
    return opens.timestamp()


@lru_cache(maxsize=256)
def _span(hours: str, field: str) -> tuple[int, int]:
    match = _HOURS.fullmatch(hours) if hours else None
    if hours and match is None:
        raise InvalidInput(f"is {hours!r}, but must be hours such as 9-17 or 22-6", field=field)
    first, last = (int(match[1]), int(match[2])) if match else (0, 24)
    if first > 23 or last > 24 or first == last:
        raise InvalidInput(f"is {hours!r}, but hours go from 0 to 23, up to 24, and must not be the same", field=field)
    return first, last


@lru_cache(maxsize=256)
def _zone(name: str, field: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidInput(f"is {name!r}, which is no time zone such as Europe/Berlin", field=field) from None
