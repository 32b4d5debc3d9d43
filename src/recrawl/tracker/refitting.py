"""What is believed of pages before they are known, learned from all pages that are: fitted again as crawls come in.

A tracker starts with rates around its budget for a page, which may be far off: then it spends its whole first round on
first copies while the copies that matter go stale, or gives pages up too early. How rates are spread over its pages
shows long before the rate of any one of them does, so a few pages are crawled again while the first round goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable

from recrawl.errors import UnknownPage
from recrawl.learning.population import fit_population
from recrawl.scheduling.learner import prior_around
from recrawl.tracker.clock import DAY_S
from recrawl.tracker.desk import Desk

FEWEST_PAGES = 50
SOUNDED = 64
"""Pages that are crawled again in the first round."""
FEWEST_SOUNDED_OF = 1024
"""Pages of a tracker that sounds: with fewer, soundings would take much of the first round, which is short."""
_SOUNDINGS = (0.1, 0.3)  # of a round, from the start: gaps of two lengths
_MOST_PAGES = 8192
_ROUND_SHARE = 0.25  # of a round, between two fits
_SLACK = 1e-6  # of a token
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


class Soundings:
    """Crawls the same few pages again, twice in the first round, to learn how fast pages change here.

    Args:
        desk: has the scheduler and the hosts.
    """

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._left = list(_SOUNDINGS)
        self._drawn: list[int] = []
        self._waiting: list[int] = []
        self._names: dict[Hashable, str] = {}
        self._not_before = 0  # crawls

    def claim(self, most: int, now: float) -> list[int]:
        """Take entries that are due for a sounding and whose hosts may be asked, while the budget pays: one a host.

        O(pages of the sounding that are left).
        """
        self._begin()
        if not self._waiting or most < 1:
            return []
        scheduler, claimed, asked = self._desk.scheduler, list[int](), set[str]()
        scheduler.spend(0.0, now / DAY_S)  # for the tokens of now
        for entry in list(self._waiting):
            if len(claimed) >= most or scheduler.tokens + _SLACK < 1.0:
                break
            if self._is_due(entry, now, asked):
                scheduler.claim([entry], now / DAY_S)
                claimed.append(entry)
        return claimed

    def _begin(self) -> None:
        """Begin the next sounding when its time has come."""
        crawls, pages = self._desk.accounts.ended["fetched"], len(self._desk.scheduler)
        if not self._left or pages < FEWEST_SOUNDED_OF or crawls < max(self._left[0] * pages, self._not_before):
            return
        if not self._drawn:
            self._drawn = self._draw(crawls)
        if self._drawn:
            self._left.pop(0)
            self._waiting += [entry for entry in self._drawn if entry not in self._waiting]
            self._names = {state.number: state.name for state in self._desk.hosts}

    def _draw(self, crawls: int) -> list[int]:
        """The pages to crawl again; none while few have a copy, and none any more where rates are known."""
        scheduler = self._desk.scheduler
        if len(scheduler.learned(FEWEST_PAGES)) >= FEWEST_PAGES:
            self._left.clear()
            return []
        drawn: list[int] = scheduler.copied(SOUNDED).tolist()
        self._not_before = crawls + SOUNDED
        return drawn if len(drawn) == SOUNDED else []

    def _is_due(self, entry: int, now: float, asked: set[str]) -> bool:
        """Whether a page can be claimed now; one that has left or is on its way needs no sounding.

        Args:
            entry: the page.
            now: Unix seconds.
            asked: hosts of which a page was claimed already; this one joins them.
        """
        desk = self._desk
        try:
            in_flight, number = desk.scheduler.in_flight(entry), desk.scheduler.host_of(entry)
        except UnknownPage:
            in_flight, number = True, None
        name = self._names.get(number)  # the scheduler knows hosts by their numbers
        if in_flight:
            self._waiting.remove(entry)
            return False
        if name is not None and (name in asked or not desk.hosts.may_ask(name, now)):
            return False
        if desk.scheduler.is_held(entry, now / DAY_S) or desk.index.stored_of(entry) in desk.unwritten:
            return False
        self._waiting.remove(entry)
        if name is not None:
            asked.add(name)
        return True
