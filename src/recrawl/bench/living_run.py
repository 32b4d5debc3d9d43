"""A tracker on a living web in fast time, for measures of the group `signals`: the whole way, over HTTP.

The web begins some days before the first crawl, so that it has a past. Everything that was fetched is read from the
store at the end.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from recrawl.livingweb.server import LivingWeb
    from recrawl.livingweb.world import LivingWorld
    from recrawl.store.contract import Store
    from recrawl.tracker.clock import TrackerClock
    from recrawl.tracker.newcomers import Wanted
    from recrawl.tracker.settings import Settings
    from recrawl.tracker.tracker import Tracker

DAY_S = 86_400.0
OPENED_DAYS = 4.0
"""Days of the web before the first crawl."""

_GOOD = ("ok", "not-modified", "moved")
_MOST_AT_ONCE = 10_000


class LivingRun(NamedTuple):
    """A web, for how many days it is crawled, and how fast its time goes."""

    world: LivingWorld
    days: float
    speedup: float

    @property
    def start(self) -> float:
        """When the crawl begins, in Unix seconds of the web."""
        return self.world.epoch + OPENED_DAYS * DAY_S


class Crawled(NamedTuple):
    """Fetches that brought a copy or said that it is still good, in days from the start, and all that were begun."""

    fetches: list[tuple[float, str]]
    requests: int


def crawl(
    living: LivingRun,
    settings_of: Callable[[LivingWeb, str], Settings],
    wanted_of: Callable[[LivingWeb], Sequence[Wanted]],
    beside: Callable[[Tracker, LivingWeb], Awaitable[None]] | None = None,
) -> Crawled:
    """Run a tracker on the web until its time is over.

    Args:
        living: the web and its time.
        settings_of: settings, given the web and a folder for the store.
        wanted_of: pages to add at the start.
        beside: what runs at the same time, until it is cancelled.
    """
    from recrawl.web.transport import run

    with TemporaryDirectory(prefix="recrawl-bench-") as folder:
        return run(_crawl(living, lambda web: settings_of(web, str(Path(folder) / "data")), wanted_of, beside))


async def _crawl(
    living: LivingRun,
    settings_of: Callable[[LivingWeb], Settings],
    wanted_of: Callable[[LivingWeb], Sequence[Wanted]],
    beside: Callable[[Tracker, LivingWeb], Awaitable[None]] | None,
) -> Crawled:
    from recrawl.livingweb.clock import RunningClock
    from recrawl.livingweb.server import LivingWeb
    from recrawl.scheduling.warming import warm_up
    from recrawl.store.opening import open_store
    from recrawl.tracker.clock import TrackerClock
    from recrawl.tracker.commands import Add, Hand
    from recrawl.tracker.tracker import open_tracker
    from recrawl.tracker.upkeep import keep_up

    for signals in (False, True):  # before time goes by
        warm_up(signals=signals)
    clock = RunningClock(living.start, time.time(), living.speedup)

    def clock_from(latest: float) -> TrackerClock:
        return TrackerClock(latest, wall=clock, pace=living.speedup)

    async with LivingWeb(living.world, clock) as web:
        settings = settings_of(web)
        store = await open_store(settings.store, owner=True)
        tracker = await open_tracker(settings, store, lambda _: None, clock_from)
        await Hand(store, settings, tracker).do(Add(list(wanted_of(web))), tracker.desk.clock.now())
        end = living.start + living.days * DAY_S
        asyncio.get_running_loop().call_later((end - tracker.desk.clock.now()) / living.speedup, tracker.stop)
        companion = asyncio.ensure_future(beside(tracker, web)) if beside is not None else None
        await asyncio.gather(tracker.run(), keep_up(tracker))
        if companion is not None:
            companion.cancel()
            (ended,) = await asyncio.gather(companion, return_exceptions=True)
            if isinstance(ended, Exception):
                raise ended
        fetches = await _fetches(store, living)
        requests = int(tracker.desk.accounts.taken)
        await store.close()
    return Crawled(fetches, requests)


async def _fetches(store: Store, living: LivingRun) -> list[tuple[float, str]]:
    """What was fetched within the time, in order."""
    urls: dict[int, str] = {}
    after = 0
    while pages := await store.list_pages(after, _MOST_AT_ONCE):
        after = pages[-1].id
        urls.update((page.id, page.url) for page in pages)
    rows: list[tuple[float, str]] = []
    after = 0
    while batch := await store.all_observations(after, _MOST_AT_ONCE):
        after = batch[-1][0]
        rows += [
            ((seen.at - living.start) / DAY_S, urls[seen.page_id])
            for _, seen in batch
            if seen.page_id in urls and seen.outcome in _GOOD
        ]
    return sorted(row for row in rows if row[0] <= living.days)
