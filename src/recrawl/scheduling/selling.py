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
from recrawl.scheduling.host_choice import OVERDUE, offer_of_host, sale_key, worth_now
from recrawl.scheduling.host_heap import due_time
from recrawl.scheduling.host_market import next_offer, note_sale
from recrawl.scheduling.market_state import Arrays, Market, begin
from recrawl.scheduling.offering import ALL, ENOUGH, come_down, come_due, look_ahead, wake
from recrawl.scheduling.placing import announce, hold, leave_offer, place_page, put_at_host, ready_list, set_wait
from recrawl.scheduling.pricing import fade, follow, follow_hidden, lower_entry, raise_entry, sweep
from recrawl.scheduling.table.hosts import closes_after, has_paced_host, opens_at, start_crawl
from recrawl.scheduling.table.records import IDLE, IN_FLIGHT, LIMITED, Record, Slots
from recrawl.scheduling.value_heap import Offers, heapify, pop_highest, push_value
from recrawl.scheduling.worth import MOST, is_held

RESERVE = 16  # pages on offer beside those that are sold, so that there is a choice
SLACK = 1e-6  # of a token: rounding of times must not cost a crawl
_FAR = 2.0  # times what a page on offer is worth: then another takes its place
_FEW_HIDDEN = 8  # of so many hosts with a page on offer: if more than one has more that is due, there is too much
_NEARLY = 0.8  # of its own price: what a host's page must be worth, if others of the host wait


@kernel
def sell(arrays: Arrays, now: float, most: int, tokens: float, burst: float, slots: Slots, values: Floats) -> int:
    """Sell at most so many crawls for at most so many tokens; how many were sold.

    Writes pages and values, best first, but first of all pages whose longest interval has passed. Amortised O(1) per
    crawl and page that comes due.
    """
    market = Market(*arrays)
    begin(market, now, burst)
    come_due(market)
    want = _affordable(market, most, tokens)
    if want == 0:
        return 0
    reserve = RESERVE + want // RESERVE
    wake(market, 2 * want + 4 * RESERVE)
    supply = look_ahead(market, want + reserve)
    if market.desk[0]["ready"] == 0 and come_down(market):  # all that is left waits for the price to fall
        wake(market, 2 * want + 4 * RESERVE)
        supply = look_ahead(market, want + reserve)
    room = market.desk[0]["ready"] + want + 1
    offers = Offers(np.empty(room), np.empty(room, dtype=np.int32))
    count = _value_offers(market, offers)
    heapify(offers, count)
    sold, marginal, in_order = 0, 0.0, True
    full = tokens + SLACK >= burst
    while sold < most and count > 0 and offers.values[0] > 0.0:
        slot = int(offers.slots[0])
        page = market.pages[slot]
        cost = np.float64(market.limits[slot]["cost"]) if page["flags"] & LIMITED != 0 else 1.0
        if cost > tokens + SLACK and not tokens + SLACK >= burst:
            break
        tokens -= cost
        marginal = offers.values[0]
        values[sold], slots[sold] = marginal, slot
        in_order = in_order and (sold == 0 or marginal <= values[sold - 1])
        sold += 1
        count = pop_highest(offers, count)
        leave_offer(market, slot)
        page["state"] = IN_FLIGHT
        if page["host"] >= 0:
            following = _sell_at_host(market, slot, marginal if marginal < OVERDUE else worth_now(market, slot))
            if following >= 0:
                count = push_value(offers, count, sale_key(market, following), following)
    if sold > 0 and (not in_order or values[0] >= OVERDUE):
        _put_in_order(market, slots[:sold], values[:sold])
    nothing_left = count == 0 or not offers.values[0] > 0.0
    if not nothing_left and offers.values[0] < MOST:
        marginal = offers.values[0]
    if nothing_left and full and sold < want:
        fade(market, want)
    else:
        follow(market, marginal, sold)
    _move_entry(market, offers, count, supply, (marginal, sold, reserve))
    sweep(market, sold, reserve)
    return sold


@kernel
def _put_in_order(market: Market, slots: Slots, values: Floats) -> None:
    """Put what was sold in order, for the next page of a host may be worth more than what was sold before it."""
    order = np.argsort(-values, kind="mergesort")
    unsorted_slots, unsorted_values = slots.copy(), values.copy()
    for i in range(len(slots)):
        slots[i], values[i] = unsorted_slots[order[i]], unsorted_values[order[i]]
        if values[i] >= OVERDUE:
            values[i] = worth_now(market, slots[i])


@borrowing
def _move_entry(market: Market, offers: Offers, count: int, supply: int, sales: tuple[float, int, int]) -> None:
    """Let the entry price follow what is left on offer; sales: what one more would have been worth, sold, reserve."""
    marginal, sold, reserve = sales
    if supply == ENOUGH and count > 4 * reserve:
        raise_entry(market, offers, count, 2 * reserve, sold)
        return
    hidden = _hidden(market, offers, count)
    if supply == ENOUGH and _FEW_HIDDEN * hidden > count:
        raise_entry(market, offers, count, (count + 1) // 2, sold)
    elif supply == ALL and hidden > 0:
        follow_hidden(market, offers, marginal, sold)
    elif supply != ENOUGH:
        lower_entry(market, marginal, sold)


@borrowing
def _hidden(market: Market, offers: Offers, count: int) -> int:
    """How many hosts have more that is due than the one page that they offer. O(pages on offer)."""
    now = market.desk[0]["now"]
    hosts = 0
    for i in range(count):
        page = market.pages[offers.slots[i]]
        if has_paced_host(page, market.hosts):
            first = market.hosts[page["host"]]["root"]
            if first >= 0 and due_time(market.pages[first]) <= now:
                hosts += 1
    return hosts


@borrowing
def _affordable(market: Market, most: int, tokens: float) -> int:
    """How many crawls the tokens may pay for, at most; one if the bucket is full, whatever it costs."""
    desk = market.desk[0]
    if most <= 0 or tokens + SLACK < min(desk["least_cost"], desk["burst"]):
        return 0
    return max(min(most, int(min(tokens / desk["least_cost"] + SLACK, 1e9))), 1)


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
        if slot >= 0 and is_held(market.pages[slot], desk["now"]):
            _hold_offered(market, slot)
        elif slot >= 0:
            offers.slots[count] = slot
            offers.values[count] = sale_key(market, slot)
            count += 1
        slot = following
    return count


@borrowing
def _best_of_host(market: Market, slot: int) -> int:
    """The page that its host offers now, or -1: the one on offer if that is worth the host's price, else the best."""
    desk = market.desk[0]
    number = market.pages[slot]["host"]
    host = market.hosts[number]
    price = max(desk["entry"], _NEARLY * host["price"]) if closes_after(host) else desk["entry"]
    key = sale_key(market, slot)
    if host["waiting"] == 0 or (key >= price and not _is_far_behind(market, host, key)):
        return slot
    leave_offer(market, slot)
    host["offered"] = -1
    market.pages[slot]["state"] = IDLE
    set_wait(market, slot)
    put_at_host(market, slot)
    return offer_of_host(market, number)


@borrowing
def _is_far_behind(market: Market, host: Record, key: float) -> bool:
    """Whether the first of a host's waiting pages is due and worth far more than the one on offer.

    Others are sold before a page on offer that is worth little more than the entry price, and a new page only loses
    worth: without this it could keep all pages of its host from being sold.
    """
    first = host["root"]
    if first < 0 or due_time(market.pages[first]) > market.desk[0]["now"]:
        return False
    return bool(sale_key(market, first) > _FAR * key)


@borrowing
def _hold_offered(market: Market, slot: int) -> None:
    """Take a page off the offers that may not be taken yet."""
    number = market.pages[slot]["host"]
    leave_offer(market, slot)
    hold(market, slot)
    if number >= 0 and market.hosts[number]["offered"] == slot:
        market.hosts[number]["offered"] = -1
        announce(market, number)


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
