"""Where a page waits: in the wheel, in a standing list, on offer, at its host, or until it may be taken. Kernels."""

from __future__ import annotations

import math

import numpy as np

from recrawl.jit import borrowing, kernel
from recrawl.scheduling.agenda import CLOSED, OPEN, enter
from recrawl.scheduling.host_heap import gather, put, put_in, take_from, take_out
from recrawl.scheduling.host_market import goes_behind, most_at_host, next_offer, wait_behind_all
from recrawl.scheduling.links import push, unlink
from recrawl.scheduling.market_state import OCTAVES, PER_OCTAVE, SPAN, Arrays, Market, begin
from recrawl.scheduling.market_state import STANDING as STANDING_LISTS
from recrawl.scheduling.table.hosts import has_limits, has_paced_host, opens_at
from recrawl.scheduling.table.records import AT_HOST, HELD, IDLE, LIMITED, QUEUED, READY, STANDING, Slots
from recrawl.scheduling.wheel import list_of, schedule_page, unschedule_page
from recrawl.scheduling.worth import FOR_EVER, ceiling, is_held, stands_still, wait_after_signal, wait_for


@borrowing
def place_page(market: Market, slot: int) -> None:
    """Let a page, whose state is IDLE, wait where it belongs at the present price. O(1), O(log hosts) at a host."""
    put_page(market, slot, set_wait(market, slot))


@borrowing
def set_wait(market: Market, slot: int) -> bool:
    """Work out when a page is due at the price of its market; whether that is its host's."""
    page = market.pages[slot]
    desk = market.desk[0]
    price = desk["entry"]
    paced = has_paced_host(page, market.hosts)
    if paced:
        price = max(price, market.hosts[page["host"]]["price"])
    page["wait"] = min(wait_for(market.pages, market.limits, market.signals, slot, desk["now"], price), math.inf)
    return paced


@borrowing
def put_page(market: Market, slot: int, paced: bool) -> None:
    """Let a page wait where it belongs by its wait."""
    page = market.pages[slot]
    if page["wait"] <= page["not_before"] and is_held(page, market.desk[0]["now"]):
        hold(market, slot)
    elif paced:
        put_at_host(market, slot)
    else:
        _put_in_common(market, slot)
    if paced:
        announce(market, page["host"])  # also if it is not there now: a crawl of it may have ended


@borrowing
def hold(market: Market, slot: int) -> None:
    """Keep a page apart until it may be taken, so that it does not stand in the way of others. O(1)."""
    page = market.pages[slot]
    desk = market.desk[0]
    page["state"] = HELD
    page["wait"] = page["not_before"]
    desk["pen"] = put_in(market.pages, desk["pen"], slot)


@borrowing
def let_go(market: Market) -> None:
    """Let pages compete that may be taken by now. O(log pages) for each, amortised."""
    desk = market.desk[0]
    while desk["pen"] >= 0 and not is_held(market.pages[desk["pen"]], desk["now"]):
        slot = desk["pen"]
        desk["pen"] = take_from(market.pages, desk["pen"], slot)
        market.pages[slot]["state"] = IDLE
        place_page(market, slot)


@borrowing
def _put_in_common(market: Market, slot: int) -> None:
    """Let a page wait where pages do whose hosts have no limits."""
    page = market.pages[slot]
    desk = market.desk[0]
    due = page["last"] + np.float64(page["wait"])
    if not page["wait"] < FOR_EVER:
        most = ceiling(market.pages, market.limits, market.signals, slot, desk["now"], desk["entry"])
        if most > 0.0:
            stand(market, slot, most)
        else:
            page["state"] = IDLE
    elif due <= desk["now"]:
        offer(market, slot)
    else:
        schedule_page(market, slot, due)


@borrowing
def put_at_host(market: Market, slot: int) -> None:
    """Let a page wait at its host, if it will ever be worth the common price."""
    page = market.pages[slot]
    now, entry = market.desk[0]["now"], market.desk[0]["entry"]
    if goes_behind(market, slot):
        most = most_at_host(market, slot)
        if not most > 0.0:
            page["state"] = IDLE
            return
        if not wait_for(market.pages, market.limits, market.signals, slot, now, entry) < FOR_EVER:
            stand(market, slot, most)
            return
        page["wait"] = wait_behind_all(most)
    put(market.pages, market.hosts[page["host"]], slot)


@borrowing
def offer(market: Market, slot: int) -> None:
    """Put a page on offer."""
    market.pages[slot]["state"] = READY
    push(market.pages, market.heads, ready_list(market), slot)
    market.desk[0]["ready"] += 1


@borrowing
def stand(market: Market, slot: int, value: float) -> None:
    """Let a page wait for the price to fall to this value."""
    desk = market.desk[0]
    market.pages[slot]["state"] = STANDING
    still = stands_still(market.pages, market.signals, slot)
    which = 2 * standing_step(value) + (1 if still else 0)
    push(market.pages, market.heads, first_standing(market) + which, slot)
    desk["top"] = max(desk["top"], which)
    if still:
        desk["still_top"] = max(desk["still_top"], which)


@borrowing
def announce(market: Market, number: int) -> None:
    """Enter a host into the agenda for its next page. O(log hosts).

    If the price must fall first, the host's best page waits for that among all that stand, and brings the host back.
    """
    host = market.hosts[number]
    desk = market.desk[0]
    if host["offered"] >= 0 or host["waiting"] == 0:
        enter(market, number, OPEN, math.inf)
        return
    opens = opens_at(host, desk["burst"])
    if opens > desk["now"]:
        enter(market, number, CLOSED, opens)
        return
    offers_at = next_offer(market, host)
    if offers_at >= FOR_EVER and host["root"] < 0:
        slot = host["behind"]
        most = most_at_host(market, slot)
        if most > 0.0:
            take_out(market.pages, host, slot)
            stand(market, slot, most)
        offers_at = math.inf
    enter(market, number, OPEN, offers_at)


@borrowing
def set_free(market: Market, number: int) -> bool:
    """Let the pages of a host wait among all others if nothing limits it any more; whether that is so. O(its pages).

    A host offers one page at a time; without limits that alone would hold back the others.
    """
    host = market.hosts[number]
    if has_limits(host) or host["blocked_until"] > market.desk[0]["now"]:
        return False
    slot = gather(market.pages, host["root"], host["behind"])
    host["paced"] = host["waiting"] = 0
    host["root"] = host["behind"] = host["offered"] = -1
    host["price"] = host["pace"] = host["built_price"] = 0.0
    enter(market, number, OPEN, math.inf)
    while slot >= 0:
        following = market.pages[slot]["next"]
        put_page(market, slot, set_wait(market, slot))
        slot = following
    return True


@borrowing
def withdraw_page(market: Market, slot: int) -> None:
    """Take a page out of wherever it waits; its state is IDLE then. O(1), O(log pages) at a host."""
    page = market.pages[slot]
    state = page["state"]
    if state == QUEUED:
        unschedule_page(market, slot)
    elif state == STANDING:
        unlink(market.pages, market.heads, slot)
        if has_paced_host(page, market.hosts):
            announce(market, page["host"])
    elif state == HELD:
        market.desk[0]["pen"] = take_from(market.pages, market.desk[0]["pen"], slot)
    elif state == READY:
        leave_offer(market, slot)
        if page["host"] >= 0 and market.hosts[page["host"]]["offered"] == slot:
            market.hosts[page["host"]]["offered"] = -1
            announce(market, page["host"])
    elif state == AT_HOST:
        take_out(market.pages, market.hosts[page["host"]], slot)
        announce(market, page["host"])
    page["state"] = IDLE


@borrowing
def leave_offer(market: Market, slot: int) -> None:
    """Take a page off the list of those on offer."""
    unlink(market.pages, market.heads, slot)
    market.desk[0]["ready"] -= 1


@borrowing
def ready_list(market: Market) -> int:
    """The list of pages on offer."""
    return len(market.heads) - 1


@borrowing
def first_standing(market: Market) -> int:
    """The standing list of the least value."""
    return market.desk[0]["bins"] + 2 * SPAN + 1


@borrowing
def standing_step(value: float) -> int:
    """Which pair of standing lists a value belongs to."""
    step = int(np.floor((math.log2(value) + OCTAVES / 2) * PER_OCTAVE))
    return min(max(step, 0), STANDING_LISTS // 2 - 1)


@borrowing
def standing_value(step: int) -> float:
    """The least value in a pair of standing lists."""
    return 2.0 ** (step / PER_OCTAVE - OCTAVES / 2)


@kernel
def place_all(arrays: Arrays, slots: Slots, now: float, burst: float) -> None:
    """Let pages wait where they belong. O(slots)."""
    market = Market(*arrays)
    begin(market, now, burst)
    # Where pages go is far apart in memory: reading all of it first takes much less time than one by one.
    touched = 0
    for i in range(len(slots)):
        page = market.pages[slots[i]]
        if not set_wait(market, slots[i]) and page["wait"] < FOR_EVER:
            first = market.heads[list_of(market, page["last"] + np.float64(page["wait"]))]
            if first >= 0:
                touched += market.pages[first]["prev"]
    market.desk[0]["touched"] = touched
    for i in range(len(slots)):
        put_page(market, slots[i], has_paced_host(market.pages[slots[i]], market.hosts))


@kernel
def announce_all(market: Market, numbers: Slots, now: float, burst: float) -> None:
    """Enter hosts into the agenda anew. O(hosts · log hosts)."""
    begin(market, now, burst)
    for i in range(len(numbers)):
        if market.hosts[numbers[i]]["paced"] != 0 and not set_free(market, numbers[i]):
            announce(market, numbers[i])


@kernel
def withdraw_all(market: Market, slots: Slots, now: float, burst: float) -> None:
    """Take pages out of wherever they wait. O(slots)."""
    begin(market, now, burst)
    for i in range(len(slots)):
        withdraw_page(market, slots[i])


@kernel
def move_signalled(arrays: Arrays, slots: Slots, now: float, burst: float) -> None:
    """Bring forward pages that heard a signal. O(slots)."""
    market = Market(*arrays)
    begin(market, now, burst)
    touched = 0
    for i in range(len(slots)):
        page = market.pages[slots[i]]
        if page["state"] == QUEUED:
            touched += market.pages[max(page["next"], 0)]["prev"] + market.pages[max(page["prev"], 0)]["next"]
    market.desk[0]["touched"] = touched
    for i in range(len(slots)):
        slot = slots[i]
        page = market.pages[slot]
        if page["state"] in (READY, HELD):
            continue
        assert market.signals is not None
        wait = wait_after_signal(page, market.signals[slot])
        if math.isnan(wait):
            withdraw_page(market, slot)
            place_page(market, slot)
            continue
        if page["flags"] & LIMITED != 0:
            wait = min(wait, np.float64(market.limits[slot]["max_interval"]))
        wait = max(wait, np.float64(page["not_before"]))
        if np.float32(wait) != page["wait"]:
            withdraw_page(market, slot)
            page["wait"] = wait
            put_page(market, slot, has_paced_host(page, market.hosts))
        if page["state"] == AT_HOST and market.hosts[page["host"]]["offered"] >= 0:  # which may be worth less now
            other = market.hosts[page["host"]]["offered"]
            withdraw_page(market, other)
            place_page(market, other)
