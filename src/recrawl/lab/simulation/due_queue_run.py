"""Runs of the due-date engine on a world: opening a queue, serving it in stretches, and the log at the end."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from recrawl.errors import InvalidInput
from recrawl.lab.peers.rules import REMEMBERED
from recrawl.lab.simulation.crawl_log import CrawlLog
from recrawl.lab.simulation.due_queue import (
    KNOWN,
    LOGGED,
    SLOT,
    WAITING,
    Crawls,
    Queue,
    Rule,
    Sight,
    Slots,
    open_queue,
    serve,
)
from recrawl.lab.simulation.due_queue_order import Due
from recrawl.lab.simulation.world import World
from recrawl.pages import Floats
from recrawl.scheduling.value_heap import Offers

_MOST_SLOTS = 2**52  # so that their numbers are exact as floats
_FIRST_ROOM = 1024


def sight_of(world: World) -> Sight:
    """The arrays of a world that the engine works on. O(n log n)."""
    later = np.flatnonzero(world.born > 0)
    births = later[np.lexsort((later, world.born[later]))].astype(np.int64)
    rate = hindsight_rates(world) if world.change_rate is None else world.change_rate
    columns = (world.born, world.removed, world.importance, rate)
    born, removed, importance, rate = (np.ascontiguousarray(column, dtype=np.float64) for column in columns)
    offsets = np.ascontiguousarray(world.changes.offsets, dtype=np.int64)
    changes = np.ascontiguousarray(world.changes.times, dtype=np.float64)
    return Sight(offsets, changes, born, removed, importance, rate, births)


def hindsight_rates(world: World) -> Floats:
    """Changes a day that each page turned out to have: what a trace has in place of true rates. O(n)."""
    begin = np.maximum(world.born, 0.0)
    days = np.minimum(world.removed, world.horizon) - begin
    return np.diff(world.changes.offsets) / np.where(days > 0, days, math.inf)


def slots_of(world: World, budget: float, seed: int) -> Slots:
    """The slots from 0 to the horizon."""
    if not (math.isfinite(budget) and budget > 0):
        raise InvalidInput(f"is {budget}, but must be a number above 0, in crawls a day", field="budget")
    last = math.floor(budget * world.horizon)
    if last > _MOST_SLOTS:
        raise InvalidInput("times the horizon is more than 2^52 slots; give a lower budget", field="budget")
    while last > 0 and last / budget > world.horizon:
        last -= 1
    return Slots(float(budget), last, seed & (2**63 - 1))


@dataclass(slots=True)
class Run:
    """A queue that is being served; `rule` and the planned waits may be changed between two stretches."""

    sight: Sight
    slots: Slots
    queue: Queue
    crawls: Crawls
    rule: Rule

    @property
    def made(self) -> int:
        """How many crawls have been made."""
        return int(self.queue.counts[LOGGED])

    @property
    def now(self) -> float:
        """The time of the next slot."""
        return float(self.queue.counts[SLOT] / self.slots.budget)

    @property
    def pages_known(self) -> int:
        """Pages that have come into being and have not been found gone."""
        return int(self.queue.counts[KNOWN])

    def serve(self, until: int) -> bool:
        """Crawl until so many crawls are made in all; False when there are no more. The log grows as needed."""
        until = min(until, self.slots.last)
        while True:
            room = len(self.crawls.page)
            going = serve(self.sight, self.rule, self.slots, self.queue, self.crawls, min(until, room))
            if not going or self.made >= until:
                return going and self.queue.counts[SLOT] <= self.slots.last
            self._grow()

    def finish(self) -> CrawlLog:
        """Crawl to the end; the log."""
        self.serve(self.slots.last)
        return self.log()

    def log(self) -> CrawlLog:
        """The crawls made so far."""
        return CrawlLog(self.crawls.page[: self.made].copy(), self.crawls.time[: self.made].copy())

    def known(self) -> np.ndarray:
        """Which pages have been crawled and not been found gone."""
        gone = np.zeros(len(self.queue.last), dtype=np.bool_)
        pages, times = self.crawls.page[: self.made], self.crawls.time[: self.made]
        gone[pages[self.sight.removed[pages] <= times]] = True
        return self.queue.visited & ~gone

    def replan(self, due: Floats) -> None:
        """Give all known pages new due dates (infinite: not until the next plan); new pages stay due. O(n log n)."""
        now = self.now
        queue = self.queue
        waiting = queue.waiting.slots[: queue.counts[WAITING]]
        fresh = np.sort(waiting[~queue.visited[waiting]])
        known = np.flatnonzero(self.known() & np.isfinite(due))
        pages = np.concatenate([fresh, known]).astype(np.int32)
        dates = np.concatenate([np.full(len(fresh), -math.inf), due[known]])
        order = np.lexsort((pages, dates))  # a sorted array is a heap
        queue.waiting.slots[: len(pages)] = pages[order]
        queue.waiting.values[: len(pages)] = -dates[order]
        queue.counts[WAITING] = len(pages)
        queue.clock[0] = min(now, float(dates[order][0])) if len(known) and not len(fresh) else now

    def _grow(self) -> None:
        old = self.crawls
        self.crawls = _room_for_crawls(min(2 * len(old.page), self.slots.last))
        size = len(old.page)
        self.crawls.page[:size], self.crawls.time[:size] = old.page, old.time
        self.crawls.changed[:size], self.crawls.gap[:size] = old.changed, old.gap


def start_run(world: World, rule: Rule, budget: float, seed: int, planned: Floats | None = None) -> Run:
    """Open a queue at time 0; `planned` are the waits of a plan, if the rule follows one. O(n log n)."""
    n = len(world)
    sight, slots = sight_of(world), slots_of(world, budget, seed)
    queue = Queue(
        last=np.zeros(n),
        seen=np.zeros(n, dtype=np.int64),
        visited=np.zeros(n, dtype=np.bool_),
        own=np.zeros((n, REMEMBERED)),
        planned=np.full(n, math.inf) if planned is None else planned.copy(),
        waiting=_room_for_pages(n),
        due=Due(_room_for_pages(n), np.zeros(n), np.zeros(n)),
        counts=np.zeros(6, dtype=np.int64),
        clock=np.zeros(1),
    )
    queue.counts[SLOT] = 1
    crawls = _room_for_crawls(min(_FIRST_ROOM, slots.last))
    phase = np.random.Generator(np.random.PCG64(seed)).random(n)
    open_queue(sight, rule, slots, queue, phase)
    return Run(sight, slots, queue, crawls, rule)


def _room_for_pages(pages: int) -> Offers:
    return Offers(np.empty(pages), np.empty(pages, dtype=np.int32))


def _room_for_crawls(room: int) -> Crawls:
    return Crawls(np.empty(room, np.int32), np.empty(room), np.empty(room, np.bool_), np.empty(room))
