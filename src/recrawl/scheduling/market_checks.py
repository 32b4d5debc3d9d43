"""Checks of the lists and heaps of the policy `price` that come from outside. Pure.

A walk along every list and heap meets each waiting page once: each record names the one before it, so no walk can run
in a ring. See `snapshot_checks.py` for why.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import InvalidInput
from recrawl.jit import kernel
from recrawl.scheduling.agenda import OPEN
from recrawl.scheduling.market_state import AFTER_NEAR, FEWEST_BINS, SPAN
from recrawl.scheduling.market_state import STANDING as STANDING_LISTS
from recrawl.scheduling.table.records import AT_HOST, HELD, QUEUED, READY, STANDING, Record, Records

_LAST_BIN = 4 * 10**15
_LAST_TIME = 1e60
_MOST_PRICE = 1e300


def check_market(pages: Records, hosts: Records, lists: Mapping[str, NDArray[Any]], latest: float) -> None:
    """Refuse lists that do not fit the pages and hosts. O(pages + hosts + lists).

    Args:
        pages: in use; checked already.
        hosts: checked already.
        lists: by the names that the policy gives them.
        latest: when the policy last chose.
    """
    desk = lists["desk"][0]
    heads = lists["heads"]
    _check_desk(desk, len(pages), latest)
    bins = int(desk["bins"])
    _require(len(heads) == bins + AFTER_NEAR, f"there are {len(heads)} lists for {bins} bins")
    _require(bool((heads < len(pages)).all() and (heads >= -1).all()), "a list begins with a page that is not there")
    full = np.packbits(heads[:bins] >= 0, bitorder="little").view("<u8")
    words = np.packbits(full != 0, bitorder="little").view("<u8")
    _require(np.array_equal(lists["bits"], np.append(full, words)), "the marks of full lists are wrong")
    top = int(desk["top"])
    standing = heads[bins + 2 * SPAN + 1 : -1]
    _require(bool((standing[top + 1 :] < 0).all()), "a list of standing pages is above the highest")
    still = int(desk["still_top"])
    _require(bool((standing[still + 2 :: 2] < 0).all()), "a list of pages that stand still is above the highest")
    in_lists = np.zeros(256, dtype=np.int64)
    _require(_lists_hold(pages, heads, bins, in_lists), "its lists do not hang together")
    states = np.zeros(256, dtype=np.int64)
    _count(pages, states)
    if desk["entry"] == 0:  # not built: pages wait outside the lists
        _require(not in_lists.any(), "there are lists before there is a price")
        in_lists[QUEUED] = states[QUEUED]
    for state in (QUEUED, STANDING, READY):
        _require(in_lists[state] == states[state], "pages wait in no list")
    _require(desk["ready"] == states[READY], "the number of pages on offer is wrong")
    held = _heap_holds(pages, np.int64(desk["pen"]), -1)
    _require(held == states[HELD], "the pages that may not be taken yet do not hang together")
    check_host_links(pages, hosts, lists["agenda"], desk["agenda"])


def check_host_links(pages: Records, hosts: Records, agenda: NDArray[np.int32], sizes: NDArray[np.int64]) -> None:
    """Refuse heaps of hosts, and an agenda, that do not fit. O(pages at hosts + hosts)."""
    waiting = _heaps_hold(pages, hosts)
    _require(waiting >= 0, "the heap of a host does not hang together")
    _require(waiting == np.count_nonzero(pages["state"] == AT_HOST), "pages wait at no host")
    _require(_offers_hold(pages, hosts), "a host offers a page that is not on offer")
    _require(bool((sizes >= 0).all() and (sizes <= agenda.shape[1]).all()), "the agenda of hosts has a wrong size")
    _require(_agenda_holds(hosts, agenda, sizes), "the agenda of hosts does not fit them")


def _check_desk(desk: Record, used: int, latest: float) -> None:
    bins = int(desk["bins"])
    _require(FEWEST_BINS <= bins <= 2**31 and bins & (bins - 1) == 0, "the wheel has an impossible size")
    width, origin, base = float(desk["width"]), float(desk["origin"]), int(desk["base"])
    _require(0 < width <= _LAST_TIME**2 and abs(origin) <= _LAST_TIME, "the wheel has impossible times")
    # The wheel turns bin by bin to the present, so it must not stand far away from it.
    turned = min(max((latest - origin) / width, -_LAST_BIN), _LAST_BIN)
    _require(abs(base) <= _LAST_BIN and abs(base - math.floor(turned)) <= 1, "the wheel stands at another time")
    for name in ("entry", "price", "swept"):
        _require(0 <= desk[name] <= _MOST_PRICE, f"the {name} price is {desk[name]}")
    _require((desk["entry"] > 0) == (desk["swept"] > 0), "there is a price, but pages were not placed by it")
    for name in ("top", "still_top"):
        _require(-1 <= desk[name] < STANDING_LISTS, "the highest standing list is not there")
    _require(desk["still_top"] % 2 == 1, "the highest list of pages that stand still is of another kind")
    _require(0 <= desk["sweep_at"] <= used and 0 <= desk["sweep_left"] <= used, "the sweep is outside the pages")


def _require(holds: Any, problem: str) -> None:
    if not holds:
        raise InvalidInput(f"is damaged: {problem}")


@kernel
def _count(pages: Records, states: NDArray[np.int64]) -> None:
    for slot in range(len(pages)):
        states[pages[slot]["state"]] += 1


@kernel
def _lists_hold(pages: Records, heads: NDArray[np.int32], bins: int, counts: NDArray[np.int64]) -> bool:
    """Whether every list holds together and has pages of its state; counts them by state."""
    wheel_ends = bins + 2 * SPAN + 1
    for which in range(len(heads)):
        state = QUEUED if which < wheel_ends else READY if which == len(heads) - 1 else STANDING
        before = np.int64(-2 - which)
        slot = np.int64(heads[which])
        while slot >= 0:
            if slot >= len(pages):
                return False
            page = pages[slot]
            if page["state"] != state or page["prev"] != before:
                return False
            counts[state] += 1
            before = slot
            slot = np.int64(page["next"])
        if slot != -1:
            return False
    return True


@kernel
def _heaps_hold(pages: Records, hosts: Records) -> int:
    """How many pages wait at hosts; -1 if a heap does not hold together."""
    total = 0
    for number in range(len(hosts)):
        count = _heap_holds(pages, np.int64(hosts[number]["root"]), number)
        behind = _heap_holds(pages, np.int64(hosts[number]["behind"]), number)
        if count < 0 or behind < 0 or count + behind != hosts[number]["waiting"]:
            return -1
        total += count + behind
    return total


@kernel
def _heap_holds(pages: Records, root: np.int64, number: int) -> int:
    """How many pages are in a heap of a host, or of those that may not be taken yet (-1); -1 if it does not hold."""
    if root == -1:
        return 0
    if root < 0 or not _in_heap(pages, root, np.int64(-1), number) or pages[root]["next"] != -1:
        return -1
    return _count_heap(pages, root, number)


@kernel
def _count_heap(pages: Records, root: np.int64, number: int) -> int:
    """How many pages are in a heap, children before siblings; -1 if it does not hold together."""
    count = 1
    slot = root
    while True:
        page = pages[slot]
        following = np.int64(page["child"])
        if following >= 0 and following == page["next"]:
            return -1
        while following < 0:  # up to the next page that has a sibling to its right
            if slot == root:
                return count
            following = np.int64(pages[slot]["next"])
            if following < 0:
                slot = _parent(pages, slot)
        if not _in_heap(pages, following, slot, number):
            return -1
        slot = following
        count += 1


@kernel
def _parent(pages: Records, slot: np.int64) -> np.int64:
    """The parent of a page that is not the root of its heap, whose links up to the root are checked."""
    before = np.int64(pages[slot]["prev"])
    while pages[before]["child"] != slot:
        slot = before
        before = np.int64(pages[slot]["prev"])
    return before


@kernel
def _in_heap(pages: Records, slot: np.int64, before: np.int64, number: int) -> bool:
    if slot >= len(pages):
        return False
    page = pages[slot]
    if page["prev"] != before:
        return False
    return bool(page["state"] == HELD if number < 0 else page["state"] == AT_HOST and page["host"] == number)


@kernel
def _offers_hold(pages: Records, hosts: Records) -> bool:
    for number in range(len(hosts)):
        slot = np.int64(hosts[number]["offered"])
        if slot == -1:
            continue
        if not 0 <= slot < len(pages) or pages[slot]["state"] != READY or pages[slot]["host"] != number:
            return False
    return True


@kernel
def _agenda_holds(hosts: Records, agenda: NDArray[np.int32], sizes: NDArray[np.int64]) -> bool:
    """Whether every host in the agenda is where it says, and no other."""
    entered = 0
    for number in range(len(hosts)):
        host = hosts[number]
        book, place = host["book"], host["place"]
        if book == -1:
            continue
        if not 0 <= book <= OPEN or not 0 <= place < sizes[book] or agenda[book, place] != number:
            return False
        if book == OPEN and (host["waiting"] == 0 or host["offered"] >= 0):
            return False
        entered += 1
    return bool(entered == sizes[0] + sizes[1])
