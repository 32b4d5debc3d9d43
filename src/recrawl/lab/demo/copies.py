"""How fresh copies of a living web really are: each copy by the version of its page when it was made.

A copy is fresh if its page has not changed since. Pages count by their clicks; those that do not exist at the time do
not count. Nor do pages that appear later: who is told of the pages at the start cannot know them.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from recrawl.lab.livingweb.world import LivingWorld
from recrawl.pages import Floats

NO_COPY = -1
_EXISTS = ("alive", "moved")
_AHEAD_S = 21_600.0  # of the web, for which changes are looked up at once


class Truth:
    """The versions of all pages, moment by moment. O(pages that changed) a moment, of which each follows the last.

    Args:
        world: the web.
        now: the start.
    """

    def __init__(self, world: LivingWorld, now: float) -> None:
        self.world = world
        self.pages = [page for page in range(len(world)) if world.state(page, now) == "alive"]
        self.weights: Floats = np.zeros(len(world))
        self.weights[self.pages] = np.array(world.pages.clicks)[self.pages]
        self._at = -math.inf
        self._until = np.full(len(world), -math.inf)  # for how long what is known of each page holds
        self._versions = np.zeros(len(world), dtype=np.int64)
        self._weights = np.zeros(len(world))

    def look(self, now: float) -> tuple[NDArray[np.int64], Floats]:
        """Versions, and weights that are 0 for pages that do not exist; both to be read before the next look."""
        if now < self._at:
            self._until[:] = -math.inf
        if now != self._at:
            for page in np.flatnonzero(self._until <= now).tolist():
                self._versions[page] = self.world.version(page, now)
                self._weights[page] = self.weights[page] * (self.world.state(page, now) in _EXISTS)
                self._until[page] = self._next(page, now)
            self._at = now
        return self._versions, self._weights

    def _next(self, page: int, now: float) -> float:
        """When a page changes, appears or is removed next, as far as someone must know now."""
        columns, epoch = self.world.pages, self.world.epoch
        changes = self.world.changes(page, now, now + _AHEAD_S)[:1]
        fates = (epoch + columns.born[page], epoch + columns.gone[page])
        return float(min([*changes, *(at for at in fates if at > now), now + _AHEAD_S]))


class Copies:
    """The copies of one crawler."""

    def __init__(self, truth: Truth) -> None:
        self._truth = truth
        self.versions = np.full(len(truth.world), NO_COPY, dtype=np.int64)
        self.made = 0

    def made_at(self, page: int, at: float) -> bool:
        """Crawl a page: makes a copy, or says False if the page is not there."""
        world = self._truth.world
        if world.state(page, at) not in _EXISTS:
            return False
        self.versions[page] = world.version(page, at)
        self.made += 1
        return True

    def fresh(self, now: float) -> NDArray[np.bool_]:
        """Which pages are as they were copied."""
        versions, _weights = self._truth.look(now)
        fresh: NDArray[np.bool_] = self.versions == versions
        return fresh

    def freshness(self, now: float) -> float:
        """Share of the clicks that would find a fresh copy."""
        _versions, weights = self._truth.look(now)
        return float(weights[self.fresh(now)].sum() / max(weights.sum(), 1e-300))
