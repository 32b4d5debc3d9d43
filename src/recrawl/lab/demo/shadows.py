"""What others would have made of the tracker's crawls, on the truth: no request is sent, and no fetch of theirs fails.

Everybody starts with no copy and gets the same number of crawls. They differ in what they know:

| | page addresses | clicks | change rates |
|---|---|---|---|
| round robin | yes | not used | not used |
| the tracker | yes | yes | learned from its own crawls |
| optimum | yes | yes | told |

A page that a crawl finds removed is dropped, as the tracker drops it.
"""

from __future__ import annotations

from typing import Protocol

from recrawl.lab.demo.copies import Copies, Truth
from recrawl.lab.livingweb.clock import DAY_S
from recrawl.lab.livingweb.truth import change_rate
from recrawl.outcomes import Settlement
from recrawl.scheduling.scheduler import Scheduler

_AT_ONCE = 4  # crawls, so that they are as even in time as those of a crawler that runs
_AMPLE = 1e12  # tokens, so that the number of crawls asked for is the only limit


class Shadow(Protocol):
    """A way to spend crawls."""

    copies: Copies

    def crawl(self, count: int, since: float, now: float) -> None:
        """Make a number of crawls, spread evenly between two times in Unix seconds of the web."""


class RoundRobin:
    """Every page in turn, in the order of their addresses."""

    def __init__(self, truth: Truth) -> None:
        self.copies = Copies(truth)
        self._pages = list(truth.pages)
        self._next = 0

    def crawl(self, count: int, since: float, now: float) -> None:
        """Go on with the round."""
        for number in range(1, count + 1):
            if not self._pages:
                return
            self._next %= len(self._pages)
            if self.copies.made_at(self._pages[self._next], since + (now - since) * number / count):
                self._next += 1
            else:
                del self._pages[self._next]


class KnownRates:
    """Our own scheduler, told the true rate of every page: the optimum that a learner can come close to.

    Args:
        truth: of the web.
        budget_per_day: crawls in a day of the web, about: where its first price comes from.
        now: when it begins.
    """

    def __init__(self, truth: Truth, budget_per_day: float, now: float) -> None:
        self.copies = Copies(truth)
        pages = truth.pages
        rates = [change_rate(truth.world, page) for page in pages]
        self._scheduler = Scheduler(budget_per_day, "freshness", now / DAY_S, burst=_AMPLE)
        ids = self._scheduler.add(importance=truth.weights[pages], change_rate=rates)
        self._page_of = dict(zip(ids.tolist(), pages, strict=True))

    def crawl(self, count: int, since: float, now: float) -> None:
        """Crawl what is worth most."""
        left = count
        while left > 0:
            at = since + (now - since) * (count - left + 1) / count
            batch = self._scheduler.take(at / DAY_S, min(_AT_ONCE, left))
            if not len(batch.ids):
                return
            left -= len(batch.ids)
            found = [self.copies.made_at(self._page_of[number], at) for number in batch.ids.tolist()]
            outcomes: list[Settlement] = ["changed" if there else "gone" for there in found]
            self._scheduler.crawled(batch.ids, at / DAY_S, outcome=outcomes)
