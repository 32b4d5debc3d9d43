"""How crawls ended, told to the scheduler and to the book of what is heard: all entries of their pages, at once.

A page that is tracked and is a source too has two entries: the one that was taken is settled, the other one is told
that a copy came. A page that was found is crawled once at first; it becomes a page like others while it is in flight,
or leaves after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from recrawl.errors import RecrawlError
from recrawl.store.rows import edited
from recrawl.tracker.captures import CAPTURES
from recrawl.tracker.clock import DAY_S
from recrawl.tracker.desk import Desk
from recrawl.tracker.hosts import HostState
from recrawl.tracker.loading import stay
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
        _leave(desk, page.id)
    else:  # a host that asked for quiet is left alone already
        _failed(desk, landed.flight, settled)
        if page.role == "page":
            desk.hearing.gave_back(page.id)
            desk.hearing.held.discard(page.id)
    desk.sources.settled(landed.flight, landed.settled)


def _settle(desk: Desk, came: Sequence[Landed]) -> None:
    """Settle what brought pages with the scheduler: all together, or one by one if one of them is in the way."""
    for each in [each for each in came if each.flight.page.id in desk.once]:
        tracked = desk.index.scheduled(each.flight.page.id)
        if tracked is not None:
            stay(desk, each.settled.page, tracked)
    firsts = [each for each in came if each.settled.told == "first"]
    for some in (firsts, [each for each in came if each.settled.told != "first"]):
        try:
            _settle_alike(desk, some)
        except RecrawlError:
            for each in some:
                try:
                    _settle_alike(desk, [each])
                except RecrawlError as error:
                    each.error = error


def _settle_alike(desk: Desk, came: Sequence[Landed]) -> None:
    """Settle first copies, or later ones."""
    if came:
        entries = np.array([each.flight.scheduled for each in came], dtype=np.int64)
        first = came[0].settled.told == "first"
        changed = None if first else np.array([each.settled.told == "changed" for each in came])
        desk.scheduler.crawled(entries, desk.clock.days(), changed)


def _came(desk: Desk, landed: Landed) -> None:
    flight, changed = landed.flight, landed.changed
    page = flight.page
    tracked = desk.index.scheduled(page.id)
    for other in _others(desk, flight):
        told = changed if other == tracked else None
        desk.scheduler.seen([other], desk.clock.days(), changed=None if told is None else [told])
    seen = landed.settled.observation
    if page.objective == CAPTURES and tracked is not None:
        desk.captures.crawled(page, tracked, seen.gap_s, changed)
    if page.role == "page":
        desk.hearing.crawled(page, seen.at, flight.began_at, changed)
        if landed.settled.fresh_until is not None:
            desk.hearing.hold(page.id, landed.settled.fresh_until)
    if page.objective == "once":  # the scheduler has it no longer
        desk.index.drop(page.id)
        desk.hearing.left(page.id)
        desk.sources.leave({page.id})
        retired = edited(landed.settled.page, state="retired", reason=CRAWLED_ONCE)
        landed.settled = replace(landed.settled, page=retired)


def _failed(desk: Desk, flight: Flight, settled: Settled) -> None:
    held = float("nan") if settled.held_until is None else settled.held_until / DAY_S
    desk.scheduler.failed([flight.scheduled], desk.clock.days())
    desk.scheduler.resume([flight.scheduled, *_others(desk, flight)], failures=settled.page.failures, held_until=held)


def _leave(desk: Desk, page_id: int) -> None:
    tracked = desk.index.scheduled(page_id)
    if tracked is not None:
        desk.scheduler.remove([tracked])
        desk.index.drop(page_id)
    desk.sources.leave({page_id})
    desk.once.discard(page_id)
    desk.hearing.left(page_id)


def _others(desk: Desk, flight: Flight) -> list[int]:
    """Entries of the page of a flight beside the one that was taken."""
    page_id = flight.page.id
    both = desk.index.scheduled(page_id), desk.sources.entry_of(page_id)
    return [entry for entry in both if entry is not None and entry != flight.scheduled]
