"""Which page a host offers, and what pages on offer are sold by. Kernels' steps; the time is the desk's.

A host that one more crawl closes sells its best page: the best of the first that are due at its own price, or of those
behind them, which are in order of the most that they are worth.
"""

from __future__ import annotations

from recrawl.jit import borrowing
from recrawl.scheduling.host_heap import take_out
from recrawl.scheduling.host_limits import closes_after
from recrawl.scheduling.host_market import most_behind
from recrawl.scheduling.market_state import Market
from recrawl.scheduling.page_record import IDLE
from recrawl.scheduling.placing import announce, hold, offer, put_at_host, set_wait
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
    most = _TRIES if closes_after(host) else 1
    while (host["root"] >= 0 and count < most) or (
        host["behind"] >= 0
        and count < most + _TRIES
        and (best < 0 or most_behind(market.pages[host["behind"]]) > value)
    ):
        slot = host["root"] if host["root"] >= 0 and count < most else host["behind"]
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
