"""What crawls were worth: everything that is measured comes from a world and a log.

Freshness is weighted by importance and by time, exact on the changes that happened. Requests that come at random in
proportion to importance see the same share of fresh copies on average, so freshness by request has the same closed
form and is not drawn; `drawn_requests` draws them. Where changes are a Poisson process, `expected=True` puts the
expectation given the crawl times in place of freshness, binary and harmonic cost: the same mean with less chance in
it. It is right only for crawlers that heard no signals, whose crawls do not depend on changes they have not seen yet.
What a window holds, and what counts without a copy, is said in `measure_kernels.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from recrawl.errors import InvalidInput
from recrawl.lab.simulation.measure_kernels import (
    AGE,
    ALIVE,
    CAPTURED,
    CHANGES,
    COLUMNS,
    CRAWLS,
    FRESH,
    HARMONIC,
    MISSING,
    STARVED,
    WASTED,
    Groups,
    History,
    Shelves,
    Sums,
    Window,
    by_page,
    count_by_shelf,
    most_within,
    put_on_shelves,
    quantiles,
    serve,
    shelf_bits,
    tenths,
    walk,
    walk_apart,
)
from recrawl.lab.worlds.world import CrawlLog, World
from recrawl.pages import Floats

DELAY_LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9, 0.99)
"""Quantiles of delays that are told."""

_DECILES = 10
_PEAK_PARTS = 100.0


@dataclass(frozen=True, slots=True)
class Decile:
    """A tenth of the pages, by importance."""

    pages: int
    importance: float  # of all of them together
    freshness: float
    harmonic_cost: float
    crawls: float  # a day


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """What crawls were worth in a window. Times are days; means over pages are weighted by importance and time alive.

    Attributes:
        window: from when to when.
        expected: whether freshness and costs are expectations given the crawl times.
        freshness: share of the time, or of requests, with a copy as the page is.
        binary_cost: the rest.
        harmonic_cost: mean of H(changes missed).
        age: mean time since the oldest change not seen; 0 while fresh.
        importance: of the pages alive, mean over the window; costs times this are those of all pages together.
        changes: that happened.
        completeness: share of them that some crawl saw before the next change or the removal.
        weighted_completeness: the same weighted by importance.
        delay: mean time from a change to the crawl that captured it; 0 if none was.
        delays: quantiles of that, at `DELAY_LEVELS`.
        crawls: that were made.
        wasted: share of them that found nothing new.
        missing: share of them that found no page.
        starved: share of pages alive all the time that no crawl came to.
        peak_rate: most crawls in any time as long as a day or a hundredth of the window, whichever is longer, per day.
        deciles: tenths of the pages by importance, least first.
    """

    window: Window
    expected: bool
    freshness: float
    binary_cost: float
    harmonic_cost: float
    age: float
    importance: float
    changes: int
    completeness: float
    weighted_completeness: float
    delay: float
    delays: tuple[float, ...]
    crawls: int
    wasted: float
    missing: float
    starved: float
    peak_rate: float
    deciles: tuple[Decile, ...]

    def numbers(self) -> dict[str, float]:
        """Every single number by name, those of delays and deciles too."""
        plain = {
            entry.name: float(getattr(self, entry.name))
            for entry in fields(self)
            if entry.name not in ("window", "expected", "delays", "deciles")
        }
        delays = {f"delay_{level:g}": value for level, value in zip(DELAY_LEVELS, self.delays, strict=True)}
        tenths = {f"freshness_decile_{place}": tenth.freshness for place, tenth in enumerate(self.deciles, start=1)}
        return {**plain, **delays, **tenths}


def measure(
    world: World, log: CrawlLog, start: float = 0.0, end: float | None = None, *, expected: bool = False
) -> Measures:
    """Measure crawls of a world in a window, all of it by default. O(pages + changes + crawls).

    Raises:
        InvalidInput: if the window is empty or no page of any importance is alive in it, the log is not of this world,
            or an expectation is asked for where changes are no Poisson process.
    """
    window = check_window(world, start, end)
    sums, delays = _add_up(world, log, window, _rates(world) if expected else np.empty(0))
    weighted, totals = sums.weighted.sum(axis=0), sums.plain.sum(axis=0)
    if not weighted[ALIVE] > 0:
        raise InvalidInput("holds no time in which a page of any importance is alive", field="window")
    length = window.end - window.start
    crawls = totals[CRAWLS] + totals[MISSING]
    steady = np.count_nonzero((world.born <= window.start) & (world.removed >= window.end))
    peak = max(1.0, length / _PEAK_PARTS)
    first, last = np.searchsorted(log.time, window, side="right")
    freshness = float(weighted[FRESH] / weighted[ALIVE])
    return Measures(
        window=window,
        expected=expected,
        freshness=freshness,
        binary_cost=1.0 - freshness,
        harmonic_cost=float(weighted[HARMONIC] / weighted[ALIVE]),
        age=float(weighted[AGE] / weighted[ALIVE]),
        importance=float(weighted[ALIVE] / length),
        changes=int(totals[CHANGES]),
        completeness=_share(totals[CAPTURED], totals[CHANGES], 1.0),
        weighted_completeness=_share(weighted[CAPTURED], weighted[CHANGES], 1.0),
        delay=float(delays.mean()) if len(delays) else 0.0,
        delays=tuple(quantiles(delays, np.array(DELAY_LEVELS)).tolist()) if len(delays) else (0.0,) * len(DELAY_LEVELS),
        crawls=int(crawls),
        wasted=_share(totals[WASTED], crawls),
        missing=_share(totals[MISSING], crawls),
        starved=_share(totals[STARVED], float(steady)),
        peak_rate=float(most_within(log.time[first:last], peak) / peak),
        deciles=_deciles(sums, length),
    )


def page_table(world: World, log: CrawlLog, start: float = 0.0, end: float | None = None) -> Floats:
    """The numbers behind the measures, a row for each page; columns are named in `measure_kernels.py`."""
    table = np.empty((len(world), COLUMNS))
    history = history_of(world, log)
    walk_apart(history, check_window(world, start, end), table, np.empty(len(history.crawls)))
    return table


def drawn_requests(world: World, log: CrawlLog, window: Window, requests: int, seed: int) -> float:
    """The share of so many requests, drawn in proportion to importance and uniform in time, that find a fresh copy.

    O(requests · log events).
    """
    low = np.maximum(world.born, window.start)
    alive = np.maximum(np.minimum(world.removed, window.end) - low, 0.0)
    weight = world.importance * alive
    random = np.random.Generator(np.random.PCG64(seed))
    page = random.choice(len(world), size=requests, p=weight / weight.sum()).astype(np.int32)
    time = low[page] + alive[page] * (1.0 - random.random(requests))
    return float(serve(history_of(world, log), page, time) / requests)


def history_of(world: World, log: CrawlLog) -> History:
    """A world and a log side by side, by page. O(crawls + pages)."""
    shelves = shelves_of(world, log, bits=len(world).bit_length())
    history = _history_for(world, len(log))
    by_page(shelves, 0, history.crawl_offsets, history.crawls)
    return history


def shelves_of(world: World, log: CrawlLog, bits: int) -> Shelves:
    """The crawls of a log by shelves of 2^bits pages; the log itself where there is only one. O(crawls + pages)."""
    starts = np.zeros(((len(world) - 1) >> bits) + 2, dtype=np.int64)
    wrong = count_by_shelf(log.page, log.time, len(world), bits, starts)
    if wrong >= 0:
        problem = f"is of a page that a world of {len(world)} pages does not have, or before the crawl above it"
        raise InvalidInput(problem, field="log", row=int(wrong))
    if len(starts) == 2:
        return Shelves(bits, starts, log.page, log.time)
    shelves = Shelves(bits, starts, np.empty_like(log.page), np.empty_like(log.time))
    put_on_shelves(log.page, log.time, shelves)
    return shelves


def _history_for(world: World, crawls: int) -> History:
    """Room for so many crawls beside what happened in a world."""
    offsets = np.empty(len(world) + 1, dtype=np.int64)
    return History(world.changes.offsets, world.changes.times, offsets, np.empty(crawls), world.born, world.removed)


def check_window(world: World, start: float, end: float | None) -> Window:
    """A window inside the world's time."""
    last = world.horizon if end is None else float(end)
    if not 0 <= start < last <= world.horizon:
        raise InvalidInput(f"from {start:g} to {last:g} must be a part of 0 to {world.horizon:g}", field="window")
    return Window(float(start), last)


def _rates(world: World) -> Floats:
    if not world.poisson or world.change_rate is None:
        raise InvalidInput("is for worlds whose changes are a Poisson process of known rates", field="expected")
    return world.change_rate


def _add_up(world: World, log: CrawlLog, window: Window, change_rate: Floats) -> tuple[Sums, Floats]:
    """Rows of pages by tenth of importance, and the delays of captured changes."""
    group, sizes = deciles_of(world.importance)
    shape = len(sizes), COLUMNS
    sums = Sums(group, world.importance, np.zeros(shape), np.zeros(shape))
    shelves = shelves_of(world, log, shelf_bits(len(world)))
    history = _history_for(world, int(np.diff(shelves.starts).max()))
    delays = np.empty(min(len(history.changes), len(log)))
    return sums, delays[: walk(history, shelves, window, change_rate, sums, delays)]


def deciles_of(importance: Floats) -> tuple[Groups, list[int]]:
    """The tenth that each page is of, as even as they go, ties in order of the pages; fewer of fewer pages.

    >>> deciles_of(np.array([5.0, 1.0, 1.0]))[0].tolist()
    [2, 0, 1]
    """
    parts = min(_DECILES, len(importance))
    sizes = [len(part) for part in np.array_split(np.arange(len(importance)), parts)]
    ends = np.cumsum(sizes)[:-1]
    # Without ties at the edges no page needs to be sorted among its like.
    edges = np.sort(importance)[ends] if len(ends) else np.empty(0)
    group, found = np.empty(len(importance), dtype=np.int8), np.zeros(parts, dtype=np.int64)
    tenths(importance, edges, group, found)
    if found.tolist() != sizes:
        group[np.argsort(importance, kind="stable")] = np.repeat(np.arange(parts), sizes)
    return group, sizes


def _deciles(sums: Sums, length: float) -> tuple[Decile, ...]:
    count = np.bincount(sums.group, minlength=len(sums.plain))
    importance = np.bincount(sums.group, weights=sums.importance, minlength=len(sums.plain))
    return tuple(
        Decile(
            int(count[place]),
            float(importance[place]),
            _share(weighted[FRESH], weighted[ALIVE]),
            _share(weighted[HARMONIC], weighted[ALIVE]),
            float(sums.plain[place, CRAWLS] / length),
        )
        for place, weighted in enumerate(sums.weighted)
    )


def _share(part: float, whole: float, of_nothing: float = 0.0) -> float:
    return float(part / whole) if whole > 0 else of_nothing
