"""The due-date engine: one compiled queue that runs every interval rule of `peers/` on a budget.

The budget comes as slots, evenly spaced: slot k is at k / budget. At each slot at most one page is crawled; the rule
then says how long to wait until the page is due again (`peers/visit.py`). Two ways to hold a rule to a budget:

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
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.jit import borrowing, exact
from recrawl.lab.peers.rules import MOST_OVERDUE, Visit, ask_rule
from recrawl.lab.simulation.due_queue_chance import chance_of
from recrawl.lab.simulation.due_queue_order import Due, next_due, pick_due
from recrawl.lab.simulation.world import Ints
from recrawl.pages import Floats
from recrawl.scheduling.value_heap import Offers, pop_highest, push_value

SLOT, WAITING, NEXT_BIRTH, LOGGED, KNOWN, DUE = range(6)
"""Where the counts of a queue are: next slot, pages waiting, next birth, crawls made, pages known, pages due."""


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
