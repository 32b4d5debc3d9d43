"""Words that change because time passes or people look, not because anyone edited the page.

A fetch seconds later does not show these, so they are known by their form: ages ("3 hours ago"), clocks with seconds,
clocks and dates that agree with the time of both fetches, and counters with a word such as "views" beside them. Ages,
counters and names of days and months are known in English; others are learned by a second fetch or masked by a
selector. A clock time or date that does not follow the fetches, such as an opening hour, is content.
"""

from __future__ import annotations

import re
from typing import NamedTuple

DAY = 86_400.0
_EDGES = ".,;:()[]|·•-–—!"


def _words(written: str) -> frozenset[str]:
    return frozenset(written.split())


_AGES = _words(
    "second seconds sec secs minute minutes min mins hour hours hr hrs day days week weeks month months year years "
    "s m h d w ago just now moments moment yesterday today a an about over almost"
)
_AGE = re.compile(
    r"(?:(?:about|over|almost) )?(?:\d{1,4} ?|an? )"
    r"(?:s|m|h|d|w|secs?|seconds?|mins?|minutes?|hrs?|hours?|days?|weeks?|months?|years?|moments?) ago\b"
)
_RECENT = frozenset(("just now", "now", "today", "yesterday", "moments ago"))
_COUNTED = _words(
    "view views viewed viewers visit visits visitor visitors hits reads online viewing watching impressions"
)
_DAYS = _words(
    "mon tue wed thu fri sat sun monday tuesday wednesday thursday friday saturday sunday jan feb mar apr may jun jul "
    "aug sep oct nov dec january february march april june july august september october november december"
)
_COUNT = re.compile(r"\d[\d.,'’  ]*[kKmM]?")
_CLOCK = re.compile(r"T?(\d{1,2}):(\d{2})(:\d{2}(?:\.\d+)?)?(?:am|pm|AM|PM|Z|[+-]\d{2}:?\d{2})?")
_STAMP = re.compile(r"(\d{4})-(\d{2})-(\d{2})(?:T(\d{2}):(\d{2})(:\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?")
_DAY_NUMBER = re.compile(r"(\d{1,2})(?:st|nd|rd|th)?")
_YEAR = re.compile(r"(?:19|20)\d{2}")
_HALVES = frozenset(("am", "pm", "a.m", "p.m", "utc", "gmt", "cet", "cest", "est", "edt", "pst", "pdt"))


class Side(NamedTuple):
    """One side of a difference: its words, three words before and after, and when it was fetched, in Unix seconds."""

    words: list[str]
    before: list[str]
    after: list[str]
    fetched_at: float | None


def passes(old: Side, new: Side) -> bool:
    """Whether a difference comes from time or visitors alone."""
    if not old.words or not new.words:
        return False
    if any(all(rule(side) for side in (old, new)) for rule in (_is_age, _is_counter)):
        return True
    return _is_time(old) and _is_time(new) and not (_is_round(old) and _is_round(new))


def _bare(words: list[str]) -> list[str]:
    return [bare for bare in (word.strip(_EDGES).lower() for word in words) if bare]


def _is_age(side: Side) -> bool:
    words = _bare(side.words)
    if " ".join(words) in _RECENT:
        return True
    if not all(word in _AGES or re.fullmatch(r"\d{1,4}[smhdw]?", word) for word in words):
        return False
    after = _bare(side.after[:2])
    starts: tuple[list[str], ...] = ([], _bare(side.before[-1:]), _bare(side.before[-2:]))
    return any(_AGE.match(" ".join(start + words + after)) for start in starts)


def _is_counter(side: Side) -> bool:
    words = _bare(side.words)
    counted = all(_COUNT.fullmatch(word) or word in _COUNTED for word in words)
    return counted and not _COUNTED.isdisjoint(words + _bare(side.before[-2:]) + _bare(side.after[:2]))


def _is_time(side: Side) -> bool:
    return all(_is_now(word, side.fetched_at) for word in _bare(side.words))


def _is_round(side: Side) -> bool:
    """Whether a side is a time on the quarter of an hour, as opening hours and dates of meetings are."""
    clocks = [_CLOCK.fullmatch(word.upper()) for word in _bare(side.words)]
    minutes = [int(clock[2]) for clock in clocks if clock and not clock[3]]
    return bool(minutes) and all(minute % 15 == 0 for minute in minutes)


def _is_now(word: str, fetched_at: float | None) -> bool:
    """Whether a word can be part of the time of the fetch; only clocks with seconds need no time to compare with."""
    clock, stamp = _CLOCK.fullmatch(word.upper()), _STAMP.fullmatch(word.upper())
    if (clock and clock[3]) or (stamp and stamp[6]):
        return True
    if fetched_at is None:
        return False
    if clock or (stamp and stamp[4]):
        minute = int(clock[2] if clock else stamp[5] if stamp else 0)
        # Nearly all time zones differ by half hours; pages are cached for a minute.
        return (int(fetched_at // 60) - minute) % 30 in (0, 1, 29)
    day = stamp[3] if stamp else None
    number = _DAY_NUMBER.fullmatch(word)
    if day is None and number is None:
        return word in _DAYS or word in _HALVES or _YEAR.fullmatch(word) is not None
    return int(day or (number[1] if number else 0)) in {_day_of_month(fetched_at + shift * DAY) for shift in (-1, 0, 1)}


def _day_of_month(at: float) -> int:
    """The day of the month of a Unix time in UTC, by the civil calendar."""
    days = int(at // DAY) + 719_468  # days since 0000-03-01
    of_era = days % 146_097
    year = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    return of_year - (153 * ((5 * of_year + 2) // 153) + 2) // 5 + 1
