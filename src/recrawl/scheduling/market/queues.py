"""Queues of pages and hosts: pairing heaps, a timing wheel made of them, a list of candidates, and closed hosts.

A page that waits is in one queue, which its state names:

    QUEUED      the wheel: by the time at which it will be worth the price
    READY       the list of candidates of the next auction
    AT_HOST     a heap of its host, by the time at which it will be worth the host's price
    BY_VALUE    another heap of its host, by value: it is due, but the host was closed
    HELD        a heap by the time until which it may not be taken
    STANDING    a heap by the highest value it can reach, which is below the price
    IDLE        none: a crawl of it is worth nothing

Queues are an index: they follow from the states and waits of the pages, and their order depends on nothing else, for
equal keys go by slot. Kernels' steps; the time is the desk's.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.jit import borrowing
from recrawl.scheduling.table.hosts import opens_at
from recrawl.scheduling.table.records import READY, Record, Records

COARSE = 1024  # coarse bins of the wheel
FEWEST_BINS = 4096
HOST_CHOICE = 8  # pages that an open host chooses from, at least
_PER_WHEEL = 64  # coarse bins as long as all fine ones
_LAST_BIN = 4e15  # later times count as this bin
_READ_AHEAD = 4096  # bins

DESK = np.dtype(
    [
        ("now", np.float64),  # the time of the call
        ("burst", np.float64),  # crawls that may be made at once after a pause
        ("tick", np.float64),  # mean time between two crawls
        ("width", np.float64),  # of a fine bin
        ("origin", np.float64),  # time of bin 0
        ("base", np.int64),  # the first bin that is not drained
        ("bins", np.int64),  # fine ones, a power of 2
        ("entry", np.float64),  # price at which pages become candidates
        ("price", np.float64),  # what one more crawl is worth, smoothed
        ("scale", np.float64),  # a price: values are kept in single precision as multiples of it
        ("candidates", np.int64),  # pages in the list of candidates
        ("held", np.int64),  # root of the heap of pages that may not be taken yet; -1: empty
        ("standing", np.int64),  # root of the heap of pages that are never worth the price; -1: empty
        ("closed", np.int64),  # hosts in the queue of hosts
        ("live", np.int64),  # pages that are not free
        ("used", np.int64),  # slots ever used
        ("least_cost", np.float64),  # of any page so far
        ("swept", np.float64),  # entry price at the start of the last sweep
        ("sweep_at", np.int64),  # next slot of the sweep
        ("sweep_left", np.int64),  # slots that the sweep has yet to visit
        ("touched", np.int64),  # a sum over memory that was read before its use, so that it is read at all
    ]
)


class Market(NamedTuple):
    """The arrays that the kernels of the market work on."""

    pages: Records
    limits: Records
    hosts: Records
    roots: NDArray[np.int32]  # of the bins of the wheel: fine ones, coarse ones, and one of all that is later
    bits: NDArray[np.uint64]  # which fine bins have a page; behind them, which words of these bits have one
    queue: NDArray[np.int32]  # hosts with waiting pages, a heap by when they have pages to offer
    ready: NDArray[np.int32]  # candidates
    desk: Records


Arrays = tuple[
    Records, Records, Records, NDArray[np.int32], NDArray[np.uint64], NDArray[np.int32], NDArray[np.int32], Records
]
"""The same as a plain tuple: a call from Python finds its type twice as fast as that of a named one."""


# Pairing heaps through the page records: `child` is the first child of a page, `next` its right sibling, `prev` its
# left sibling or, of a first child, its parent.


@borrowing
def due_time(page: Record) -> float:
    """Return when a page is due, or may be taken if it is held."""
    return page["last"] + np.float64(page["wait"])


@borrowing
def _precedes(pages: Records, a: int, b: int, by_time: bool) -> bool:
    if by_time:
        one, other = -due_time(pages[a]), -due_time(pages[b])
    else:
        one, other = np.float64(pages[a]["wait"]), np.float64(pages[b]["wait"])
    return one > other or (one == other and a < b)


@borrowing
def meld(pages: Records, a: int, b: int, by_time: bool) -> int:
    """Join two heaps and return the root. O(1)."""
    if a < 0:
        return b
    if b < 0:
        return a
    if _precedes(pages, b, a, by_time):
        a, b = b, a
    first = pages[a]["child"]
    pages[b]["next"], pages[b]["prev"] = first, a
    if first >= 0:
        pages[first]["prev"] = b
    pages[a]["child"] = b
    pages[a]["next"] = pages[a]["prev"] = -1
    return a


@borrowing
def put_in(pages: Records, root: int, slot: int, by_time: bool) -> int:
    """Put a page into a heap and return the root. O(1)."""
    page = pages[slot]
    page["child"] = page["next"] = page["prev"] = -1
    return meld(pages, root, slot, by_time)


@borrowing
def take_from(pages: Records, root: int, slot: int, by_time: bool) -> int:
    """Take a page out of a heap and return the root of the rest, -1 if it is empty. O(log pages), amortised."""
    page = pages[slot]
    if root != slot:
        left = page["prev"]
        if pages[left]["child"] == slot:
            pages[left]["child"] = page["next"]
        else:
            pages[left]["next"] = page["next"]
        if page["next"] >= 0:
            pages[page["next"]]["prev"] = left
    first, pairs = int(page["child"]), -1
    while first >= 0:  # meld children in pairs from the left, then the pairs from the right
        a = first
        b = int(pages[a]["next"])
        first = int(pages[b]["next"]) if b >= 0 else -1
        pages[a]["next"] = pages[a]["prev"] = -1
        if b >= 0:
            pages[b]["next"] = pages[b]["prev"] = -1
        pair = meld(pages, a, b, by_time)
        pages[pair]["prev"] = pairs
        pairs = pair
    rest = -1
    while pairs >= 0:
        left = int(pages[pairs]["prev"])
        pages[pairs]["prev"] = -1
        rest = meld(pages, rest, pairs, by_time)
        pairs = left
    page["child"] = page["next"] = page["prev"] = -1
    return rest if root == slot else meld(pages, root, rest, by_time)


@borrowing
def unravel(pages: Records, root: int) -> int:
    """Turn a heap into a chain through `next` and return its first page; `child` and `prev` are lost. O(pages)."""
    last = root
    slot = root
    while slot >= 0:  # the children of a page are appended to the end of the chain as it is passed
        page = pages[slot]
        child = page["child"]
        if child >= 0:
            pages[last]["next"] = child
            last = child
            while pages[last]["next"] >= 0:
                last = pages[last]["next"]
            page["child"] = -1
        slot = page["next"]
    return root


# The wheel: pages by due time. A fine bin is about two crawls long, and its few pages are a list through `next` and
# `prev`; of the first, `prev` is -2 - bin. A page that is due later waits in a coarse bin, and later than all of those
# in one last bin, which are heaps; it moves on when its time comes near, twice at most. Bits over the fine bins find
# the next page without visiting empty ones.

_DEBRUIJN = np.uint64(0x03F79D71B4CB0A89)
_SHIFT = np.uint64(58)
_ONE = np.uint64(1)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_PLACES = np.zeros(64, dtype=np.int64)
for _i in range(64):
    _PLACES[((1 << _i) * int(_DEBRUIJN) & int(_ALL)) >> 58] = _i


@borrowing
def lowest_bit(word: np.uint64) -> int:
    """Return the place of the lowest bit that is set in a word that is not 0, by de Bruijn's sequence. O(1)."""
    lowest = word & (~word + _ONE)
    return _PLACES[np.int64((lowest * _DEBRUIJN) >> _SHIFT)]


@borrowing
def bin_of(desk: Record, due: float) -> int:
    """Return which bin of the wheel holds pages that are due then. O(1)."""
    bins = desk["bins"]
    step = bins // _PER_WHEEL
    number = max(bin_number(desk, due), desk["base"])
    ahead = number // step - desk["base"] // step
    if ahead < _PER_WHEEL:
        return number & (bins - 1)
    return bins + ((number // step) & (COARSE - 1) if ahead < COARSE else COARSE)


@borrowing
def bin_number(desk: Record, time: float) -> int:
    """Return the number of the fine bin of a time, counted from the origin."""
    return int(min(max((time - desk["origin"]) / desk["width"], 0.0), _LAST_BIN))


@borrowing
def enter_wheel(market: Market, slot: int) -> None:
    """Let a page wait in the wheel until it is due. O(1)."""
    desk, pages = market.desk[0], market.pages
    which = bin_of(desk, due_time(pages[slot]))
    first = market.roots[which]
    if which >= desk["bins"]:
        market.roots[which] = put_in(pages, first, slot, True)
        return
    pages[slot]["next"], pages[slot]["prev"] = first, -2 - which
    market.roots[which] = slot
    if first >= 0:
        pages[first]["prev"] = slot
    else:
        word = which >> 6
        market.bits[word] |= _ONE << np.uint64(which & 63)
        market.bits[(desk["bins"] >> 6) + (word >> 6)] |= _ONE << np.uint64(word & 63)


@borrowing
def leave_wheel(market: Market, slot: int) -> None:
    """Take a page out of the wheel. O(1) from a fine bin, O(log pages) from others, amortised."""
    pages = market.pages
    which = bin_of(market.desk[0], due_time(pages[slot]))
    if which >= market.desk[0]["bins"]:
        market.roots[which] = take_from(pages, market.roots[which], slot, True)
        return
    following, before = pages[slot]["next"], pages[slot]["prev"]
    if following >= 0:
        pages[following]["prev"] = before
    if before >= 0:
        pages[before]["next"] = following
    else:
        market.roots[which] = following
        if following < 0:
            _clear(market, which)


@borrowing
def _clear(market: Market, which: int) -> None:
    """Note that a fine bin is empty."""
    word, words = which >> 6, market.desk[0]["bins"] >> 6
    market.bits[word] &= ~(_ONE << np.uint64(which & 63))
    if market.bits[word] == 0:
        market.bits[words + (word >> 6)] &= ~(_ONE << np.uint64(word & 63))


@borrowing
def _next_bit(bits: NDArray[np.uint64], bins: int, start: int, end: int) -> int:
    """Return the first bit that is set from start to before end, or -1."""
    word = start >> 6
    rest = bits[word] & (_ALL << np.uint64(start & 63))
    if rest != 0:
        found = (word << 6) + lowest_bit(rest)
        return found if found < end else -1
    last = (end - 1) >> 6
    word += 1
    while word <= last:
        group = bits[(bins >> 6) + (word >> 6)] & (_ALL << np.uint64(word & 63))
        if group != 0:
            word = ((word >> 6) << 6) + lowest_bit(group)
            if word > last:
                return -1
            found = (word << 6) + lowest_bit(bits[word])
            return found if found < end else -1
        word = ((word >> 6) + 1) << 6
    return -1


@borrowing
def next_due_bin(market: Market) -> int:
    """Return a bin whose time has come and that has pages, or -1 when the wheel has arrived at now. Amortised O(1)."""
    desk = market.desk[0]
    bins = desk["bins"]
    step = bins // _PER_WHEEL
    now_bin = bin_number(desk, desk["now"])
    while True:
        # Within one coarse bin the fine bins follow each other without a wrap.
        end = min((desk["base"] // step + 1) * step, now_bin + 1)
        if end <= desk["base"]:
            return -1
        start = desk["base"] & (bins - 1)
        found = _next_bit(market.bits, bins, start, start + end - desk["base"])
        if found >= 0:
            return found
        if end == now_bin + 1:
            desk["base"] = now_bin  # the bin of this very moment stays open
            return -1
        desk["base"] = end
        _come_near(market, end // step)


@borrowing
def _come_near(market: Market, coarse: int) -> None:
    """Move what has come into the reach of finer bins now that the wheel has come to this coarse bin."""
    desk, later = market.desk[0], market.desk[0]["bins"] + COARSE
    step = desk["bins"] // _PER_WHEEL
    while market.roots[later] >= 0:
        slot = market.roots[later]
        if bin_number(desk, due_time(market.pages[slot])) // step - coarse >= COARSE:
            break
        market.roots[later] = take_from(market.pages, slot, slot, True)
        enter_wheel(market, slot)
    which = desk["bins"] + ((coarse + _PER_WHEEL - 1) & (COARSE - 1))
    slot = unravel(market.pages, market.roots[which])
    market.roots[which] = -1
    while slot >= 0:
        following = market.pages[slot]["next"]
        enter_wheel(market, slot)
        slot = following


@borrowing
def _read_ahead(market: Market) -> None:
    """Read the pages of bins whose time has come: all at once takes much less time than one after the other."""
    desk = market.desk[0]
    bins = desk["bins"]
    start = desk["base"] & (bins - 1)
    end = min(start + bin_number(desk, desk["now"]) + 1 - desk["base"], bins, start + _READ_AHEAD)
    touched = 0
    for turn in range(2):
        which = start
        while which < end:
            which = _next_bit(market.bits, bins, which, end)
            if which < 0:
                break
            slot = market.roots[which]
            if turn == 1:
                slot = market.pages[slot]["next"]
            if slot >= 0:
                touched += market.pages[slot]["next"]
            which += 1
    desk["touched"] = touched


@borrowing
def drain(market: Market, out: NDArray[np.int32], count: int) -> int:
    """Append the pages in the wheel that are due to a list and return its length. Amortised O(1) for each."""
    pages = market.pages
    _read_ahead(market)
    while True:
        which = next_due_bin(market)
        if which < 0:
            return count
        slot = market.roots[which]
        market.roots[which] = -1
        _clear(market, which)
        while slot >= 0:
            out[count] = slot
            count += 1
            slot = pages[slot]["next"]


@borrowing
def first_in_wheel(market: Market) -> int:
    """Return the page in the wheel that is due first, or -1. O(1) while there is one in the fine bins."""
    desk = market.desk[0]
    bins = desk["bins"]
    start = desk["base"] & (bins - 1)
    found = _next_bit(market.bits, bins, start, bins)
    if found < 0 and start > 0:
        found = _next_bit(market.bits, bins, 0, start)
    if found >= 0:
        slot = first = market.roots[found]
        while slot >= 0:
            if _precedes(market.pages, slot, first, True):
                first = slot
            slot = market.pages[slot]["next"]
        return first
    first = desk["base"] // (bins // _PER_WHEEL)
    for i in range(_PER_WHEEL, COARSE):
        slot = market.roots[bins + ((first + i) & (COARSE - 1))]
        if slot >= 0:
            return slot
    return market.roots[bins + COARSE]


# Candidates: a plain list. Of a candidate, `next` is its place in the list.


@borrowing
def add_candidate(market: Market, slot: int) -> None:
    """Let a page take part in the next auction. O(1)."""
    desk, page = market.desk[0], market.pages[slot]
    page["state"], page["next"] = READY, desk["candidates"]
    market.ready[desk["candidates"]] = slot
    desk["candidates"] += 1
    if page["host"] >= 0:
        market.hosts[page["host"]]["offered"] += 1


@borrowing
def drop_candidate(market: Market, slot: int) -> None:
    """Take a page out of the list of candidates. O(1)."""
    desk, place = market.desk[0], market.pages[slot]["next"]
    desk["candidates"] -= 1
    last = market.ready[desk["candidates"]]
    market.ready[place] = last
    market.pages[last]["next"] = place
    market.pages[slot]["next"] = -1
    if market.pages[slot]["host"] >= 0:
        market.hosts[market.pages[slot]["host"]]["offered"] -= 1


# Hosts with waiting pages, by when they have pages to offer: a binary heap that knows the place of each host.


@borrowing
def schedule_host(market: Market, number: int) -> None:
    """Enter a host into the queue for when it opens, or, if it has candidates, for when its next page is due then.

    A host with few candidates has first copies to offer at once.
    A host without waiting pages, or that opens at an unknown time, is not in the queue. O(log hosts).
    """
    host, desk = market.hosts[number], market.desk[0]
    time = math.inf
    if host["waiting"] > 0:
        time = opens_at(host, desk["burst"])
        if host["offered"] >= HOST_CHOICE or (host["offered"] > 0 and host["by_value"] < 0):
            time = max(time, due_time(market.pages[host["by_due"]])) if host["by_due"] >= 0 else math.inf
    if time < math.inf:
        if host["place"] < 0:
            host["place"] = desk["closed"]
            desk["closed"] += 1
        host["offer_at"] = time
        _settle(market, host["place"], number)
    elif host["place"] >= 0:
        unschedule_host(market, number)


@borrowing
def unschedule_host(market: Market, number: int) -> None:
    """Take a host out of the queue. O(log hosts)."""
    desk, place = market.desk[0], market.hosts[number]["place"]
    market.hosts[number]["place"] = -1
    desk["closed"] -= 1
    if place < desk["closed"]:
        _settle(market, place, market.queue[desk["closed"]])


@borrowing
def next_host(market: Market) -> int:
    """Take the next host whose time has come out of the queue, or return -1. O(log hosts)."""
    desk = market.desk[0]
    if desk["closed"] == 0 or market.hosts[market.queue[0]]["offer_at"] > desk["now"]:
        return -1
    number = market.queue[0]
    unschedule_host(market, number)
    return number


@borrowing
def _settle(market: Market, place: int, number: int) -> None:
    """Put a host at a place of the queue and move it to where it belongs."""
    heap, hosts, size = market.queue, market.hosts, market.desk[0]["closed"]
    time = hosts[number]["offer_at"]
    while place > 0 and hosts[heap[(place - 1) // 2]]["offer_at"] > time:
        heap[place] = heap[(place - 1) // 2]
        hosts[heap[place]]["place"] = place
        place = (place - 1) // 2
    while True:
        below = 2 * place + 1
        if below + 1 < size and hosts[heap[below + 1]]["offer_at"] < hosts[heap[below]]["offer_at"]:
            below += 1
        if below >= size or hosts[heap[below]]["offer_at"] >= time:
            break
        heap[place] = heap[below]
        hosts[heap[place]]["place"] = place
        place = below
    heap[place] = number
    hosts[number]["place"] = place
