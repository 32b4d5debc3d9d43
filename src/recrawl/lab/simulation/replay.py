"""A history that is replayed: a crawl log as a competitor, whatever the budget; and the world of each repetition.

A history happened once, and most policies do nothing by chance. What chance there is lies in when a crawler happened to
start: where its rounds stood when pages were born and changed. So a repetition starts the crawler some time before the
history begins, by its seed, and each of its crawls falls at another moment of the history. Of a crawl log nobody knows
either when in their intervals pages changed: a repetition places the changes anew.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from recrawl.files.history import ChangeHistory, place_again
from recrawl.lab.simulation.crawl_log import CrawlLog
from recrawl.lab.simulation.world import Events, Signals, World
from recrawl.lab.worlds.trace import trace_world


@dataclass(frozen=True, slots=True)
class Replay:
    """Crawls as a log says they were made, in a history of so many days."""

    name: str
    log: CrawlLog
    days: float

    @property
    def per_day(self) -> float:
        """Crawls a day."""
        return len(self.log) / self.days

    def crawl(self, world: World, budget: float, seed: int) -> CrawlLog:  # noqa: ARG002 - the contract's signature
        """The log itself, put off as the history is: what was done was done."""
        return CrawlLog(self.log.page, self.log.time + (world.horizon - self.days))


@dataclass(frozen=True, slots=True)
class SameWorld:
    """Makes the same world for every seed, but for when the crawler starts: up to `earliest` days before it."""

    world: World
    earliest: float = 0.0

    def __call__(self, seed: int) -> World:
        """The world, put off by a time that depends on the seed."""
        if self.earliest <= 0:
            return self.world
        return put_off(self.world, float(np.random.Generator(np.random.PCG64(seed)).uniform(0.0, self.earliest)))


@dataclass(frozen=True, slots=True)
class LoggedWorld:
    """Makes worlds that the crawls of a log may have seen, each with another start of the crawler as in `SameWorld`."""

    history: ChangeHistory
    importance: Literal["given", "uniform"]
    earliest: float

    def __call__(self, seed: int) -> World:
        """The world of a seed. O(crawls · log crawls)."""
        return SameWorld(trace_world(place_again(self.history, seed), self.importance), self.earliest)(seed)


def put_off(world: World, days: float) -> World:
    """The same world so many days later: pages that were there at the start wait unchanged. O(events)."""
    return replace(
        world,
        horizon=world.horizon + days,
        changes=_later(world.changes, days),
        born=np.where(world.born <= 0, world.born, world.born + days),
        removed=world.removed + days,
        signals={kind: Signals(_later(sent.events, days), sent.quality) for kind, sent in world.signals.items()},
    )


def _later(events: Events, days: float) -> Events:
    return Events(events.offsets, np.where(events.times <= 0, events.times, events.times + days))
