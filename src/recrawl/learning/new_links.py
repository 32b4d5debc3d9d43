"""How often a content source shows new links: from its last few crawls.

The rate changes over the day and the week, so only the last T crawls count (ECHO, Lefortier et al. 2013, section
4.2.2). An imaginary half link keeps it above 0: a source that showed nothing lately is still looked at now and then.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import InvalidInput
from recrawl.jit import kernel
from recrawl.learning.inputs import check_codes, check_count, check_length, check_positive, check_times
from recrawl.pages import Floats

CRAWLS = 7
"""Crawls that count, as in the paper."""

_MOST_CRAWLS = 1_000_000
_MOST_LINKS = 2**31 - 1


class _Ring(NamedTuple):
    """Links found at the last crawls of each source; `times` has one place more, for the crawl before them."""

    links: NDArray[np.int32]
    times: Floats
    crawled: NDArray[np.int64]


class NewLinks:
    """New links per unit time of many sources. Memory: 12 bytes per source and crawl that counts, 16 more per source.

    Args:
        sources: how many sources; they are numbered from 0.
        crawls: how many of the latest crawls of a source count.
        smoothing: the time that the imaginary half link takes. A source of which nothing is known has a rate of
            ½/smoothing; every other lies between that and its links over their time.

    >>> links = NewLinks(sources=2, smoothing=0.5)
    >>> links.record([0, 0, 0], times=[0.0, 1.0, 2.0], found=[9, 3, 0])
    >>> links.rates().tolist()  # the 9 links of the first crawl may be of any age
    [1.4, 1.0]
    """

    def __init__(self, sources: int, *, crawls: int = CRAWLS, smoothing: float = 0.5) -> None:
        sources, crawls = check_count(sources, "sources"), check_count(crawls, "crawls", least=1, most=_MOST_CRAWLS)
        self.smoothing = check_positive(smoothing, "smoothing")
        self._ring = _Ring(
            np.zeros((sources, crawls), np.int32), np.zeros((sources, crawls + 1)), np.zeros(sources, np.int64)
        )

    def __len__(self) -> int:
        return len(self._ring.crawled)

    def record(self, sources: Any, times: Any, found: Any) -> None:
        """Take in crawls of sources: when, and how many links were new. O(1) each.

        The crawls of a source are in order of time. Its first crawl opens the history: what it finds may be of any
        age, so it does not count. Crawls of one source at the same time count as one, whatever their order.
        """
        codes = check_codes(sources, "sources", len(self))
        moments = check_times(times, "times", len(codes))
        links = check_codes(found, "found", _MOST_LINKS + 1)
        check_length(len(links), len(codes), "found")
        self._refuse_going_back(codes, moments)
        _record(self._ring, codes, moments, links)

    def rates(self) -> Floats:
        """New links per unit time over the last crawls, (links + ½) over (their span + smoothing); never 0."""
        ring = self._ring
        places = ring.times.shape[1]
        rows = np.arange(len(self))
        newest = (ring.crawled - 1) % places
        oldest = np.where(ring.crawled >= places, ring.crawled % places, 0)
        span = ring.times[rows, newest] - ring.times[rows, oldest]
        rates: Floats = (ring.links.sum(axis=1) + 0.5) / (span + self.smoothing)
        return rates

    def _refuse_going_back(self, sources: NDArray[np.int64], times: Floats) -> None:
        """Refuse crawls that are earlier than the one before them of the same source, here or already recorded."""
        order = np.argsort(sources, kind="stable")
        source, time = sources[order], times[order]
        ring = self._ring
        latest = ring.times[source, (ring.crawled[source] - 1) % ring.times.shape[1]]
        before = np.where(ring.crawled[source] > 0, latest, -np.inf)
        follows = np.flatnonzero(np.diff(source) == 0) + 1
        before[follows] = np.maximum(before[follows], time[follows - 1])
        if (time < before).any():
            place = int(np.argmax(time < before))
            raise InvalidInput(
                f"is {float(time[place])!r}, earlier than the crawl before it of source {int(source[place])}: "
                "record crawls in order of time",
                field="times",
                row=int(order[place]),
            )


@kernel
def _record(ring: _Ring, sources: NDArray[np.int64], times: Floats, found: NDArray[np.int64]) -> None:
    crawls = ring.links.shape[1]
    for row in range(sources.size):
        source = sources[row]
        earlier = ring.crawled[source]
        if earlier > 0 and ring.times[source, (earlier - 1) % (crawls + 1)] == times[row]:
            if earlier > 1:
                together = ring.links[source, (earlier - 2) % crawls] + found[row]
                ring.links[source, (earlier - 2) % crawls] = min(together, _MOST_LINKS)
            continue
        ring.times[source, earlier % (crawls + 1)] = times[row]
        if earlier > 0:
            ring.links[source, (earlier - 1) % crawls] = found[row]
        ring.crawled[source] = earlier + 1
