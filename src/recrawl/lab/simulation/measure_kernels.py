"""The kernels behind `measures.py`: events put in order, and the walk through what each page had of its crawls.

Ordering goes by page, by rank and by tenth through its input once or twice, without sorting, so that measuring is
linear in what happened.

Conventions of all measures: a window is all times after its start up to its end, so that crawls at k/budget fill it
exactly. A crawl sees every change up to its own time. A page that was there at the start has a copy of time 0; a page
born later has none, is stale, counts as one that missed a change (its birth), and ages from then. What happens after a
page's removal counts for nothing but crawls.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.jit import borrowing, exact, kernel
from recrawl.lab.worlds.world import Ints, PageNumbers
from recrawl.pages import Floats
from recrawl.values.special import ein, h

Groups = NDArray[np.int8]

_FEWEST_BITS, _MOST_SHELVES_BITS = 12, 5  # see `shelf_bits`
_BINS = 4096  # of values whose quantiles are wanted


# Columns of the row that the walk fills for each page.
ALIVE, FRESH, HARMONIC, AGE, CHANGES, CAPTURED, CRAWLS, WASTED, MISSING, STARVED = range(10)
COLUMNS = 10


class Shelves(NamedTuple):
    """Crawls by shelf, a row of neighbouring pages, and in order of time on each.

    Pages `i << bits` up to `(i + 1) << bits` are on shelf i; their crawls are those from `starts[i]` to
    `starts[i + 1]`.
    """

    bits: int
    starts: Ints
    page: PageNumbers
    time: Floats


def shelf_bits(pages: int) -> int:
    """How many pages a shelf has, as a power of two.

    All that happens to a shelf fits into the cache of a core, and there are not more shelves than a core can fill at
    the same time: either makes putting crawls in order several times as fast.

    >>> shelf_bits(1_000), shelf_bits(100_000), shelf_bits(10_000_000)
    (12, 12, 19)
    """
    return max(_FEWEST_BITS, pages.bit_length() - _MOST_SHELVES_BITS)


@kernel
def count_by_shelf(page: PageNumbers, time: Floats, pages: int, bits: int, starts: Ints) -> int:
    """Write where shelves start into `starts`, which is 0 everywhere. O(crawls).

    Returns:
        The first crawl of an unknown page or before its predecessor, and then the rest means nothing; -1 if all is
        well.
    """
    before = -math.inf
    for i in range(len(page)):
        if not (0 <= page[i] < pages and time[i] >= before):
            return i
        before = time[i]
        starts[(page[i] >> bits) + 1] += 1
    for shelf in range(len(starts) - 1):
        starts[shelf + 1] += starts[shelf]
    return -1


@kernel
def put_on_shelves(page: PageNumbers, time: Floats, shelves: Shelves) -> None:
    """Copy crawls in order of time to their shelves. O(crawls)."""
    place = shelves.starts[:-1].copy()
    for i in range(len(page)):
        shelf = page[i] >> shelves.bits
        at = place[shelf]
        shelves.page[at], shelves.time[at] = page[i], time[i]
        place[shelf] = at + 1


@kernel
def by_page(shelves: Shelves, shelf: int, offsets: Ints, times: Floats) -> None:
    """Write the crawls of a shelf by page and time into `times`, and where those of each page start. O(crawls)."""
    first = shelf << shelves.bits
    last = min(first + (1 << shelves.bits), len(offsets) - 1)
    offsets[first : last + 1] = 0
    page = shelves.page[shelves.starts[shelf] : shelves.starts[shelf + 1]]
    time = shelves.time[shelves.starts[shelf] : shelves.starts[shelf + 1]]
    for i in range(len(page)):
        offsets[page[i] + 1] += 1
    for i in range(first, last):
        offsets[i + 1] += offsets[i]
    place = offsets[first:last].copy()
    for i in range(len(page)):
        at = place[page[i] - first]
        times[at] = time[i]
        place[page[i] - first] = at + 1


@kernel
def most_within(times: Floats, length: float) -> int:
    """The most times in any half-open window of this length; times are in order. O(times).

    From one time to the next the most rises by one at most, so it is enough to look back by as many as it is.
    """
    most, i = 0, 0
    while i < len(times):
        # A loop of its own, in which the most stands still: else each look would wait for the one before.
        while i < len(times) and times[i] - times[i - most] >= length:
            i += 1
        most += i < len(times)
        i += 1
    return most


@kernel
def tenths(values: Floats, edges: Floats, group: Groups, sizes: Ints) -> None:
    """Write how many edges are at or below each value into `group`, and count the groups. O(values · edges)."""
    for i in range(len(values)):
        number = 0
        for edge in range(len(edges)):
            number += edges[edge] <= values[i]
        group[i] = number
        sizes[number] += 1


def quantiles(values: Floats, levels: Floats) -> Floats:
    """Quantiles between neighbours, as `numpy.quantile` has them, by sorting only where they lie. O(values)."""
    return _quantiles(values, levels, float(values.min()), float(values.max()))


@kernel
def _quantiles(values: Floats, levels: Floats, low: float, high: float) -> Floats:
    """Values are counted in bins; a rank is looked for in the bin that holds it."""
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


class History(NamedTuple):
    """What happened to pages: changes and crawls by page and time, births and removals; crawls maybe of one shelf."""

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


class Sums(NamedTuple):
    """Where rows of pages are added up: by group, as they are and weighted by importance."""

    group: Groups
    importance: Floats
    plain: Floats
    weighted: Floats


@kernel
def walk(history: History, shelves: Shelves, window: Window, change_rate: Floats, sums: Sums, delays: Floats) -> int:
    """Add up the rows of all pages, and list the delays of captured changes; how many of these there are.

    Crawls of a shelf are put by page into the history, and its pages walked, before those of the next. Where
    `change_rate` is not empty, fresh time and harmonic cost are expectations. O(changes + crawls + pages).
    """
    captured = 0
    row = np.empty(COLUMNS)
    pages = len(sums.group)
    for shelf in range(len(shelves.starts) - 1):
        by_page(shelves, shelf, history.crawl_offsets, history.crawls)
        first = shelf << shelves.bits
        for page in range(first, min(first + (1 << shelves.bits), pages)):
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


class Between(NamedTuple):
    """What a page had between crawls: the first change not seen, how many crawls captured one, and three sums."""

    change: int
    captured: int
    fresh: float
    harmonic: float
    age: float


@borrowing
def walk_page(  # noqa: PLR0915 - sums stay in registers only while they are all in one place
    history: History, window: Window, page: int, row: Floats, delays: Floats, captured: int
) -> int:
    """One page, from crawl to crawl; writes its row, adds to the delays, and says how many of those there are.

    The j-th change missed adds 1/j to the harmonic cost from its time to the next crawl. Crawls whose gap before them
    is inside the window, which nearly all are, are taken together.
    """
    row[:] = 0.0
    start, end = window
    born, removed = max(history.born[page], 0.0), history.removed[page]
    low, high = max(start, born), min(end, removed)
    change, last_change = history.change_offsets[page], history.change_offsets[page + 1]
    crawl, last_crawl = history.crawl_offsets[page], history.crawl_offsets[page + 1]
    has_copy, last = history.born[page] <= 0.0, born
    while change < last_change and history.changes[change] <= 0.0:
        change += 1
    fresh = harmonic = age = 0.0
    changes = seen = crawls = wasted = missing = 0
    while crawl < last_crawl:
        time = history.crawls[crawl]
        if time < born or time >= removed:
            missing += start < time <= end
            crawl += 1
            continue
        first = change
        if has_copy and last >= start and time <= end:
            stop = last_crawl
            while history.crawls[stop - 1] > end or history.crawls[stop - 1] >= removed:
                stop -= 1
            more = _between(history, (crawl, stop), (change, last_change), last, delays[captured + seen :])
            fresh, harmonic, age = fresh + more.fresh, harmonic + more.harmonic, age + more.age
            change, seen = more.change, seen + more.captured
            changes += change - first
            crawls += stop - crawl
            wasted += stop - crawl - more.captured
            crawl, last = stop, history.crawls[stop - 1]
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
        crawl += 1
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


@borrowing
def _between(
    history: History, crawls: tuple[int, int], changes: tuple[int, int], copy: float, delays: Floats
) -> Between:
    """Crawls from the first to before the second number, with a copy at the time before them; lists delays.

    Goes from change to change: crawls that see none leave everything as it is, and the copy stays fresh through them.
    """
    (crawl, stop), (change, last_change) = crawls, changes
    fresh = harmonic = age = 0.0
    captured = 0
    while change < last_change:
        stale = history.changes[change]
        while crawl < stop and history.crawls[crawl] < stale:
            crawl += 1
        if crawl == stop:
            break
        time = history.crawls[crawl]
        fresh += stale - copy
        age += 0.5 * (time - stale) ** 2
        harmonic += time - stale
        missed = 1.0
        change += 1
        while change < last_change and history.changes[change] <= time:
            missed += 1.0
            harmonic += (time - history.changes[change]) / missed
            change += 1
        delays[captured] = time - history.changes[change - 1]
        captured += 1
        copy = time
    fresh += history.crawls[stop - 1] - copy
    return Between(change, captured, fresh, harmonic, age)


@borrowing
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


@borrowing
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
