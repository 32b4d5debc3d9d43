"""How the prices follow the market, and the sweep that keeps due times in step with them. Kernels' steps.

The price is what the best crawl that was not sold would have been worth: what one more is worth. It goes to 0 while
budget is lost because nothing is left that may be crawled. The entry price, at which pages come on offer, falls when
pages had to be sold before they were due, and rises when too many are on offer, or hosts that offer one page at a time
have more that is due.
"""

from __future__ import annotations

import math

import numpy as np

from recrawl.jit import borrowing
from recrawl.scheduling.market_state import Market, between
from recrawl.scheduling.placing import leave_offer, place_page, stand, withdraw_page
from recrawl.scheduling.table.hosts import has_paced_host
from recrawl.scheduling.table.records import AT_HOST, IDLE, LIMITED, NO_COPY, QUEUED, STANDING
from recrawl.scheduling.value_heap import Offers, pop_highest
from recrawl.scheduling.wheel import schedule_page
from recrawl.scheduling.worth import MOST, stands_still, worth

# The entry price moves this share of the way, in logarithms, for a cycle of crawls, and at most so much at once. Much
# faster, and pages crawled often would swing with it: what they are told now comes back when they are due.
_PACE = 10.0
_AT_ONCE = 0.3
# More pages on offer than these, and for each crawl sold, are too many to value at each call. From the first number on
# they take turns; beyond the last they are put off until they are worth more, and between the two only those whose
# value does not rise.
_FEW, _CROWD, _RUSH = 32, 256, 512
_CROWD_PER_SALE = 8
_REST = 0.75  # crawls that a page rests for, for each one that is worth more: till then those are sold first
_RISE = 1.15  # of the value of a page taken off the offers, at which it comes back
_MEMORY = 0.05  # of a cycle of crawls: what the price is averaged over
_NOTHING = 0.01  # of the entry price: a price that fell below this is 0
_SWEPT_PER_SALE = 2
_CYCLES = 2  # of crawls, after which pages that were parked are looked at again in any case
_SWEEP_AT = 0.02  # relative change of the entry price, for few pages
_SWEEP_AT_MANY = 20.0  # the same times the root of the number of pages: the price of many moves less by chance


@borrowing
def follow(market: Market, marginal: float, sold: int) -> None:
    """Let the price follow a batch of sales after which one more would have been worth `marginal`."""
    desk = market.desk[0]
    if sold > 0 and 0.0 < marginal < MOST:
        desk["price"] = marginal if desk["price"] == 0.0 else between(desk["price"], marginal, _weight(market, sold))


@borrowing
def fade(market: Market, wanted: int) -> None:
    """Let the price fall towards 0: the bucket is full, and there are fewer crawls to sell than it can pay for."""
    desk = market.desk[0]
    desk["price"] *= 1.0 - _weight(market, wanted)
    if desk["price"] < _NOTHING * desk["entry"]:
        desk["price"] = 0.0


@borrowing
def _weight(market: Market, crawls: int) -> float:
    """What so many crawls count for in the average that the price is."""
    return crawls / (crawls + 8.0 + _MEMORY * market.desk[0]["live"])


@borrowing
def lower_entry(market: Market, marginal: float, sold: int) -> None:
    """Let the entry price fall towards what one more crawl would have been worth, if that is less."""
    if 0.0 < marginal < market.desk[0]["entry"]:
        _approach(market, marginal, sold)


@borrowing
def raise_entry(market: Market, offers: Offers, count: int, keep: int, sold: int) -> None:
    """Let the entry price follow what would leave so many pages on offer. O(keep · log count).

    The others stay on offer, unless they are so many that valuing them at each call would take long.
    """
    desk = market.desk[0]
    bar, last = 0.0, 0
    for _ in range(keep):
        bar, last = offers.values[0], int(offers.slots[0])
        count = pop_highest(offers, count)
    if not 0.0 < bar < MOST:
        return
    if count > _FEW + _CROWD_PER_SALE * sold:
        _thin_out(market, offers, count, keep, sold, bar)
    # First copies are worth much and are bought once: pages crawled meanwhile must not be put off by that price.
    if bar > desk["entry"] and market.pages[last]["flags"] & NO_COPY == 0:
        _approach(market, bar, sold)


@borrowing
def follow_hidden(market: Market, offers: Offers, marginal: float, sold: int) -> None:
    """Let the entry price rise to what one more crawl would have been worth, where hosts hide more that is due."""
    if market.desk[0]["entry"] < marginal < MOST and market.pages[offers.slots[0]]["flags"] & NO_COPY == 0:
        _approach(market, marginal, sold)


@borrowing
def _thin_out(market: Market, offers: Offers, count: int, rank: int, sold: int, bar: float) -> None:
    """Take pages off the offers that will not be sold at the next two calls like this one. O(count · log count).

    Args:
        market: the market.
        offers: pages on offer, without the best.
        count: how many they are.
        rank: how many the best are.
        sold: crawls that were sold at this call.
        bar: what the last of the best is worth.
    """
    crowded = count > _CROWD + _CROWD_PER_SALE * sold
    lowest = bar
    while count > 0 and rank < _RUSH + _CROWD_PER_SALE * sold:
        slot, lowest = int(offers.slots[0]), offers.values[0]
        count = pop_highest(offers, count)
        rank += 1
        if crowded and _hardly_rises(market, slot):
            _park(market, slot, lowest, bar)
        else:
            _rest(market, slot, _REST * rank, 2 * sold, bar)
    for i in range(count):
        _park(market, int(offers.slots[i]), offers.values[i], lowest)


@borrowing
def _hardly_rises(market: Market, slot: int) -> bool:
    """Whether the value of a page on offer stays about what it is."""
    return market.pages[slot]["flags"] & NO_COPY != 0 or stands_still(market.pages, market.signals, slot)


@borrowing
def _park(market: Market, slot: int, value: float, bar: float) -> None:
    """Take a page that is worth less than the bar off the offers, unless it is what its host offers.

    If its value stands still it comes back when those above it are sold, else when it has risen a little.
    """
    desk = market.desk[0]
    number = market.pages[slot]["host"]
    if value >= bar or (number >= 0 and market.hosts[number]["offered"] == slot):
        return
    leave_offer(market, slot)
    if value >= desk["entry"] and _hardly_rises(market, slot):
        stand(market, slot, value)
        desk["parked"] = 1
    else:
        usual = desk["entry"]
        desk["entry"] = max(min(bar, _RISE * value), usual)
        market.pages[slot]["state"] = IDLE
        place_page(market, slot)
        desk["entry"] = usual


@borrowing
def _rest(market: Market, slot: int, crawls: float, least: int, bar: float) -> None:
    """Take a page off the offers until about so many crawls are sold, unless its host offers it; O(1).

    It comes back sooner if it will be worth the bar by then, and stays if that is before the least number is sold.
    """
    desk = market.desk[0]
    page = market.pages[slot]
    if has_paced_host(page, market.hosts):
        return
    time_per_crawl = 0.5 * desk["width"] * desk["bins"] / max(desk["live"], 1)
    while crawls > least and _worth_after(market, slot, crawls * time_per_crawl) > bar:
        crawls *= 0.5
    if crawls <= least:
        return
    leave_offer(market, slot)
    wait = max(desk["now"] - page["last"], 0.0) + crawls * time_per_crawl
    if page["flags"] & LIMITED != 0:
        wait = min(wait, np.float64(market.limits[slot]["max_interval"]))
    page["wait"] = wait
    schedule_page(market, slot, page["last"] + np.float64(page["wait"]))


@borrowing
def _worth_after(market: Market, slot: int, time: float) -> float:
    """What a crawl of the page will be worth when so much time has passed and no signal came."""
    desk = market.desk[0]
    return worth(market.pages, market.limits, market.signals, slot, desk["now"] + time, desk["entry"])


@borrowing
def _approach(market: Market, price: float, sold: int) -> None:
    """Move the entry price towards another."""
    desk = market.desk[0]
    share = min(_PACE * sold / max(desk["live"], 1), _AT_ONCE)
    desk["entry"] = between(desk["entry"], price, share)


@borrowing
def sweep(market: Market, sold: int, reserve: int) -> None:
    """Go on renewing due times that were computed at another entry price, a few pages for each crawl sold."""
    desk = market.desk[0]
    if desk["sweep_left"] == 0:
        pages = max(desk["live"], 1)
        by_chance = min(_SWEEP_AT, max(_SWEEP_AT_MANY / math.sqrt(pages), 8.0 * reserve / pages))
        moved = abs(math.log(desk["entry"] / desk["swept"])) >= by_chance
        desk["unswept"] += sold
        if not moved and not (desk["parked"] != 0 and desk["unswept"] > _CYCLES * pages):
            return
        desk["parked"] = desk["unswept"] = 0
        desk["swept"] = desk["entry"]
        desk["sweep_left"] = desk["used"]
    steps = min(desk["sweep_left"], _SWEPT_PER_SALE * sold)
    desk["sweep_left"] -= steps
    for _ in range(steps):
        if desk["sweep_at"] >= desk["used"]:
            desk["sweep_at"] = 0
        slot = desk["sweep_at"]
        desk["sweep_at"] += 1
        if market.pages[slot]["state"] in (QUEUED, STANDING, AT_HOST):
            withdraw_page(market, slot)
            place_page(market, slot)
