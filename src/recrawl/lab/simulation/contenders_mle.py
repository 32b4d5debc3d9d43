"""Plain maximum likelihood with the exact greedy choice: what a careful reader of the papers would write first.

Every page has its own smoothed maximum-likelihood rate, from its own crawls alone (LambdaCrawl, Kolobov et al. 2019;
the imaginary crawls have the mean gap, pages over budget), and each slot goes to the page whose crawl is worth most for
freshness at that rate, (μ/Δ) g(Δτ). New pages are crawled first. No prior, no forgetting, no doubt, no signals.

The choice is that of a search through all pages, made without one: pages are candidates from the time on at which they
are worth some level, and as long as there are candidates no other page can be worth more. When there are none all
pages are searched, and the level is set below what was found.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.jit import exact, kernel
from recrawl.lab.simulation.policy import CHANGED, GONE, Truth, look, truth_of
from recrawl.lab.simulation.scheduler_run import check_run, crawl_times
from recrawl.lab.worlds.world import CrawlLog, Ints, PageNumbers, World
from recrawl.learning.rates import smoothed_rates
from recrawl.pages import Floats
from recrawl.scheduling.value_heap import Offers, heapify, pop_highest, push_value
from recrawl.values.laws import saturating_due, saturating_value

_MOST_CANDIDATES = 256
_WANTED_CANDIDATES = 64  # after a search: few to look through, and enough to go on for a while
_FIRST_MARGIN, _LEAST_MARGIN, _WIDEST_MARGIN = 0.05, 1e-6, 0.5  # of the best value: how far below it the level is put


class Known(NamedTuple):
    """What the crawler knows: per page its rate, last crawl (NaN: none) and evidence, changed gaps by page."""

    importance: Floats
    rate: Floats
    last: Floats
    offsets: Ints
    gaps: Floats
    changes: Ints
    unchanged_time: Floats


class Stall(NamedTuple):
    """Pages that wait for the level, by minus the time they reach it, and candidates."""

    waiting: Offers
    candidates: PageNumbers
    counts: Ints  # of pages waiting, of candidates


@dataclass(frozen=True, slots=True)
class ArgmaxMle:
    """The competitor."""

    name: str = "argmax-mle"
    fake_gap: float | None = None  # of the imaginary crawls; None: pages over budget

    def crawl(self, world: World, budget: float, seed: int) -> CrawlLog:  # noqa: ARG002 - nothing is random
        """Crawl a world from 0 to its horizon. O(crawls · (log pages + changes of a page))."""
        budget = check_run(world, budget)
        times = crawl_times(world.horizon, budget)
        fake_gap = len(world) / budget if self.fake_gap is None else self.fake_gap
        order = np.argsort(world.born, kind="stable").astype(np.int32)
        offsets = world.changes.offsets + np.arange(len(world) + 1)  # a changed gap for each change, and one more
        known = Known(
            np.ascontiguousarray(world.importance, dtype=np.float64),
            np.full(len(world), math.log(2.0) / fake_gap),
            np.where(world.born <= 0, 0.0, math.nan),
            offsets,
            np.empty(int(offsets[-1])),
            np.zeros(len(world), dtype=np.int64),
            np.zeros(len(world)),
        )
        here = np.searchsorted(world.born[order], times, side="right")
        first = int(np.count_nonzero(world.born <= 0))
        pages = crawl_greedily(known, truth_of(world), np.concatenate([[first], here]), order, times, fake_gap)
        made = pages >= 0
        return CrawlLog(pages[made], times[made])


@kernel
def crawl_greedily(
    known: Known, truth: Truth, here: Ints, order: PageNumbers, times: Floats, fake_gap: float
) -> PageNumbers:
    """Crawl at each time; the pages, -1 where there is none. `here` says how many of `order` are born by then."""
    pages = len(order)
    stall = Stall(
        Offers(np.empty(pages), np.empty(pages, dtype=np.int32)),
        np.empty(pages, dtype=np.int32),
        np.zeros(2, dtype=np.int64),
    )
    alive = np.zeros(pages, dtype=np.bool_)
    alive[order[: here[0]]] = True
    crawled = np.full(len(times), -1, dtype=np.int32)
    level, margin = math.inf, _FIRST_MARGIN
    born = here[0]
    for slot in range(len(times)):
        now = times[slot]
        if born < here[slot + 1]:
            page = order[born]
            born += 1
        else:
            _admit(stall, now)
            if stall.counts[1] == 0 or stall.counts[1] > _MOST_CANDIDATES:
                best = _search(known, alive, now)
                if best < 0.0:
                    continue
                level = (1.0 - margin) * best
                _rebuild(stall, known, alive, level)
                _admit(stall, now)
                margin *= min(max(_WANTED_CANDIDATES / stall.counts[1], 0.5), 2.0)
                margin = min(max(margin, _LEAST_MARGIN), _WIDEST_MARGIN)
            place = _best(known, stall, now)
            page = stall.candidates[place]
            stall.counts[1] -= 1
            stall.candidates[place] = stall.candidates[stall.counts[1]]
        crawled[slot] = page
        found = look(truth, np.array([page], dtype=np.int32), now)[0]
        alive[page] = found != GONE
        if alive[page]:
            _learn(known, page, now, found == CHANGED, fake_gap)
            _wait(stall, known, page, level)
    return crawled


@exact
def _worth(known: Known, page: int, now: float) -> float:
    return saturating_value(known.importance[page], known.rate[page], max(now - known.last[page], 0.0))


@exact
def _search(known: Known, alive: NDArray[np.bool_], now: float) -> float:
    """What the best of all pages is worth; -1 if there are none. O(pages)."""
    best = -1.0
    for page in range(len(alive)):
        if alive[page]:
            best = max(best, _worth(known, page, now))
    return best


@exact
def _wait(stall: Stall, known: Known, page: int, level: float) -> None:
    """Put a page to wait for the level; one that never reaches it waits at the end of time."""
    due = known.last[page] + saturating_due(known.importance[page], known.rate[page], level)
    stall.counts[0] = push_value(stall.waiting, stall.counts[0], -due, page)


@exact
def _rebuild(stall: Stall, known: Known, alive: NDArray[np.bool_], level: float) -> None:
    """Let all pages wait for another level. O(pages)."""
    count = 0
    for page in range(len(alive)):
        if alive[page]:
            due = known.last[page] + saturating_due(known.importance[page], known.rate[page], level)
            stall.waiting.values[count], stall.waiting.slots[count] = -due, page
            count += 1
    heapify(stall.waiting, count)
    stall.counts[0], stall.counts[1] = count, 0


@exact
def _admit(stall: Stall, now: float) -> None:
    """Pages that have reached the level become candidates."""
    while stall.counts[0] > 0 and -stall.waiting.values[0] <= now:
        stall.candidates[stall.counts[1]] = stall.waiting.slots[0]
        stall.counts[1] += 1
        stall.counts[0] = pop_highest(stall.waiting, stall.counts[0])


@exact
def _best(known: Known, stall: Stall, now: float) -> int:
    """Where the candidate worth most is; ties to the lower page."""
    best, place = -1.0, 0
    for i in range(stall.counts[1]):
        worth = _worth(known, stall.candidates[i], now)
        if worth > best or (worth == best and stall.candidates[i] < stall.candidates[place]):
            best, place = worth, i
    return place


@exact
def _learn(known: Known, page: int, now: float, changed: bool, fake_gap: float) -> None:
    """Take in a crawl and find the rate anew; all unchanged gaps are as one. O(changes of the page)."""
    gap = now - known.last[page]
    known.last[page] = now
    if not gap > 0.0:  # a first copy
        return
    start = known.offsets[page]
    if changed:
        known.gaps[start + 1 + known.changes[page]] = gap
        known.changes[page] += 1
    else:
        known.unchanged_time[page] += gap
    rows = 1 + known.changes[page]
    gaps = np.empty(rows)
    gaps[0] = known.unchanged_time[page]
    gaps[1:] = known.gaps[start + 1 : start + rows]
    seen = np.ones(rows, dtype=np.bool_)
    seen[0] = False
    known.rate[page] = smoothed_rates(np.array([0, rows]), gaps, seen, fake_gap)[0]
