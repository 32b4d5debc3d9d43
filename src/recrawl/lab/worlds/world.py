"""A world: pages, and everything that will happen to them from time 0 to the horizon.

A world is drawn or read once and never changes; competitors crawl it (`policy.py`) and their logs are measured
against it (`measures.py`). Times are days from the start. It holds the truth: what a competitor may see of it is
decided by who runs the competitor.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.jit import kernel
from recrawl.pages import Floats

Ints = NDArray[np.int64]


PageNumbers = NDArray[np.int32]


class Events(NamedTuple):
    """Times of events by page: those of page i are `times[offsets[i]:offsets[i + 1]]`, in order of time."""

    offsets: Ints
    times: Floats


class SignalQuality(NamedTuple):
    """How good a kind of signal is, by page: the share of changes it announces, of signals that mean a change."""

    recall: Floats
    precision: Floats


class Signals(NamedTuple):
    """Signals of one kind; `quality` is None if nobody knows it."""

    events: Events
    quality: SignalQuality | None = None


class Hosts(NamedTuple):
    """Where pages live: the number of each page's host, and the hosts' names."""

    number: Ints
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Pages with their truth.

    Attributes:
        name: what the world is called in reports.
        horizon: where time ends.
        importance: weight of each page.
        changes: when each page changed, from its birth (not counted) to its removal.
        change_rate: changes a day by the law they were drawn from; None if there is none, as in a trace.
        poisson: whether changes come at that rate by a Poisson process, so that expectations have closed forms.
        born: when each page came into being; 0 or before: it was there at the start, and has been crawled then.
        removed: when it went; infinite: never.
        signals: what a crawler hears beside crawling, by kind.
        hosts: where pages live, if that matters.
        page_names: paths or addresses, if there are any.
    """

    name: str
    horizon: float
    importance: Floats
    changes: Events
    change_rate: Floats | None = None
    poisson: bool = False
    born: Floats
    removed: Floats
    signals: dict[str, Signals] = field(default_factory=dict)
    hosts: Hosts | None = None
    page_names: tuple[str, ...] | None = None

    def __len__(self) -> int:
        return len(self.importance)


def group_events(page: Ints, times: Floats, pages: int) -> Events:
    """Sort events of many pages by page and time. O(events · log events)."""
    offsets = np.concatenate([[0], np.cumsum(np.bincount(page, minlength=pages))]).astype(np.int64)
    return Events(offsets, times[np.lexsort((times, page))])


def no_events(pages: int) -> Events:
    """Nothing happens to any page."""
    return Events(np.zeros(pages + 1, dtype=np.int64), np.empty(0))


@dataclass(frozen=True, slots=True)
class CrawlLog:
    """Crawls in order of time: the page's number in its world, and when.

    A crawl of a page that was removed is in it too, and found nothing.
    """

    page: PageNumbers
    time: Floats

    def __len__(self) -> int:
        return len(self.page)


def group_many_events(page: Ints, times: Floats, pages: int) -> Events:
    """Sort events by page and time, to the bit as `group_events` does. O(events), and a sort within each page."""
    offsets = np.concatenate([[0], np.cumsum(np.bincount(page, minlength=pages))]).astype(np.int64)
    return Events(offsets, _grouped(page, times, offsets))


@kernel
def _grouped(page: Ints, times: Floats, offsets: Ints) -> Floats:
    grouped = np.empty_like(times)
    place = offsets.copy()
    for event in range(len(times)):
        grouped[place[page[event]]] = times[event]
        place[page[event]] += 1
    for number in range(len(offsets) - 1):
        grouped[offsets[number] : offsets[number + 1]].sort()
    return grouped
