"""A tracker on a living web in fast time, for measures of the group `signals`: the whole way, over HTTP.

The web begins some days before the first crawl, so that it has a past. Everything that was fetched is read from the
store at the end.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from recrawl.lab.livingweb.server import LivingWeb
    from recrawl.lab.livingweb.world import LivingWorld
    from recrawl.store.store import Store
    from recrawl.tracker.admission import PageRequest
    from recrawl.tracker.clock import TrackerClock
    from recrawl.tracker.settings.settings import Settings
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


Fetches = list[tuple[float, str]]
"""Fetches that brought a copy or said that it is still good: when, in days from the start, and of what; in order."""


def living_settings(web: LivingWeb, folder: str, crawls_a_day: float, hiccup_days: float, **more: Any) -> Settings:
    """Settings of a tracker on a living web, which needs no mercy; more of them, or others.

    Args:
        web: the web.
        folder: for the store.
        crawls_a_day: the budget.
        hiccup_days: budget of so long is not lost while the machine does something else.
        more: fields of `Settings`.
    """
    from recrawl.tracker.settings.settings import Settings
    from recrawl.web.fetch.egress import egress_policy

    usual = Settings(
        store=folder,
        budget_per_day=crawls_a_day,
        burst=hiccup_days * crawls_a_day,
        contact="https://example.org/bench",
        min_gap_s=0.0,
        min_interval_s=0.0,
        max_in_flight=8,
        again_after_s=0.0,
        egress=egress_policy(allow=web.allow, resolve=web.resolve),
    )
    return replace(usual, **more)


def crawl(
    living: LivingRun,
    settings_of: Callable[[LivingWeb, str], Settings],
    wanted_of: Callable[[LivingWeb], Sequence[PageRequest]],
    beside: Callable[[Tracker, LivingWeb], Awaitable[None]] | None = None,
) -> Fetches:
    """Run a tracker on the web until its time is over.

    Args:
        living: the web and its time.
        settings_of: settings, given the web and a folder for the store.
        wanted_of: pages to add at the start.
        beside: what runs at the same time, until it is cancelled.
    """
    from recrawl._event_loop import run

    with TemporaryDirectory(prefix="recrawl-bench-") as folder:
        return run(_crawl(living, lambda web: settings_of(web, str(Path(folder) / "data")), wanted_of, beside))


async def _crawl(
    living: LivingRun,
    settings_of: Callable[[LivingWeb], Settings],
    wanted_of: Callable[[LivingWeb], Sequence[PageRequest]],
    beside: Callable[[Tracker, LivingWeb], Awaitable[None]] | None,
) -> Fetches:
    from recrawl.jit import BESIDE_PARTS
    from recrawl.lab.livingweb.clock import RunningClock
    from recrawl.lab.livingweb.server import LivingWeb
    from recrawl.store.store import open_store
    from recrawl.tracker.clock import TrackerClock
    from recrawl.tracker.commands.commands import Add, CommandHandler
    from recrawl.tracker.tracker import open_tracker
    from recrawl.warming import warm

    warm(tuple(BESIDE_PARTS))  # before time goes by
    clock = RunningClock(living.start, time.time(), living.speedup)

    def clock_from(latest: float) -> TrackerClock:
        return TrackerClock(latest, wall=clock, pace=living.speedup)

    async with LivingWeb(living.world, clock) as web:
        settings = settings_of(web)
        store = await open_store(settings.store, owner=True)
        try:
            tracker = await open_tracker(settings, store, lambda _: None, clock_from)
            await CommandHandler(store, settings, tracker).do(Add(list(wanted_of(web))), tracker.clock.now())
            end = living.start + living.days * DAY_S
            asyncio.get_running_loop().call_later((end - tracker.clock.now()) / living.speedup, tracker.stop)
            await _run(tracker, [] if beside is None else [asyncio.ensure_future(beside(tracker, web))])
            return await _fetches(store, living)
        finally:
            await store.close()


async def _run(tracker: Tracker, companions: Sequence[asyncio.Future[None]]) -> None:
    """Run a tracker to its end, or to the first failure of it or of what runs beside it; nothing goes on after that."""
    from recrawl.tracker.maintenance import run_maintenance

    own = [asyncio.ensure_future(tracker.run()), asyncio.ensure_future(run_maintenance(tracker))]
    tasks = {*own, *companions}
    try:
        while not all(task.done() for task in own):
            waiting = [task for task in tasks if not task.done()]
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _fetches(store: Store, living: LivingRun) -> Fetches:
    """What was fetched within the time, in order."""
    urls: dict[int, str] = {}
    after = 0
    while pages := await store.list_pages(after, _MOST_AT_ONCE):
        after = pages[-1].id
        urls.update((page.id, page.url) for page in pages)
    rows: Fetches = []
    after = 0
    while batch := await store.all_observations(after, _MOST_AT_ONCE):
        after = batch[-1][0]
        rows += [
            ((seen.at - living.start) / DAY_S, urls[seen.page_id])
            for _, seen in batch
            if seen.page_id in urls and seen.outcome in _GOOD
        ]
    return sorted(row for row in rows if row[0] <= living.days)
