"""How fresh copies of a living web really are: each copy by the version of its page when it was made.

A copy is fresh if its page has not changed since. Pages count by their clicks; those that do not exist at the time do
not count. Nor do pages that appear later: who is told of the pages at the start cannot know them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from recrawl.livingweb.world import LivingWorld
from recrawl.pages import Floats

NO_COPY = -1
_EXISTS = ("alive", "moved")


class Truth:
    """The versions of all pages, moment by moment; each is looked up once. O(pages) a moment.

    Args:
        world: the web.
        now: the start.
    """

    def __init__(self, world: LivingWorld, now: float) -> None:
        self.world = world
        self.pages = [page for page in range(len(world)) if world.state(page, now) == "alive"]
        self.weights: Floats = np.zeros(len(world))
        self.weights[self.pages] = np.array(world.pages.clicks)[self.pages]
        self._at = -1.0
        self._versions = np.empty(0, dtype=np.int64)
        self._weights = np.empty(0)

    def look(self, now: float) -> tuple[NDArray[np.int64], Floats]:
        """Versions, and weights that are 0 for pages that do not exist."""
        if now != self._at:
            world, pages = self.world, range(len(self.world))
            exists = np.array([world.state(page, now) in _EXISTS for page in pages])
            self._versions = np.array([world.version(page, now) for page in pages], dtype=np.int64)
            self._weights = self.weights * exists
            self._at = now
        return self._versions, self._weights


class Copies:
    """The copies of one crawler."""

    def __init__(self, truth: Truth) -> None:
        self._truth = truth
        self.versions = np.full(len(truth.world), NO_COPY, dtype=np.int64)
        self.made = 0

    def made_at(self, page: int, at: float) -> None:
        """A copy of a page was made."""
        world = self._truth.world
        if world.state(page, at) in _EXISTS:
            self.versions[page] = world.version(page, at)
            self.made += 1

    def fresh(self, now: float) -> NDArray[np.bool_]:
        """Which pages are as they were copied."""
        versions, _weights = self._truth.look(now)
        fresh: NDArray[np.bool_] = self.versions == versions
        return fresh

    def freshness(self, now: float) -> float:
        """Share of the clicks that would find a fresh copy."""
        _versions, weights = self._truth.look(now)
        return float(weights[self.fresh(now)].sum() / max(weights.sum(), 1e-300))
