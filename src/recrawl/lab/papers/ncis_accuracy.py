"""Accuracy of a crawl log: the share of requests that meet a fresh copy, in expectation given crawls and signals.

Requests come by a Poisson process of the rate `importance` and see time averages, so their accuracy is the
importance-weighted share of time in which copies are fresh. A copy that was crawled τ ago and has had n signals since
is fresh with probability e^{−(ατ + bn)} (NCIS, Busa-Fekete et al. 2025). Integrating that instead of drawing changes
and requests leaves the mean as it is and takes their noise away.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from recrawl.jit import borrowing, exact
from recrawl.lab.papers.ncis_worlds import NcisPages
from recrawl.lab.worlds.world import CrawlLog, Events, Ints, PageNumbers, no_events
from recrawl.pages import Floats

# A copy that is fresh with less than this chance is stale.
_GONE = 1e-18


class Truth(NamedTuple):
    """What decides whether copies are fresh: silent changes by rate, and events that each weigh so much."""

    importance: Floats
    silent_rate: Floats
    weight: Floats
    events: Events


def given_crawls(pages: NcisPages) -> Truth:
    """For a policy that hears no signals: all changes in expectation."""
    count = len(pages.importance)
    return Truth(pages.importance, pages.change_rate, np.zeros(count), no_events(count))


def given_signals(pages: NcisPages, signals: Events) -> Truth:
    """For a policy that hears signals at once: each signal takes its share of the freshness."""
    weight = np.log1p(pages.recall * pages.change_rate / pages.false_signal_rate)
    return Truth(pages.importance, (1.0 - pages.recall) * pages.change_rate, weight, signals)


def given_announced(pages: NcisPages, announced: Events) -> Truth:
    """For signals that come late or are never wrong: announced changes as they happen, silent ones in expectation."""
    weight = np.full(len(pages.importance), math.inf)
    return Truth(pages.importance, (1.0 - pages.recall) * pages.change_rate, weight, announced)


def accuracy(truth: Truth, log: CrawlLog, edges: Floats) -> Floats:
    """Accuracy in each span between two edges; before its first crawl a page is stale. O(crawls + events + spans)."""
    pages = len(truth.importance)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(log.page, minlength=pages))])
    times = np.empty(len(log))
    _group(log.page, log.time, offsets[:-1].copy(), times)
    sums = np.zeros(len(edges) - 1)
    _add_fresh_time(truth, Events(offsets, times), edges, sums)
    shares: Floats = sums / (truth.importance.sum() * np.diff(edges))
    return shares


@exact
def _group(page: PageNumbers, time: Floats, filled: Ints, times: Floats) -> None:
    for i in range(page.size):
        times[filled[page[i]]] = time[i]
        filled[page[i]] += 1


@exact
def _add_fresh_time(truth: Truth, crawls: Events, edges: Floats, sums: Floats) -> None:
    end = edges[-1]
    for page in range(truth.importance.size):
        rate, factor = truth.silent_rate[page], math.exp(-truth.weight[page])
        event, last_event = truth.events.offsets[page], truth.events.offsets[page + 1]
        last_crawl = crawls.offsets[page + 1]
        for crawl in range(crawls.offsets[page], last_crawl):
            start = crawls.times[crawl]
            until = min(crawls.times[crawl + 1], end) if crawl + 1 < last_crawl else end
            while event < last_event and truth.events.times[event] <= start:
                event += 1
            fresh = truth.importance[page]
            while start < until and fresh > _GONE:
                heard = event < last_event and truth.events.times[event] < until
                stop = truth.events.times[event] if heard else until
                fresh = _add_decay(fresh, rate, start, stop, edges, sums)
                if heard:
                    fresh *= factor
                    event += 1
                start = stop


@borrowing
def _add_decay(fresh: float, rate: float, start: float, stop: float, edges: Floats, sums: Floats) -> float:
    """Add ∫ fresh·e^{−rate·t}dt from start to stop to the spans it falls in; return what is left."""
    if stop <= edges[0]:
        return fresh * math.exp(-rate * (stop - start))
    span = max(0, int(np.searchsorted(edges, start, side="right")) - 1)
    while start < stop:
        step = min(stop, edges[span + 1]) - start
        left = fresh * math.exp(-rate * step)
        if start >= edges[0]:
            sums[span] += fresh * -math.expm1(-rate * step) / rate if rate > 0.0 else fresh * step
            start = min(stop, edges[span + 1])
            span += 1
        else:  # up to the first edge nothing counts
            left = fresh * math.exp(-rate * (edges[0] - start))
            start = edges[0]
        fresh = left
    return fresh
