"""What crawls find: the truth of a world behind a window that shows one page at one time. Kernels.

A crawl sees whether the page changed since the crawl before, and whether it is gone. Nothing else of the world comes
through here.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.jit import kernel
from recrawl.lab.simulation.crawl_log import PageNumbers
from recrawl.lab.simulation.world import Ints, World
from recrawl.pages import Floats

Findings = NDArray[np.uint8]

UNCHANGED, CHANGED, GONE = 0, 1, 2


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
