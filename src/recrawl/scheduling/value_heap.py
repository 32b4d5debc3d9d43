"""A heap of pages by value, highest first, in two arrays. Scalar kernels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.jit import borrowing
from recrawl.pages import Floats


class Offers(NamedTuple):
    """Pages and their values, a heap over the first entries of both."""

    values: Floats
    slots: NDArray[np.int32]


@borrowing
def heapify(offers: Offers, count: int) -> None:
    """Make a heap of the first `count` entries. O(count)."""
    for place in range(count // 2 - 1, -1, -1):
        _sift_down(offers, count, place)


@borrowing
def pop_highest(offers: Offers, count: int) -> int:
    """Drop the highest; the number of entries left. O(log count).

    The gap goes down to the last row, and the last entry rises from there: it seldom rises far, and the way down takes
    no guess by the processor that may be wrong.
    """
    values, slots = offers.values, offers.slots
    count -= 1
    value, slot = values[count], slots[count]
    place, below = 0, 1
    while below + 1 < count:
        left, right = values[below], values[below + 1]
        left_slot, right_slot = slots[below], slots[below + 1]
        to_the_right = (right > left) | ((right == left) & (right_slot < left_slot))
        values[place] = right if to_the_right else left
        slots[place] = right_slot if to_the_right else left_slot
        place = below + to_the_right
        below = 2 * place + 1
    if below < count:
        values[place], slots[place] = values[below], slots[below]
        place = below
    _rise(offers, place, value, slot)
    return count


@borrowing
def push_value(offers: Offers, count: int, value: float, slot: int) -> int:
    """Add a page; the number of entries. O(log count)."""
    _rise(offers, count, value, slot)
    return count + 1


@borrowing
def _before(value: float, slot: int, other: float, other_slot: int) -> bool:
    """Higher values first, and of equal ones the lower slot, so that the order does not depend on the past."""
    return value > other or (value == other and slot < other_slot)


@borrowing
def _rise(offers: Offers, place: int, value: float, slot: int) -> None:
    """Put an entry at a place or as far above it as it belongs."""
    values, slots = offers.values, offers.slots
    while place > 0:
        above = (place - 1) >> 1
        if not _before(value, slot, values[above], slots[above]):
            break
        values[place], slots[place] = values[above], slots[above]
        place = above
    values[place], slots[place] = value, slot


@borrowing
def _sift_down(offers: Offers, count: int, place: int) -> None:
    if place >= count:
        return
    values, slots = offers.values, offers.slots
    value, slot = values[place], slots[place]
    while True:
        below = 2 * place + 1
        if below >= count:
            break
        right = below + 1
        if right < count and _before(values[right], slots[right], values[below], slots[below]):
            below = right
        if not _before(values[below], slots[below], value, slot):
            break
        values[place], slots[place] = values[below], slots[below]
        place = below
    values[place], slots[place] = value, slot
