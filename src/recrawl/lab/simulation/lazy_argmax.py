"""The discrete policies of the NCIS paper, crawl by crawl: the page worth most at every slot, found lazily.

A level of value L is kept a little below the values being sold. A page is a *candidate* from the slot on at which its
value can have reached L; that is known beforehand from the inverse of its value function and its own signals, and a
calendar of slots holds it until then. Each slot looks at candidates only, and among them evaluates only those whose
bound (`ncis_values.py`) is not below the best found. A page outside is worth no more than L, so if the best
candidate is worth more than L it is the argmax over all pages; if not, all pages are looked at once, which is the
argmax by definition, and L is set anew. Ties go to the lower page. So the crawls are those of the full argmax.

The cache is empty at the start. A page without a copy is stale and worth importance/change_rate, which does not move:
these pages stand in order, and the first of them competes with the candidates.

The cost of a slot is some hundred comparisons and a few evaluations, however many pages there are.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import InvalidInput
from recrawl.jit import borrowing, exact
from recrawl.lab.simulation.ncis_values import Beliefs, level_below, page_of, worth_of
from recrawl.lab.worlds.world import CrawlLog, Events, Ints
from recrawl.pages import Floats

Places = NDArray[np.int32]

# Bounds are raised by this share, which is more than rounding can hide.
_SLACK = 1e-9

# The best candidate must be above L by this share, which is more than rounding can hide.
_CLEAR = 1e-10
# Candidates that L aims at. Every slot passes over them all, and the more there are the rarer L runs out of them: then
# all pages must be looked at, so there have to be more where that takes long.
_FEWEST, _ENOUGH, _PAGES_WORTH_ONE = 12, 48, 300
_LEAST_PAGES_EACH = 8
# So many times the wanted candidates are too many, and L rises.
_TOO_MANY = 3


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


def crawl_by_argmax(beliefs: Beliefs, signals: Events, slots: Floats, quiet: float = 0.0) -> CrawlLog:
    """Crawl at each slot the page that is worth most.

    Args:
        beliefs: the pages as the policy sees them.
        signals: when signals of each page arrive; one at the very time of a slot has been heard.
        slots: times of the crawls, in order.
        quiet: signals that arrive within so long after a crawl of their page are dropped.

    Returns:
        The log. O(slots · (candidates + log slots)), about a microsecond a slot.

    >>> from recrawl.lab.simulation.ncis_values import beliefs
    >>> from recrawl.lab.worlds.world import no_events
    >>> importance, rate, none = np.array([3.0, 1.0]), np.array([0.5, 0.5]), np.zeros(2)
    >>> log = crawl_by_argmax(beliefs("greedy", importance, rate, none, none), no_events(2), np.arange(1.0, 9.0))
    >>> log.page.tolist()
    [0, 1, 0, 0, 1, 0, 0, 1]
    """
    pages = len(beliefs.importance)
    if not pages or len(signals.offsets) != pages + 1:
        raise InvalidInput(f"has {len(signals.offsets) - 1} pages, but there are {pages}", field="signals")
    if np.any(np.diff(slots) < 0.0):
        raise InvalidInput("must be in order of time", field="slots", row=int(np.argmax(np.diff(slots) < 0.0)) + 1)
    worth = beliefs.importance / beliefs.pages[:, 0]
    order = np.argsort(-worth, kind="stable")
    run = Run(
        beliefs,
        signals,
        slots,
        quiet,
        PageStates(
            last=np.full(pages, -math.inf),
            heard=np.zeros(pages),
            cursor=signals.offsets[:-1].copy(),
            level=np.zeros(pages),
            level_price=np.full(pages, -1.0),
            following=np.full(pages, -1, dtype=np.int32),
        ),
        Candidates(np.zeros(pages, dtype=np.int32), *(np.zeros(pages) for _ in range(6))),
        Newcomers(order.astype(np.int32), worth[order]),
        np.full(len(slots) + 1, -1, dtype=np.int32),
        np.zeros(1),
        np.zeros(2, dtype=np.int64),
    )
    chosen = np.empty(len(slots), dtype=np.int32)
    _crawl_all(run, np.empty(pages), chosen)
    return CrawlLog(chosen, slots)


@exact
def _crawl_all(run: Run, values: Floats, chosen: Places) -> None:
    wanted = _wanted(run.pages.last.size)
    for slot in range(run.slots.size):
        now = run.slots[slot]
        _admit(run, slot, now)
        best = best_candidate(run, now)
        if not value_of(run, best) > run.price[0] * (1.0 + _CLEAR):
            _look_at_all(run, slot, wanted, values)
            best = best_candidate(run, now)
        chosen[slot] = _crawl(run, best, slot, now)
        if run.counts[0] > _TOO_MANY * wanted:
            _raise_price(run, slot, wanted, values)


@exact
def _wanted(pages: int) -> int:
    """How many candidates to aim at; any number crawls alike."""
    return max(min(max(pages // _LEAST_PAGES_EACH, _FEWEST), _ENOUGH), pages // _PAGES_WORTH_ONE)


@borrowing
def _admit(run: Run, slot: int, now: float) -> None:
    """Make candidates of the pages whose slot this is, but let those wait on whose level was of an earlier, lower L."""
    page = run.first_due[slot]
    while page >= 0:
        following = run.pages.following[page]
        waits = False
        if run.pages.level_price[page] < run.price[0]:
            hear(run, page, now)
            set_level(run, page)
            waits = place_in_calendar(run, page, slot)
        if not waits:
            add_candidate(run, page, now)
        page = following


@borrowing
def _crawl(run: Run, best: int, slot: int, now: float) -> int:
    page = chosen_page(run, best)
    if best >= 0:
        remove_candidate(run, best)
    else:
        run.counts[1] += 1
    hear(run, page, now + run.quiet)
    run.pages.heard[page] = 0.0
    run.pages.last[page] = now
    set_level(run, page)
    if not place_in_calendar(run, page, slot):
        add_candidate(run, page, now)
    return page


@exact
def _look_at_all(run: Run, slot: int, wanted: int, values: Floats) -> None:
    """Evaluate every page that has a copy, set L so that the wanted number is above it, and sort all anew."""
    now = run.slots[slot]
    copies = run.counts[1]
    for i in range(copies):
        run.counts[0] = 0
        values[i] = run.candidates.value[add_candidate(run, run.newcomers.page[i], now)]
    run.counts[0] = 0
    run.first_due[:] = -1
    # Just below, so that all which are worth as much as the last wanted one become candidates too.
    run.price[0] = np.sort(values[:copies])[copies - wanted] * (1.0 - 1e-6) if copies > wanted else 0.0
    for i in range(copies):
        page = run.newcomers.page[i]
        set_level(run, page)
        if values[i] >= run.price[0] or not place_in_calendar(run, page, slot):
            add_candidate(run, page, now)


@exact
def _raise_price(run: Run, slot: int, wanted: int, values: Floats) -> None:
    """Raise L to what the last wanted candidate is worth; the others wait again."""
    now = run.slots[slot]
    count = run.counts[0]
    for place in range(count):
        evaluate(run, place, now)
    values[:count] = run.candidates.value[:count]
    price = np.sort(values[:count])[count - wanted]
    if not price > run.price[0]:
        return
    run.price[0] = price
    for place in range(count - 1, -1, -1):
        if run.candidates.value[place] < price:
            page = run.candidates.page[place]
            set_level(run, page)
            if place_in_calendar(run, page, slot):
                remove_candidate(run, place)
