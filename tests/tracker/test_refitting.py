"""The prior of a tracker is fitted to its own pages once they say enough, and then once a round."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import numpy as np

from recrawl.scheduling.scheduler import Scheduler
from recrawl.tracker.accounts import Accounts
from recrawl.tracker.refitting import FEWEST_PAGES, Refitting


@dataclass
class SmallDesk:
    """As much of a desk as fitting looks at."""

    pages: int
    accounts: Accounts = field(default_factory=Accounts)
    scheduler: Scheduler = field(init=False)

    def __post_init__(self) -> None:
        self.scheduler = Scheduler(float(self.pages), burst=self.pages)
        self.ids = self.scheduler.add(importance=np.ones(self.pages))

    def crawl_all(self, now: float) -> None:
        """A crawl of each page; every other one has changed."""
        self.scheduler.claim(self.ids, now)
        self.scheduler.crawled(self.ids, now, changed=np.arange(self.pages) % 2 == 0)
        self.accounts.take(self.pages)
        self.accounts.end("fetched", "ok", self.pages)


def fits_after(pages: int, rounds: int) -> list[bool]:
    desk = SmallDesk(pages)
    refitting, fitted = Refitting(desk), []  # type: ignore[arg-type]
    for number in range(rounds):
        desk.crawl_all(float(number))
        fitted += [asyncio.run(refitting.tend()), asyncio.run(refitting.tend())]
    return fitted


def test_it_is_fitted_from_the_second_crawl_on_and_once_a_round() -> None:
    assert fits_after(80, rounds=3) == [False, False, True, False, True, False]


def test_a_tracker_without_a_budget_goes_on_with_what_it_believed() -> None:
    desk = SmallDesk(80)
    refitting = Refitting(desk)  # type: ignore[arg-type]
    for number in range(2):
        desk.crawl_all(float(number))
    desk.scheduler.set_budget(0.0, 2.0)
    assert not asyncio.run(refitting.tend())


def test_few_pages_do_not_make_a_population() -> None:
    assert not any(fits_after(FEWEST_PAGES - 1, rounds=4))
