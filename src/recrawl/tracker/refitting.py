"""What is believed of pages before they are known, learned from all pages that are: fitted again as crawls come in.

A tracker starts with rates around its budget for a page, which may be far off: then it spends its whole first round on
first copies while the copies that matter go stale, or gives pages up too early. How rates are spread over its pages
shows long before the rate of any one of them does, so a few pages are crawled again while the first round goes on.
"""

from __future__ import annotations

import asyncio

from recrawl.learning.population import fit_population
from recrawl.scheduling.learner import prior_around
from recrawl.tracker.desk import Desk
from recrawl.tracker.pipeline.dispatch import FEWEST_PAGES

_MOST_PAGES = 8192
_ROUND_SHARE = 0.25  # of a round, between two fits
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
        """Fit if part of a round of crawls has passed, and enough pages were crawled twice; whether it did."""
        desk = self._desk
        crawls, pages = desk.accounts.ended["fetched"], len(desk.scheduler)
        if crawls < self._next or pages < FEWEST_PAGES:
            return False
        states, crawl_rate = desk.scheduler.learned(_MOST_PAGES), desk.scheduler.budget / pages
        if len(states) < FEWEST_PAGES or not crawl_rate > _LEAST_RATE:
            self._next = crawls + FEWEST_PAGES
            return False
        self._next = crawls + max(int(_ROUND_SHARE * pages), FEWEST_PAGES)
        try:
            prior = await asyncio.to_thread(fit_population, states, prior_around(crawl_rate))
            desk.scheduler.set_prior(prior)
        except Exception as error:  # crawling goes on with what was believed before
            desk.say(f"the spread of change rates could not be learned: {error!r}")
            return False
        return True
