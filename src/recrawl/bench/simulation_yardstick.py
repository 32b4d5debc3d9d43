"""The yardstick of the group `simulation`: a straightforward event loop in Python, with `heapq`.

Events are changes and crawl slots in one heap; each page keeps its next change in it. A policy is an object with
`next_page(now)` and `crawled(page, now)`. All that `measures.py` takes from a log is kept on the way. Nothing is done
to slow it down: lists in place of arrays, local names, no classes for events. The tests hold it to the numbers of the
simulator.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from recrawl.lab.worlds.world import World

LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9, 0.99)
_MINUTE = 1 / 1440


class PythonPolicy(Protocol):
    """Says which page is next, and is told of crawls."""

    def next_page(self, now: float) -> int:
        """The page to crawl now."""
        ...

    def crawled(self, page: int, now: float, changed: bool) -> None:
        """A page was crawled, and had changed or not."""
        ...


class LoopTotals(NamedTuple):
    """What the loop counted."""

    events: int
    freshness: float
    harmonic_cost: float
    age: float
    completeness: float
    delay: float
    delays: tuple[float, ...]
    wasted: float
    starved: float
    peak_rate: float
    freshness_by_decile: tuple[float, ...]


class PythonRoundRobin:
    """Pages in turn."""

    def __init__(self, pages: Sequence[int]) -> None:
        self._turn = deque(pages)

    def next_page(self, now: float) -> int:  # noqa: ARG002 - the contract
        """The page crawled longest ago."""
        return self._turn.popleft()

    def crawled(self, page: int, now: float, changed: bool) -> None:  # noqa: ARG002 - the contract
        """To the end of the row."""
        self._turn.append(page)


class PythonRates:
    """Pages by due time in a heap, at constant rates, evenly spaced."""

    def __init__(self, rates: Sequence[float], phases: Sequence[float]) -> None:
        self._gap = [1.0 / rate if rate > 0 else math.inf for rate in rates]
        self._due = [(phase * gap, page) for page, (gap, phase) in enumerate(zip(self._gap, phases, strict=True))]
        self._due = [entry for entry in self._due if entry[0] < math.inf]
        heapq.heapify(self._due)

    def next_page(self, now: float) -> int:  # noqa: ARG002 - the contract
        """The page that is due first."""
        return self._due[0][1]

    def crawled(self, page: int, now: float, changed: bool) -> None:  # noqa: ARG002 - the contract
        """Due again after its gap."""
        heapq.heapreplace(self._due, (self._due[0][0] + self._gap[page], page))


class PythonByPrice:
    """Pages by when they are worth the price, for known rates and the harmonic objective: the plan's price is given.

    A page is worth (μ/Δ) h(Δτ) after τ, so it is worth the price h⁻¹(price · Δ/μ)/Δ after each crawl; the wait of each
    page is found once, by halving, and pages go by due time.
    """

    def __init__(self, importance: Sequence[float], change_rate: Sequence[float], price: float) -> None:
        self._wait = [
            _inverse_h(price * rate / weight) / rate if weight > 0 and rate > 0 else math.inf
            for weight, rate in zip(importance, change_rate, strict=True)
        ]
        self._due = [(wait, page) for page, wait in enumerate(self._wait) if wait < math.inf]
        heapq.heapify(self._due)

    def next_page(self, now: float) -> int:  # noqa: ARG002 - the contract
        """The page that is due first."""
        return self._due[0][1]

    def crawled(self, page: int, now: float, changed: bool) -> None:  # noqa: ARG002 - the contract
        """Worth the price again after its wait."""
        heapq.heapreplace(self._due, (now + self._wait[page], page))


class PythonAdaptive:
    """StormCrawler's adaptive intervals, in whole minutes, scaled: due dates on a clock of their own."""

    def __init__(self, phases: Sequence[float]) -> None:
        self._minutes = [1440] * len(phases)
        self._due = [(phase, page) for page, phase in enumerate(phases)]
        heapq.heapify(self._due)

    def next_page(self, now: float) -> int:  # noqa: ARG002 - the contract
        """The page that is due first."""
        return self._due[0][1]

    def crawled(self, page: int, now: float, changed: bool) -> None:  # noqa: ARG002 - the contract
        """Sooner after a change, later else."""
        minutes = self._minutes[page]
        minutes = math.floor(0.5 * minutes + 30) if changed else min(20160, math.floor(1.5 * minutes))
        self._minutes[page] = minutes
        heapq.heapreplace(self._due, (self._due[0][0] + minutes * _MINUTE, page))


def python_loop(  # noqa: PLR0912, PLR0915 - one loop without calls, so that nothing slows it down
    world: World, policy: PythonPolicy, budget: float
) -> LoopTotals:
    """Run a policy over a world without births and removals, one event after the other. O(events · log pages)."""
    pages = len(world)
    times, offsets = world.changes.times.tolist(), world.changes.offsets.tolist()
    importance = world.importance.tolist()
    place = [bisect_right(times, 0.0, offsets[page], offsets[page + 1]) for page in range(pages)]
    heap = [(times[place[page]], page) for page in range(pages) if place[page] < offsets[page + 1]]
    slots = math.floor(world.horizon * budget * (1 + 1e-12))
    # Slots sort after changes of the same time.
    heap.append((1 / budget, pages))
    heapq.heapify(heap)
    slot = 1
    missed, cost, since, seen = [0] * pages, [0.0] * pages, [0.0] * pages, [0.0] * pages
    newest = [0.0] * pages
    fresh, harmonic, age = [0.0] * pages, [0.0] * pages, [0.0] * pages
    changes, captured, crawls = [0] * pages, [0] * pages, [0] * pages
    delays: list[float] = []
    latest: deque[float] = deque()
    span = max(1.0, world.horizon / 100)
    wasted = events = most = 0
    while heap:
        now, page = heap[0]
        events += 1
        if page < pages:
            changes[page] += 1
            place[page] += 1
            if place[page] < offsets[page + 1]:
                heapq.heapreplace(heap, (times[place[page]], page))
            else:
                heapq.heappop(heap)
            if missed[page]:
                harmonic[page] += cost[page] * (now - seen[page])
            else:
                fresh[page] += now - seen[page]
                since[page] = now
            missed[page] += 1
            cost[page] += 1.0 / missed[page]
            seen[page] = newest[page] = now
            continue
        slot += 1
        if slot <= slots:
            heapq.heapreplace(heap, (slot * (1 / budget), pages))
        else:
            heapq.heappop(heap)
        latest.append(now)
        while now - latest[0] >= span:
            latest.popleft()
        most = max(most, len(latest))
        page = policy.next_page(now)
        policy.crawled(page, now, missed[page] > 0)
        crawls[page] += 1
        if missed[page]:
            harmonic[page] += cost[page] * (now - seen[page])
            age[page] += 0.5 * (now - since[page]) ** 2
            delays.append(now - newest[page])
            captured[page] += 1
            missed[page], cost[page] = 0, 0.0
        else:
            fresh[page] += now - seen[page]
            wasted += 1
        seen[page] = now
    end = world.horizon
    for page in range(pages):
        if missed[page]:
            harmonic[page] += cost[page] * (end - seen[page])
            age[page] += 0.5 * (end - since[page]) ** 2
        else:
            fresh[page] += end - seen[page]
    whole = sum(importance) * end
    delays.sort()
    order = sorted(range(pages), key=importance.__getitem__)
    tenths = [order[pages * part // 10 : pages * (part + 1) // 10] for part in range(10)]
    return LoopTotals(
        events,
        _weighted(importance, fresh, order) / whole,
        _weighted(importance, harmonic, order) / whole,
        _weighted(importance, age, order) / whole,
        sum(captured) / sum(changes) if sum(changes) else 1.0,
        sum(delays) / len(delays) if delays else 0.0,
        tuple(_quantile(delays, level) for level in LEVELS) if delays else (0.0,) * len(LEVELS),
        wasted / slots,
        sum(1 for count in crawls if not count) / pages,
        most / span,
        tuple(
            _weighted(importance, fresh, tenth) / (end * sum(importance[page] for page in tenth)) for tenth in tenths
        ),
    )


def _weighted(importance: Sequence[float], column: Sequence[float], pages: Sequence[int]) -> float:
    return sum(importance[page] * column[page] for page in pages)


def _quantile(ordered: Sequence[float], level: float) -> float:
    rank = level * (len(ordered) - 1)
    below = int(rank)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (rank - below) * (ordered[above] - ordered[below])


def _inverse_h(level: float) -> float:
    """The x with x − 1 + e^{−x} = level, by halving."""
    low, high = 0.0, level + 1.0 + math.sqrt(2.0 * level)
    for _ in range(60):
        middle = 0.5 * (low + high)
        if middle - 1.0 + math.exp(-middle) < level:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)
