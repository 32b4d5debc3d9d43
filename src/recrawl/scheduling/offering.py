"""What comes on offer: pages that are due, standing pages that the price has fallen to, and the next ones if need be.

Kernels' steps; the time is the desk's.
"""

from __future__ import annotations

import math

from recrawl.jit import borrowing
from recrawl.scheduling.agenda import CLOSED, OPEN, first_of
from recrawl.scheduling.host_choice import offer_of_host
from recrawl.scheduling.host_heap import put
from recrawl.scheduling.host_market import most_at_host, wait_behind_all
from recrawl.scheduling.market_state import Market
from recrawl.scheduling.placing import (
    announce,
    first_standing,
    hold,
    let_go,
    offer,
    place_page,
    set_free,
    standing_value,
    withdraw_page,
)
from recrawl.scheduling.table.hosts import has_paced_host, opens_at
from recrawl.scheduling.table.records import HELD
from recrawl.scheduling.wheel import bin_of, next_due_list, next_list, read_ahead, unschedule_page
from recrawl.scheduling.worth import is_held, worth

ENOUGH, EARLY, ALL = 0, 1, 2
"""What is on offer: enough that is due, some of it before it is due, or all that may be taken."""
_NEAR = 0.9  # of the entry price: standing pages worth this much are as good as those that are due next


@borrowing
def come_due(market: Market) -> None:
    """Put on offer what is due: pages in the wheel and at hosts that are open. Amortised O(1) per page."""
    now = market.desk[0]["now"]
    now_bin = bin_of(market, now)
    let_go(market)
    read_ahead(market, now_bin)
    while True:
        which = next_due_list(market, now_bin)
        if which < 0:
            break
        slot = market.heads[which]
        while slot >= 0:
            arrive(market, slot)
            slot = market.heads[which]
    while True:
        number = first_of(market, CLOSED)
        if number < 0 or market.hosts[number]["offer_at"] > now:
            break
        if not set_free(market, number):
            announce(market, number)
    while True:
        number = first_of(market, OPEN)
        if number < 0 or market.hosts[number]["offer_at"] > now:
            break
        if not set_free(market, number):
            offer_of_host(market, number)


@borrowing
def arrive(market: Market, slot: int) -> None:
    """Move a page from the wheel to where its crawl is sold, or keep it apart if it may not be taken yet."""
    unschedule_page(market, slot)
    page = market.pages[slot]
    if is_held(page, market.desk[0]["now"]):
        hold(market, slot)
    elif has_paced_host(page, market.hosts):
        number = page["host"]
        put(market.pages, market.hosts[number], slot)
        announce(market, number)
    else:
        offer(market, slot)


@borrowing
def wake(market: Market, quota: int) -> None:
    """Let standing pages compete again that the price has fallen to, the most valuable first, so many at a time."""
    desk = market.desk[0]
    start = first_standing(market)
    while quota > 0 and desk["top"] >= 0 and standing_value(desk["top"] >> 1) >= desk["entry"]:
        slot = market.heads[start + desk["top"]]
        if slot < 0:
            desk["top"] -= 1
            continue
        withdraw_page(market, slot)
        place_page(market, slot)
        quota -= 1


@borrowing
def come_down(market: Market) -> bool:
    """Lower the entry price to the most valuable standing pages; whether there are any below it."""
    desk = market.desk[0]
    _find_top(market)
    if desk["top"] < 0 or standing_value(desk["top"] >> 1) >= desk["entry"]:
        return False
    desk["entry"] = standing_value(desk["top"] >> 1)
    return True


@borrowing
def look_ahead(market: Market, enough: int) -> int:
    """Put on offer what is due next until there is enough; how much there is then. Amortised O(1) per page."""
    desk = market.desk[0]
    if desk["ready"] >= enough:
        return ENOUGH
    tries = 4 * enough + 64
    while desk["ready"] < enough and tries > 0:
        tries -= 1
        which = next_list(market)
        number = first_of(market, OPEN)
        nothing_else = which < 0 and number < 0
        standing = _standing_on_offer(market, nothing_else)
        if standing >= 0:
            if not _offer_standing(market, standing):
                tries -= 16
        elif nothing_else:
            return ALL
        elif which < 0 or (number >= 0 and market.hosts[number]["offer_at"] < _start_of(market, which)):
            offer_of_host(market, number)
        else:
            slot = market.heads[which]
            arrive(market, slot)
            if market.pages[slot]["state"] == HELD:  # each comes this way once between two crawls
                tries += 1
    return EARLY


@borrowing
def _find_top(market: Market) -> None:
    """Lower the mark of the highest standing list to one that has a page. Amortised O(1)."""
    desk = market.desk[0]
    start = first_standing(market)
    while desk["top"] >= 0 and market.heads[start + desk["top"]] < 0:
        desk["top"] -= 1


@borrowing
def _standing_on_offer(market: Market, nothing_else: bool) -> int:
    """The standing page to offer next, or NOTHING: one that stands still close to the price, any if need be."""
    desk = market.desk[0]
    start = first_standing(market)
    _find_top(market)
    while desk["still_top"] >= 0 and market.heads[start + desk["still_top"]] < 0:
        desk["still_top"] -= 2
    if desk["still_top"] >= 0 and standing_value(desk["still_top"] >> 1) >= _NEAR * desk["entry"]:
        return market.heads[start + desk["still_top"]]
    if nothing_else and desk["top"] >= 0:
        return market.heads[start + desk["top"]]
    return -1


@borrowing
def _offer_standing(market: Market, slot: int) -> bool:
    """Put a standing page on offer if it is worth anything now; whether it was."""
    desk = market.desk[0]
    withdraw_page(market, slot)
    if not worth(market.pages, market.limits, market.signals, slot, desk["now"], desk["entry"]) > 0.0:
        place_page(market, slot)
        return False
    page = market.pages[slot]
    if is_held(page, desk["now"]):
        hold(market, slot)
    elif not has_paced_host(page, market.hosts):
        offer(market, slot)
    else:
        host = market.hosts[page["host"]]
        if host["offered"] < 0 and opens_at(host, desk["burst"]) <= desk["now"]:
            host["offered"] = slot
            offer(market, slot)
        else:  # the host is closed, or has something better
            page["wait"] = wait_behind_all(most_at_host(market, slot))
            put(market.pages, host, slot)
        announce(market, page["host"])
    return True


@borrowing
def _start_of(market: Market, which: int) -> float:
    """The time at which a list of the wheel begins; late for the coarse ones."""
    desk = market.desk[0]
    bins = desk["bins"]
    if which >= bins:
        return math.inf
    ahead = (which - desk["base"]) & (bins - 1)
    start: float = desk["origin"] + (desk["base"] + ahead) * desk["width"]
    return start
