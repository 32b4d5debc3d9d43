"""Completed crawls: write the result into the page and its host, and let failed pages back off.

The kernels first check that all pages of a call are in flight, and change nothing if one is not.
"""

from __future__ import annotations

import math

import numpy as np

from recrawl.jit import borrowing, kernel
from recrawl.pages import Floats
from recrawl.scheduling.budget import Clocks
from recrawl.scheduling.table.hosts import end_crawl
from recrawl.scheduling.table.pages import PageTable
from recrawl.scheduling.table.records import (
    IDLE,
    IN_FLIGHT,
    LIMITED,
    LISTENS,
    MOST_FAILURES,
    NO_COPY,
    ONCE,
    Record,
    Records,
    Slots,
)
from recrawl.scheduling.types import LONGEST, Tuning
from recrawl.scheduling.value import OWN_WAIT

Arrays = tuple[Records, Records, Records, Records]
"""Pages, limits, pages in flight and hosts."""

_DOUBLINGS = 12  # of the wait, at most
_JITTER = 0.25  # of the wait, up or down, so that pages that failed together do not come back together


@kernel
def end_flight(pages: Records, hosts: Records, flights: Records, slots: Slots, taken_at: Clocks) -> int:
    """Take pages out of flight, or none if one is not in flight or comes twice. O(slots).

    Signals that were counted in flight stay counted.

    Args:
        pages: the table.
        hosts: the hosts.
        flights: of the pages in flight.
        slots: which pages.
        taken_at: is filled with the clock at which each page was taken.

    Returns:
        The place of the first page that is not in flight, or -1.
    """
    bad = _leave_flight(pages, slots)
    if bad < 0:
        for i in range(len(slots) - 1, -1, -1):
            page = pages[slots[i]]
            taken_at[i] = flights[page["next"]]["taken_at"]
            _free_flight(page, hosts, flights)
    return bad


@kernel
def complete(tables: Arrays, slots: Slots, now: float, seen: float, gaps: Floats, heard: Floats) -> tuple[int, int]:
    """Note that pages in flight were crawled, or change nothing if one is not in flight or comes twice. O(slots).

    Args:
        tables: pages, limits, pages in flight and hosts.
        slots: which were crawled.
        now: the time.
        seen: time up to which a crawl has seen all announced changes; signals counted in flight after it stay counted.
        gaps: is filled with the time since the crawl before, NaN for a first crawl.
        heard: is filled with the signals counted in the gap.

    Returns:
        The place of the first page that is not in flight, or -1; how many of the pages are crawled only once.
    """
    pages, limits, flights, hosts = tables
    bad = _leave_flight(pages, slots)
    once = 0
    if bad < 0:
        for i in range(len(slots) - 1, -1, -1):
            page = pages[slots[i]]
            gaps[i] = math.nan if page["flags"] & NO_COPY != 0 else max(now - page["last"], 0.0)
            heard[i] = page["signals"]
            flight = flights[page["next"]]
            later = flight["signals"] > 0.0 and seen < flight["latest_signal"] and page["flags"] & LISTENS != 0
            page["signals"] = flight["signals"] if later else np.float32(0.0)
            _free_flight(page, hosts, flights)
            once += _restart(page, limits, slots[i], now)
    return bad, once


@borrowing
def _leave_flight(pages: Records, slots: Slots) -> int:
    """Set the state of pages in flight to IDLE; return the place of the first that is not in flight, or -1."""
    for i in range(len(slots)):
        page = pages[slots[i]]
        if page["state"] != IN_FLIGHT:
            for k in range(i):
                pages[slots[k]]["state"] = IN_FLIGHT
            return i
        page["state"] = IDLE
    return -1


@borrowing
def _free_flight(page: Record, hosts: Records, flights: Records) -> None:
    """Free the flight record of a page, and count the end of its crawl at its host.

    Callers go through their pages backwards, so that a batch gets the same records again, in the same order.
    """
    number = page["next"]
    flights[number]["next_free"] = flights[0]["next_free"]
    flights[0]["next_free"] = number
    page["next"] = -1
    if page["host"] >= 0:
        end_crawl(hosts[page["host"]])


@borrowing
def _restart(page: Record, limits: Records, slot: int, now: float) -> bool:
    """Start the time of a page again with a new copy; return whether the page is crawled only once."""
    page["last"] = now
    page["flags"] &= ~np.uint8(NO_COPY)
    page["failures"] = 0
    page["not_before"] = limits[slot]["min_interval"] if page["flags"] & LIMITED != 0 else np.float32(0.0)
    return bool(page["law"] == ONCE)


def refresh(table: PageTable, slots: Slots, now: float) -> tuple[Floats, Floats, int]:
    """Note new copies of pages that were not in flight. O(slots).

    Returns:
        As `complete` fills them, the gaps and the signals in them; how many of the pages are crawled only once.
    """
    pages = table.pages[slots]  # a copy
    gaps = np.where(pages["flags"] & NO_COPY != 0, math.nan, np.maximum(now - pages["last"], 0.0))
    heard = pages["signals"].astype(np.float64)
    limited = pages["flags"] & LIMITED != 0
    pages["signals"], pages["last"], pages["failures"], pages["not_before"] = 0.0, now, 0, 0.0
    pages["flags"] &= ~np.uint8(NO_COPY)
    pages["not_before"][limited] = table.limits["min_interval"][slots[limited]]
    table.pages[slots] = pages
    return gaps, heard, int(np.count_nonzero(pages["law"] == ONCE))


@kernel
def put_off(pages: Records, slots: Slots, now: float, usual: Floats, bounds: tuple[float, float], seed: int) -> None:
    """Let failed pages wait a quarter of their interval, doubled for each failure in a row. O(slots).

    Args:
        pages: the table.
        slots: which failed.
        now: the time.
        usual: the interval of each.
        bounds: the shortest and the longest wait.
        seed: of the jitter.
    """
    for i in range(len(slots)):
        page = pages[slots[i]]
        page["failures"] = min(page["failures"] + 1, MOST_FAILURES)
        wait = 0.25 * usual[i] * 2.0 ** min(page["failures"] - 1, _DOUBLINGS)
        wait *= 1.0 + _JITTER * (2.0 * uniform(seed, slots[i], page["failures"]) - 1.0)
        wait_until(page, now, min(max(wait, bounds[0]), bounds[1]))


@borrowing
def wait_until(page: Record, now: float, wait: float) -> None:
    """Let a page wait for at least this time from now."""
    page["not_before"] = max(np.float64(page["not_before"]), rounded_up(now - page["last"] + wait))


@borrowing
def rounded_up(time: float) -> float:
    """Round a time up to single precision."""
    single = np.float32(time)
    if np.float64(single) < time:
        return np.float64(single) * 1.0000001
    return np.float64(single)


@borrowing
def uniform(seed: int, slot: int, turn: int) -> float:
    """Return a number from 0 up to 1 that depends on the arguments alone (splitmix64)."""
    x = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(slot) * np.uint64(0xBF58476D1CE4E5B9)
    x += np.uint64(turn) * np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(30)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(27)
    x *= np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return np.float64(x >> np.uint64(11)) / 9007199254740992.0


@kernel
def hold_back(pages: Records, slots: Slots, now: float, waits: Floats) -> None:
    """Count a failure for each page, and let it wait as long as its server asked. O(slots)."""
    for i in range(len(slots)):
        page = pages[slots[i]]
        page["failures"] = min(page["failures"] + 1, MOST_FAILURES)
        wait_until(page, now, waits[i])


def back_off(
    table: PageTable, slots: Slots, now: float, market: tuple[float, float], tuning: Tuning, seed: int
) -> None:
    """Count a failure for each page, and let it wait by its interval. O(slots).

    Args:
        table: of the pages.
        slots: which failed.
        now: the time.
        market: the price, and the budget.
        tuning: the shortest and longest wait.
        seed: of the jitter.
    """
    price, budget = market
    own = table.appraise(slots, now, price, OWN_WAIT)[0]
    cycle = table.live / budget if budget > 0 else 1.0
    usual: Floats = np.where((own > 0) & (own < LONGEST), own, cycle)  # some have no interval of their own
    put_off(table.pages, slots, now, usual, (tuning.shortest_retry, tuning.longest_retry), seed)
