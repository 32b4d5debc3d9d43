"""One crawl after the other on a graph of sources and new pages: compiled stretches between two lessons.

A crawler sees what a source shows, knows which pages it has found and when it last was at a source; the numbers that
it goes by (schedules, profits) are handed in. Pages found and not yet crawled wait on a stack, newest on top.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.jit import kernel
from recrawl.lab.worlds.news import NewsWorld
from recrawl.pages import Floats

Numbers = NDArray[np.int64]
Codes = NDArray[np.int32]

PAGES_FIRST = 0
SOURCES_WHEN_DUE = 1
TAKE_TURNS = 2
"""What goes first: pages that were found, sources that are due, or each in turn."""

SEEN, WAITING, LOOKED = 0, 1, 2
"""Places in `Crawler.counts`: links seen, pages on the stack, sources looked at in order."""


class Graph(NamedTuple):
    """The part of a `NewsWorld` that crawling reveals piece by piece."""

    births: Floats
    link_start: Numbers
    link_page: Codes
    shown: Numbers


class Crawler(NamedTuple):
    """What a crawler knows; changed in place.

    `order` is the order of the first pass over the sources, `last` and `next_link` say when each was last crawled and
    which link is the first it had not shown by then. `seen` lists links in the order in which they were first seen;
    `found_on` has the source that first showed a page, or −1. The log has a code for each slot, the source or
    sources + page; of a source also how many new links it showed, and to how many pages it was the first to link.
    """

    order: Codes
    last: Floats
    next_link: Numbers
    seen: Codes
    found_on: Codes
    stack: Codes
    counts: Numbers
    crawled: Codes
    new_links: Codes
    new_pages: Codes


class Stretch(NamedTuple):
    """Slots from `first` up to `end`; slot k is at (k + 1)/per_day."""

    first: int
    end: int
    per_day: float


def graph_of(world: NewsWorld) -> Graph:
    """The links of a world."""
    return Graph(world.births, world.link_start, world.link_page, world.shown)


def new_crawler(world: NewsWorld, slots: int, seed: int) -> Crawler:
    """A crawler that was at every source at time 0, when there was nothing new."""
    random = np.random.Generator(np.random.PCG64([seed, 29]))
    return Crawler(
        order=random.permutation(world.sources).astype(np.int32),
        last=np.zeros(world.sources),
        next_link=world.link_start[:-1].copy(),
        seen=np.empty(len(world.link_page), dtype=np.int32),
        found_on=np.full(world.pages, -1, dtype=np.int32),
        stack=np.empty(world.pages, dtype=np.int32),
        counts=np.zeros(3, dtype=np.int64),
        crawled=np.full(slots, -1, dtype=np.int32),
        new_links=np.zeros(slots, dtype=np.int32),
        new_pages=np.zeros(slots, dtype=np.int32),
    )


@kernel
def look(graph: Graph, crawler: Crawler, source: int, slot: int, now: float) -> None:
    """Crawl a source: pages that it shows and that no source has shown before go on the stack. O(new links)."""
    begin, end = crawler.next_link[source], crawler.next_link[source]
    while end < graph.link_start[source + 1] and graph.births[graph.link_page[end]] <= now:
        end += 1
    counts = crawler.counts
    saw, waited = counts[SEEN], counts[WAITING]
    for link in range(max(begin, end - graph.shown[source]), end):
        crawler.seen[counts[SEEN]] = link
        counts[SEEN] += 1
        page = graph.link_page[link]
        if crawler.found_on[page] < 0:
            crawler.found_on[page] = source
            crawler.stack[counts[WAITING]] = page
            counts[WAITING] += 1
    crawler.next_link[source], crawler.last[source] = end, now
    crawler.crawled[slot] = source
    crawler.new_links[slot], crawler.new_pages[slot] = counts[SEEN] - saw, counts[WAITING] - waited


@kernel
def crawl_in_order(graph: Graph, crawler: Crawler, stretch: Stretch) -> None:
    """Breadth-first: sources in a fixed order, after each all new pages that it shows. O(new links + slots)."""
    for slot in range(stretch.first, stretch.end):
        if crawler.counts[WAITING] > 0:
            _take_newest(crawler, slot)
        else:
            source = crawler.order[crawler.counts[LOOKED] % crawler.order.size]
            crawler.counts[LOOKED] += 1
            look(graph, crawler, source, slot, (slot + 1) / stretch.per_day)


@kernel
def crawl_by_pace(graph: Graph, crawler: Crawler, stretch: Stretch, first: int, pace: Floats) -> None:
    """Sources by pace × elapsed, the largest first; a source is due from 1 on. O(sources) per slot.

    `first` says what goes first, pages or sources. A source that was not crawled since the start has waited for ever:
    it is due, and before other sources. If pages do not go first, none waits and no source is due, then the crawl is to
    spare, and goes to the source that was not crawled for longest.
    """
    counts = crawler.counts
    for slot in range(stretch.first, stretch.end):
        now = (slot + 1) / stretch.per_day
        waiting = counts[WAITING] > 0
        if waiting and (first == PAGES_FIRST or (first == TAKE_TURNS and slot % 2 == 1)):
            _take_newest(crawler, slot)
            continue
        if counts[LOOKED] < crawler.order.size:
            look(graph, crawler, int(crawler.order[counts[LOOKED]]), slot, now)
            counts[LOOKED] += 1
            continue
        source, most = 0, -1.0
        for i in range(pace.size):
            behind = pace[i] * (now - crawler.last[i])
            if behind > most:
                source, most = i, behind
        if most >= 1.0 or first == PAGES_FIRST or (waiting and first == TAKE_TURNS):
            look(graph, crawler, source, slot, now)
        elif waiting:
            _take_newest(crawler, slot)
        else:
            look(graph, crawler, int(np.argmin(crawler.last)), slot, now)


@kernel
def _take_newest(crawler: Crawler, slot: int) -> None:
    crawler.counts[WAITING] -= 1
    crawler.crawled[slot] = crawler.order.size + crawler.stack[crawler.counts[WAITING]]


@kernel
def hits_to_come(hit_start: Numbers, hit_time: Floats, page: Numbers, time: Floats) -> Numbers:
    """How many hits of each page fall after a time. O(log hits) each."""
    count = np.empty(page.size, dtype=np.int64)
    for i in range(page.size):
        low, high = hit_start[page[i]], hit_start[page[i] + 1]
        end = high
        while low < high:
            middle = (low + high) // 2
            if hit_time[middle] <= time[i]:
                low = middle + 1
            else:
                high = middle
        count[i] = end - low
    return count
