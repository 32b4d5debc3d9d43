"""What a crawler of news learns of its sources on the way: new pages a day, hits a page, and how fast they fade.

As in ECHO (Lefortier et al. 2013, section 4.2): new links from the last 7 crawls; profit and decay by least squares
on the hits of the source's pages in bins of 20 minutes, from logs that are pushed every hour. The logs have all hits
of every page found so far, and pages carry the time of their birth. A page counts for every source that was seen to
link to it.

To save time, a source is fitted again when it has half as many hits or pages again as at the last fit; then its
histogram is made from its links anew, the same as `HitHistograms` would hold.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.jit import kernel
from recrawl.lab.simulation.news_kernels import SEEN, Codes, Crawler, Numbers
from recrawl.lab.worlds.news import NewsWorld
from recrawl.learning.interest import DEFAULT_PROFIT, TWENTY_MINUTES, fit_interest
from recrawl.learning.new_links import NewLinks
from recrawl.pages import Floats

BINS = 504
"""Of 20 minutes: a week."""

DEFAULT_DECAY = 1.0
_GROWN = 1.5
_SMOOTHING = 0.5  # days


class _Facts(NamedTuple):
    """All hits, by page and in order of time, and all links, by source and by page. Told of bit by bit."""

    births: Floats
    hit_start: Numbers
    hit_time: Floats
    page_in_order: Codes
    time_in_order: Floats
    link_start: Numbers
    link_page: Codes
    link_source: Codes
    start_of_page: Numbers
    link_of_page: Codes


class _Known(NamedTuple):
    """What the logs have told: pages and hits by source, and whether a link is known."""

    pages: Numbers
    hits: Numbers
    told: NDArray[np.bool_]
    progress: Numbers  # links of `Crawler.seen`, and hits in order, that were dealt with


class SourceLearner:
    """Estimates of every source; starts from the paper's defaults."""

    def __init__(self, world: NewsWorld) -> None:
        sources = world.sources
        self._facts = _facts(world)
        self._known = _Known(
            np.zeros(sources, dtype=np.int64),
            np.zeros(sources, dtype=np.int64),
            np.zeros(len(world.link_page), dtype=np.bool_),
            np.zeros(2, dtype=np.int64),
        )
        self._fitted = np.zeros((2, sources))
        self._links = NewLinks(sources, smoothing=_SMOOTHING)
        # At time 0 every source was seen, and nothing was new: what the next crawl finds has come since.
        everything = np.arange(sources)
        self._links.record(everything, np.zeros(sources), np.zeros(sources, dtype=np.int64))
        self.profit = np.full(sources, DEFAULT_PROFIT)
        self.decay = np.full(sources, DEFAULT_DECAY)
        self.mean_hits = np.full(sources, DEFAULT_PROFIT)

    def new_page_rates(self) -> Floats:
        """What each source shows a day that is new."""
        return self._links.rates()

    def see_crawls(self, sources: Codes, times: Floats, found: Codes) -> None:
        """Take in crawls of sources, and how much each showed that was new."""
        self._links.record(sources, times, found)

    def push(self, crawler: Crawler, now: float, *, fit: bool) -> None:
        """Take in all hits up to now; fit profit and decay where much is new, if they are asked for."""
        known = self._known
        _count(self._facts, known, crawler.seen[: crawler.counts[SEEN]], now)
        unproven = DEFAULT_PROFIT / (known.pages + 1.0)
        self.mean_hits = known.hits / np.maximum(known.pages, 1) + unproven
        if not fit:
            return
        self.profit[known.hits == 0] = unproven[known.hits == 0]
        grown = (known.hits > _GROWN * self._fitted[0]) | (known.pages > _GROWN * self._fitted[1])
        rows = np.flatnonzero(grown & (known.hits > 0))
        if len(rows):
            hits, watched = self.histograms(rows, now)
            self.profit[rows], self.decay[rows] = fit_interest(
                hits, watched, TWENTY_MINUTES, default_decay=DEFAULT_DECAY, default_profit=DEFAULT_PROFIT
            )
            self._fitted[0, rows], self._fitted[1, rows] = known.hits[rows], known.pages[rows]

    def histograms(self, rows: Numbers, now: float) -> tuple[Floats, Floats]:
        """Hits by age and pages watched at that age, of some sources, from the links that are known."""
        hits, watched = np.zeros((len(rows), BINS)), np.zeros((len(rows), BINS))
        _fill(self._facts, self._known.told, rows, now, hits, watched)
        return hits, watched


def _facts(world: NewsWorld) -> _Facts:
    page = np.repeat(np.arange(world.pages, dtype=np.int32), world.hits())
    order = np.argsort(world.hit_time, kind="stable")
    return _Facts(
        births=world.births,
        hit_start=world.hit_start,
        hit_time=world.hit_time,
        page_in_order=page[order],
        time_in_order=world.hit_time[order],
        link_start=world.link_start,
        link_page=world.link_page,
        link_source=np.repeat(np.arange(world.sources, dtype=np.int32), np.diff(world.link_start)),
        start_of_page=np.concatenate(([0], np.cumsum(np.bincount(world.link_page, minlength=world.pages)))),
        link_of_page=np.argsort(world.link_page, kind="stable").astype(np.int32),
    )


@kernel
def _count(facts: _Facts, known: _Known, seen: Codes, now: float) -> None:
    """Hits since the last push of links known before, then links seen since, with all hits that their pages had."""
    at = known.progress[1]
    while at < facts.time_in_order.size and facts.time_in_order[at] <= now:
        page = facts.page_in_order[at]
        for i in range(facts.start_of_page[page], facts.start_of_page[page + 1]):
            if known.told[facts.link_of_page[i]]:
                known.hits[facts.link_source[facts.link_of_page[i]]] += 1
        at += 1
    known.progress[1] = at
    for i in range(known.progress[0], seen.size):
        source, page = facts.link_source[seen[i]], facts.link_page[seen[i]]
        known.told[seen[i]] = True
        known.pages[source] += 1
        for hit in range(facts.hit_start[page], facts.hit_start[page + 1]):
            if facts.hit_time[hit] > now:
                break
            known.hits[source] += 1
    known.progress[0] = seen.size


@kernel
def _fill(facts: _Facts, told: NDArray[np.bool_], rows: Numbers, now: float, counted: Floats, watched: Floats) -> None:
    bins = counted.shape[1]
    ended = np.empty(bins + 1)
    for row in range(rows.size):
        ended[:] = 0.0
        for link in range(facts.link_start[rows[row]], facts.link_start[rows[row] + 1]):
            page = facts.link_page[link]
            if facts.births[page] > now:
                break
            if not told[link]:
                continue
            # A page was watched in all bins before this one, and in a part of this.
            age = (now - facts.births[page]) / TWENTY_MINUTES
            whole = min(int(age), bins)
            ended[whole] += 1.0
            if whole < bins:
                watched[row, whole] += age - whole
            for hit in range(facts.hit_start[page], facts.hit_start[page + 1]):
                if facts.hit_time[hit] > now:
                    break
                place = int((facts.hit_time[hit] - facts.births[page]) / TWENTY_MINUTES)
                if place < bins:
                    counted[row, place] += 1.0
        older = 0.0
        for place in range(bins - 1, -1, -1):
            older += ended[place + 1]
            watched[row, place] += older
