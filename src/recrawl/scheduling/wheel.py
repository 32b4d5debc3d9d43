"""A timing wheel: pages by the time they are due, in bins of three sizes. Amortised O(1) per page.

Near bins are about two crawls long. A page that is due later waits in a coarser bin, and moves to a finer one when
its time comes near, twice at most. Bits over the near bins find the next page without looking at empty ones, so the
wheel also serves as a queue by due time for whoever wants a page before it is due.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from recrawl.jit import borrowing
from recrawl.scheduling.links import push, unlink
from recrawl.scheduling.market_state import SPAN, Market
from recrawl.scheduling.table.records import QUEUED

_PER_NEAR = 64  # middle bins as long as all near ones
_PER_FAR = 16  # middle bins in a far one
_LAST = 4e15  # bins; later is never
_READ_AHEAD = 4096  # bins
LONGEST_STEP = 8192  # middle bins to go through one by one; beyond, the wheel is built anew

_DEBRUIJN = np.uint64(0x03F79D71B4CB0A89)
_SHIFT = np.uint64(58)
_ONE = np.uint64(1)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_PLACES = np.zeros(64, dtype=np.int64)
for _i in range(64):
    _PLACES[((1 << _i) * int(_DEBRUIJN) & int(_ALL)) >> 58] = _i


@borrowing
def lowest_bit(word: np.uint64) -> int:
    """The place of the lowest bit that is set, by de Bruijn's sequence; the word is not 0. O(1)."""
    lowest = word & (~word + _ONE)
    return _PLACES[np.int64((lowest * _DEBRUIJN) >> _SHIFT)]


@borrowing
def schedule_page(market: Market, slot: int, due: float) -> None:
    """Let a page wait until it is due. O(1)."""
    market.pages[slot]["state"] = QUEUED
    which = list_of(market, due)
    if which < market.desk[0]["bins"]:
        _mark(market.bits, market.desk[0]["bins"], which)
    push(market.pages, market.heads, which, slot)


@borrowing
def unschedule_page(market: Market, slot: int) -> None:
    """Take a waiting page out of the wheel. O(1)."""
    emptied = unlink(market.pages, market.heads, slot)
    if 0 <= emptied < market.desk[0]["bins"]:
        _clear(market.bits, market.desk[0]["bins"], emptied)


@borrowing
def bin_of(market: Market, time: float) -> int:
    """The number of the near bin of a time, counted from the origin. O(1)."""
    desk = market.desk[0]
    return int(np.floor(min(max((time - desk["origin"]) / desk["width"], -_LAST), _LAST)))


@borrowing
def next_list(market: Market) -> int:
    """The list with the page that is due first, or NOTHING. O(1) while there is one in the near bins."""
    desk = market.desk[0]
    bins = desk["bins"]
    start = desk["base"] & (bins - 1)
    found = _next_bit(market.bits, bins, start, bins)
    if found < 0 and start > 0:
        found = _next_bit(market.bits, bins, 0, start)
    if found >= 0:
        return found
    first = desk["base"] // (bins // _PER_NEAR)
    for i in range(SPAN):
        which = bins + ((first + i) & (SPAN - 1))
        if market.heads[which] >= 0:
            return which
    first //= _PER_FAR
    for i in range(SPAN):
        which = bins + SPAN + ((first + i) & (SPAN - 1))
        if market.heads[which] >= 0:
            return which
    return bins + 2 * SPAN if market.heads[bins + 2 * SPAN] >= 0 else -1


@borrowing
def next_due_list(market: Market, now_bin: int) -> int:
    """A near list whose time has come, or NOTHING when the wheel has arrived at `now_bin`. Amortised O(1)."""
    desk = market.desk[0]
    bins = desk["bins"]
    step = bins // _PER_NEAR
    while True:
        # Within one middle bin the near bins follow each other without a wrap.
        end = min((desk["base"] // step + 1) * step, now_bin + 1)
        if end > desk["base"]:
            start = desk["base"] & (bins - 1)
            found = _next_bit(market.bits, bins, start, start + end - desk["base"])
            if found >= 0:
                return found
            if end == now_bin + 1:
                # The bin of this very moment stays open.
                desk["base"] = now_bin
                return -1
        elif desk["base"] >= now_bin:
            return -1
        desk["base"] = end
        if end % step == 0:
            _come_near(market, end // step)


@borrowing
def read_ahead(market: Market, now_bin: int) -> None:
    """Read the first two pages of each near bin whose time has come, all at once rather than one after the other."""
    desk = market.desk[0]
    bins = desk["bins"]
    start = desk["base"] & (bins - 1)
    end = min(start + now_bin + 1 - desk["base"], bins, start + _READ_AHEAD)
    touched = 0
    for turn in range(2):
        which = start
        while which < end:
            which = _next_bit(market.bits, bins, which, end)
            if which < 0:
                break
            slot = market.heads[which]
            if turn == 1:
                slot = market.pages[slot]["next"]
            if slot >= 0:
                touched += market.pages[slot]["next"]
            which += 1
    desk["touched"] = touched


@borrowing
def _come_near(market: Market, middle: int) -> None:
    """Move what is in reach of finer bins now that the wheel stands at this middle bin."""
    desk = market.desk[0]
    bins = desk["bins"]
    if middle % _PER_FAR == 0:
        far = middle // _PER_FAR
        if far % (SPAN // 2) == 0:
            _spread(market, bins + 2 * SPAN)
        _spread(market, bins + SPAN + ((far + _PER_NEAR - 1) & (SPAN - 1)))
    _spread(market, bins + ((middle + _PER_NEAR - 1) & (SPAN - 1)))


@borrowing
def _spread(market: Market, which: int) -> None:
    """Put every page of a list where it belongs by now."""
    slot = market.heads[which]
    market.heads[which] = -1
    while slot >= 0:
        page = market.pages[slot]
        following = page["next"]
        schedule_page(market, slot, page["last"] + np.float64(page["wait"]))
        slot = following


@borrowing
def list_of(market: Market, due: float) -> int:
    """The list of pages that are due then. O(1)."""
    desk = market.desk[0]
    bins = desk["bins"]
    step = bins // _PER_NEAR
    number = max(bin_of(market, due), desk["base"])
    middle = number // step
    first = desk["base"] // step
    if middle < first + _PER_NEAR:
        return number & (bins - 1)
    far = middle // _PER_FAR
    first //= _PER_FAR
    if far < first + _PER_NEAR:
        return bins + (middle & (SPAN - 1))
    if far < first + SPAN:
        return bins + SPAN + (far & (SPAN - 1))
    return bins + 2 * SPAN


@borrowing
def _mark(bits: NDArray[np.uint64], bins: int, which: int) -> None:
    word = which >> 6
    bits[word] |= _ONE << np.uint64(which & 63)
    bits[(bins >> 6) + (word >> 6)] |= _ONE << np.uint64(word & 63)


@borrowing
def _clear(bits: NDArray[np.uint64], bins: int, which: int) -> None:
    word = which >> 6
    bits[word] &= ~(_ONE << np.uint64(which & 63))
    if bits[word] == 0:
        bits[(bins >> 6) + (word >> 6)] &= ~(_ONE << np.uint64(word & 63))


@borrowing
def _next_bit(bits: NDArray[np.uint64], bins: int, start: int, end: int) -> int:
    """The first bit that is set from start to before end, or NOTHING."""
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
