"""How crawls ended, told to the scheduler and to the book of what is heard: all entries of their pages, at once.

A page that is tracked and is a source too has two entries: the one that was taken is settled, the other one is told
that a copy came. A page that was found is crawled once at first; it becomes a page like others while it is in flight,
or leaves after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from recrawl.store.rows import edited
from recrawl.tracker.desk import Desk
from recrawl.tracker.hosts import HostState
from recrawl.tracker.pipeline.decide import Settled
from recrawl.tracker.pipeline.fetch import Flight

CRAWLED_ONCE = "crawled once"


@dataclass(slots=True)
class Landed:
    """A flight that has ended.

    Args:
        flight: which.
        settled: what follows from it; telling may add that the page is retired.
        state: of the host of its page.
        error: why it could not be told; None if it was.
    """

    flight: Flight
    settled: Settled
    state: HostState
    error: Exception | None = None

    @property
    def changed(self) -> bool | None:
        """Whether the page that came had changed; None for a first copy."""
        return None if self.settled.told == "first" else self.settled.told == "changed"


def tell(desk: Desk, landed: Sequence[Landed]) -> None:
    """Tell how crawls ended; what follows from it, or why it could not be told, is noted in them. O(crawls)."""
    came = [each for each in landed if each.settled.told in ("first", "unchanged", "changed")]
    _settle(desk, came)
    for each in landed:
        if each.error is not None:
            continue
        try:
            _tell(desk, each)
        except Exception as error:  # the others must not suffer
            each.error = error


def _tell(desk: Desk, landed: Landed) -> None:
    page, settled = landed.flight.page, landed.settled
    if settled.told in ("first", "unchanged", "changed"):
        _came(desk, landed)
        landed.state.failures = 0
    elif settled.told == "retired":
        desk.schedule.leave(page.id)
        desk.hearing.left(page.id)
    else:  # a host that asked for quiet is left alone already
        desk.schedule.failed(page.id, landed.flight.scheduled, settled.page.failures, settled.held_until)
        if page.role == "page":
            desk.hearing.gave_back(page.id)
            desk.hearing.held.discard(page.id)
    desk.sources.settled(landed.flight, landed.settled)


def _settle(desk: Desk, came: Sequence[Landed]) -> None:
    """Settle what brought pages with the scheduler."""
    stayed = [each.flight.page.id for each in came if desk.schedule.stay(each.settled.page)]
    desk.hearing.entered(np.array(stayed, dtype=np.int64), desk.clock.now())
    errors = desk.schedule.crawled([each.flight.scheduled for each in came], [each.changed for each in came])
    for each, error in zip(came, errors, strict=True):
        each.error = error


def _came(desk: Desk, landed: Landed) -> None:
    flight, changed = landed.flight, landed.changed
    page, seen = flight.page, landed.settled.observation
    desk.schedule.also_seen(page, flight.scheduled, seen.gap_s, changed)
    if page.role == "page":
        desk.hearing.crawled(page, seen.at, flight.began_at, changed)
        if landed.settled.fresh_until is not None:
            desk.hearing.hold(page.id, landed.settled.fresh_until)
    if page.objective == "once":
        desk.schedule.crawled_once(page.id)
        desk.hearing.left(page.id)
        retired = edited(landed.settled.page, state="retired", reason=CRAWLED_ONCE)
        landed.settled = replace(landed.settled, page=retired)
