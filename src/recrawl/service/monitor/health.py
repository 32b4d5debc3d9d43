"""Whether the tracker is well, for whoever restarts it: the loop turns, the store writes, notes are written.

A loop that stands still answers nothing at all, which says the same; a loop that turns late is caught by its pulse.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from recrawl.tracker.tracker import Tracker

LATE_S = 5.0
STALLED_S = 120.0
_BEAT_S = 0.5


@dataclass(slots=True)
class Pulse:
    """How late the loop is: beats twice a second while the service runs.

    Args:
        beat_at: of the last beat, by the steady clock.
        fetches: whether the tracker fetches itself, so that the time of its scheduler must move.
        late_s: how much later than asked for the last beat came.
        time_at: when the scheduler's time last moved, by the steady clock.
        time_seen: the scheduler's time then.
    """

    beat_at: float
    fetches: bool = True
    late_s: float = 0.0
    time_at: float = 0.0
    time_seen: float = float("-inf")

    def __post_init__(self) -> None:
        self.time_at = self.beat_at

    async def run(self, tracker: Tracker) -> None:
        """Beat until the tracker stops."""
        while not tracker.stopping:
            self.beat(tracker, time.monotonic())
            await tracker.pause(_BEAT_S)

    def beat(self, tracker: Tracker, now: float) -> None:
        """One beat, at a time of the steady clock."""
        self.late_s = max(now - self.beat_at - _BEAT_S, 0.0)
        self.beat_at = now
        seen = tracker.schedule.scheduler.now
        waits = not len(tracker.schedule) or tracker.usage.bytes_left.wait_s(tracker.clock.now()) > 0
        if seen > self.time_seen or waits or not self.fetches:
            self.time_at, self.time_seen = now, seen


def troubles(tracker: Tracker, pulse: Pulse, now: float) -> list[str]:
    """What is wrong, in short words; `now` is of the steady clock."""
    found = []
    if pulse.late_s > LATE_S or now - pulse.beat_at > LATE_S + _BEAT_S:
        found.append("the loop is late")
    if now - pulse.time_at > STALLED_S:
        found.append("nothing is taken")
    if tracker.committer.trouble:
        found.append("the store cannot write")
    if tracker.stopping:
        found.append("stopping")
    return found
