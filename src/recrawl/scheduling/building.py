"""Building the market: the first price from what the pages demand, and all lists anew. Kernels."""

from __future__ import annotations

import math

import numpy as np

from recrawl.jit import kernel
from recrawl.pages import Floats
from recrawl.scheduling.market_state import Market, begin
from recrawl.scheduling.placing import place_page
from recrawl.scheduling.table.records import AT_HOST, HELD, IDLE, LIMITED, QUEUED, READY, STANDING, Slots
from recrawl.scheduling.worth import usual_wait


@kernel
def build(market: Market, now: float, burst: float) -> None:
    """Place all pages that wait into empty lists. O(pages)."""
    begin(market, now, burst)
    desk = market.desk[0]
    desk["ready"] = 0
    desk["top"] = desk["still_top"] = desk["pen"] = -1
    desk["base"] = np.int64(np.floor((now - desk["origin"]) / desk["width"]))
    desk["swept"] = desk["entry"]
    desk["sweep_left"] = 0
    desk["agenda"][0] = desk["agenda"][1] = 0
    for number in range(len(market.hosts)):
        host = market.hosts[number]
        host["root"] = host["behind"] = host["offered"] = host["book"] = -1
        host["waiting"] = 0
    for slot in range(desk["used"]):
        page = market.pages[slot]
        if page["state"] in (QUEUED, STANDING, READY, AT_HOST, HELD):
            page["state"] = IDLE
            page["child"] = -1  # a link of a heap that is no more; in flight it would say that signals were heard
            place_page(market, slot)


@kernel
def spending(market: Market, sample: Slots, scale: float, now: float, price: float, by_host: Floats) -> float:
    """What pages would spend per unit time at this price, if each is crawled when it is worth that. O(sample).

    A host spends no more than its gap and cap allow; what is waiting for its first crawl is not counted.

    Args:
        market: the pages and hosts.
        sample: pages to ask, each standing for `scale` of them.
        scale: how many pages one of the sample stands for.
        now: the time.
        price: by unit of cost.
        by_host: room for a number per host.
    """
    for number in range(len(by_host)):  # an assignment to all of them at once takes a second to compile
        by_host[number] = 0.0
    total = 0.0
    for i in range(len(sample)):
        slot = sample[i]
        page = market.pages[slot]
        wait = usual_wait(market.pages, market.limits, market.signals, slot, now, price)
        if not 0.0 < wait < math.inf:
            continue
        cost = np.float64(market.limits[slot]["cost"]) if page["flags"] & LIMITED != 0 else 1.0
        if page["host"] >= 0:
            by_host[page["host"]] += scale * cost / wait
        else:
            total += scale * cost / wait
    for number in range(len(by_host)):
        host = market.hosts[number]
        most = host["rate_cap"]
        if host["min_gap"] > 0.0:
            most = min(most, 1.0 / host["min_gap"])
        total += min(by_host[number], most)
    return total
