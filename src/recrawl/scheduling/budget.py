"""The budget over time: a token bucket, the leases of pages in flight and their refunds.

Any window of length w sees at most rate·w + burst tokens spent. The clock of the bucket counts the tokens that came,
whether or not the bucket had room for them; a lease stores the clock at which the page was taken. The refund for a
released lease is its cost minus the tokens that came since, but at least 0. This keeps spending within the bound.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from recrawl.jit import kernel
from recrawl.pages import Floats
from recrawl.scheduling.table.hosts import start_crawl
from recrawl.scheduling.table.pages import PageTable
from recrawl.scheduling.table.records import IN_FLIGHT, SLOT_BITS, Ids, Records, Slots

TICKS = 2**30  # of the clock per burst
TURN = 2**62  # ticks after which the clock starts at 0 again
_LONG = 2**60  # most ticks of one `fill`
_LONG_AGO = 2**45  # ticks, or 32768 bursts
Clocks = NDArray[np.int64]


class TokenBucket:
    """Tokens that come at a constant rate, up to a burst. A crawl that costs more than the burst leaves a debt."""

    def __init__(self, rate: float, burst: float, now: float) -> None:
        self.rate = rate
        self.tokens = burst
        self.clock = 0
        self._filled = now
        self._hold(burst)

    def _hold(self, burst: float) -> None:
        self.burst = burst
        self.tick = burst / TICKS
        self._ticks = TICKS / burst  # for each token

    def resize(self, burst: float) -> None:
        """Change the burst without adding tokens. Leases taken before are not refunded."""
        if burst != self.burst:
            self._hold(burst)
            self.tokens = min(self.tokens, burst)
            self.clock = (self.clock + _LONG_AGO) % TURN

    def fill(self, now: float) -> float:
        """Add the tokens that came since the last call, and return the tokens there are. An earlier time adds none."""
        if now > self._filled:
            came = self.rate * (now - self._filled)
            tokens = self.tokens + came
            ticks = came * self._ticks
            self.tokens = tokens if tokens < self.burst else self.burst
            self.clock = (self.clock + (int(ticks) + 1 if ticks < _LONG else _LONG)) % TURN  # rounded up
            self._filled = now
        return self.tokens

    def spend(self, tokens: float) -> None:
        """Remove tokens."""
        self.tokens -= tokens

    def refund(self, tokens: float) -> None:
        """Add tokens for crawls that were not made, up to the burst."""
        self.tokens = min(self.burst, self.tokens + tokens)

    @property
    def filled(self) -> float:
        """Time of the last `fill`."""
        return self._filled

    def resume(self, tokens: float, filled: float, clock: int) -> None:
        """Continue from the tokens, the time of the last `fill` and the clock of a snapshot."""
        self.tokens, self._filled, self.clock = tokens, filled, clock


def lease(table: PageTable, slots: Slots, clock: int) -> Ids:
    """Give pages that are in flight from now on a record with the time they were taken; return their ids. O(slots)."""
    ids = np.empty(len(slots), dtype=np.int64)
    done = _lease(table.pages, table.flights, slots, clock, 0, ids)
    while done < len(slots):
        table.add_flights(len(slots) - done)
        done = _lease(table.pages, table.flights, slots, clock, done, ids)
    return ids


@kernel
def _lease(pages: Records, flights: Records, slots: Slots, clock: int, done: int, ids: Ids) -> int:
    """Lease pages from place `done` on; return the place of the first that found no free record."""
    for i in range(done, len(slots)):
        number = flights[0]["next_free"]
        if number == 0:
            return i
        flight = flights[number]
        flights[0]["next_free"] = flight["next_free"]
        flight["taken_at"] = clock
        flight["signals"] = 0.0
        page = pages[slots[i]]
        page["next"] = number
        ids[i] = (np.int64(page["generation"]) << SLOT_BITS) | slots[i]
    return len(slots)


def unspent(costs: Floats, taken_at: Clocks, clock: int, tick: float) -> float:
    """Return the refund for leases that are released now: cost minus the tokens that came since, at least 0 each."""
    came = ((clock - taken_at) % TURN) * tick
    return float(np.maximum(costs - came, 0.0).sum())


@kernel
def claim(pages: Records, hosts: Records, slots: Slots, now: float) -> None:
    """Mark idle pages as in flight and count them at their hosts, without asking budget or host limits. O(slots)."""
    for i in range(len(slots)):
        page = pages[slots[i]]
        page["state"] = IN_FLIGHT
        if page["host"] >= 0:
            start_crawl(hosts[page["host"]], now)
