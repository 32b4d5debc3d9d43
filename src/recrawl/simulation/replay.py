"""A schedule that was: a crawl log as a competitor, whatever the budget; and one world for all repetitions."""

from __future__ import annotations

from dataclasses import dataclass

from recrawl.simulation.crawl_log import CrawlLog
from recrawl.simulation.world import World


@dataclass(frozen=True, slots=True)
class Replay:
    """Crawls as a log says they were made."""

    name: str
    log: CrawlLog

    def crawl(self, world: World, budget: float, seed: int) -> CrawlLog:  # noqa: ARG002 - the contract's signature
        """The log itself: what was done was done."""
        return self.log


@dataclass(frozen=True, slots=True)
class SameWorld:
    """Makes the same world for every seed: a history happened once."""

    world: World

    def __call__(self, seed: int) -> World:  # noqa: ARG002 - the contract's signature
        """The world."""
        return self.world
