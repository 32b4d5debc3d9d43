"""Monitoring in instants: the greedy of WIC on believed probabilities, and what it truly captured.

In each instant the C pages of largest utility are crawled (WIC, Pandey et al. 2004); utilities are kept in O(1) per
page and instant. Compiled; `lab/papers/wic_guarantee.py` is the general, slower form of the same rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.jit import kernel
from recrawl.lab.worlds.auctions import Changes
from recrawl.pages import Floats

Delays = NDArray[np.int64]

_ROUNDING = 1e-9  # three times a third of a crawl are one


class Rule(NamedTuple):
    """What a change is worth: whether each overwrites the last, and how urgency falls by the instant."""

    overwrites: bool
    urgency: float


@dataclass(frozen=True, slots=True)
class Captured:
    """What a run captured: changes by delay in instants, out of all changes."""

    delays: Delays
    changes: int

    @property
    def completeness(self) -> float:
        """The share of all changes that was captured."""
        return float(self.delays.sum()) / max(self.changes, 1)

    @property
    def timely(self) -> float:
        """The share of all changes that was captured in the instant it happened."""
        return float(self.delays[0]) / max(self.changes, 1)

    @property
    def timely_of_captured(self) -> float:
        """The share of the captured changes that was captured in the instant it happened (WIC, figure 8)."""
        return float(self.delays[0]) / max(int(self.delays.sum()), 1)

    @property
    def delay(self) -> float:
        """Mean time from a change to its capture, in instants; 0 if none was captured."""
        return float(self.delays @ np.arange(len(self.delays))) / max(int(self.delays.sum()), 1)

    def utility(self, urgency: float) -> float:
        """Σ urgency^delay over captured changes, by change that happened: 1 if all are captured at once."""
        weights = urgency ** np.arange(len(self.delays), dtype=np.float64)
        return float(self.delays @ weights) / max(self.changes, 1)


def monitor(changes: Changes, believed: NDArray[np.float32], crawls: float, rule: Rule) -> Captured:
    """Crawl the most useful pages in each instant, all of importance 1. O(pages · instants).

    Args:
        changes: the truth, instants × pages.
        believed: the probability of a change, instants × pages.
        crawls: an instant; of a broken number, as many as are due by the end of each instant.
        rule: what a change is worth.
    """
    instants, pages = changes.shape
    delays = np.zeros(instants, dtype=np.int64)
    _monitor(changes, believed, float(min(crawls, pages)), rule, delays)
    return Captured(delays, int(changes.sum()))


@kernel
def _monitor(changes: Changes, believed: NDArray[np.float32], crawls: float, rule: Rule, delays: Delays) -> None:
    instants, pages = changes.shape
    utility = np.zeros(pages)
    last = np.full(pages, -1)
    most = int(np.ceil(crawls))
    best_page, best = np.empty(most, dtype=np.int64), np.empty(most)
    for j in range(instants):
        due = min(int((j + 1) * crawls + _ROUNDING) - int(j * crawls + _ROUNDING), most)
        for i in range(pages):
            chance = believed[j, i]
            utility[i] = utility[i] * rule.urgency * ((1.0 - chance) if rule.overwrites else 1.0) + chance
        count = _find_best(utility, best_page[:due], best[:due])
        for c in range(count):
            i = best_page[c]
            _capture(changes, i, last[i], j, rule.overwrites, delays)
            last[i], utility[i] = j, 0.0


@kernel
def _find_best(utility: Floats, page: NDArray[np.int64], value: Floats) -> int:
    """The pages of largest utility in order, ties by page, none that yields nothing; how many there are."""
    count = 0
    for i in range(utility.size):
        u = utility[i]
        if u <= 0.0 or value.size == 0 or (count == value.size and u <= value[count - 1]):
            continue
        if count < value.size:
            count += 1
        at = count - 1
        while at > 0 and value[at - 1] < u:
            value[at], page[at] = value[at - 1], page[at - 1]
            at -= 1
        value[at], page[at] = u, i
    return count


@kernel
def _capture(changes: Changes, page: int, last: int, now: int, overwrites: bool, delays: Delays) -> None:
    for k in range(now, last, -1):
        if changes[k, page]:
            delays[now - k] += 1
            if overwrites:
                return
