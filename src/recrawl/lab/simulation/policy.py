"""The contract of everything that can be simulated: a name, and the crawls it makes in a world.

A competitor is given a world only to crawl it: it may use importance, hosts, births as they happen, signals as they
arrive, and for each of its crawls whether the page had changed since the last one. One that is told the true rates or
the quality of signals says so in its name (`-known`). No type keeps the others from looking ahead; tests do, on two
worlds that are alike until some time (`test_no_peeking.py`, `test_peers_contract.py`). A log may have at most
budget·w + burst crawls in any window w. The same world, budget and seed give the same log, to the bit.

`look` is the window on the truth: a crawl sees whether the page changed since the crawl before, and whether it is gone.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from recrawl.jit import kernel
from recrawl.lab.worlds.world import CrawlLog, Ints, PageNumbers, World
from recrawl.pages import Floats

Findings = NDArray[np.uint8]

UNCHANGED, CHANGED, GONE = 0, 1, 2


class Competitor(Protocol):
    """Crawls worlds."""

    @property
    def name(self) -> str:
        """What reports call it."""
        ...

    def crawl(self, world: World, budget: float, seed: int) -> CrawlLog:
        """Crawl a world from 0 to its horizon, at most `budget` crawls a day."""
        ...


class Truth(NamedTuple):
    """Changes by page, with the next that no crawl has seen (`unseen`), and when pages go."""

    offsets: Ints
    times: Floats
    removed: Floats
    unseen: Ints
    has_copy: NDArray[np.bool_]


def truth_of(world: World) -> Truth:
    """The truth at time 0: pages that are there have been crawled. O(pages + changes before 0)."""
    changes = world.changes
    unseen = changes.offsets[:-1].copy()
    skip_early(changes.offsets, changes.times, unseen)
    return Truth(changes.offsets, changes.times, world.removed, unseen, world.born <= 0)


@kernel
def skip_early(offsets: Ints, times: Floats, unseen: Ints) -> None:
    """Move past changes that the crawls at time 0 have seen. O(pages)."""
    for page in range(len(unseen)):
        while unseen[page] < offsets[page + 1] and times[unseen[page]] <= 0.0:
            unseen[page] += 1


@kernel
def look(truth: Truth, pages: PageNumbers, now: float) -> Findings:
    """Crawl these pages now; a first copy counts as a change. O(pages + changes they have had)."""
    found = np.empty(len(pages), dtype=np.uint8)
    for i in range(len(pages)):
        page = pages[i]
        if truth.removed[page] <= now:
            found[i] = GONE
            continue
        place = truth.unseen[page]
        end = truth.offsets[page + 1]
        while place < end and truth.times[place] <= now:
            place += 1
        found[i] = CHANGED if place > truth.unseen[page] or not truth.has_copy[page] else UNCHANGED
        truth.unseen[page] = place
        truth.has_copy[page] = True
    return found
