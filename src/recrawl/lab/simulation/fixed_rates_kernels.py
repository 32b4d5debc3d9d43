"""Constant rates, slot by slot: round robin by a ring of pages, other rates by a heap of due times. Kernels.

Slot k is at k/budget and crawls one page. Rates are shares: due times are on a clock of their own, which stands at the
due time of the page that is served, so that all slots are used whatever pages are there. A page is due again one over
its rate after it was due, or a random time with that mean after it. New pages are due at once, before all others. A
page found gone is dropped.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from recrawl.jit import borrowing, kernel
from recrawl.lab.simulation.crawl_log import PageNumbers
from recrawl.lab.simulation.due_queue_chance import chance_of
from recrawl.pages import Floats
from recrawl.scheduling.value_heap import Offers, heapify, pop_highest, push_value


class Scene(NamedTuple):
    """Pages as a crawler meets them: those there at the start, in the order they are first crawled, and births."""

    first: PageNumbers
    births: PageNumbers  # in order of time
    born: Floats
    removed: Floats


@kernel
def go_round(scene: Scene, times: Floats, crawled: PageNumbers) -> None:
    """Crawl the page that was crawled longest ago, one at each time. O(times).

    Writes the pages into `crawled`, -1 where there is none. Until a page is born or removed, rounds are all alike.
    """
    size, pages = len(scene.born), len(scene.first)
    alike = 0 if pages == 0 else np.searchsorted(times, _first_event(scene))
    for slot in range(min(alike, pages)):
        crawled[slot] = scene.first[slot]
    for slot in range(pages, alike):
        crawled[slot] = crawled[slot - pages]
    ring = np.empty(size, dtype=np.int32)
    head = alike % pages if pages else 0
    ring[: pages - head] = scene.first[head:]
    ring[pages - head : pages] = scene.first[:head]
    head, count, next_birth = 0, pages, 0
    for slot in range(alike, len(times)):
        now = times[slot]
        crawled[slot] = -1
        if next_birth < len(scene.births) and scene.born[scene.births[next_birth]] <= now:
            page = scene.births[next_birth]
            next_birth += 1
        elif count > 0:
            page = ring[head]
            head = head + 1 if head + 1 < size else 0
            count -= 1
        else:
            continue
        crawled[slot] = page
        if scene.removed[page] > now:
            tail = head + count
            ring[tail if tail < size else tail - size] = page
            count += 1


@kernel
def _first_event(scene: Scene) -> float:
    """When the first page is born after the start, or removed. O(pages)."""
    first = scene.born[scene.births[0]] if len(scene.births) else math.inf
    for page in range(len(scene.removed)):
        first = min(first, scene.removed[page])
    return first


@kernel
def go_by_rates(scene: Scene, rates: Floats, times: Floats, seed: int, at_random: bool) -> PageNumbers:
    """Crawl the page that is due first, one at each time; the pages, -1 where there is none. O(times · log pages)."""
    queue = Offers(np.empty(len(rates)), np.empty(len(rates), dtype=np.int32))
    turns = np.zeros(len(rates), dtype=np.int64)
    count, next_birth, clock = 0, 0, 0.0
    for i in range(len(scene.first)):
        page = scene.first[i]
        if rates[page] > 0.0:
            chance = chance_of(seed, page, 0)
            share = -math.log1p(-chance) if at_random else chance
            queue.values[count], queue.slots[count] = -share / rates[page], page
            count += 1
    heapify(queue, count)
    crawled = np.full(len(times), -1, dtype=np.int32)
    for slot in range(len(times)):
        now = times[slot]
        page = -1
        while page < 0 and next_birth < len(scene.births) and scene.born[scene.births[next_birth]] <= now:
            if rates[scene.births[next_birth]] > 0.0:
                page = scene.births[next_birth]
            next_birth += 1
        if page < 0:
            if count == 0:
                continue
            page = queue.slots[0]
            clock = -queue.values[0]
            count = pop_highest(queue, count)
        crawled[slot] = page
        if scene.removed[page] > now:
            turns[page] += 1
            wait = _wait(rates[page], seed, page, turns[page], at_random)
            count = push_value(queue, count, -(clock + wait), page)
    return crawled


@borrowing
def _wait(rate: float, seed: int, page: int, turn: int, at_random: bool) -> float:
    return -math.log1p(-chance_of(seed, page, turn)) / rate if at_random else 1.0 / rate
