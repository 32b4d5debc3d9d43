"""The discrete policies of the NCIS paper, crawl by crawl: the page worth most at every slot, found lazily.

A level of value L is kept a little below the values being sold. A page is a *candidate* from the slot on at which its
value can have reached L; that is known beforehand from the inverse of its value function and its own signals, and a
calendar of slots holds it until then. Each slot looks at candidates only, and among them evaluates only those whose
bound (`lazy_argmax_values`) is not below the best found. A page outside is worth no more than L, so if the best
candidate is worth more than L it is the argmax over all pages; if not, all pages are looked at once, which is the
argmax by definition, and L is set anew. Ties go to the lower page. So the crawls are those of the full argmax.

The cache is empty at the start. A page without a copy is stale and worth importance/change_rate, which does not move:
these pages stand in order, and the first of them competes with the candidates.

The cost of a slot is some hundred comparisons and a few evaluations, however many pages there are.
"""

from __future__ import annotations

import math

import numpy as np

from recrawl.errors import InvalidInput
from recrawl.jit import borrowing, exact
from recrawl.lab.simulation.crawl_log import CrawlLog
from recrawl.lab.simulation.lazy_argmax_calendar import place_in_calendar, set_level
from recrawl.lab.simulation.lazy_argmax_candidates import (
    Candidates,
    Newcomers,
    PageStates,
    Places,
    Run,
    add_candidate,
    best_candidate,
    chosen_page,
    evaluate,
    hear,
    remove_candidate,
    value_of,
)
from recrawl.lab.simulation.lazy_argmax_values import Beliefs
from recrawl.lab.simulation.world import Events
from recrawl.pages import Floats

# The best candidate must be above L by this share, which is more than rounding can hide.
_CLEAR = 1e-10
# Candidates that L aims at. Every slot passes over them all, and the more there are the rarer L runs out of them: then
# all pages must be looked at, so there have to be more where that takes long.
_FEWEST, _ENOUGH, _PAGES_WORTH_ONE = 12, 48, 300
_LEAST_PAGES_EACH = 8
# So many times the wanted candidates are too many, and L rises.
_TOO_MANY = 3


def crawl_by_argmax(beliefs: Beliefs, signals: Events, slots: Floats, quiet: float = 0.0) -> CrawlLog:
    """Crawl at each slot the page that is worth most.

    Args:
        beliefs: the pages as the policy sees them.
        signals: when signals of each page arrive; one at the very time of a slot has been heard.
        slots: times of the crawls, in order.
        quiet: signals that arrive within so long after a crawl of their page are dropped.

    Returns:
        The log. O(slots · (candidates + log slots)), about a microsecond a slot.

    >>> from recrawl.lab.simulation.lazy_argmax_values import beliefs
    >>> from recrawl.lab.simulation.world import no_events
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
