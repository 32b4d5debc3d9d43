"""What every world by law is drawn with: streams of chance by purpose, Poisson events of all pages at once.

Each purpose has a stream of its own, so that a world with signals has the same changes as the one without. The same
seed gives the same world, to the bit. Nothing here does IO.
"""

from __future__ import annotations

import math
import zlib
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import InvalidInput
from recrawl.lab.simulation.world import Events, Ints, group_events
from recrawl.pages import Floats

MOST_PAGES = 100_000_000
MOST_EVENTS = 500_000_000
_FEW_EVENTS = 100_000


class Spans(NamedTuple):
    """When each page can have events: from `start` to `end`, in days."""

    start: Floats
    end: Floats

    def lengths(self) -> Floats:
        """How long, 0 for a page that ends before it starts."""
        return np.maximum(self.end - self.start, 0.0)


def stream(seed: int, purpose: str) -> np.random.Generator:
    """Random numbers for one purpose.

    >>> stream(1, "changes").random() == stream(1, "changes").random() != stream(1, "signals").random()
    True
    """
    if seed < 0:
        raise InvalidInput(f"is {seed}, but must be 0 or more", field="seed")
    return np.random.Generator(np.random.PCG64([seed, zlib.crc32(purpose.encode())]))


def check_size(pages: int, horizon: float) -> None:
    """Refuse a world without pages or without time."""
    if pages < 1:
        raise InvalidInput(f"is {pages}, but a world needs at least one page", field="pages")
    if pages > MOST_PAGES:
        raise InvalidInput(f"is {pages}, but a world holds at most {MOST_PAGES:,}", field="pages")
    if not (math.isfinite(horizon) and horizon > 0):
        raise InvalidInput(f"is {horizon!r}, but must be a number of days above 0", field="horizon")


def whole_span(pages: int, horizon: float) -> Spans:
    """All pages from time 0 to the horizon."""
    return Spans(np.zeros(pages), np.full(pages, float(horizon)))


def poisson_events(random: np.random.Generator, rate: Floats, spans: Spans) -> Events:
    """Draw events at a constant rate for each page within its span. O(pages + events), without a sort.

    Given their number, the times of Poisson events are uniform in order, and those are sums of exponential gaps over
    the sum of one gap more.
    """
    length = spans.lengths()
    expected = rate * length
    check_events(float(expected.sum()))
    counts = random.poisson(expected)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    # One long sum over all gaps; that of a page begins where the one before ended.
    sums = np.cumsum(random.standard_exponential(int(offsets[-1]) + len(counts)))
    last = offsets[1:] + np.arange(len(counts))
    first = np.concatenate([[0.0], sums[last[:-1]]]) if len(counts) else np.empty(0)
    kept = np.ones(len(sums), dtype=bool)
    kept[last] = False
    page = np.repeat(np.arange(len(counts)), counts)
    share = (sums[kept] - first[page]) / (sums[last] - first)[page]
    return Events(offsets, spans.start[page] + share * length[page])


def check_events(expected: float) -> None:
    """Refuse a world that would not fit into memory."""
    if expected > MOST_EVENTS:
        raise InvalidInput(
            f"the world would hold about {expected:.2g} events, but at most {MOST_EVENTS:,} fit: "
            "take fewer pages or a shorter horizon"
        )


def page_of_events(events: Events) -> Ints:
    """The page of each event."""
    return np.repeat(np.arange(len(events.offsets) - 1), np.diff(events.offsets))


def only(events: Events, kept: NDArray[np.bool_]) -> Events:
    """Leave out events. O(events)."""
    before = np.concatenate([[0], np.cumsum(kept)]).astype(np.int64)
    return Events(before[events.offsets], events.times[kept])


def group(page: Ints, times: Floats, pages: int) -> Events:
    """Sort events of many pages by page and time; many are sorted by compiled code."""
    if len(times) <= _FEW_EVENTS:
        return group_events(page, times, pages)
    from recrawl.lab.worlds.grouping import group_many_events

    return group_many_events(page, times, pages)
