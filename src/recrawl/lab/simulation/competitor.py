"""The contract of everything that can be simulated: a name, and the crawls it makes in a world.

A competitor is given a world only to crawl it: it may use importance, hosts, births as they happen, signals as they
arrive, and for each of its crawls whether the page had changed since the last one. One that is told the true rates or
the quality of signals says so in its name (`-known`). No type keeps the others from looking ahead; tests do, on two
worlds that are alike until some time (`test_no_peeking.py`, `test_peers_contract.py`). A log may have at most
budget·w + burst crawls in any window w. The same world, budget and seed give the same log, to the bit.
"""

from __future__ import annotations

from typing import Protocol

from recrawl.lab.simulation.crawl_log import CrawlLog
from recrawl.lab.simulation.world import World


class Competitor(Protocol):
    """Crawls worlds."""

    @property
    def name(self) -> str:
        """What reports call it."""
        ...

    def crawl(self, world: World, budget: float, seed: int) -> CrawlLog:
        """Crawl a world from 0 to its horizon, at most `budget` crawls a day."""
        ...
