"""The calendar of the lazy argmax: at which slot a page can have become worth L, by time and by its own signals.

Kernels that change the arrays of a run in place; `lazy_argmax` says how they play together.
"""

from __future__ import annotations

import math

import numpy as np

from recrawl.jit import borrowing
from recrawl.lab.simulation.lazy_argmax_candidates import Run
from recrawl.lab.simulation.lazy_argmax_values import level_below, page_of


@borrowing
def set_level(run: Run, page: int) -> None:
    """Find the level of a page at which it is worth L, unless it is known."""
    price = run.price[0]
    if run.pages.level_price[page] == price:
        return
    facts = page_of(run.beliefs.pages, page)
    importance = run.beliefs.importance[page]
    level = math.inf
    if importance > price * facts.change_rate:
        level = level_below(facts, price / importance, run.beliefs.terms, run.pages.level[page])
    run.pages.level[page] = level
    run.pages.level_price[page] = price


@borrowing
def _due(run: Run, page: int) -> float:
    """When the page comes to its level, by the time that passes and the signals that will come."""
    level, last = run.pages.level[page], run.pages.last[page]
    if math.isinf(level):
        return math.inf
    silent_rate, signal_rate = run.beliefs.pages[page, 1], run.beliefs.pages[page, 2]
    weight = run.beliefs.pages[page, 5]
    cursor, end = run.pages.cursor[page], run.signals.offsets[page + 1]
    heard = run.pages.heard[page]
    if signal_rate == 0.0:
        return float(last + level / silent_rate)
    while True:
        missing = level - heard * weight if heard > 0.0 else level
        if missing <= 0.0:
            return float(last)  # what was heard already is enough
        reached = last + missing / silent_rate if silent_rate > 0.0 else math.inf
        if cursor >= end or reached <= run.signals.times[cursor]:
            return float(reached)
        heard += 1.0
        cursor += 1
        time = run.signals.times[cursor - 1]
        if heard * weight + silent_rate * (time - last) >= level:
            return float(time)


@borrowing
def place_in_calendar(run: Run, page: int, slot: int) -> bool:
    """Let a page wait for the slot at which it comes to its level; False if that is this one or past."""
    due = run.slots.size
    time = _due(run, page)
    if time <= run.slots[slot]:
        return False
    if time <= run.slots[-1]:
        due = int(np.searchsorted(run.slots, time))
    if due < run.slots.size:
        run.pages.following[page] = run.first_due[due]
        run.first_due[due] = page
    return True
