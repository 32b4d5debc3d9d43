"""What a keeper of pages writes down between two lives of a scheduler, and gives back: beliefs and waits.

A snapshot keeps a whole scheduler at one moment. Whoever keeps pages one by one, each with its last crawl, stores the
belief of a page beside it and adds the pages anew after a restart; what was learned and what they wait for goes on.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.errors import InvalidInput
from recrawl.learning.filter_state import PAGE_STATE, FilterState
from recrawl.pages import Floats
from recrawl.scheduling.page_record import Slots
from recrawl.scheduling.page_table import PageTable
from recrawl.scheduling.writing import floors, up

MOST_FAILURES = 255


def read_beliefs(beliefs: Any, count: int) -> FilterState:
    """Beliefs that a scheduler gave before, as records or as their bytes, checked. O(count)."""
    if isinstance(beliefs, (bytes, bytearray, memoryview)):
        beliefs = np.frombuffer(beliefs, dtype=np.uint8)
    if not isinstance(beliefs, np.ndarray):
        raise InvalidInput("must be what `beliefs` gave, or its bytes", field="beliefs")
    if beliefs.dtype == np.uint8:
        if beliefs.size != count * PAGE_STATE.itemsize:
            problem = f"has {beliefs.size} bytes, but {count} pages have {count * PAGE_STATE.itemsize}"
            raise InvalidInput(problem, field="beliefs")
        beliefs = np.ascontiguousarray(beliefs).reshape(-1).view(PAGE_STATE)
    if beliefs.dtype != PAGE_STATE or beliefs.shape != (count,):
        raise InvalidInput(f"must be the beliefs of {count} pages", field="beliefs")
    numbers = [name for name in PAGE_STATE.names or () if PAGE_STATE[name].kind == "f"]
    for name in numbers:
        column = beliefs[name]
        wrong = ~np.isfinite(column) | ((column < 0) & (name != "gap_skew"))
        if wrong.any():
            problem = f"has {name} = {column[np.argmax(wrong)]!r}, which no page has: drop it, and the page learns anew"
            raise InvalidInput(problem, field="beliefs", row=int(np.argmax(wrong)))
    known: FilterState = beliefs.copy()
    return known


def read_failures(failures: ArrayLike, count: int) -> NDArray[np.uint8]:
    """Failures in a row, checked; more than the record holds count as its most."""
    column = np.broadcast_to(np.asarray(failures), (count,))
    if column.dtype.kind not in "iu" or (column < 0).any():
        raise InvalidInput("must be whole numbers of 0 or more", field="failures")
    return np.minimum(column, MOST_FAILURES).astype(np.uint8)


def read_holds(held_until: ArrayLike, count: int) -> Floats:
    """Times until which pages wait, checked; NaN for none."""
    column: Floats = np.broadcast_to(np.asarray(held_until, dtype=np.float64), (count,))
    if np.isinf(column).any():
        raise InvalidInput("must be finite; remove a page that is to wait for ever", field="held_until")
    return column


def write_holds(table: PageTable, slots: Slots, failures: NDArray[np.uint8], held_until: Floats) -> None:
    """Let pages wait until these times at least. O(slots)."""
    pages = table.pages
    held = ~np.isnan(held_until)
    chosen = slots[held]
    pages["failures"][slots] = failures
    waits = np.maximum(held_until[held] - pages["last"][chosen], 0.0)
    pages["not_before"][chosen] = np.maximum(up(waits), pages["not_before"][chosen])


def lift_holds(table: PageTable, slots: Slots) -> None:
    """Let pages wait no longer than their least intervals ask; those that failed wait on. O(slots)."""
    chosen = slots[table.pages["failures"][slots] == 0]
    table.pages["not_before"][chosen] = up(floors(table, chosen))
