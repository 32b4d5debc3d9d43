"""Checks of pages and hosts that come from outside, before any kernel follows their links. Pure.

Kernels trust the tables: a link beyond their end would read foreign memory, a ring of links would never end, and a
number that no page can have might keep a search busy for ever. So everything that decides where kernels go is checked
here. Whether the numbers are true is not: whoever writes a snapshot decides what is crawled.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from recrawl.errors import InvalidInput
from recrawl.jit import inlined, kernel
from recrawl.scheduling.budget import TURN
from recrawl.scheduling.table.pages import PageTable
from recrawl.scheduling.table.records import (
    FREE,
    HELD,
    IN_FLIGHT,
    LEARNED_FRESHNESS,
    LEARNS,
    LIMITED,
    LISTENS,
    NO_KIND,
    NOISY_FRESHNESS,
    NOISY_HARMONIC,
    SOURCE,
    Record,
    Records,
)

_ANY_FLAGS = 31
_MOST_GAIN = 1e181  # importance × change rate / cost, each as large as it may be
_LEAST_DECAY = 1e-61
_MOST_DECAY = 1e62
_LAST_TIME = 1e60
_MOST_SHAPE = 1e10
_MOST_SIGNALS = 1e6
_GENERATIONS = 2**31
_MOST_ROOT = 1e8  # of a gap, by the filter's eighth root

_PAGE_PROBLEMS = (
    "",
    "is in a state that there is not",
    "has a generation that there is not",
    "has a law or flags that there are not",
    "is of a host that there is not",
    "is worth what no page can be worth",
    "changes at a rate that no page can have",
    "was crawled at a time that there is not",
    "waits for a time that there is not",
    "has heard what cannot be heard",
    "has limits or signals that are not there",
    "has limits that no page can have",
    "trusts signals as no page can",
    "has learned what cannot be learned",
)


class Extents(NamedTuple):
    """How far numbers in the records may go."""

    hosts: int
    kinds: int
    profiles: int
    priors: int  # rows of host priors


def check_pages(table: PageTable, first_free: int, extents: Extents) -> None:
    """Refuse pages that no scheduler can have written. O(pages).

    The arrays beside the pages are as long as the pages, or empty.
    """
    used = table.used
    problem, slot = _first_bad_page(table.pages[:used], table.limits, table.signals, table.beliefs, extents)
    if problem:
        raise InvalidInput(f"is damaged: page {slot} {_PAGE_PROBLEMS[problem]}")
    if not _free_chain_holds(table.pages[:used], first_free, used - table.live):
        raise InvalidInput("is damaged: its free places do not hang together")


def check_flights(table: PageTable) -> None:
    """Refuse flight records that do not fit the pages in flight, or that no scheduler can have written. O(pages)."""
    flights, pages = table.flights, table.pages[: table.used]
    numbers = pages["next"][pages["state"] == IN_FLIGHT].tolist()
    free: list[int] = []
    number = int(flights["next_free"][0]) if len(flights) else -1
    while 0 < number < len(flights) and len(free) < len(flights):
        free.append(number)
        number = int(flights["next_free"][number])
    fits = number == 0 and sorted(numbers + free) == list(range(1, len(flights)))
    known = (flights["taken_at"] >= 0) & (flights["taken_at"] < TURN) & (flights["signals"] >= 0.0)
    known &= (flights["signals"] <= _MOST_SIGNALS) & (abs(flights["latest_signal"]) <= _LAST_TIME)
    if not fits or not known.all():
        raise InvalidInput("is damaged: the records of pages in flight do not fit the pages")


def check_hosts(hosts: Records) -> None:
    """Refuse limits and times that no host can have. O(hosts); their links are checked with the market's."""
    ranges = {
        "min_gap": (0.0, _LAST_TIME),
        "rate_cap": (0.0, math.inf),
        "price": (0.0, 1e300),
        "built_price": (0.0, 1e300),
        "pace": (0.0, 4 * _LAST_TIME),
        "blocked_until": (-math.inf, math.inf),
        "next_start": (-math.inf, math.inf),
        "cap_time": (-math.inf, math.inf),
        "offer_at": (-math.inf, math.inf),
        "last_start": (-math.inf, _LAST_TIME),
        "max_in_flight": (0, 2**31 - 1),
        "in_flight": (0, 2**31 - 2),
        "sold": (0, 2**31 - 2),
        "paced": (0, 1),
    }
    for name, (low, high) in ranges.items():
        column = hosts[name]
        wrong = ~((column >= low) & (column <= high))
        if wrong.any():
            raise InvalidInput(f"is damaged: {name} of host {int(np.argmax(wrong))} is {column[wrong][0]}")


@kernel
def _first_bad_page(
    pages: Records, limits: Records, signals: Records, beliefs: Records, extents: Extents
) -> tuple[int, int]:
    """The first problem there is, by its number, and where."""
    there = (len(limits) > 0, len(signals) > 0, len(beliefs) > 0)
    for slot in range(len(pages)):
        page = pages[slot]
        problem = _wrong_place(page, extents.hosts)
        if problem == 0 and page["state"] != FREE:
            problem = _wrong_numbers(page)
            flags = page["flags"]
            if problem == 0 and not _arrays_hold(page, there):
                problem = 10
            if problem == 0 and flags & LIMITED != 0 and not _limits_hold(limits[slot]):
                problem = 11
            if problem == 0 and flags & LISTENS != 0 and not _signals_hold(signals[slot], extents):
                problem = 12
            if problem == 0 and flags & LEARNS != 0 and not _beliefs_hold(beliefs[slot], extents.priors):
                problem = 13
        if problem != 0:
            return problem, slot
    return 0, -1


@inlined
def _wrong_place(page: Record, hosts: int) -> int:
    if page["state"] > HELD:
        return 1
    if page["generation"] >= _GENERATIONS:
        return 2
    if page["state"] == FREE:
        return 0
    if page["law"] > NOISY_HARMONIC or page["flags"] > _ANY_FLAGS:
        return 3
    return 0 if page["host"] >= -1 and page["host"] < hosts else 4


@inlined
def _arrays_hold(page: Record, there: tuple[bool, bool, bool]) -> bool:
    """Whether the page has what its law needs, in arrays that are there."""
    law, flags = page["law"], page["flags"]
    limited, listens, learns = flags & LIMITED != 0, flags & LISTENS != 0, flags & LEARNS != 0
    if (limited and not there[0]) or (listens and not there[1]) or (learns and not there[2]):
        return False
    if (law >= NOISY_FRESHNESS) != listens or (law == SOURCE and not limited):
        return False
    return bool(learns or law < LEARNED_FRESHNESS or law >= NOISY_FRESHNESS)


@inlined
def _wrong_numbers(page: Record) -> int:
    law = page["law"]
    learned = law >= LEARNED_FRESHNESS and law < NOISY_FRESHNESS
    if not (page["gain"] >= 0.0 and page["gain"] <= _MOST_GAIN):
        return 5
    decay = page["decay"]
    if not ((decay >= _LEAST_DECAY and decay <= _MOST_DECAY) or (decay == 0.0 and not learned)):
        return 6
    if not (page["last"] >= -_LAST_TIME and page["last"] <= _LAST_TIME):
        return 7
    if not (page["wait"] >= 0.0 and page["not_before"] >= 0.0):
        return 8
    belief = page["belief"]
    if not (page["signals"] >= 0.0 and belief >= 0.0 and belief <= _MOST_SHAPE) or (learned and belief == 0.0):
        return 9
    return 0


@inlined
def _limits_hold(limit: Record) -> bool:
    least, most = limit["min_interval"], limit["max_interval"]
    return bool(limit["cost"] >= 0.0 and least >= 0.0 and least < math.inf and most >= 0.0 and limit["profit"] >= 0.0)


@inlined
def _signals_hold(signal: Record, extents: Extents) -> bool:
    recall, precision, profile = signal["recall"], signal["precision"], signal["profile"]
    shares = recall >= 0.0 and recall <= 1.0 and precision >= 0.0 and precision <= 1.0
    return bool(shares and (profile == NO_KIND or (profile >= -extents.kinds and profile < extents.profiles)))


@inlined
def _beliefs_hold(belief: Record, priors: int) -> bool:
    return bool(
        _amount(belief["unchanged_time"], 1e38)
        and _amount(belief["changes"], 1e6)
        and _amount(belief["gap_mean"], _MOST_ROOT)
        and _amount(belief["gap_variance"], _MOST_ROOT**2)
        and _amount(abs(belief["gap_skew"]), _MOST_ROOT**3)
        and _amount(belief["recent_unchanged_time"], 1e38)
        and _amount(belief["recent_changes"], 1e6)
        and _amount(belief["recent_gap_mean"], _MOST_ROOT)
        and belief["prior_row"] >= 0
        and belief["prior_row"] <= priors
    )


@inlined
def _amount(number: float, most: float) -> bool:
    return bool(number >= 0.0 and number <= most)


@kernel
def _free_chain_holds(pages: Records, first: int, free: int) -> bool:
    """Whether so many free places, and no others, hang on the first one."""
    found = 0
    for i in range(len(pages)):
        found += pages[i]["state"] == FREE
    if found != free:
        return False
    slot = np.int64(first)
    for _ in range(free):
        if not 0 <= slot < len(pages) or pages[slot]["state"] != FREE:
            return False
        slot = np.int64(pages[slot]["next"])
    return bool(slot == -1)
