"""Selling crawls: what is on offer is valued, the best is sold, and the price follows.

Pages come on offer when they are due at the entry price. If there are too few, the next ones by due time come too;
if there are too many, the entry price rises and the others wait on. So what is sold is what an exact search over all
pages would choose, but for pages whose due times were computed at a price that has moved since; a sweep through the
pages renews these. Work per crawl does not depend on the number of pages.
"""

from __future__ import annotations

import numpy as np

from recrawl.jit import borrowing, kernel
from recrawl.pages import Floats
from recrawl.scheduling.host_heap import take_out
from recrawl.scheduling.host_limits import closes_after, has_paced_host, opens_at, start_crawl
from recrawl.scheduling.host_market import next_offer, note_sale
from recrawl.scheduling.market_state import Market, begin
from recrawl.scheduling.offering import come_down, come_due, look_ahead, wake
from recrawl.scheduling.page_record import IDLE, IN_FLIGHT, LIMITED, Slots
from recrawl.scheduling.placing import announce, leave_offer, offer, offer_of_host, place_page, ready_list
from recrawl.scheduling.pricing import fade, follow, lower_entry, raise_entry, sweep
from recrawl.scheduling.value_heap import Offers, heapify, pop_highest, push_value
from recrawl.scheduling.worth import MOST, is_overdue, worth

RESERVE = 16  # pages on offer beside those that are sold, so that there is a choice
SLACK = 1e-6  # of a token: rounding of times must not cost a crawl
_NEARLY = 0.8  # of its own price: what a host's page must be worth, if others of the host wait
_TRIES = 16  # pages of a host that are compared if its first is not worth the host's price
_OVERDUE = 2.0 * MOST  # beyond all values


@kernel
def sell(market: Market, now: float, most: int, tokens: float, burst: float, slots: Slots, values: Floats) -> int:
    """Sell at most so many crawls for at most so many tokens; how many were sold.

    Writes pages and values, best first. Amortised O(1) per crawl and page that comes due.
    """
    begin(market, now, burst)
    come_due(market)
    want = _affordable(market, most, tokens)
    if want == 0:
        return 0
    reserve = RESERVE + want // RESERVE
    wake(market, 2 * want + 4 * RESERVE)
    early = look_ahead(market, want + reserve)
    if market.desk[0]["ready"] == 0 and come_down(market):  # all that is left waits for the price to fall
        wake(market, 2 * want + 4 * RESERVE)
        early = look_ahead(market, want + reserve)
    room = market.desk[0]["ready"] + want + 1
    offers = Offers(np.empty(room), np.empty(room, dtype=np.int32))
    count = _value_offers(market, offers)
    heapify(offers, count)
    sold = 0
    marginal = 0.0
    full = tokens + SLACK >= burst
    while sold < most and count > 0 and offers.values[0] > 0.0:
        slot = int(offers.slots[0])
        page = market.pages[slot]
        cost = np.float64(market.limits[slot]["cost"]) if page["flags"] & LIMITED != 0 else 1.0
        if cost > tokens + SLACK and not tokens + SLACK >= burst:
            break
        tokens -= cost
        marginal = offers.values[0]
        values[sold] = marginal if marginal < _OVERDUE else _worth(market, slot)
        slots[sold] = slot
        sold += 1
        count = pop_highest(offers, count)
        leave_offer(market, slot)
        page["state"] = IN_FLIGHT
        if page["host"] >= 0:
            following = _sell_at_host(market, slot, values[sold - 1])
            if following >= 0:
                count = push_value(offers, count, _key(market, following), following)
    nothing_left = count == 0 or not offers.values[0] > 0.0
    if not nothing_left and offers.values[0] < MOST:
        marginal = offers.values[0]
    if nothing_left and full and sold < want:
        fade(market, want)
    else:
        follow(market, marginal, sold)
    if early:
        lower_entry(market, marginal, sold)
    if count > 4 * reserve and not early:
        raise_entry(market, offers, count, 2 * reserve, sold)
    sweep(market, sold, reserve)
    return sold


@borrowing
def _affordable(market: Market, most: int, tokens: float) -> int:
    """How many crawls the tokens may pay for, at most; one if the bucket is full, whatever it costs."""
    desk = market.desk[0]
    if most <= 0 or tokens + SLACK < min(desk["least_cost"], desk["burst"]):
        return 0
    return max(min(most, int(min(tokens / desk["least_cost"] + SLACK, 1e9))), 1)


@borrowing
def _worth(market: Market, slot: int) -> float:
    desk = market.desk[0]
    return min(worth(market.pages, market.limits, market.signals, slot, desk["now"], desk["entry"]), MOST)


@borrowing
def _key(market: Market, slot: int) -> float:
    """What a page on offer is sold by: its worth; beyond all if its longest interval has passed."""
    if is_overdue(market.pages, market.limits, slot, market.desk[0]["now"]):
        return _OVERDUE
    return _worth(market, slot)


@borrowing
def _value_offers(market: Market, offers: Offers) -> int:
    """Value what is on offer and may be sold now; what its host no longer allows goes back. O(pages on offer)."""
    desk = market.desk[0]
    count = 0
    slot = int(market.heads[ready_list(market)])
    while slot >= 0:
        page = market.pages[slot]
        following = int(page["next"])
        if has_paced_host(page, market.hosts):
            host = market.hosts[page["host"]]
            if host["offered"] != slot or opens_at(host, desk["burst"]) > desk["now"]:
                _return_to_host(market, slot)
                slot = following
                continue
            slot = _best_of_host(market, slot)
        if slot >= 0 and desk["now"] - market.pages[slot]["last"] >= np.float64(market.pages[slot]["not_before"]):
            offers.slots[count] = slot
            offers.values[count] = _key(market, slot)
            count += 1
        slot = following
    return count


@borrowing
def _best_of_host(market: Market, slot: int) -> int:
    """The page that its host offers now, or -1: its first one if that is worth the host's price, else the best of some.

    The first is due before the others, but may be worth less now; what is not offered waits on.
    """
    desk = market.desk[0]
    number = market.pages[slot]["host"]
    host = market.hosts[number]
    price = max(desk["entry"], _NEARLY * host["price"]) if closes_after(host) else desk["entry"]
    value = _key_if_allowed(market, slot)
    if value >= price or host["root"] < 0:
        return slot
    leave_offer(market, slot)
    host["offered"] = -1
    tried = desk["sample"]
    tried[0] = best = slot
    count = 1
    while count < _TRIES and host["root"] >= 0:
        tried[count] = host["root"]
        take_out(market.pages, host, tried[count])
        other = _key_if_allowed(market, tried[count])
        if other > value:
            value, best = other, tried[count]
        count += 1
    for i in range(count):
        if tried[i] != best:
            market.pages[tried[i]]["state"] = IDLE
            place_page(market, tried[i])
    host["offered"] = best
    offer(market, best)
    announce(market, number)
    return best


@borrowing
def _key_if_allowed(market: Market, slot: int) -> float:
    """What a page on offer is sold by; 0 if it may not be taken yet."""
    page = market.pages[slot]
    if market.desk[0]["now"] - page["last"] < np.float64(page["not_before"]):
        return 0.0
    return _key(market, slot)


@borrowing
def _return_to_host(market: Market, slot: int) -> None:
    page = market.pages[slot]
    host = market.hosts[page["host"]]
    leave_offer(market, slot)
    if host["offered"] == slot:
        host["offered"] = -1
    page["state"] = IDLE
    place_page(market, slot)
    announce(market, page["host"])


@borrowing
def _sell_at_host(market: Market, slot: int, value: float) -> int:
    """Count a crawl at its host; the host's next page if that may be sold at once, else NOTHING."""
    desk = market.desk[0]
    number = market.pages[slot]["host"]
    host = market.hosts[number]
    start_crawl(host, desk["now"])
    if host["paced"] == 0:
        return -1
    host["offered"] = -1
    note_sale(market, number, value)
    if opens_at(host, desk["burst"]) <= desk["now"] and next_offer(market, host) <= desk["now"]:
        return offer_of_host(market, number)
    announce(market, number)
    return -1
