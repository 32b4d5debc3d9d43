"""Doubly linked lists of pages, through the page records. Scalar kernels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from recrawl.jit import borrowing
from recrawl.scheduling.table.records import Records

NOTHING = -1


@borrowing
def push(pages: Records, heads: NDArray[np.int32], which: int, slot: int) -> None:
    """Put a page at the head of a list. O(1)."""
    first = heads[which]
    page = pages[slot]
    page["next"] = first
    page["prev"] = -2 - which
    if first >= 0:
        pages[first]["prev"] = slot
    heads[which] = slot


@borrowing
def unlink(pages: Records, heads: NDArray[np.int32], slot: int) -> int:
    """Take a page out of its list; the number of the list if that is empty now, else NOTHING. O(1)."""
    page = pages[slot]
    following = page["next"]
    before = page["prev"]
    if following >= 0:
        pages[following]["prev"] = before
    if before >= 0:
        pages[before]["next"] = following
        return NOTHING
    which = -2 - before
    heads[which] = following
    return which if following < 0 else NOTHING
