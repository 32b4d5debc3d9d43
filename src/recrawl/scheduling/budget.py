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
from recrawl.scheduling.table.records import IN_FLIGHT, SLOT_BITS, Records, Slots

TICKS = 2**30  # of the clock for each burst
TURN = 2**62  # ticks after which the clock begins anew
_LONG = 2**60  # ticks that the clock goes on at most at once
_LONG_AGO = 2**45  # ticks, or 32768 bursts
_BITS = 31
_LOW = (1 << _BITS) - 1


class TokenBucket:
    """Tokens that come at a constant rate up to a burst; a dear crawl may leave a debt."""

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
        """Hold so many tokens at most; none come by that. What was taken before counts as taken long ago."""
        if burst != self.burst:
            self._hold(burst)
            self.tokens = min(self.tokens, burst)
            self.clock = (self.clock + _LONG_AGO) % TURN

    def fill(self, now: float) -> float:
        """The tokens there are now. Time does not run backwards."""
        if now > self._filled:
            came = self.rate * (now - self._filled)
            tokens = self.tokens + came
            ticks = came * self._ticks
            self.tokens = tokens if tokens < self.burst else self.burst
            self.clock = (self.clock + (int(ticks) + 1 if ticks < _LONG else _LONG)) % TURN  # rounded up
            self._filled = now
        return self.tokens

    def spend(self, tokens: float) -> None:
        """Take tokens out."""
        self.tokens -= tokens

    def refund(self, tokens: float) -> None:
        """Put back tokens for crawls that were not made."""
        self.tokens = min(self.burst, self.tokens + tokens)

    @property
    def filled(self) -> float:
        """When the bucket was last filled."""
        return self._filled


@kernel
def lease(pages: Records, slots: Slots, clock: int) -> NDArray[np.int64]:
    """Note when pages in flight were taken; their ids. O(slots)."""
    ids = np.empty(len(slots), dtype=np.int64)
    for i in range(len(slots)):
        page = pages[slots[i]]
        page["next"] = clock >> _BITS
        page["prev"] = clock & _LOW
        ids[i] = (np.int64(page["generation"]) << SLOT_BITS) | slots[i]
    return ids


@kernel
def unspent(pages: Records, slots: Slots, costs: Floats, clock: int, tick: float) -> float:
    """What leases are worth together that are given back now. O(slots)."""
    total = 0.0
    for i in range(len(slots)):
        page = pages[slots[i]]
        taken = (np.int64(page["next"]) << _BITS) | np.int64(page["prev"])
        total += max(costs[i] - ((clock - taken) % TURN) * tick, 0.0)
    return total


@kernel
def claim(pages: Records, hosts: Records, slots: Slots, now: float) -> None:
    """Mark pages that wait nowhere as in flight, whatever they are worth and their hosts allow. O(slots)."""
    for i in range(len(slots)):
        page = pages[slots[i]]
        page["state"] = IN_FLIGHT
        if page["host"] >= 0:
            start_crawl(hosts[page["host"]], now)
