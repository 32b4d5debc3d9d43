"""What each page had of its crawls: the walk through its changes and crawls behind `measures.py`. Kernels.

Conventions, which all measures share. A window is all times after its start up to its end, so that crawls at k/budget
fill it exactly. A crawl sees every change up to its own time. A page that was there at the start has a copy of time 0;
one born later has none, is stale, counts as one that missed a change, its birth, and ages from then. What happens after
a page's removal counts for nothing but crawls.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.jit import exact, kernel
from recrawl.pages import Floats
from recrawl.simulation.crawl_log import PageNumbers
from recrawl.simulation.world import Ints
from recrawl.values.special import ein, h

Groups = NDArray[np.int8]

# Columns of the row that the walk fills for each page.
ALIVE, FRESH, HARMONIC, AGE, CHANGES, CAPTURED, CRAWLS, WASTED, MISSING, STARVED = range(10)
COLUMNS = 10

_BINS = 4096  # of values whose quantiles are wanted


class History(NamedTuple):
    """Everything that happened to pages: changes and crawls by page and time, births and removals."""

    change_offsets: Ints
    changes: Floats
    crawl_offsets: Ints
    crawls: Floats
    born: Floats
    removed: Floats


class Window(NamedTuple):
    """The time that is measured: after `start`, up to `end`."""

    start: float
    end: float


@kernel
def by_page(page: PageNumbers, time: Floats, offsets: Ints, times: Floats) -> int:
    """Crawls in order of time become crawls by page and time. O(crawls + pages).

    Writes where each page starts into `offsets`, which is 0 everywhere, and the times into `times`.

    Returns:
        The first crawl of an unknown page or before its predecessor, and then the rest means nothing; -1 if all is
        well.
    """
    pages = len(offsets) - 1
    before = -math.inf
    for i in range(len(page)):
        if not (0 <= page[i] < pages and time[i] >= before):
            return i
        before = time[i]
        offsets[page[i] + 1] += 1
    for i in range(pages):
        offsets[i + 1] += offsets[i]
    place = offsets[:-1].copy()
    for i in range(len(page)):
        times[place[page[i]]] = time[i]
        place[page[i]] += 1
    return -1


class Sums(NamedTuple):
    """Where rows of pages are added up: by group, as they are and weighted by importance."""

    group: Groups
    importance: Floats
    plain: Floats
    weighted: Floats


@kernel
def walk(history: History, window: Window, change_rate: Floats, sums: Sums, delays: Floats) -> int:
    """Add up the rows of all pages, and list the delays of captured changes; how many of these there are.

    Where `change_rate` is not empty, fresh time and harmonic cost are expectations. O(changes + crawls + pages).
    """
    captured = 0
    row = np.empty(COLUMNS)
    for page in range(len(sums.group)):
        captured = walk_page(history, window, page, row, delays, captured)
        if len(change_rate):
            expect_page(history, window, page, change_rate[page], row)
        group, importance = sums.group[page], sums.importance[page]
        for column in range(COLUMNS):
            sums.plain[group, column] += row[column]
            sums.weighted[group, column] += importance * row[column]
    return captured


@kernel
def walk_apart(history: History, window: Window, table: Floats, delays: Floats) -> None:
    """The rows of all pages, each for itself. O(changes + crawls + pages)."""
    for page in range(len(table)):
        walk_page(history, window, page, table[page], delays, 0)


@exact
def walk_page(  # noqa: PLR0915 - sums stay in registers only while they are all in one place
    history: History, window: Window, page: int, row: Floats, delays: Floats, captured: int
) -> int:
    """One page, from crawl to crawl; writes its row, adds to the delays, and says how many of those there are.

    The j-th change missed adds 1/j to the harmonic cost from its time to the next crawl. Gaps between crawls inside
    the window, which nearly all are, take a short way.
    """
    row[:] = 0.0
    start, end = window
    born, removed = max(history.born[page], 0.0), history.removed[page]
    low, high = max(start, born), min(end, removed)
    change, last_change = history.change_offsets[page], history.change_offsets[page + 1]
    last_crawl = history.crawl_offsets[page + 1]
    has_copy, last = history.born[page] <= 0.0, born
    while change < last_change and history.changes[change] <= 0.0:
        change += 1
    fresh = harmonic = age = 0.0
    changes = seen = crawls = wasted = missing = 0
    for crawl in range(history.crawl_offsets[page], last_crawl):
        time = history.crawls[crawl]
        if time < born or time >= removed:
            missing += start < time <= end
            continue
        first = change
        if has_copy and last >= start and time <= end:
            missed = 0.0
            while change < last_change and history.changes[change] <= time:
                missed += 1.0
                harmonic += (time - history.changes[change]) / missed
                change += 1
            crawls += 1
            if change == first:
                fresh += time - last
                wasted += 1
            else:
                fresh += history.changes[first] - last
                age += 0.5 * (time - history.changes[first]) ** 2
                delays[captured + seen] = time - history.changes[change - 1]
                seen += 1
                changes += change - first
            last = time
            continue
        while change < last_change and history.changes[change] <= time:
            changes += start < history.changes[change] <= end
            change += 1
        gap = _gap(history.changes[first:change], last if has_copy else -born, max(last, low), min(time, high))
        fresh, harmonic, age = fresh + gap[0], harmonic + gap[1], age + gap[2]
        inside = start < time <= end
        crawls += inside
        if change == first:
            wasted += inside and has_copy
        elif start < history.changes[change - 1] <= end:
            delays[captured + seen] = time - history.changes[change - 1]
            seen += 1
        has_copy, last = True, time
    rest = history.changes[change:last_change]
    for i in range(len(rest)):
        changes += start < rest[i] <= end
    gap = _gap(rest, last if has_copy else -born, max(last, low), high)
    row[ALIVE] = max(high - low, 0.0)
    row[FRESH], row[HARMONIC], row[AGE] = fresh + gap[0], harmonic + gap[1], age + gap[2]
    row[CHANGES], row[CAPTURED] = changes, seen
    row[CRAWLS], row[WASTED], row[MISSING] = crawls, wasted, missing
    row[STARVED] = born <= start and removed >= end and crawls == 0
    return captured + seen


@exact
def _gap(changes: Floats, copy: float, left: float, right: float) -> tuple[float, float, float]:
    """Fresh time, harmonic cost and age from `left` to `right`, in a gap between crawls with these changes.

    `copy` is the time of the copy; minus the time of birth if there is none, which then is the first change missed.
    """
    if not right > left:
        return 0.0, 0.0, 0.0
    missed, harmonic = 0.0, 0.0
    stale = math.inf
    if copy < 0.0:
        missed, harmonic, stale = 1.0, right - left, -copy
    elif len(changes):
        stale = changes[0]
    for i in range(len(changes)):
        missed += 1.0
        harmonic += max(right - max(changes[i], left), 0.0) / missed
    fresh = max(min(stale, right) - left, 0.0)
    since = max(stale, left)
    age = 0.5 * (right - since) * (right + since - 2.0 * stale) if since < right else 0.0
    return fresh, harmonic, age


@exact
def expect_page(history: History, window: Window, page: int, change_rate: float, row: Floats) -> None:
    """Write expected fresh time and harmonic cost given the crawl times over those that happened. O(crawls)."""
    born, removed = max(history.born[page], 0.0), history.removed[page]
    low, high = max(window.start, born), min(window.end, removed)
    fresh, harmonic, last = 0.0, 0.0, born
    has_copy = history.born[page] <= 0.0
    end = history.crawl_offsets[page + 1]
    for crawl in range(history.crawl_offsets[page], end + 1):
        time = math.inf if crawl == end else history.crawls[crawl]
        if time < born:
            continue
        left, right = max(last, low) - last, min(time, high) - last
        if right > left:
            harmonic += harmonic_until(change_rate, right) - harmonic_until(change_rate, left)
            if has_copy:
                fresh += fresh_until(change_rate, right) - fresh_until(change_rate, left)
            else:
                harmonic += first_until(change_rate, right) - first_until(change_rate, left)
        if time >= removed:
            break
        last, has_copy = time, True
    row[FRESH], row[HARMONIC] = fresh, harmonic


@exact
def fresh_until(change_rate: float, elapsed: float) -> float:
    """Expected fresh time after a crawl: (1 − e^{−Δa})/Δ."""
    x = change_rate * elapsed
    return -math.expm1(-x) / change_rate if x > 1e-12 else elapsed


@exact
def harmonic_until(change_rate: float, elapsed: float) -> float:
    """Expected harmonic cost after a crawl: ∫ Ein(Δs) ds = a Ein(Δa) − h(Δa)/Δ (LambdaCrawl's penalty)."""
    x = change_rate * elapsed
    return elapsed * ein(x) - h(x) / change_rate if x > 1e-12 else 0.5 * elapsed * x


@exact
def first_until(change_rate: float, elapsed: float) -> float:
    """What is to be added where there is no copy: E H(N + 1) − E H(N) is (1 − e^{−x})/x, its integral Ein(Δa)/Δ."""
    x = change_rate * elapsed
    return ein(x) / change_rate if x > 1e-12 else elapsed


@kernel
def most_within(times: Floats, length: float) -> int:
    """The most times in any half-open window of this length; times are in order. O(times)."""
    most, first = 0, 0
    for i in range(len(times)):
        while times[i] - times[first] >= length:
            first += 1
        most = max(most, i - first + 1)
    return most


@kernel
def serve(history: History, page: PageNumbers, time: Floats) -> int:
    """How many requests find a fresh copy. O(requests · log events)."""
    fresh = 0
    for i in range(len(page)):
        first, last = history.crawl_offsets[page[i]], history.crawl_offsets[page[i] + 1]
        crawls = np.searchsorted(history.crawls[first:last], time[i], side="right")
        if crawls == 0 and history.born[page[i]] > 0.0:
            continue
        copy = history.crawls[first + crawls - 1] if crawls else 0.0
        first, last = history.change_offsets[page[i]], history.change_offsets[page[i] + 1]
        changes = history.changes[first:last]
        seen = np.searchsorted(changes, copy, side="right")
        fresh += seen == len(changes) or changes[seen] > time[i]
    return fresh


@kernel
def quantiles(values: Floats, levels: Floats) -> Floats:
    """Quantiles between neighbours, as `numpy.quantile` has them, by sorting only where they lie. O(values).

    Values are counted in bins; a rank is looked for in the bin that holds it.
    """
    low, high = values.min(), values.max()
    answers = np.full(len(levels), low)
    if not high > low:
        return answers
    scale = (_BINS - 1) / (high - low)
    starts = np.zeros(_BINS + 1, dtype=np.int64)
    for i in range(len(values)):
        starts[int((values[i] - low) * scale) + 1] += 1
    starts = np.cumsum(starts)
    ranks = np.empty(2 * len(levels), dtype=np.int64)
    for number in range(len(levels)):
        ranks[2 * number] = int(levels[number] * (len(values) - 1))
        ranks[2 * number + 1] = min(ranks[2 * number] + 1, len(values) - 1)
    ranked = _ranked(values, starts, ranks, low, scale)
    for number in range(len(levels)):
        first, second = ranked[2 * number], ranked[2 * number + 1]
        answers[number] = first + (levels[number] * (len(values) - 1) - ranks[2 * number]) * (second - first)
    return answers


@kernel
def _ranked(values: Floats, starts: Ints, ranks: Ints, low: float, scale: float) -> Floats:
    """The values of these ranks, counted from 0, where bins of values start at these ranks."""
    wanted = np.zeros(_BINS, dtype=np.bool_)
    bins = np.searchsorted(starts, ranks, side="right") - 1
    for number in range(len(ranks)):
        wanted[bins[number]] = True
    room = np.empty((starts[1:] - starts[:-1])[wanted].sum())
    count = 0
    for i in range(len(values)):
        if wanted[int((values[i] - low) * scale)]:
            room[count] = values[i]
            count += 1
    room.sort()
    found = np.empty(len(ranks))
    for number in range(len(ranks)):
        left_out = 0  # values below that were not gathered
        for bin_number in range(bins[number]):
            if not wanted[bin_number]:
                left_out += starts[bin_number + 1] - starts[bin_number]
        found[number] = room[ranks[number] - left_out]
    return found
