"""A host that cannot serve all that is worth the common price has a price of its own. Kernels.

Its pages wait in its heap by when they are worth that price, and the best of the first are offered whenever the host
is open and they are worth the common price: so the host's own price decides who comes first, and never leaves the host
idle. Pages that time alone does not bring wait in a heap behind, by the most they are worth. The price follows the
values that crawls are sold at while more are wanted than the host can serve, and falls to the common price when not.
When it has moved far, it is found anew from what the host's pages demand at its pace, and their due times with it.
"""

from __future__ import annotations

import math

from recrawl.jit import borrowing
from recrawl.scheduling.host_heap import due_time, gather, put
from recrawl.scheduling.market_state import SAMPLE, Market, between
from recrawl.scheduling.table.hosts import opens_at
from recrawl.scheduling.table.records import LIMITED, NO_COPY, Record
from recrawl.scheduling.worth import FOR_EVER, MOST, ceiling, stands_still, wait_for, worth

_STEP = 0.125  # of the way, in logarithms, that the price follows a sale
_FAR = 1.5  # price ratio at which the heap is built anew, if enough was sold since
_VERY_FAR = 8.0  # and in any case
_HALVINGS = 40
_WIDTH = 14.0  # how far, in logarithms, the price is looked for
_LEAST = 1e-300  # logarithms are taken of nothing smaller


@borrowing
def wait_behind_all(most: float) -> float:
    """The wait of a page that will never be worth its host's price, but `most`: after all others, the best first."""
    return FOR_EVER * (1.0 + math.log(MOST) - math.log(max(most, _LEAST)))


@borrowing
def most_behind(page: Record) -> float:
    """The most that a page is worth which waits behind all, and a little more for the rounding of its wait."""
    return math.exp(min(1.001 + math.log(MOST) - page["wait"] / FOR_EVER, math.log(MOST)))


@borrowing
def goes_behind(market: Market, slot: int) -> bool:
    """Whether a page waits by its value: time does not bring it to its host's price, or it has no copy."""
    page = market.pages[slot]
    if not page["wait"] < FOR_EVER:
        return True
    if page["flags"] & LIMITED != 0 and market.limits[slot]["max_interval"] < math.inf:
        return False
    return page["flags"] & NO_COPY != 0 or stands_still(market.pages, market.signals, slot)


@borrowing
def most_at_host(market: Market, slot: int) -> float:
    """What a page waits by behind all: the most it will be worth; what it is worth now if that rises without a copy."""
    desk = market.desk[0]
    rises = not stands_still(market.pages, market.signals, slot)
    if market.pages[slot]["flags"] & NO_COPY != 0 and rises:
        return min(worth(market.pages, market.limits, market.signals, slot, desk["now"], desk["entry"]), MOST)
    return ceiling(market.pages, market.limits, market.signals, slot, desk["now"], desk["entry"])


@borrowing
def next_offer(market: Market, host: Record) -> float:
    """When the host has a page to offer: at once if it has a price of its own, for then some page is worth a crawl.

    Else when its first page is due, or worth the common price; infinity if there is none.
    """
    desk = market.desk[0]
    if host["waiting"] == 0:
        return math.inf
    due = due_time(market.pages[host["root"]]) if host["root"] >= 0 else math.inf
    if host["price"] > desk["entry"]:
        return min(due, desk["now"])
    slot = host["behind"]
    if due <= desk["now"] or slot < 0:
        return due
    wait = wait_for(market.pages, market.limits, market.signals, slot, desk["now"], desk["entry"])
    return min(due, market.pages[slot]["last"] + wait)


@borrowing
def note_sale(market: Market, number: int, value: float) -> None:
    """Let the price of a host follow one of its sales. O(1), and O(pages of the host) once in a while."""
    host = market.hosts[number]
    desk = market.desk[0]
    now, entry = desk["now"], desk["entry"]
    host["sold"] += 1
    gap = now - host["last_start"]
    if host["last_start"] > -math.inf and host["price"] > 0.0:
        host["pace"] = gap if host["pace"] == 0.0 else host["pace"] + _STEP * (gap - host["pace"])
    host["last_start"] = now
    if not 0.0 < value < MOST:
        return
    opens = opens_at(host, desk["burst"])
    if not opens < math.inf:  # until a crawl ends
        opens = now + host["pace"]
    wanted = next_offer(market, host) <= max(opens, now)
    present = max(host["price"], entry)
    sought = max(value, entry) if wanted else entry
    host["price"] = between(present, sought, _STEP)
    if host["price"] <= 1.001 * entry:
        host["price"] = 0.0
        host["pace"] = 0.0
    price, built = max(host["price"], entry), max(host["built_price"], entry)
    ratio = max(price / built, built / price)
    if ratio > _FAR and (host["sold"] * 8 >= host["waiting"] or ratio > _VERY_FAR or host["built_price"] == 0.0):
        _build_anew(market, host)


@borrowing
def _build_anew(market: Market, host: Record) -> None:
    """Find the price at which the host's pages ask for what it can serve, and renew their due times."""
    pages = market.pages
    now, entry = market.desk[0]["now"], market.desk[0]["entry"]
    chain = gather(pages, host["root"], host["behind"])
    pace = max(host["min_gap"], 1.0 / host["rate_cap"])
    if pace == 0.0 or host["max_in_flight"] > 0:
        pace = max(pace, host["pace"])
    if pace > 0.0 and host["price"] > 0.0:
        host["price"] = max(_clearing_price(market, chain, host["waiting"], 1.0 / pace, host["price"]), entry)
    host["built_price"] = host["price"]
    host["sold"] = 0
    host["root"] = host["behind"] = -1
    host["waiting"] = 0
    slot = chain
    while slot >= 0:
        following = pages[slot]["next"]
        pages[slot]["wait"] = wait_for(pages, market.limits, market.signals, slot, now, max(host["price"], entry))
        if goes_behind(market, slot):
            pages[slot]["wait"] = wait_behind_all(most_at_host(market, slot))
        put(pages, host, slot)
        slot = following


@borrowing
def _clearing_price(market: Market, chain: int, count: int, capacity: float, start: float) -> float:
    """The price at which the pages of a chain, or a sample of them, ask for so many crawls per unit time."""
    stride = (count + SAMPLE - 1) // SAMPLE
    now, sample = market.desk[0]["now"], market.desk[0]["sample"]
    size = 0
    slot = chain
    place = 0
    while slot >= 0:
        if place % stride == 0:
            sample[size] = slot
            size += 1
        place += 1
        slot = market.pages[slot]["next"]
    low, high = math.log(start) - _WIDTH, math.log(start) + _WIDTH
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        demand = 0.0
        for i in range(size):
            wait = wait_for(market.pages, market.limits, market.signals, sample[i], now, math.exp(middle))
            if wait > 0.0:  # what waits for its first crawl asks once
                demand += 1.0 / wait
        if demand * count > capacity * size:
            low = middle
        else:
            high = middle
    return math.exp(high)
