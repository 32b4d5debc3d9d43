"""What is believed of pages before they are known, learned from all pages that are: fitted anew after each round.

A tracker starts with rates around its budget for a page. How rates are spread over its own pages shows after two crawls
of each, long before the rate of any one of them does.
"""

from __future__ import annotations

import asyncio

import numpy as np

from recrawl.learning.filter_state import FilterState
from recrawl.learning.population import fit_population
from recrawl.scheduling.learner import prior_around
from recrawl.tracker.desk import Desk

FEWEST_PAGES = 50
_MOST_PAGES = 8192
_LEAST_RATE = 1e-9  # crawls of a page in a day; with less there is nothing to learn from


class Refitting:
    """Fits the prior of a tracker's scheduler when it is due.

    Args:
        desk: has the scheduler.
    """

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._next = 0

    async def tend(self) -> bool:
        """Fit if a round of crawls has passed, and the pages say enough; whether it did."""
        desk = self._desk
        crawls, pages = desk.accounts.ended["fetched"], len(desk.scheduler)
        if crawls < self._next or pages < FEWEST_PAGES:
            return False
        self._next = crawls + pages
        states, crawl_rate = desk.scheduler.learned(_MOST_PAGES), desk.scheduler.budget / pages
        if not crawl_rate > _LEAST_RATE or not _says_enough(states, crawl_rate, min(pages, _MOST_PAGES)):
            return False
        try:
            prior = await asyncio.to_thread(fit_population, states, prior_around(crawl_rate))
            desk.scheduler.believe_in(prior)
        except Exception as error:  # crawling goes on with what was believed before
            desk.say(f"the spread of change rates could not be learned: {error!r}")
            return False
        return True


def _says_enough(states: FilterState, crawl_rate: float, pages: int) -> bool:
    """Whether most pages were crawled twice: a change each, or as long without one as a round takes."""
    rounds = states["changes"].astype(np.float64) + np.minimum(states["unchanged_time"] * crawl_rate, 10.0)
    return 2 * len(states) >= pages and rounds.sum() >= pages
