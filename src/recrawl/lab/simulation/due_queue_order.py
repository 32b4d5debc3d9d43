"""Which of the due pages goes first, where that is not the one longest overdue. Scalar kernels."""

from __future__ import annotations

from typing import NamedTuple

from recrawl.jit import borrowing
from recrawl.lab.peers.rules import BY_SCORE
from recrawl.pages import Floats
from recrawl.scheduling.value_heap import Offers, pop_highest, push_value

_LEAST_WAIT = 1e-9  # days; a page that was due at once is overdue by any share of its wait


class Due(NamedTuple):
    """Due pages in the first entries of `pages`, and by page since when, and the wait before that."""

    pages: Offers
    since: Floats
    wait: Floats


@borrowing
def next_due(order: int, due: Due, count: int, page: int, since: float, importance: float) -> int:
    """Add a page that has become due; the number of due pages. O(log count)."""
    due.since[page] = since
    if order == BY_SCORE:
        return push_value(due.pages, count, importance, page)
    due.pages.slots[count] = page
    return count + 1


@borrowing
def pick_due(order: int, due: Due, count: int, now: float) -> int:
    """Take the page that goes first out of those due. O(log count) by score, O(count) by share of the wait."""
    slots = due.pages.slots
    if order == BY_SCORE:
        page = slots[0]
        pop_highest(due.pages, count)
        return int(page)
    best, most = 0, -1.0
    for place in range(count):
        page = slots[place]
        share = (now - due.since[page]) / max(due.wait[page], _LEAST_WAIT)
        if share > most or (share == most and page < slots[best]):
            best, most = place, share
    page = slots[best]
    slots[best] = slots[count - 1]
    return int(page)
