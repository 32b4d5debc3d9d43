"""A tracker as a process: opens its store, runs beside its upkeep and sinks, and ends on a signal.

`recrawl track` and `recrawl serve` start here; the latter leaves fetching to outside fetchers.

The first SIGTERM or SIGINT drains: nothing more is taken, fetches under way end or are given back, everything is
written, and the process ends with 0. A second one ends it immediately, with 1: what was acknowledged is in the store.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress

from recrawl.errors import InvalidInput
from recrawl.jit import compile_beside
from recrawl.log import room_log
from recrawl.store.store import open_store
from recrawl.tracker.admission import PageRequest
from recrawl.tracker.clock import DAY_S, TIMING, Timing, TrackerClock
from recrawl.tracker.commands.commands import Add, CommandHandler
from recrawl.tracker.commands.status import usable_line, usable_share
from recrawl.tracker.maintenance import run_maintenance
from recrawl.tracker.settings.settings import Settings
from recrawl.tracker.tracker import Tracker, open_tracker
from recrawl.units import format_duration

_LOG = room_log("tracker")
AT_ONCE = 1
Companion = Callable[[Tracker], Awaitable[None]]
"""Runs beside a tracker until it stops."""


async def run_tracker(
    settings: Settings,
    say: Callable[[str], None],
    companions: Sequence[Companion] = (),
    wanted: Sequence[str] | None = (),
    clock_from: Callable[[float], TrackerClock] = TrackerClock,
    timing: Timing = TIMING,
    *,
    fetch: bool = True,
) -> dict[str, int | float]:
    """Run until a signal; return counts of what was done. The error of a companion that fails stops it, and is raised.

    Args:
        settings: of the tracker.
        say: tells people what they must know or do; all else goes to the log.
        companions: what else runs beside it, such as sinks or a dashboard.
        wanted: addresses to track from now on; None if a companion brings the pages.
        clock_from: makes its clock, which shows nothing before a time.
        timing: how long the parts of the tracker wait.
        fetch: whether to fetch pages here; else outside fetchers take them.
    """
    compile_beside(say)
    store = await open_store(settings.store, owner=True)
    try:
        tracker = await open_tracker(settings, store, say, clock_from, timing)
        if wanted is not None:
            await _add(tracker, wanted)
        if line := usable_line(usable_share(tracker), settings.min_interval_s):
            say(line)
        stop_on_signals(tracker)
        sizes = {"entries": len(tracker.schedule), "hosts": len(tracker.hosts)}
        _LOG.info("started on %s", store.name, extra={**sizes, "budget_per_day": settings.budget_per_day})
        await run_beside(tracker, companions, fetch=fetch)
        done = await summary(tracker)
        _LOG.info("stopped", extra=done)
        return done
    finally:
        await store.close()


def stop_after(seconds: float) -> Companion:
    """A companion that stops the tracker after some time."""

    async def wait(tracker: Tracker) -> None:
        await tracker.pause(seconds)
        tracker.stop()

    return wait


def tell_progress(say: Callable[[str], None]) -> Companion:
    """A companion that tells people once a minute what the tracker did."""

    async def tell(tracker: Tracker) -> None:
        usage, before = tracker.usage, Counter[str]()
        while not tracker.stopping:
            before.update({**usage.ended, "requests": usage.counted["requests"]})
            await tracker.pause(tracker.timing.tell_s)
            if not tracker.stopping:
                say(progress_line(usage.ended - before, usage.counted["requests"] - before["requests"], tracker))
            before.clear()

    return tell


def progress_line(ended: Counter[str], requests: int, tracker: Tracker) -> str:
    """What to tell people of some time: how visits ended, the requests that were sent, and what is under way."""
    every_s = tracker.timing.tell_s
    every = "minute" if every_s == 60.0 else format_duration(every_s / DAY_S)
    later = f", put off {ended['deferred']:,}" if ended["deferred"] else ""
    return (
        f"in the last {every}: fetched {ended['fetched']:,} pages with {requests:,} requests{later}; "
        f"{len(tracker.in_flight):,} under way, {len(tracker.schedule):,} scheduled"
    )


@asynccontextmanager
async def serving(settings: Settings, say: Callable[[str], None], timing: Timing = TIMING) -> AsyncIterator[Tracker]:
    """Run a tracker that fetches nothing itself until the block ends: remote workers lease pages and hand in results.

    An error that stops it, such as another owner of its store, is raised when the block ends.
    """
    store = await open_store(settings.store, owner=True)
    try:
        tracker = await open_tracker(settings, store, say, timing=timing)
        running = asyncio.ensure_future(run_beside(tracker, fetch=False))
        try:
            yield tracker
        finally:
            tracker.stop()
            await running
    finally:
        await store.close()


async def run_beside(tracker: Tracker, companions: Sequence[Companion] = (), *, fetch: bool = True) -> None:
    """Run a tracker with its upkeep and companions until it is stopped; the first error stops all, and is raised."""
    beside = [asyncio.ensure_future(each(tracker)) for each in (run_maintenance, *companions)]
    try:
        await _first_to_fail(tracker, beside, fetch=fetch)
    finally:
        await _end(beside, tracker.timing.companions_s)


async def _add(tracker: Tracker, wanted: Sequence[str]) -> None:
    command = Add([PageRequest(url) for url in wanted])
    reply = await CommandHandler(tracker.store, tracker.settings, tracker).do(command, tracker.clock.now())
    for each in reply.rejected:
        raise InvalidInput(f"{each.url!r} cannot be tracked: {each.reason}", field="URL")
    if not len(tracker.schedule):
        tracker.say("there are no pages yet: add some with `recrawl add`")


async def summary(tracker: Tracker) -> dict[str, int | float]:
    """Return counts of what a tracker did since it was started."""
    accounts, counts = tracker.usage, await tracker.store.counts()
    return {
        "taken": accounts.taken,
        **{name: accounts.ended[name] for name in ("fetched", "deferred", "retired")},
        "pages": sum(counts.pages.values()),
        "changes": counts.last_cursor,
        "price": tracker.schedule.scheduler.price,
    }


async def _first_to_fail(tracker: Tracker, beside: Sequence[asyncio.Future[None]], *, fetch: bool) -> None:
    """Run the tracker to its end; a companion that fails stops it, and its error is raised."""
    running = asyncio.ensure_future(tracker.run(fetch=fetch))
    await asyncio.wait([running, *beside], return_when=asyncio.FIRST_EXCEPTION)
    tracker.stop()
    await running
    for each in beside:
        if each.done() and (error := each.exception()) is not None:
            raise error


async def _end(beside: Sequence[asyncio.Future[None]], patience_s: float) -> None:
    """Wait for companions to end after the tracker stopped; cancel those that do not."""
    await asyncio.wait(beside, timeout=patience_s)
    for each in beside:
        each.cancel()
    await asyncio.gather(*beside, return_exceptions=True)


def stop_on_signals(tracker: Tracker) -> None:
    """Drain on the first SIGTERM or SIGINT, end at once on the second."""

    def on_signal() -> None:
        if tracker.stopping:
            os._exit(AT_ONCE)
        tracker.say("stopping: fetches under way are finished; once more ends at once")
        tracker.stop()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError, RuntimeError):  # loops without signals, or another thread
            loop.add_signal_handler(number, on_signal)
