"""The auction: collect candidates, sell crawls of the best, and let the prices follow. Kernels.

They move pages between queues by numbers that others computed: the wait of a page until it is worth its price, and its
value (`value.py`). An auction takes three steps: `collect` finds candidates, the policy values them, `sell` sells.

Candidates are pages that are due and, beside them, a few that are due next, so that the best of them is the best page
of all. Pages of open hosts compete directly. A page moves to its host when its turn comes and the host is closed.

A host that cannot serve all that is worth the common price has a higher price of its own. Its pages wait at the host by
when they are worth that price, and the host chooses from several of them whenever it opens.
"""

from __future__ import annotations

import math

import numpy as np

from recrawl.jit import borrowing, kernel
from recrawl.pages import Floats
from recrawl.scheduling.market.queues import (
    HOST_CHOICE,
    Arrays,
    Market,
    add_candidate,
    bin_number,
    bin_of,
    drain,
    drop_candidate,
    due_time,
    enter_wheel,
    first_in_wheel,
    leave_wheel,
    next_host,
    put_in,
    schedule_host,
    take_from,
)
from recrawl.scheduling.table.hosts import closes_after, has_paced_host, opens_at, start_crawl
from recrawl.scheduling.table.records import (
    AT_HOST,
    BY_VALUE,
    FREE,
    HELD,
    IDLE,
    IN_FLIGHT,
    LIMITED,
    NO_COPY,
    QUEUED,
    READY,
    STANDING,
    Record,
    Slots,
)
from recrawl.scheduling.value import FOR_EVER, MOST
from recrawl.scheduling.value_heap import Offers, heapify, pop_highest

SLACK = 1e-6  # of a token: rounding of times must not cost a crawl
RESERVE = 16  # candidates beside those that are sold
CROWD = 4  # times the candidates needed: more are a crowd, of which only the best stay
STEP = 1.3  # the entry price moves at most by this factor in one auction
PACE = 5.0  # times per cycle that the entry price can go all the way to the value of the best unsold page
FARTHEST = 0.3  # of that way, in logarithms, in one auction
REST = 0.75  # of the time in which the pages before it would be sold, that a page of a crowd rests
MEMORY = 0.05  # of a cycle: what the price is averaged over
HOST_STEP = 0.08  # of the way, in logarithms, that the price of a host follows a sale
HOST_MOVED = 1.2  # ratio of prices of a host at which the due times of its pages are renewed
SWEEP_AT = 0.01  # relative change of the entry price at which all due times are renewed
_LEAST_KEY, _MOST_KEY = 1e-37, 1e37  # bounds of values in single precision


@borrowing
def begin(market: Market, now: float, burst: float) -> None:
    """Note the time; every kernel that enters the market does so first."""
    market.desk[0]["now"], market.desk[0]["burst"] = now, burst


@borrowing
def _is_held(page: Record, now: float) -> bool:
    return bool(now - page["last"] < np.float64(page["not_before"]))


@borrowing
def _is_closed(market: Market, number: int) -> bool:
    """Return whether pages of this host, if it is one, have to wait for it."""
    if number < 0 or market.hosts[number]["paced"] == 0:
        return False
    return bool(opens_at(market.hosts[number], market.desk[0]["burst"]) > market.desk[0]["now"])


@borrowing
def _key(market: Market, value: float) -> float:
    """Return a value in single precision."""
    return min(max(value / market.desk[0]["scale"], _LEAST_KEY), _MOST_KEY)


# Where a page waits. Callers tell the host of the page with `schedule_host`.


@borrowing
def _hold(market: Market, slot: int) -> None:
    """Keep a page apart until it may be taken."""
    page, desk = market.pages[slot], market.desk[0]
    page["state"], page["wait"] = HELD, page["not_before"]
    desk["held"] = put_in(market.pages, desk["held"], slot, True)


@borrowing
def _wait_at_host(market: Market, slot: int) -> None:
    """Let a page wait at its host until it is due."""
    page = market.pages[slot]
    host = market.hosts[page["host"]]
    page["state"] = AT_HOST
    host["by_due"] = put_in(market.pages, host["by_due"], slot, True)
    host["waiting"] += 1


@borrowing
def _wait_behind(market: Market, slot: int, most: float) -> None:
    """Let a page that is never worth the price of its host wait there after all others, the best first."""
    market.pages[slot]["wait"] = FOR_EVER * (1.0 + math.log(MOST) - math.log(most))
    _wait_at_host(market, slot)


@borrowing
def _park(market: Market, slot: int, value: float) -> None:
    """Let a page that is due wait at its host, which is closed: first copies by value, others by when they were due.

    First copies are due from the beginning; they differ by value alone. The value of a page that has a copy is about
    the price when it is due, and rises from then on: an old value says less than the due time.
    """
    page = market.pages[slot]
    if page["flags"] & NO_COPY == 0:
        _wait_at_host(market, slot)
        return
    host = market.hosts[page["host"]]
    page["state"], page["wait"] = BY_VALUE, _key(market, value)
    host["by_value"] = put_in(market.pages, host["by_value"], slot, False)
    host["waiting"] += 1


@borrowing
def _leave_host(market: Market, slot: int) -> None:
    page = market.pages[slot]
    host = market.hosts[page["host"]]
    if page["state"] == BY_VALUE:
        host["by_value"] = take_from(market.pages, host["by_value"], slot, False)
        page["wait"] = 0.0  # due
    else:
        host["by_due"] = take_from(market.pages, host["by_due"], slot, True)
    host["waiting"] -= 1
    page["state"] = IDLE


@borrowing
def _schedule(market: Market, slot: int) -> None:
    """Let a page wait until it is due: in the wheel, or at its host if the host has a price of its own."""
    page = market.pages[slot]
    if has_paced_host(page, market.hosts) and market.hosts[page["host"]]["price"] > market.desk[0]["entry"]:
        _wait_at_host(market, slot)
    else:
        page["state"] = QUEUED
        enter_wheel(market, slot)


@borrowing
def _withdraw(market: Market, slot: int) -> None:
    """Take a page out of its queue; its state is IDLE then. O(log pages), amortised."""
    page, desk = market.pages[slot], market.desk[0]
    state = page["state"]
    if state == QUEUED:
        leave_wheel(market, slot)
    elif state == HELD:
        desk["held"] = take_from(market.pages, desk["held"], slot, True)
    elif state == STANDING:
        desk["standing"] = take_from(market.pages, desk["standing"], slot, False)
    elif state == READY:
        drop_candidate(market, slot)
    elif state in (AT_HOST, BY_VALUE):
        _leave_host(market, slot)
    page["state"] = IDLE


@borrowing
def _place(market: Market, slot: int, wait: float, value: float) -> None:
    """Let an idle page wait where it belongs.

    Args:
        market: the queues.
        slot: the page.
        wait: from its last crawl until it is worth its price, infinity if never.
        value: now if it is due, the highest that it can reach if it is never due.
    """
    page, desk = market.pages[slot], market.desk[0]
    page["wait"] = min(wait, math.inf)
    if wait >= FOR_EVER:
        if value > desk["entry"] and has_paced_host(page, market.hosts):
            _wait_behind(market, slot, value)
        elif value > 0.0:
            page["state"], page["wait"] = STANDING, _key(market, value)
            desk["standing"] = put_in(market.pages, desk["standing"], slot, False)
    elif due_time(page) > desk["now"]:
        _schedule(market, slot)
    elif _is_held(page, desk["now"]):
        _hold(market, slot)
    elif _is_closed(market, page["host"]):
        _park(market, slot, value)
    else:
        add_candidate(market, slot)


@kernel
def place_all(arrays: Arrays, slots: Slots, waits: Floats, values: Floats, now: float, burst: float) -> None:
    """Let pages wait where they belong, wherever they were. O(slots)."""
    market = Market(*arrays)
    begin(market, now, burst)
    # Where pages go is far apart in memory: reading all of it first takes much less time than one by one.
    touched = 0
    for i in range(len(slots)):
        if waits[i] < FOR_EVER:
            root = market.roots[bin_of(market.desk[0], market.pages[slots[i]]["last"] + waits[i])]
            if root >= 0:
                touched += market.pages[root]["prev"]
    market.desk[0]["touched"] = touched
    for i in range(len(slots)):
        page = market.pages[slots[i]]
        if page["state"] != IDLE:
            _withdraw(market, slots[i])
        _place(market, slots[i], waits[i], values[i])
        if has_paced_host(page, market.hosts):
            schedule_host(market, page["host"])  # also if the page is not there: a crawl of it may have ended


@kernel
def move_all(arrays: Arrays, slots: Slots, waits: Floats, now: float, burst: float, again: Slots) -> int:
    """Move pages that wait to other due times; return how many have to be valued first, listed in `again`. O(slots)."""
    market = Market(*arrays)
    begin(market, now, burst)
    touched = 0
    for i in range(len(slots)):
        page = market.pages[slots[i]]
        if page["state"] == QUEUED:
            touched += market.pages[max(page["next"], 0)]["prev"] + market.pages[max(page["prev"], 0)]["next"]
            if waits[i] < FOR_EVER:
                root = market.roots[bin_of(market.desk[0], page["last"] + waits[i])]
                touched += market.pages[max(root, 0)]["prev"]
    market.desk[0]["touched"] = touched
    more = 0
    for i in range(len(slots)):
        slot = slots[i]
        page = market.pages[slot]
        if page["state"] in (READY, HELD):
            continue
        if math.isnan(waits[i]) or page["state"] not in (QUEUED, AT_HOST) or _is_closed(market, page["host"]):
            again[more] = slot
            more += 1
        elif np.float32(waits[i]) != page["wait"]:
            _withdraw(market, slot)
            _place(market, slot, waits[i], 0.0)
            if has_paced_host(page, market.hosts):
                schedule_host(market, page["host"])
    return more


@kernel
def withdraw_all(arrays: Arrays, slots: Slots, now: float, burst: float) -> None:
    """Take pages out of their queues. O(slots)."""
    market = Market(*arrays)
    begin(market, now, burst)
    for i in range(len(slots)):
        _withdraw(market, slots[i])
        if has_paced_host(market.pages[slots[i]], market.hosts):
            schedule_host(market, market.pages[slots[i]]["host"])


@kernel
def schedule_hosts(arrays: Arrays, numbers: Slots, now: float, burst: float) -> None:
    """Schedule hosts whose limits were changed or whose crawls have ended. O(hosts · log hosts)."""
    market = Market(*arrays)
    begin(market, now, burst)
    for i in range(len(numbers)):
        schedule_host(market, numbers[i])


@borrowing
def _needed(want: int) -> int:
    """Return how many candidates an auction needs for this number of sales."""
    return want + RESERVE + want // RESERVE


@kernel
def collect(arrays: Arrays, now: float, burst: float, want: int, again: Slots) -> tuple[int, int]:
    """Collect candidates for `want` sales. Amortised O(1) for each.

    Returns:
        How many candidates there are, and how many pages have to be placed before the auction, listed in `again`:
        pages of hosts whose price has moved, and standing pages that the price has fallen to.
    """
    market = Market(*arrays)
    begin(market, now, burst)
    desk = market.desk[0]
    _collect_due(market)
    more = _open_hosts(market, again)
    _look_ahead(market, _needed(want))
    for _ in range(CROWD * _needed(want)):
        if desk["standing"] < 0 or _standing_value(market) < desk["entry"]:
            break
        again[more] = desk["standing"]
        _withdraw(market, again[more])
        more += 1
    return desk["candidates"], more


@borrowing
def _look_ahead(market: Market, needed: int) -> None:
    """Make candidates of pages that are due next, until so many can be sold. Amortised O(1) for each."""
    desk, pages = market.desk[0], market.pages
    sellable, most_in_all = _sellable(market), desk["candidates"] + CROWD * needed
    while sellable < needed - 0.5 and desk["candidates"] < most_in_all:  # a sum of fractions
        slot, most = first_in_wheel(market), math.inf
        if slot < 0:
            slot = desk["standing"]
            if slot < 0:
                return
            most = _standing_value(market)
            desk["entry"] = min(desk["entry"], most)
        _withdraw(market, slot)
        number = pages[slot]["host"]
        if most < math.inf:
            pages[slot]["wait"] = FOR_EVER
        if _is_held(pages[slot], desk["now"]):
            _hold(market, slot)
        elif _is_closed(market, number):
            if most < math.inf:
                _wait_behind(market, slot, most)
            else:
                _wait_at_host(market, slot)
            schedule_host(market, number)
        else:
            add_candidate(market, slot)
            sellable += not _is_rival(market, slot) or market.hosts[number]["offered"] == 1


@borrowing
def _sellable(market: Market) -> float:
    """Return how many of the candidates can be sold. O(candidates), or O(1) if there are no hosts."""
    desk = market.desk[0]
    if len(market.hosts) == 0:
        return np.float64(desk["candidates"])
    sellable = 0.0
    for i in range(desk["candidates"]):
        number = market.pages[market.ready[i]]["host"]
        if _is_rival(market, market.ready[i]):
            sellable += 0.0 if _is_closed(market, number) else 1.0 / market.hosts[number]["offered"]
        else:
            sellable += 1.0
    return sellable


@borrowing
def _is_rival(market: Market, slot: int) -> bool:
    """Return whether a crawl of the page closes its host, so that one of the host's candidates can be sold."""
    page = market.pages[slot]
    return has_paced_host(page, market.hosts) and closes_after(market.hosts[page["host"]])


@borrowing
def _standing_value(market: Market) -> float:
    """Return the highest value that a standing page can reach."""
    return np.float64(market.pages[market.desk[0]["standing"]]["wait"]) * market.desk[0]["scale"]


@borrowing
def _collect_due(market: Market) -> None:
    """Make candidates of pages in the wheel that are due, and of pages that were held until now."""
    desk, pages = market.desk[0], market.pages
    start = desk["candidates"]
    count = drain(market, market.ready, start)
    for i in range(start, count):  # read and written in the same list: it grows no faster than it is read
        slot = market.ready[i]
        if _is_held(pages[slot], desk["now"]):
            _hold(market, slot)
        else:
            add_candidate(market, slot)
    while desk["held"] >= 0 and not _is_held(pages[desk["held"]], desk["now"]):
        slot = desk["held"]
        _withdraw(market, slot)
        add_candidate(market, slot)


@borrowing
def _open_hosts(market: Market, again: Slots) -> int:
    """Make candidates of pages of hosts that have opened; return how many pages have to be placed first."""
    more = 0
    while True:
        number = next_host(market)
        if number < 0:
            return more
        if _is_closed(market, number):
            schedule_host(market, number)
            continue
        host = market.hosts[number]
        if _is_outdated(market, host):
            more = _empty_host(market, number, again, more)
        _open_host(market, host)
        schedule_host(market, number)


@borrowing
def _is_outdated(market: Market, host: Record) -> bool:
    """Return whether the price of a host has moved far from that at which its pages wait."""
    entry = market.desk[0]["entry"]
    ratio = max(host["price"], entry) / max(host["built_price"], entry)
    return bool((ratio > HOST_MOVED or ratio * HOST_MOVED < 1.0) and 8 * host["sold"] >= host["waiting"])


@borrowing
def _open_host(market: Market, host: Record) -> None:
    """Make candidates of what an open host may sell: the best first copies, and the first pages that are due.

    A host with a price of its own is never left idle: if nothing else is offered, the next pages are. Pages of other
    hosts that are not due compete with all others in the wheel.
    """
    pages, now = market.pages, market.desk[0]["now"]
    start = host["offered"]
    saturated = host["price"] > market.desk[0]["entry"]
    for _ in range(HOST_CHOICE):
        if host["by_value"] < 0:
            break
        slot = host["by_value"]
        _leave_host(market, slot)
        add_candidate(market, slot)
    count = 0
    while host["by_due"] >= 0 and count < 2 * HOST_CHOICE:
        slot = host["by_due"]
        is_due = due_time(pages[slot]) <= now
        if not is_due and saturated and (start > 0 or count >= HOST_CHOICE):
            break
        _leave_host(market, slot)
        if _is_held(pages[slot], now):
            _hold(market, slot)
        elif is_due or saturated or pages[slot]["wait"] >= FOR_EVER:
            add_candidate(market, slot)
            count += 1
        else:
            _schedule(market, slot)


@kernel
def sell(
    arrays: Arrays, values: Floats, most: int, tokens: float, slots: Slots, sales: Floats, again: Slots
) -> tuple[int, int, bool]:
    """Sell crawls of the best candidates. O(candidates).

    Args:
        arrays: the market.
        values: of the candidates, infinity for those that must be crawled; used as room to work in.
        most: sales at most.
        tokens: cost at most. What costs more than a full bucket is sold when the bucket is full.
        slots: room for the pages that are sold.
        sales: room for their values.
        again: room for pages to be placed: no longer candidates, because another page has closed their host.

    Returns:
        How many were sold, how many have to be placed, and whether the candidates that are left are a crowd.
    """
    market = Market(*arrays)
    desk, pages, hosts = market.desk[0], market.pages, market.hosts
    left = _park_closed(market, values)
    offers = Offers(values, market.ready)
    heapify(offers, left)
    full = tokens + SLACK >= desk["burst"]
    sold = more = 0
    while left > 0:
        slot, value = market.ready[0], values[0]
        page = pages[slot]
        number = page["host"]
        if _is_closed(market, number):
            left = pop_highest(offers, left)
            page["state"] = IDLE
            hosts[number]["offered"] -= 1
            if value < hosts[number]["price"]:
                again[more] = slot
                more += 1
            else:
                _park(market, slot, value)
                schedule_host(market, number)
            continue
        if sold == most or not value > 0.0:
            break
        cost = np.float64(market.limits[slot]["cost"]) if page["flags"] & LIMITED != 0 else 1.0
        if cost > tokens + SLACK and not tokens + SLACK >= desk["burst"]:
            break
        tokens -= cost
        left = pop_highest(offers, left)
        page["state"] = IN_FLIGHT
        slots[sold], sales[sold] = slot, value
        sold += 1
        if number >= 0:
            hosts[number]["offered"] -= 1
            start_crawl(hosts[number], desk["now"])
            if hosts[number]["paced"] != 0:
                schedule_host(market, number)
    more = _keep(market, values, left, again, more)
    for i in range(sold):
        if has_paced_host(pages[slots[i]], hosts):
            _follow_host(market, pages[slots[i]]["host"], sales[i])
    if left > 0 and values[0] > 0.0:
        _follow(market, pages[market.ready[0]], values[0], sold, most)
    elif full and sold < most:
        _fall(market, most)
    return sold, more, left > CROWD * _needed(most)


@borrowing
def _keep(market: Market, values: Floats, left: int, again: Slots, more: int) -> int:
    """Keep the candidates that were not sold; return how many pages have to be placed."""
    hosts, entry = market.hosts, market.desk[0]["entry"]
    for i in range(left):
        page = market.pages[market.ready[i]]
        page["next"] = i
        if values[i] < entry and has_paced_host(page, hosts) and hosts[page["host"]]["price"] > 0.0:
            more = _end_price(market, page["host"], again, more)
    market.desk[0]["candidates"] = left
    return more


@borrowing
def _park_closed(market: Market, values: Floats) -> int:
    """Move candidates of closed hosts to their hosts; return how many candidates are left."""
    left = 0
    for i in range(market.desk[0]["candidates"]):
        slot = market.ready[i]
        number = market.pages[slot]["host"]
        if _is_closed(market, number):
            market.hosts[number]["offered"] -= 1
            _park(market, slot, values[i])
            schedule_host(market, number)
        else:
            market.ready[left], values[left] = slot, values[i]
            left += 1
    return left


@borrowing
def _toward(price: float, other: float, share: float) -> float:
    """Return a price this share of the way to another, in logarithms: their ratio may be beyond all floats."""
    return math.exp(math.log(price) + share * (math.log(other) - math.log(price)))


@borrowing
def _follow_host(market: Market, number: int, sale: float) -> None:
    """Let the price of a host follow a sale: to the value of its best waiting page, or of the sale."""
    host, desk = market.hosts[number], market.desk[0]
    host["sold"] += 1
    other = sale
    if host["by_value"] >= 0:
        other = max(other, np.float64(market.pages[host["by_value"]]["wait"]) * desk["scale"])
    if not _is_closed(market, number):
        other = desk["entry"]
    if 0.0 < other < MOST:
        price = _toward(max(host["price"], desk["entry"]), max(other, desk["entry"]), HOST_STEP)
        host["price"] = price if price > 1.001 * desk["entry"] else 0.0


@borrowing
def _end_price(market: Market, number: int, again: Slots, more: int) -> int:
    """End the price of a host that is open and offers what is not worth the common price: it has room for all."""
    if _is_closed(market, number):
        return more
    market.hosts[number]["price"] = 0.0
    return _empty_host(market, number, again, more)


@borrowing
def _empty_host(market: Market, number: int, again: Slots, more: int) -> int:
    """Append all pages that wait at a host to a list of pages to be placed at its price; return its length."""
    host = market.hosts[number]
    host["built_price"], host["sold"] = host["price"], 0
    while host["waiting"] > 0:
        again[more] = host["by_value"] if host["by_value"] >= 0 else host["by_due"]
        _leave_host(market, again[more])
        more += 1
    schedule_host(market, number)
    return more


@borrowing
def _follow(market: Market, page: Record, best: float, sold: int, want: int) -> None:
    """Let the prices follow an auction: to the value of the best page that was not sold.

    The entry price falls if that page is not due yet, for then too few pages are, and rises if there is a crowd.
    """
    desk = market.desk[0]
    live = max(desk["live"], 1)
    if sold > 0 and 0.0 < best < MOST:
        share = sold / (sold + 8.0 + MEMORY * live)
        desk["price"] = _toward(desk["price"], best, share) if desk["price"] > 0.0 else best
        crowded = desk["candidates"] > 2 * (_needed(want) - want)
        lacking = best < desk["entry"] and due_time(page) > desk["now"]
        # First copies are worth much and are bought once: they do not raise the price for others.
        if lacking or (best > desk["entry"] and crowded and page["flags"] & NO_COPY == 0):
            other = min(max(best, desk["entry"] / STEP), desk["entry"] * STEP)
            desk["entry"] = _toward(desk["entry"], other, min(PACE * sold / live, FARTHEST))
    if desk["sweep_left"] == 0 and abs(math.log(desk["entry"] / desk["swept"])) > SWEEP_AT:
        desk["swept"] = desk["entry"]
        desk["sweep_left"] = desk["used"]


@borrowing
def _fall(market: Market, want: int) -> None:
    """Let the price fall while budget is lost because nothing is left that may be crawled."""
    desk = market.desk[0]
    desk["price"] *= 1.0 - want / (want + 8.0 + MEMORY * max(desk["live"], 1))
    if desk["price"] < 0.01 * desk["entry"]:
        desk["price"] = 0.0


@kernel
def thin_out(arrays: Arrays, values: Floats, want: int, slots: Slots) -> tuple[int, int, float]:
    """Take all but the best candidates off the list, after a sale.

    Returns:
        How many were taken off, listed in `slots` best first; how many of them are worth the price; and the value of
        the last candidate that stays.
    """
    market = Market(*arrays)
    desk = market.desk[0]
    offers, left, need = Offers(values, market.ready), desk["candidates"], _needed(want)
    bar, worthy = 0.0, 0
    for i in range(desk["candidates"]):
        slots[i] = market.ready[0]
        if i == need - 1:
            bar = values[0]
        worthy += i >= need and values[0] >= desk["entry"]
        left = pop_highest(offers, left)
    count = desk["candidates"] - need
    desk["candidates"] = 0
    for i in range(count + need):
        page = market.pages[slots[i]]
        if page["host"] >= 0:
            market.hosts[page["host"]]["offered"] -= 1
        page["state"] = IDLE
        if i < need:
            add_candidate(market, slots[i])
        elif has_paced_host(page, market.hosts):
            schedule_host(market, page["host"])
    for i in range(count):
        slots[i] = slots[need + i]
    return count, worthy, bar


@kernel
def rest(arrays: Arrays, slots: Slots, waits: Floats, want: int) -> None:
    """Let pages of a crowd wait until most of those before them are sold, or until their waits end. O(slots)."""
    market = Market(*arrays)
    desk = market.desk[0]
    for i in range(len(slots)):
        page = market.pages[slots[i]]
        soon = max(desk["now"] - page["last"], 0.0) + REST * (_needed(want) + i) * desk["tick"]
        page["wait"] = min(waits[i], soon)
        _schedule(market, slots[i])
        if has_paced_host(page, market.hosts):
            schedule_host(market, page["host"])


@kernel
def sweep(arrays: Arrays, most: int, slots: Slots) -> int:
    """List the next pages whose due times have to be renewed; return how many there are. O(most)."""
    market = Market(*arrays)
    desk = market.desk[0]
    count = 0
    steps = min(most, desk["sweep_left"])
    desk["sweep_left"] -= steps
    for _ in range(steps):
        if desk["sweep_at"] >= desk["used"]:
            desk["sweep_at"] = 0
        slot = desk["sweep_at"]
        desk["sweep_at"] += 1
        if market.pages[slot]["state"] in (QUEUED, STANDING, AT_HOST):
            slots[count] = slot
            count += 1
    return count


@kernel
def clear(arrays: Arrays, now: float, burst: float, slots: Slots) -> int:
    """Empty all queues, whose roots are reset already; return how many pages have to be placed. O(pages)."""
    market = Market(*arrays)
    _reset(market, now, burst)
    market.desk[0]["sweep_left"], market.desk[0]["swept"] = 0, market.desk[0]["entry"]
    count = 0
    for slot in range(market.desk[0]["used"]):
        page = market.pages[slot]
        if page["state"] != FREE and page["state"] != IN_FLIGHT:
            page["state"] = IDLE
            slots[count] = slot
            count += 1
    return count


@kernel
def rebuild(arrays: Arrays, now: float, burst: float) -> None:
    """Put every page back into the queue that its state names; `now` is the time of the last auction. O(pages)."""
    market = Market(*arrays)
    _reset(market, now, burst)
    desk, pages = market.desk[0], market.pages
    desk["base"] = bin_number(desk, now)
    for slot in range(desk["used"]):
        page = pages[slot]
        if page["state"] == QUEUED:
            enter_wheel(market, slot)
        elif page["state"] == READY:
            add_candidate(market, slot)
        elif page["state"] == HELD:
            _hold(market, slot)
        elif page["state"] == STANDING:
            desk["standing"] = put_in(pages, desk["standing"], slot, False)
        elif page["state"] == AT_HOST:
            _wait_at_host(market, slot)
        elif page["state"] == BY_VALUE:
            host = market.hosts[page["host"]]
            host["by_value"] = put_in(pages, host["by_value"], slot, False)
            host["waiting"] += 1
    for number in range(len(market.hosts)):
        if market.hosts[number]["paced"] != 0:
            schedule_host(market, number)


@borrowing
def _reset(market: Market, now: float, burst: float) -> None:
    begin(market, now, burst)
    desk = market.desk[0]
    desk["held"] = desk["standing"] = -1
    desk["candidates"] = desk["closed"] = desk["base"] = 0
    for number in range(len(market.hosts)):
        host = market.hosts[number]
        host["by_value"] = host["by_due"] = host["place"] = -1
        host["waiting"] = host["offered"] = 0
