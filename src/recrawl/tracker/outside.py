"""Leases for outside fetchers: they ask what to fetch, fetch it with their own means, and hand in what came.

A lease is durable before it is given out, and outlives a restart of the tracker. A result counts once: handed in again
it is a `duplicate`, after its lease ran out or was given to another it is `stale`, and neither changes anything.
A lease that runs out goes back to the scheduler, which gives the page out again when its time comes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from recrawl.errors import InvalidInput
from recrawl.outcomes import OUTCOMES, FaultKind, Outcome
from recrawl.store.opening import open_store
from recrawl.store.rows import Answer
from recrawl.tracker.examination import Examined, examine, validators_for
from recrawl.tracker.fetching import Flight
from recrawl.tracker.finishing import finish
from recrawl.tracker.packing import unpacked
from recrawl.tracker.settings import Settings
from recrawl.tracker.tracker import OUTSIDE, Tracker, open_tracker
from recrawl.web.address import Address, address_or_raise
from recrawl.web.conditional import Validators
from recrawl.web.fetch_result import FetchResult

MOST_AT_ONCE = 1000
_NO_PAGE: frozenset[Outcome] = frozenset(set(OUTCOMES) - {"ok", "moved", "deferred"})


@dataclass(frozen=True, slots=True)
class Offer:
    """A page to be fetched: under which token, until when, and with which validators."""

    url: str
    token: int
    until: float
    etag: bytes | None
    last_modified: bytes | None


@dataclass(frozen=True, slots=True)
class Report:
    """What came of an offer.

    Args:
        token: of the offer.
        outcome: what the world answered.
        body: of the page, if it came.
        content_type: of the body.
        etag, last_modified: of the answer.
        status: of HTTP.
        fault: of a network error.
        reason: for people.
        retry_after_s: what the host asked for.
        requests: that were sent.
        wire_bytes: of the body on the wire.
        elapsed_s: on the network.
    """

    token: int
    outcome: Outcome
    body: bytes = b""
    content_type: str = ""
    etag: bytes | None = None
    last_modified: bytes | None = None
    status: int | None = None
    fault: FaultKind | None = None
    reason: str = ""
    retry_after_s: float | None = None
    requests: int = 1
    wire_bytes: int = 0
    elapsed_s: float = 0.0


async def lease(tracker: Tracker, most: int, worker: str) -> list[Offer]:
    """At most so many pages for a worker, by its name; durable when this returns."""
    if not 0 <= most <= MOST_AT_ONCE:
        raise InvalidInput(f"is {most}, but must be from 0 to {MOST_AT_ONCE}", field="n")
    if not worker or len(worker) > 200 or not worker.isprintable():
        raise InvalidInput("must be a name of 1 to 200 printable characters", field="worker")
    flights = await tracker.take(most, OUTSIDE + worker) if not tracker.stopping else []
    return [_offer(flight) for flight in flights]


def _offer(flight: Flight) -> Offer:
    validators = validators_for(flight.page)
    page, held = flight.page, flight.lease
    return Offer(page.url, held.token, held.until, validators.etag, validators.last_modified)


async def heartbeat(tracker: Tracker, tokens: Sequence[int]) -> list[int]:
    """Prolong leases; the tokens of those that are still good."""
    known = [token for token in tokens if token in tracker.flights]
    until = tracker.desk.clock.now() + tracker.settings.lease_s
    good = await tracker.store.heartbeat(known, until)
    for token in good:
        flight = tracker.flights.get(token)
        if flight is not None:
            flight.until = until
    return good


async def complete(tracker: Tracker, reports: Sequence[Report]) -> list[Answer]:
    """Take in what came; each answer is given when it is durable, in the order of the reports."""
    for row, report in enumerate(reports):
        if report.outcome not in OUTCOMES:
            raise InvalidInput(
                f"is {report.outcome!r}, but must be one of {', '.join(OUTCOMES)}", field="outcome", row=row
            )
        if report.outcome not in _NO_PAGE and report.outcome != "deferred" and not report.body:
            raise InvalidInput("is empty, but a page that came has one", field="body", row=row)
    return [await _complete(tracker, report) for report in reports]


async def _complete(tracker: Tracker, report: Report) -> Answer:
    flight = tracker.flights.get(report.token)
    if flight is None or not flight.lease.worker.startswith(OUTSIDE):
        return await tracker.store.answer_for(report.token)
    if report.outcome == "deferred":
        await tracker.release(flight, "worker")
        return "applied"
    del tracker.flights[report.token]  # from here on nobody else may
    result = _result(flight, report)
    examined = await _examined(tracker, flight, result)
    _, answer = await finish(tracker.desk, flight, result, examined)
    return answer


async def _examined(tracker: Tracker, flight: Flight, result: FetchResult) -> Examined:
    examination = examine(flight.page, result, tracker.desk.clock.now(), tracker.settings.content)
    try:
        next(examination)  # it can only ask for the text; a second fetch is not ours to make
        packed = await tracker.store.read_text(flight.page.id)
        examination.send(None if packed is None else unpacked(packed))
        while True:
            examination.send(None)
    except StopIteration as end:
        examined: Examined = end.value
        return examined


def _result(flight: Flight, report: Report) -> FetchResult:
    address: Address = address_or_raise(flight.page.url, field="url")
    headers = ((b"content-type", report.content_type.encode("latin-1", "replace")),) if report.content_type else ()
    return FetchResult(
        address,
        report.outcome,
        report.reason[:500],
        address,
        fault=report.fault,
        status=report.status,
        headers=headers,
        body=report.body,
        validators=Validators(report.etag, report.last_modified),
        retry_after_s=report.retry_after_s,
        requests=max(report.requests, 0),
        wire_bytes=max(report.wire_bytes, 0),
        elapsed_s=max(report.elapsed_s, 0.0),
    )


async def expire(tracker: Tracker) -> int:
    """Take back leases of outside fetchers that ran out; how many."""
    now = tracker.desk.clock.now()
    late = [flight for flight in tracker.flights.values() if flight.until < now]
    for flight in late:
        if flight.lease.worker.startswith(OUTSIDE):
            await tracker.release(flight, "lease-ran-out")
    return len(late)


@asynccontextmanager
async def serving(settings: Settings, say: Callable[[str], None]) -> AsyncIterator[Tracker]:
    """A tracker that fetches nothing itself: it hands out leases and takes in what came, until the block ends."""
    store = await open_store(settings.store, owner=True)
    try:
        tracker = await open_tracker(settings, store, say)
        writing = asyncio.create_task(tracker.desk.committer.run())
        try:
            yield tracker
        finally:
            tracker.stop()
            tracker.desk.committer.close(settings.drain_s)
            await writing
            await tracker.note_time()
    finally:
        await store.close()
