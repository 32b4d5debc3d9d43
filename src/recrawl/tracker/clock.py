"""The time a tracker lives by: Unix seconds that never run backwards and do not jump while it runs; and its waits.

Read from the wall once, at the start, and carried on by the steady clock of the machine: setting the wall clock to
another year moves nothing. If the store was written later than the wall says now, time goes on from there. The
scheduler counts days.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

DAY_S = 86_400.0


class TrackerClock:
    """Unix seconds from a wall that is read once and a steady clock.

    Args:
        not_before: the latest time the store has seen.
        wall: seconds since 1970.
        steady: seconds that only rise.
        pace: how many times as fast as the steady clock time goes: 1 but for a tracker of a web whose time is faster.
    """

    def __init__(
        self,
        not_before: float = 0.0,
        wall: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
        pace: float = 1.0,
    ) -> None:
        start = wall()
        self.behind_s = max(not_before - start, 0.0)
        self.pace = pace
        self._steady = steady
        self._offset = max(start, not_before) - steady() * pace

    def now(self) -> float:
        """Unix seconds."""
        return self._offset + self._steady() * self.pace

    async def sleep(self, seconds: float) -> None:
        """Wait for some seconds of this clock."""
        await asyncio.sleep(seconds / self.pace)

    def days(self) -> float:
        """The same in days, for the scheduler."""
        return self.now() / DAY_S


@dataclass(frozen=True, slots=True)
class Timing:
    """Waiting times of a tracker, in seconds. They trade latency for load; no result depends on them.

    Args:
        tick_s: between two rounds of taking pages.
        together_s: fetches that end within this time are settled together.
        retake_s: until a page is looked at again that cannot be leased yet; by the tracker's clock.
        down_probe_s: between two fetches while the network is down; by the tracker's clock.
        commit_s: how long a result waits for others to be written with it.
        commit_retry_s: before a batch is written again that the store refused; doubled each time.
        commit_longest_retry_s: bound of that.
        flush_s: how long pages that come back wait for their last result to be durable.
        orders_s: between two looks at the orders of commands.
        more_orders_s: the same, if there was one: more may follow.
        keep_s: between two writes of signals, and two looks at sources.
        note_s: between two notes of time, hosts and counts.
        forget_s: between two rounds of retention.
        upkeep_retry_s: before upkeep goes on after the store failed.
        sink_s: between two looks of a sink for events.
        tell_s: between two lines that tell people what was done.
        companions_s: for what runs beside a tracker to end by itself.
    """

    tick_s: float = 0.05
    together_s: float = 0.01
    retake_s: float = 0.5
    down_probe_s: float = 5.0
    commit_s: float = 0.1
    commit_retry_s: float = 0.1
    commit_longest_retry_s: float = 5.0
    flush_s: float = 2.0
    orders_s: float = 0.25
    more_orders_s: float = 0.02
    keep_s: float = 1.0
    note_s: float = 5.0
    forget_s: float = 3600.0
    upkeep_retry_s: float = 1.0
    sink_s: float = 0.5
    companions_s: float = 5.0
    tell_s: float = 60.0


TIMING = Timing()
"""Of every tracker that is told nothing else."""


def iso(at: float | None) -> str | None:
    """A time as people and programs read it.

    >>> iso(0.5)
    '1970-01-01T00:00:00.500Z'
    """
    if at is None:
        return None
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
