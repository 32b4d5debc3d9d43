"""A tracker on a small web and a store in a temporary folder, run until something has happened."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from small_site import Site
from tracker_harness import TrackerHarness, logged

from patience import patience, until
from recrawl.store.rows import PageRow
from recrawl.store.store import open_store
from recrawl.tracker.clock import Timing, TrackerClock
from recrawl.tracker.commands.commands import Reply
from recrawl.tracker.maintenance import run_maintenance
from recrawl.tracker.settings.settings import Settings
from recrawl.tracker.tracker import Tracker, open_tracker
from recrawl.web.fetch.retry import BackoffRules

FAST = Settings(
    budget_per_day=86_400.0 * 500,
    contact="https://example.com/bot",
    min_gap_s=0.0,
    min_interval_s=0.0,
    max_in_flight=8,
    again_after_s=0.0,
    retry=BackoffRules(first_s=0.01, longest_s=0.05),
)
SHORT = Timing(
    tick_s=0.01,
    together_s=0.001,
    retake_s=0.02,
    commit_s=0.002,
    commit_retry_s=0.01,
    orders_s=0.02,
    keep_s=0.05,
    upkeep_retry_s=0.05,
    sink_s=0.02,
)
"""Waits of a tracker whose tests have nobody to spare: a few milliseconds instead of half a second."""


@dataclass(slots=True)
class Leap:
    """A clock that goes on as always, and leaps ahead when it is told to."""

    ahead_s: float = 0.0

    def __call__(self, not_before: float) -> TrackerClock:
        """The clock of a tracker."""
        return TrackerClock(not_before, steady=lambda: time.monotonic() + self.ahead_s)


@dataclass(slots=True)
class StepClock:
    """A clock that stands still while a crawl is in flight, so that visits take no time on any machine."""

    now_s: float = 0.0

    def __call__(self, not_before: float) -> TrackerClock:
        """Return the clock of a tracker."""
        return TrackerClock(not_before, steady=lambda: self.now_s)

    @asynccontextmanager
    async def advancing(self, harness: TrackerHarness) -> AsyncIterator[None]:
        """Advance by a step whenever nothing is in flight, until the block ends."""
        task = asyncio.create_task(self._advance(harness))
        try:
            yield
        finally:
            task.cancel()

    async def _advance(self, harness: TrackerHarness) -> None:
        while True:
            if harness.scheduler.status().in_flight == 0:
                self.now_s += 0.15
            await asyncio.sleep(0.01)


class Ground(TrackerHarness):
    """A tracker that runs on a small site.

    Args:
        site: that it crawls.
        tracker: that runs.
        said: sentences for people, and the log.
    """

    def __init__(self, site: Site, tracker: Tracker, said: list[str]) -> None:
        super().__init__(tracker)
        self.site = site
        self.said = said

    async def add(self, paths: Sequence[str], host: str = "a") -> Reply:
        """Track pages of the site."""
        return await self.add_urls(self.site.url(path, host) for path in paths)

    async def until(self, happened: Callable[[], bool], awaited: str | None = None) -> None:
        """Let it run until something has happened."""
        await until(happened, awaited)

    async def until_visited(self, path: str, times: int = 1, host: str = "a") -> PageRow:
        """Let it run until a page was fetched so often, and that is durable."""
        url = self.site.url(path, host)
        async with patience(f"visit {times} of {url}"):
            while True:
                found = await self.store.find_pages([url])
                if found:
                    row = (await self.store.read_pages([found[url]]))[0]
                    if len(await self.store.observations(row.id, 100)) >= times:
                        return row
                await asyncio.sleep(0.01)

    async def events(self) -> list[tuple[str, str]]:
        """Kind and path of everything in the change log."""
        prefix = f".site.test:{self.site.port}"
        return [
            (change.event.kind, change.event.url.partition(prefix)[2] or change.event.url)
            for change in await self.store.changes(0, 1000)
        ]


@asynccontextmanager
async def running(
    site: Site,
    folder: Path,
    settings: Settings = FAST,
    timing: Timing = SHORT,
    clock_from: Callable[[float], TrackerClock] = TrackerClock,
) -> AsyncIterator[Ground]:
    """Run a tracker; it is drained at the end."""
    settings = replace(settings, store=str(folder), egress=site.egress)
    store = await open_store(settings.store, owner=True)
    said: list[str] = []
    tracker = await open_tracker(settings, store, said.append, clock_from, timing)
    work = [asyncio.create_task(tracker.run()), asyncio.create_task(run_maintenance(tracker))]
    try:
        with logged(said):
            yield Ground(site, tracker, said)
    finally:
        tracker.stop()
        await asyncio.gather(*work)
        await store.close()
