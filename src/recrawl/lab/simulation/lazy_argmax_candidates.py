"""What a run of the lazy argmax holds, and its candidates: who they are, what they are worth, which is worth most.

Kernels that change the arrays of a run in place; `lazy_argmax` says how they play together.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.jit import borrowing
from recrawl.lab.simulation.lazy_argmax_values import Beliefs, page_of, worth_of
from recrawl.lab.simulation.world import Events, Ints
from recrawl.pages import Floats

Places = NDArray[np.int32]

# Bounds are raised by this share, which is more than rounding can hide.
_SLACK = 1e-9


class PageStates(NamedTuple):
    """What is known of each page: when it was crawled, signals heard since, where its next is, and its level at L."""

    last: Floats
    heard: Floats
    cursor: Ints
    level: Floats
    level_price: Floats
    following: Places


class Candidates(NamedTuple):
    """Pages that may be worth more than L: value and growth when last found, and when the next signal comes."""

    page: Places
    value: Floats
    slope: Floats
    curve: Floats
    found: Floats
    next_signal: Floats
    bound: Floats


class Newcomers(NamedTuple):
    """Pages without a copy, those that are worth most first, and what they are worth."""

    page: Places
    value: Floats


class Run(NamedTuple):
    """Everything of one run: `price` holds L, `counts` the numbers of candidates and of pages that have a copy."""

    beliefs: Beliefs
    signals: Events
    slots: Floats
    quiet: float
    pages: PageStates
    candidates: Candidates
    newcomers: Newcomers
    first_due: Places
    price: Floats
    counts: Ints


@borrowing
def hear(run: Run, page: int, now: float) -> None:
    """Count the signals of a page up to now."""
    cursor, end = run.pages.cursor[page], run.signals.offsets[page + 1]
    while cursor < end and run.signals.times[cursor] <= now:
        run.pages.heard[page] += 1.0
        cursor += 1
    run.pages.cursor[page] = cursor


@borrowing
def evaluate(run: Run, place: int, now: float) -> None:
    """What the candidate at this place is worth now."""
    page = run.candidates.page[place]
    hear(run, page, now)
    cursor = run.pages.cursor[page]
    facts = page_of(run.beliefs.pages, page)
    worth = worth_of(facts, now - run.pages.last[page], run.pages.heard[page], run.beliefs.terms)
    importance = run.beliefs.importance[page]
    run.candidates.value[place] = importance * worth.value
    run.candidates.slope[place] = importance * worth.slope
    run.candidates.curve[place] = importance * worth.curve
    run.candidates.found[place] = now
    listens = facts.signal_rate > 0.0 and cursor < run.signals.offsets[page + 1]
    run.candidates.next_signal[place] = run.signals.times[cursor] if listens else math.inf


@borrowing
def add_candidate(run: Run, page: int, now: float) -> int:
    """Make a candidate of a page and evaluate it; returns its place."""
    place = run.counts[0]
    run.counts[0] += 1
    run.candidates.page[place] = page
    evaluate(run, place, now)
    return int(place)


@borrowing
def remove_candidate(run: Run, place: int) -> None:
    """Take a candidate out; the last one moves to its place."""
    run.counts[0] -= 1
    last = run.counts[0]
    held = run.candidates
    held.page[place] = held.page[last]
    held.value[place] = held.value[last]
    held.slope[place] = held.slope[last]
    held.curve[place] = held.curve[last]
    held.found[place] = held.found[last]
    held.next_signal[place] = held.next_signal[last]
    held.bound[place] = held.bound[last]


@borrowing
def value_of(run: Run, best: int) -> float:
    """What the best is worth: a candidate by its place, or -1 for the first newcomer; -1 if there is none."""
    if best >= 0:
        value: float = run.candidates.value[best]
        return value
    newcomer = run.counts[1]
    return run.newcomers.value[newcomer] if newcomer < run.newcomers.page.size else -1.0


@borrowing
def chosen_page(run: Run, best: int) -> int:
    """The page of a candidate by its place, or of the first newcomer for -1; the number of pages if there is none."""
    if best >= 0:
        return int(run.candidates.page[best])
    newcomer = run.counts[1]
    return int(run.newcomers.page[newcomer]) if newcomer < run.newcomers.page.size else run.newcomers.page.size


@borrowing
def _set_bounds(held: Candidates, count: int, now: float) -> None:
    """Bound what each candidate can be worth now. One array written and no branches, so that the loop vectorises."""
    for place in range(count):
        since = now - held.found[place]
        most = (held.value[place] + since * (held.slope[place] + since * held.curve[place])) * (1.0 + _SLACK)
        held.bound[place] = most if held.next_signal[place] > now else math.inf


@borrowing
def _highest_bound(run: Run) -> int:
    """The place of the candidate with the highest bound, -1 if there are none."""
    bound = run.candidates.bound
    best = -1
    highest = -1.0
    for place in range(run.counts[0]):
        if bound[place] > highest:
            highest = bound[place]
            best = place
    return best


@borrowing
def best_candidate(run: Run, now: float) -> int:
    """The place of the candidate that is worth most, evaluated now; -1 if it is the first newcomer, or none."""
    _set_bounds(run.candidates, run.counts[0], now)
    first = _highest_bound(run)
    best = -1
    most = value_of(run, best)
    if first >= 0 and run.candidates.bound[first] >= most:
        best, most = _better(run, best, first, now)
    for place in range(run.counts[0]):
        if run.candidates.bound[place] >= most and place != first:
            best, most = _better(run, best, place, now)
    return best


@borrowing
def _better(run: Run, best: int, place: int, now: float) -> tuple[int, float]:
    """Evaluate a candidate: the better of it and the best so far, and what that is worth; ties to the lower page."""
    evaluate(run, place, now)
    value, most = run.candidates.value[place], value_of(run, best)
    if value > most or (value == most and run.candidates.page[place] < chosen_page(run, best)):
        return place, value
    return best, most
