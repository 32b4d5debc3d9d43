"""Sites that announce changes, truly or not, and a crawler that hears them: a book of signals without any HTTP."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import cast

import numpy as np

from recrawl.scheduling.columns import PageObjective
from recrawl.scheduling.scheduler import Scheduler
from recrawl.store.changes import SignalStore
from recrawl.store.rows import LeaseRow, PageRow
from recrawl.tracker.clock import DAY_S, TrackerClock
from recrawl.tracker.hosts import HostBook
from recrawl.tracker.schedule import Schedule
from recrawl.tracker.settings.settings import Settings, SignalRules
from recrawl.tracker.signals.signals import SignalTracker
from recrawl.tracker.visit import InFlight, Visit

START = 1_800_000_000.0
Announce = Callable[[np.random.Generator, float, np.ndarray], np.ndarray]
"""Pages signalled at the end of a step of so many days, given which changed in it."""


class Ground:
    """A book over a scheduler with the pages of some hosts, all with a copy."""

    def __init__(
        self, pages: int, hosts: int = 1, rules: SignalRules | None = None, objective: PageObjective = "harmonic"
    ) -> None:
        self.clock = TrackerClock(steady=lambda: 0.0, wall=lambda: START)
        settings = Settings()
        self.hosts = HostBook(settings, self.clock, lambda _: None)
        rules = SignalRules(kinds=("sitemap", "feed", "manual")) if rules is None else rules
        self.scheduler = Scheduler(pages / 10, objective, START / DAY_S)
        self.schedule = Schedule(self.scheduler, self.hosts, self.clock, settings)
        self.in_flight = InFlight()
        nowhere = cast(SignalStore, None)  # nothing is kept
        self.book = SignalTracker(self.schedule, self.hosts, self.in_flight, nowhere, rules)
        numbers = np.arange(1, pages + 1)
        of_page = np.array([self.hosts.of(f"h{number % hosts}.example").number for number in range(pages)])
        self.ids = self.scheduler.add(importance=np.ones(pages), host=of_page, last_crawled=START / DAY_S)
        self.schedule.index.put(numbers, self.ids)
        self.book.enter(numbers, of_page, np.full(pages, START))
        self.book.entered(numbers, START)
        self.rows = [_row(number, f"h{(number - 1) % hosts}.example") for number in range(1, pages + 1)]

    def take(self, row: PageRow) -> Visit:
        """Let a page be in flight."""
        visit = Visit(row, LeaseRow(row.id, row.id, "worker", START, START + DAY_S), int(self.ids[row.id - 1]))
        self.in_flight.add(visit)
        return visit

    def crawled(self, row: PageRow, at: float, began: float, *, changed: bool | None) -> None:
        """Let the visit of a page end with a copy."""
        visit = self.in_flight.by_page[row.id]
        self.in_flight.remove(visit)
        self.book.crawled(row, at, began, changed, visit.heard)


def _row(number: int, host: str) -> PageRow:
    given = (number, f"https://{host}/news/{number}", host, "", 1.0, None, 0.0, None, "user", START)
    return PageRow(*given, fetched_at=START, visits=1)


def audit_site(announce: Announce, seed: int, audits: int, kind: str = "sitemap", pages: int = 20) -> Ground:
    """Let a site live, crawl its pages in turn about once a change each, and audit what it said so often."""
    rng, step = np.random.default_rng(seed), 0.125
    ground = Ground(pages, rules=SignalRules(kinds=(kind,)))
    dirty, now, crawls = np.zeros(pages, dtype=bool), START, 0
    rates = rng.uniform(0.2, 1.5, pages)
    while crawls < audits:
        now += step * DAY_S
        changed = rng.random(pages) < -np.expm1(-rates * step)
        dirty |= changed
        signalled = announce(rng, step, changed)
        if len(signalled):
            ground.book.heard(signalled + 1, kind, now - 1.0, durable=False)
        if rng.random() < step * pages:
            page = int(rng.integers(pages))
            row = ground.rows[page]
            ground.book.crawled(row, now, now, bool(dirty[page]))
            ground.rows[page] = replace(row, fetched_at=now)
            dirty[page] = False
            crawls += 1
            ground.book.relearn(now)
    return ground


def honest(rng: np.random.Generator, step: float, changed: np.ndarray) -> np.ndarray:
    told = changed & (rng.random(len(changed)) < 0.8)
    return np.flatnonzero(told | (rng.random(len(changed)) < 0.1 * step))


def always_now(_rng: np.random.Generator, _step: float, changed: np.ndarray) -> np.ndarray:
    return np.arange(len(changed))


def frozen(_rng: np.random.Generator, _step: float, _changed: np.ndarray) -> np.ndarray:
    return np.empty(0, dtype=np.int64)


def bulk_bumped(rng: np.random.Generator, step: float, changed: np.ndarray) -> np.ndarray:
    return np.arange(len(changed)) if rng.random() < 0.7 * step else np.empty(0, dtype=np.int64)


def random_noise(rng: np.random.Generator, step: float, changed: np.ndarray) -> np.ndarray:
    return np.flatnonzero(rng.random(len(changed)) < 0.8 * step)
