"""What others would have made of the same budget, on the truth: no requests are sent, and no fetch of theirs fails.

Both have copies of everything when the demo begins, so that they are measured in their steady state; the tracker begins
with nothing and knows nothing.
"""

from __future__ import annotations

from typing import Protocol

from recrawl.demo.copies import Copies, Truth
from recrawl.livingweb.clock import DAY_S
from recrawl.livingweb.truth import change_rate
from recrawl.scheduling.scheduler import Scheduler

_AT_ONCE = 4  # crawls, so that they are as even in time as those of a crawler that runs


class Shadow(Protocol):
    """A way to spend the budget."""

    copies: Copies

    def crawl_until(self, now: float) -> None:
        """Make all crawls up to a time, in Unix seconds of the web."""


class RoundRobin:
    """Every page in turn.

    Args:
        truth: of the web.
        budget_per_day: crawls in a day of the web.
        now: when it begins.
    """

    def __init__(self, truth: Truth, budget_per_day: float, now: float) -> None:
        self.copies = Copies(truth)
        self._pages = truth.pages
        self._gap_s = DAY_S / budget_per_day
        self._began = now
        self._done = 0
        for place, page in enumerate(self._pages):  # as if it had gone round before
            self.copies.made_at(page, now - (len(self._pages) - place) * self._gap_s)

    def crawl_until(self, now: float) -> None:
        """Go on with the round."""
        due = int((now - self._began) / self._gap_s)
        for number in range(self._done, due):
            self.copies.made_at(self._pages[number % len(self._pages)], self._began + number * self._gap_s)
        self._done = max(self._done, due)


class KnownRates:
    """Our own scheduler, told the true rate of every page: the optimum that a learner can come close to."""

    def __init__(self, truth: Truth, budget_per_day: float, now: float) -> None:
        self.copies = Copies(truth)
        pages = truth.pages
        rates = [change_rate(truth.world, page) for page in pages]
        self._step_s = _AT_ONCE * DAY_S / budget_per_day
        self._now = now
        self._scheduler = Scheduler(budget_per_day, "freshness", now / DAY_S, burst=2.0 * _AT_ONCE)
        ids = self._scheduler.add(importance=truth.weights[pages], change_rate=rates, last_crawled=now / DAY_S)
        self._page_of = dict(zip(ids.tolist(), pages, strict=True))
        for page in pages:
            self.copies.made_at(page, now)

    def crawl_until(self, now: float) -> None:
        """Crawl what is worth the price."""
        while self._now + self._step_s <= now:
            self._now += self._step_s
            batch = self._scheduler.take(self._now / DAY_S, 2 * _AT_ONCE)
            if len(batch.ids):
                for number in batch.ids.tolist():
                    self.copies.made_at(self._page_of[number], self._now)
                self._scheduler.crawled(batch.ids, self._now / DAY_S)
