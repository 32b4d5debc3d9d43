"""The table of pages: slots, generations and the arrays beside them.

An id is generation · 2³² + slot. Slots are dense. When a page is removed, its slot is reused and the slot's generation
rises, so that old ids stay unknown. The table grows by half when it is full.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.errors import InvalidInput, UnknownPage
from recrawl.jit import kernel
from recrawl.learning.filter_state import FilterState, empty_state
from recrawl.pages import Floats
from recrawl.scheduling.table.hosts import HostTable
from recrawl.scheduling.table.records import (
    FLIGHT,
    FREE,
    IDLE,
    IN_FLIGHT,
    LIMITED,
    LIMITS,
    PAGE,
    READY,
    SIGNALS,
    SLOT_BITS,
    STATES,
    Ids,
    Records,
    Slots,
)
from recrawl.scheduling.value import VALUE, Tables, appraise

_SLOT_MASK = (1 << SLOT_BITS) - 1
_MOST_PAGES = 2**31 - 2
_GENERATIONS = 2**31 - 1
_CHUNK = 4096  # pages that are read together
_ALIGNED = 64  # bytes of a cache line


class PageTable:
    """The pages of a scheduler. Arrays are replaced when they grow: do not keep them."""

    def __init__(self, burst: float) -> None:
        self.pages: Records = aligned_records(0, PAGE)
        self.limits: Records = np.zeros(0, dtype=LIMITS)
        self.signals: Records = np.zeros(0, dtype=SIGNALS)
        self.beliefs: FilterState = empty_state(0)
        self.flights: Records = np.zeros(1, dtype=FLIGHT)
        self.hosts = HostTable()
        self.used = 0  # slots ever given out
        self.live = 0  # pages that are there
        self.burst = burst
        self.least_cost = 1.0
        self.version = 0  # rises whenever an array is replaced or a count changes
        self._first_free = -1  # free slots are chained through `next`

    def allocate(self, count: int) -> Slots:
        """Return slots for new pages, in state IDLE and otherwise blank. O(count), amortised."""
        if self.live + count > _MOST_PAGES:
            raise InvalidInput(f"{self.live + count:,} pages are more than one scheduler holds ({_MOST_PAGES:,})")
        slots = np.empty(count, dtype=np.int64)
        reused, self._first_free = _take_free(self.pages, self._first_free, slots)
        fresh = count - reused
        if self.used + fresh > len(self.pages):
            self._grow(self.used + fresh)
        slots[reused:] = np.arange(self.used, self.used + fresh)
        self.used += fresh
        self.live += count
        self.version += 1
        _blank(self.pages, slots)
        for beside in (self.limits, self.signals, self.beliefs):
            if len(beside) and reused:
                beside[slots[:reused]] = 0
        return slots

    def free(self, slots: Slots) -> None:
        """Free slots; their ids are unknown from now on. O(slots)."""
        self._first_free = _give_back(self.pages, self._first_free, slots)
        self.live -= len(slots)
        self.version += 1

    def free_slots(self) -> Slots:
        """Return the free slots in the order in which they are given out. O(free slots)."""
        slots = np.empty(self.used - self.live, dtype=np.int64)
        _take_free(self.pages, self._first_free, slots)
        return slots

    def resume(self, pages: Records, flights: Records, free: Slots) -> None:
        """Replace all pages by those of a snapshot, in no queue, and count those in flight at their hosts. O(pages).

        Args:
            pages: the records, without links.
            flights: a record for each page in flight, in order of slots.
            free: the free slots, in the order in which they are given out.
        """
        pages["next"] = pages["prev"] = pages["child"] = -1
        pages["next"][free[:-1]] = free[1:]
        in_flight = np.flatnonzero(pages["state"] == IN_FLIGHT)
        pages["next"][in_flight] = np.arange(1, len(in_flight) + 1)
        hosts = pages["host"][in_flight]
        self.hosts.records["in_flight"] = np.bincount(hosts[hosts >= 0], minlength=len(self.hosts))
        self.pages, self.flights = pages, np.append(np.zeros(1, dtype=FLIGHT), flights)
        self._first_free = int(free[0]) if len(free) else -1
        self.used, self.live = len(pages), len(pages) - len(free)
        self.version += 1

    def need_limits(self) -> None:
        """Make the array of limits if it is empty."""
        if not len(self.limits):
            self.limits = np.zeros(len(self.pages), dtype=LIMITS)
            self.version += 1

    def need_signals(self) -> None:
        """Make the array of signals if it is empty."""
        if not len(self.signals):
            self.signals = np.zeros(len(self.pages), dtype=SIGNALS)
            self.version += 1

    def need_beliefs(self) -> None:
        """Make the array of learned rates if it is empty."""
        if not len(self.beliefs):
            self.beliefs = empty_state(len(self.pages))

    def add_flights(self, count: int) -> None:
        """Make room for `count` more pages in flight. O(count), amortised."""
        used = len(self.flights)
        longer = np.zeros(max(used + count, 2 * used), dtype=FLIGHT)
        longer[:used] = self.flights
        longer["next_free"][used:] = np.arange(used + 1, len(longer) + 1)
        longer["next_free"][-1] = longer["next_free"][0]
        longer["next_free"][0] = used
        self.flights = longer

    def ids_of(self, slots: Slots) -> Ids:
        """Return the ids of pages. O(slots)."""
        ids = np.empty(len(slots), dtype=np.int64)
        _fill_ids(self.pages, slots, ids)
        return ids

    def slots_of(self, ids: ArrayLike) -> Slots:
        """Return the slots of ids; raise UnknownPage for the first id that no page has. O(ids)."""
        numbers = read_ids(ids)
        slots = np.empty(len(numbers), dtype=np.int64)
        bad = _find_slots(self.pages, self.used, numbers, slots)
        if bad >= 0:
            raise UnknownPage(int(numbers[bad]), row=int(bad))
        return slots

    def distinct_slots_of(self, ids: ArrayLike) -> Slots:
        """Return the slots of ids; raise InvalidInput if an id comes twice. O(ids · log ids)."""
        slots = self.slots_of(ids)
        if len(slots) == 1:
            return slots
        again = comes_again(slots)
        if again.any():
            raise InvalidInput("holds an id twice", field="ids", row=int(np.argmax(again)))
        return slots

    def slot_of(self, page: ArrayLike) -> int:
        """Return the slot of one id."""
        slots = self.slots_of(page)
        if len(slots) != 1:
            raise InvalidInput(f"holds {len(slots)} ids, but one page is explained at a time", field="page")
        return int(slots[0])

    def values(self, slots: Slots, now: float, price: float = 0.0) -> Floats:
        """Return what a crawl of each page is worth now, by unit of cost. O(slots)."""
        return self.appraise(slots, now, price, VALUE)[1]

    def appraise(self, slots: Slots, now: float, price: float, mode: int) -> Floats:
        """Return waits, values and thresholds of pages, as far as the mode asks (`value.appraise`). O(slots)."""
        out = np.empty((3, len(slots)))
        appraise(self.tables, slots, now, price, mode, out)
        return out

    @property
    def tables(self) -> Tables:
        """The arrays that values are computed from."""
        return self.pages, self.limits, self.signals if len(self.signals) else None, self.hosts.records

    def cost(self, slots: Slots) -> float:
        """Return the total cost of crawls of these pages. O(slots)."""
        if len(slots) == 1 and len(self.limits):
            limited = self.pages["flags"][slots[0]] & LIMITED
            return float(self.limits["cost"][slots[0]]) if limited else 1.0
        return float(self.costs(slots).sum()) if len(self.limits) else float(len(slots))

    def costs(self, slots: Slots) -> Floats:
        """Return the cost of a crawl of each page. O(slots)."""
        if not len(self.limits):
            return np.ones(len(slots))
        limited = self.pages["flags"][slots] & LIMITED != 0
        return np.where(limited, self.limits["cost"][slots], 1.0).astype(np.float64)

    def most_rate(self, enough: float) -> float:
        """Return the cost per unit time that least intervals allow, infinity if a page has none. O(pages).

        Args:
            enough: stop the sum once it reaches this.
        """
        rate = 0.0
        for start in range(0, self.used, _CHUNK):
            pages = self.pages[start : min(start + _CHUNK, self.used)]
            live = (pages["state"] != FREE) & (pages["gain"] > 0.0)
            if (live & (pages["flags"] & LIMITED == 0)).any():
                return math.inf
            limits = self.limits[start : start + len(pages)][live] if live.any() else self.limits[:0]
            if (limits["min_interval"] <= 0.0).any():
                return math.inf
            rate += float((limits["cost"] / limits["min_interval"].astype(np.float64)).sum())
            if rate >= enough:
                break
        return rate

    def count_states(self) -> tuple[int, int, int]:
        """Count the pages that are in flight, on offer and waiting. O(pages)."""
        counts = np.bincount(self.pages["state"][: self.used], minlength=STATES)
        in_flight, on_offer = int(counts[IN_FLIGHT]), int(counts[READY])
        return in_flight, on_offer, self.live - in_flight - on_offer

    @property
    def bytes_per_page(self) -> float:
        """Bytes of the arrays for each page, without spare room."""
        arrays = [self.pages, self.limits, self.signals, self.beliefs]
        return float(sum(array.dtype.itemsize for array in arrays if len(array)))

    def _grow(self, needed: int) -> None:
        room = max(needed, len(self.pages) * 3 // 2, 16)
        pages = aligned_records(room, PAGE)
        pages[: self.used] = self.pages[: self.used]
        self.pages = pages
        self.limits = _longer(self.limits, room)
        self.signals = _longer(self.signals, room)
        self.beliefs = _longer(self.beliefs, room)


def comes_again(slots: Slots) -> NDArray[np.bool_]:
    """Return which slots came before in the array. O(slots · log slots)."""
    again = np.ones(len(slots), dtype=np.bool_)
    again[np.unique(slots, return_index=True)[1]] = False
    return again


def read_ids(ids: ArrayLike) -> Ids:
    """Check ids: one whole number or an array of them. O(ids)."""
    if isinstance(ids, np.ndarray) and ids.dtype == np.int64 and ids.ndim == 1:
        return ids
    try:
        array = np.asarray(ids)
    except ValueError:
        raise InvalidInput("must be a plain array of whole numbers", field="ids") from None
    if array.ndim == 0:
        array = array.reshape(1)
    if array.ndim != 1 or (array.dtype.kind not in "iu" and len(array)):
        raise InvalidInput(
            f"holds {array.dtype} in {array.ndim} dimensions, but must be a plain array of ids", field="ids"
        )
    return array.astype(np.int64, copy=False)


def aligned_records(count: int, dtype: np.dtype[np.void]) -> Records:
    """Return records of zeros that begin at a cache line."""
    room = np.zeros(count * dtype.itemsize + _ALIGNED, dtype=np.uint8)
    start = -room.ctypes.data % _ALIGNED
    return room[start : start + count * dtype.itemsize].view(dtype)


def _longer(records: Records, room: int) -> Records:
    if not len(records):
        return records
    longer = np.zeros(room, dtype=records.dtype)
    longer[: len(records)] = records
    return longer


@kernel
def _take_free(pages: Records, first: int, slots: Slots) -> tuple[int, int]:
    """Fill slots from the chain of free ones; return how many there were, and the first that is left."""
    count = 0
    while count < len(slots) and first >= 0:
        slots[count] = first
        first = pages[first]["next"]
        count += 1
    return count, first


@kernel
def _blank(pages: Records, slots: Slots) -> None:
    for i in range(len(slots)):
        page = pages[slots[i]]
        page["state"] = IDLE
        page["failures"] = page["flags"] = 0
        page["signals"] = page["belief"] = page["not_before"] = page["wait"] = 0.0
        page["next"] = page["prev"] = page["child"] = page["host"] = -1


@kernel
def _give_back(pages: Records, first: int, slots: Slots) -> int:
    for i in range(len(slots)):
        page = pages[slots[i]]
        page["state"] = FREE
        page["generation"] = (np.int64(page["generation"]) + 1) % _GENERATIONS
        page["next"] = first
        first = slots[i]
    return first


@kernel
def _fill_ids(pages: Records, slots: Slots, ids: Ids) -> None:
    for i in range(len(slots)):
        ids[i] = (np.int64(pages[slots[i]]["generation"]) << SLOT_BITS) | slots[i]


@kernel
def _find_slots(pages: Records, used: int, ids: Ids, slots: Slots) -> int:
    """Fill slots; return the place of the first unknown id, or -1."""
    for i in range(len(ids)):
        slot = ids[i] & _SLOT_MASK
        if ids[i] < 0 or slot >= used:
            return i
        page = pages[slot]
        if page["state"] == FREE or np.int64(page["generation"]) != ids[i] >> SLOT_BITS:
            return i
        slots[i] = slot
    return -1
