"""A rule that gives each page its next due date, as a competitor: the due-date engine does the rest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.lab.peers.kinds import MOST_OVERDUE
from recrawl.lab.simulation.crawl_log import CrawlLog
from recrawl.lab.simulation.world import World


@dataclass(frozen=True, slots=True)
class IntervalPeer:
    """Crawls by the due dates of one rule.

    Attributes:
        name: what reports call it.
        kind: the rule's number (`kinds.py`).
        parameters: the rule's own.
        order: which due page goes first, if it is held to the budget as it is.
        scaled: whether all waits are multiplied by one factor so that the whole budget is used.
    """

    name: str
    kind: int
    parameters: tuple[float, ...] = ()
    order: int = MOST_OVERDUE
    scaled: bool = False

    def crawl(self, world: World, budget: float, seed: int) -> CrawlLog:
        """Crawl a world from 0 to its horizon, at most `budget` crawls a day. O(crawls · log n)."""
        from recrawl.lab.simulation.due_queue import Rule
        from recrawl.lab.simulation.due_queue_run import start_run

        rule = Rule(self.kind, np.array(self.parameters, dtype=np.float64), self.order, self.scaled)
        return start_run(world, rule, budget, seed).finish()
