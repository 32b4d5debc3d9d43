"""The due-date engine: one compiled queue that runs every interval rule of `peers/` on a budget.

The budget comes as slots, evenly spaced: slot k is at k / budget. At each slot at most one page is crawled; the rule
then says how long to wait until the page is due again (`peers/rules.py`). Two ways to hold a rule to a budget:

    as it is   no page before its due date; slots pass unused while none is due; when more are due than there are
               slots, the one longest overdue goes first (or the most important, or the longest overdue by its wait)
    scaled     all waits are multiplied by one factor, which is adapted on the way so that every slot is used: due
               dates are kept on a clock of their own, which jumps to the due date of the page that is served. The
               factor at any time is how much slower that clock runs than time itself.

A rule that adapts its waits works against the factor until its limits stop it: short of budget it shortens all waits,
and the factor grows. Scaled can then be worse than as it is, so a fair comparison takes the better of the two.

Pages that are there at the start were crawled at 0 and are caught in the middle of their round: their first due date
is a share of the first wait, drawn by seed. A new page is due at its birth. A removed page is found gone at its first
crawl after that, and dropped. Nothing here reads a clock or draws from a shared source of chance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import InvalidInput
from recrawl.jit import borrowing, exact
from recrawl.lab.peers.rules import BY_SCORE, MOST_OVERDUE, REMEMBERED, Visit, ask_rule
from recrawl.lab.worlds.world import CrawlLog, Ints, World
from recrawl.pages import Floats
from recrawl.scheduling.value_heap import Offers, pop_highest, push_value

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_UNIT = 2.0**-53


_LEAST_WAIT = 1e-9  # days; a page that was due at once is overdue by any share of its wait

SLOT, WAITING, NEXT_BIRTH, LOGGED, KNOWN, DUE = range(6)
"""Where the counts of a queue are: next slot, pages waiting, next birth, crawls made, pages known, pages due."""

_MOST_SLOTS = 2**52  # so that their numbers are exact as floats
_FIRST_ROOM = 1024


@borrowing
def chance_of(seed: int, page: int, crawl: int) -> float:
    """A number for the crawl of a page, by the mixing function of SplitMix64 (Steele, Lea, Flood 2014)."""
    mixed = _mix(_mix(np.uint64(seed)) ^ np.uint64(page)) ^ np.uint64(crawl)
    return float(_mix(mixed) >> np.uint64(11)) * _UNIT


@borrowing
def _mix(number: np.uint64) -> np.uint64:
    number = number + _STEP
    number = (number ^ (number >> np.uint64(30))) * _FIRST
    number = (number ^ (number >> np.uint64(27))) * _SECOND
    return number ^ (number >> np.uint64(31))


class Due(NamedTuple):
    """Due pages in the first entries of `pages`, and by page since when, and the wait before that."""

    pages: Offers
    since: Floats
    wait: Floats


@borrowing
def next_due(order: int, due: Due, count: int, page: int, since: float, importance: float) -> int:
    """Add a page that has become due; the number of due pages. O(log count)."""
    due.since[page] = since
    if order == BY_SCORE:
        return push_value(due.pages, count, importance, page)
    due.pages.slots[count] = page
    return count + 1


@borrowing
def pick_due(order: int, due: Due, count: int, now: float) -> int:
    """Take the page that goes first out of those due. O(log count) by score, O(count) by share of the wait."""
    slots = due.pages.slots
    if order == BY_SCORE:
        page = slots[0]
        pop_highest(due.pages, count)
        return int(page)
    best, most = 0, -1.0
    for place in range(count):
        page = slots[place]
        share = (now - due.since[page]) / max(due.wait[page], _LEAST_WAIT)
        if share > most or (share == most and page < slots[best]):
            best, most = place, share
    page = slots[best]
    slots[best] = slots[count - 1]
    return int(page)


class Sight(NamedTuple):
    """The world as arrays: from it the engine works out what a crawl shows. `births` are new pages in order."""

    offsets: Ints
    changes: Floats
    born: Floats
    removed: Floats
    importance: Floats
    rate: Floats
    births: Ints


class Rule(NamedTuple):
    """A rule by its number, its parameters, and how it is held to the budget."""

    kind: int
    parameters: Floats
    order: int
    scaled: bool


class Queue(NamedTuple):
    """What is kept for each page, and the waiting pages as a heap by due date (negative: highest first)."""

    last: Floats
    seen: Ints
    visited: NDArray[np.bool_]
    own: Floats
    planned: Floats
    waiting: Offers
    due: Due
    counts: Ints
    clock: Floats


class Crawls(NamedTuple):
    """The crawls made so far, with what they found: whether the page had changed, days since the last crawl."""

    page: NDArray[np.int32]
    time: Floats
    changed: NDArray[np.bool_]
    gap: Floats


class Slots(NamedTuple):
    """The budget: slot k is at k / budget; the last one; a seed for what rules draw."""

    budget: float
    last: int
    seed: int


@exact
def open_queue(sight: Sight, rule: Rule, slots: Slots, queue: Queue, phase: Floats) -> None:
    """First visits at time 0 of all pages that are there, due after a share of their wait. O(n log n)."""
    counts = queue.counts
    for page in range(len(sight.born)):
        if sight.born[page] <= 0.0:
            counts[KNOWN] += 1
    for page in range(len(sight.born)):
        queue.seen[page] = sight.offsets[page]
        if sight.born[page] <= 0.0:
            wait = _visit(sight, rule, slots, queue, page, 0.0)
            if wait < math.inf:
                _push(queue, phase[page] * wait, page)


@exact
def serve(sight: Sight, rule: Rule, slots: Slots, queue: Queue, crawls: Crawls, until: int) -> bool:
    """Crawl until so many crawls are made; False when the slots have run out or, if scaled, nothing is ever due.

    O(log n) for each crawl; O(pages due) in the order by share of the wait. Slots without a due page cost nothing.
    """
    counts = queue.counts
    while counts[SLOT] <= slots.last:
        if counts[LOGGED] >= until:
            return True
        now = counts[SLOT] / slots.budget
        _admit_births(sight, rule, queue, now)
        horizon = math.inf if rule.scaled else now
        if rule.order != MOST_OVERDUE and not rule.scaled:
            page, due = _pick(sight, rule, queue, now)
        elif counts[WAITING] > 0 and -queue.waiting.values[0] <= horizon:
            page, due = queue.waiting.slots[0], -queue.waiting.values[0]
            counts[WAITING] = pop_highest(queue.waiting, counts[WAITING])
        else:
            page, due = -1, 0.0
        if page < 0:
            _skip(sight, rule, slots, queue)
            continue
        counts[SLOT] += 1
        queue.clock[0] = max(queue.clock[0], due)
        _crawl(sight, rule, slots, queue, crawls, page)
    return False


@borrowing
def _crawl(sight: Sight, rule: Rule, slots: Slots, queue: Queue, crawls: Crawls, page: int) -> None:
    """Crawl a page at the slot just taken, and put it back unless it is gone."""
    counts = queue.counts
    now = (counts[SLOT] - 1) / slots.budget
    at = counts[LOGGED]
    crawls.page[at] = page
    crawls.time[at] = now
    crawls.gap[at] = now - queue.last[page] if queue.visited[page] else 0.0
    crawls.changed[at] = False
    if sight.removed[page] <= now:
        counts[LOGGED] += 1
        counts[KNOWN] -= 1
        return
    before = queue.seen[page]
    first = not queue.visited[page]
    wait = _visit(sight, rule, slots, queue, page, now)
    crawls.changed[at] = queue.seen[page] > before and not first
    counts[LOGGED] += 1
    if wait < math.inf:
        _push(queue, (queue.clock[0] if rule.scaled else now) + wait, page)
        queue.due.wait[page] = wait


@borrowing
def _visit(sight: Sight, rule: Rule, slots: Slots, queue: Queue, page: int, now: float) -> float:
    """Look at a page, and ask the rule how long to wait. O(changes since the last crawl)."""
    begin, end = sight.offsets[page], sight.offsets[page + 1]
    before = queue.seen[page]
    seen = before
    while seen < end and sight.changes[seen] <= now:
        seen += 1
    queue.seen[page] = seen
    first = not queue.visited[page]
    visit = Visit(
        now,
        0.0 if first else now - queue.last[page],
        seen > before and not first,
        first,
        sight.changes[seen - 1] if seen > begin else sight.born[page],
        sight.changes,
        (begin, seen),
        sight.importance[page],
        sight.rate[page],
        queue.planned[page],
        queue.counts[KNOWN] / slots.budget,
        chance_of(slots.seed, page, queue.counts[LOGGED]),
    )
    queue.visited[page] = True
    queue.last[page] = now
    return ask_rule(rule.kind, rule.parameters, queue.own[page], visit)


@borrowing
def _admit_births(sight: Sight, rule: Rule, queue: Queue, now: float) -> None:
    """Make new pages due that have come into being by now."""
    counts = queue.counts
    while counts[NEXT_BIRTH] < len(sight.births) and sight.born[sight.births[counts[NEXT_BIRTH]]] <= now:
        page = sight.births[counts[NEXT_BIRTH]]
        counts[NEXT_BIRTH] += 1
        counts[KNOWN] += 1
        _push(queue, queue.clock[0] if rule.scaled else sight.born[page], page)


@borrowing
def _skip(sight: Sight, rule: Rule, slots: Slots, queue: Queue) -> None:
    """Pass the slots before the next due date or birth."""
    counts = queue.counts
    ahead = math.inf
    if counts[NEXT_BIRTH] < len(sight.births):
        ahead = sight.born[sight.births[counts[NEXT_BIRTH]]]
    if not rule.scaled and counts[WAITING] > 0:
        ahead = min(ahead, -queue.waiting.values[0])
    slot = counts[SLOT] + 1
    if ahead * slots.budget > slots.last + 1.0:
        slot = slots.last + 1
    else:
        slot = max(slot, int(ahead * slots.budget) - 1)
        while slot / slots.budget < ahead:
            slot += 1
    counts[SLOT] = slot


@borrowing
def _pick(sight: Sight, rule: Rule, queue: Queue, now: float) -> tuple[int, float]:
    """Move what has become due out of the waiting pages, and take the first of it in the rule's order."""
    counts = queue.counts
    while counts[WAITING] > 0 and -queue.waiting.values[0] <= now:
        page, due = queue.waiting.slots[0], -queue.waiting.values[0]
        counts[WAITING] = pop_highest(queue.waiting, counts[WAITING])
        counts[DUE] = next_due(rule.order, queue.due, counts[DUE], page, due, sight.importance[page])
    if counts[DUE] == 0:
        return -1, 0.0
    page = pick_due(rule.order, queue.due, counts[DUE], now)
    counts[DUE] -= 1
    return page, queue.due.since[page]


@borrowing
def _push(queue: Queue, due: float, page: int) -> None:
    queue.counts[WAITING] = push_value(queue.waiting, queue.counts[WAITING], -due, page)


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
