"""Which page a host offers, and what pages on offer are sold by. Kernels' steps; the time is the desk's.

A host offers one page at a time, its best: the best of the first that are due at its own price, or of those behind
them, which are in order of the most that they are worth.
"""

from __future__ import annotations

import math

from recrawl.jit import borrowing
from recrawl.scheduling.host_heap import due_time, take_out
from recrawl.scheduling.host_market import most_behind
from recrawl.scheduling.market_state import Market
from recrawl.scheduling.placing import announce, hold, offer, put_at_host, set_wait
from recrawl.scheduling.table.records import IDLE, Record
from recrawl.scheduling.worth import MOST, is_held, is_overdue, worth

OVERDUE = 2.0 * MOST  # beyond all values
_TRIES = 16  # pages that are compared


@borrowing
def worth_now(market: Market, slot: int) -> float:
    """What a crawl of the page is worth now, by unit of cost."""
    desk = market.desk[0]
    return min(worth(market.pages, market.limits, market.signals, slot, desk["now"], desk["entry"]), MOST)


@borrowing
def sale_key(market: Market, slot: int) -> float:
    """What a page on offer is sold by: its worth; beyond all if its longest interval has passed."""
    if is_overdue(market.pages, market.limits, slot, market.desk[0]["now"]):
        return OVERDUE
    return worth_now(market, slot)


@borrowing
def offer_of_host(market: Market, number: int) -> int:
    """Put the best page of a host on offer and return it, or -1: none may be taken. O(log pages), amortised.

    What may not be taken yet leaves the host until it may.
    """
    host = market.hosts[number]
    desk = market.desk[0]
    tried = desk["sample"]
    best, value, count = -1, 0.0, 0
    while True:
        slot = _next_to_try(market, host, count, value if best >= 0 else -math.inf)
        if slot < 0:
            break
        take_out(market.pages, host, slot)
        if is_held(market.pages[slot], desk["now"]):
            hold(market, slot)
            continue
        market.pages[slot]["state"] = IDLE
        key = sale_key(market, slot)
        if best < 0 or key > value:
            best, value = slot, key
        tried[count] = slot
        count += 1
    for i in range(count):
        if tried[i] != best:
            set_wait(market, tried[i])
            put_at_host(market, tried[i])
    if best >= 0:
        host["offered"] = best
        offer(market, best)
    announce(market, number)
    return best


@borrowing
def _next_to_try(market: Market, host: Record, count: int, value: float) -> int:
    """The page of a host that is compared next with the best so far, worth `value`, or -1: it is good enough.

    First those that are due, and others only as long as nothing is worth the host's price; then those behind.
    """
    desk = market.desk[0]
    first, behind = host["root"], host["behind"]
    wanting = value < max(host["price"], desk["entry"])
    if first >= 0 and count < _TRIES and (wanting or due_time(market.pages[first]) <= desk["now"]):
        return int(first)
    if behind >= 0 and count < 2 * _TRIES and most_behind(market.pages[behind]) > value:
        return int(behind)
    return -1
