"""How a crawl ended, told to the scheduler and to the book of what is heard: all entries of its page, at once.

A page that is tracked and is a source too has two entries: the one that was taken is settled, the other one is told
that a copy came. A page that was found is crawled once at first; it becomes a page like others while it is in flight,
or leaves after it.
"""

from __future__ import annotations

from dataclasses import replace

from recrawl.store.rows import edited
from recrawl.tracker.captures import CAPTURES
from recrawl.tracker.clock import DAY_S
from recrawl.tracker.desk import Desk
from recrawl.tracker.fetching import Flight
from recrawl.tracker.hosts import HostState
from recrawl.tracker.loading import stay
from recrawl.tracker.settlement import Settled

CRAWLED_ONCE = "crawled once"


def tell(desk: Desk, flight: Flight, settled: Settled, state: HostState) -> Settled:
    """Tell how a crawl ended; what follows from it, which may be that the page is retired."""
    page = flight.page
    if settled.told in ("first", "unchanged", "changed"):
        settled = _came(desk, flight, settled)
        state.failures = 0
    elif settled.told == "retired":
        _leave(desk, page.id)
    else:  # a host that asked for quiet is left alone already
        _failed(desk, flight, settled)
        if page.role == "page":
            desk.hearing.failed(page, desk.clock.now())
    if desk.sources is not None:
        desk.sources.settled(flight, settled)
    return settled


def _came(desk: Desk, flight: Flight, settled: Settled) -> Settled:
    page, now = flight.page, desk.clock.days()
    changed = None if settled.told == "first" else settled.told == "changed"
    tracked, others = desk.index.scheduled(page.id), _others(desk, flight)
    if page.id in desk.once and tracked is not None:
        stay(desk, settled.page, tracked)
    desk.scheduler.crawled([flight.scheduled], now, changed=None if changed is None else [changed])
    for other in others:
        told = changed if other == tracked else None
        desk.scheduler.seen([other], now, changed=None if told is None else [told])
    seen = settled.observation
    if page.objective == CAPTURES and tracked is not None:
        desk.captures.crawled(page, tracked, seen.gap_s, changed)
    if page.role == "page":
        desk.hearing.crawled(page, seen.at, seen.at - seen.elapsed_s, changed)
    if page.objective == "once":  # the scheduler has it no longer
        desk.index.drop(page.id)
        desk.hearing.left(page.id)
        if desk.sources is not None:
            desk.sources.leave({page.id})
        return replace(settled, page=edited(settled.page, state="retired", reason=CRAWLED_ONCE))
    return settled


def _failed(desk: Desk, flight: Flight, settled: Settled) -> None:
    held = float("nan") if settled.held_until is None else settled.held_until / DAY_S
    desk.scheduler.failed([flight.scheduled], desk.clock.days())
    desk.scheduler.resume([flight.scheduled, *_others(desk, flight)], failures=settled.page.failures, held_until=held)


def _leave(desk: Desk, page_id: int) -> None:
    tracked = desk.index.scheduled(page_id)
    if tracked is not None:
        desk.scheduler.remove([tracked])
        desk.index.drop(page_id)
    if desk.sources is not None:
        desk.sources.leave({page_id})
    desk.once.discard(page_id)
    desk.hearing.left(page_id)


def _others(desk: Desk, flight: Flight) -> list[int]:
    """Entries of the page of a flight beside the one that was taken."""
    page_id = flight.page.id
    both = desk.index.scheduled(page_id), None if desk.sources is None else desk.sources.entry_of(page_id)
    return [entry for entry in both if entry is not None and entry != flight.scheduled]
