"""Leases for outside fetchers: they ask what to fetch, fetch it with their own means, and hand in what came.

A lease is durable before it is given out, and outlives a restart of the tracker. A result counts once: handed in again
it is a `duplicate`, after its lease ran out or was given to another it is `stale`, and neither changes anything.
A lease that runs out goes back to the scheduler, which gives the page out again when its time comes. While a page is
leased its host counts as being asked, and after it the gap counts, whoever is to ask next.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from recrawl.errors import InvalidInput
from recrawl.outcomes import OUTCOMES, FaultKind, Outcome
from recrawl.store.opening import open_store
from recrawl.store.rows import Answer
from recrawl.tracker.clock import TIMING, Timing
from recrawl.tracker.pipeline.complete import harvest
from recrawl.tracker.pipeline.examine import Examined, Given, Need, NeedText, validators_for
from recrawl.tracker.pipeline.fetch import OUTSIDE, Flight, examine_fetched, published_text
from recrawl.tracker.settings.settings import Settings
from recrawl.tracker.tracker import Tracker, open_tracker
from recrawl.web.address import STORED_RULES, Address, address_or_raise
from recrawl.web.conditional import Validators
from recrawl.web.fetch_result import FetchResult

MOST_AT_ONCE = 1000
_LONGEST_VALIDATOR_BYTES = 1024
_MOST = 1e15
_MOST_REQUESTS = 1000
_LONGEST_QUIET_S = 7 * 86_400.0
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
    await expire(tracker)
    most = 0 if tracker.stopping or not tracker.may_take() else most
    flights = await tracker.take(most, OUTSIDE + worker) if most else []
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
        _check(report, row, tracker.settings.limits.most_body_bytes)
    return await asyncio.gather(*(_complete(tracker, report) for report in reports))  # written together


def _check(report: Report, row: int, most_bytes: int) -> None:
    """Refuse what no fetch can have ended in; numbers that are merely odd are held within bounds later."""
    if report.outcome not in OUTCOMES:
        raise InvalidInput(f"is {report.outcome!r}, but must be one of {', '.join(OUTCOMES)}", field="outcome", row=row)
    body: object = report.body
    if not isinstance(body, bytes) or len(body) > most_bytes:
        raise InvalidInput(f"must be at most {most_bytes} bytes", field="body", row=row)
    if report.outcome not in _NO_PAGE and report.outcome != "deferred" and not report.body:
        raise InvalidInput("is empty, but a page that came has one", field="body", row=row)
    for name in ("etag", "last_modified"):
        value = getattr(report, name)
        if value is not None and (not isinstance(value, bytes) or len(value) > _LONGEST_VALIDATOR_BYTES):
            raise InvalidInput(f"must be at most {_LONGEST_VALIDATOR_BYTES} bytes", field=name, row=row)
    for name in ("requests", "wire_bytes", "elapsed_s", "retry_after_s", "status"):
        value = getattr(report, name)
        odd = not isinstance(value, (int, float)) or isinstance(value, bool) or not math.isfinite(value) or value < 0
        if value is not None and (odd or value > _MOST):
            raise InvalidInput(f"is {value!r}, but must be a number from 0 to {_MOST:g}", field=name, row=row)


async def _complete(tracker: Tracker, report: Report) -> Answer:
    if report.token in tracker.settling:  # handed in before, and not durable yet
        await asyncio.wait([tracker.settling[report.token]])
    flight = tracker.flights.get(report.token)
    if flight is None or not flight.is_outside:
        return await tracker.store.answer_for(report.token)
    if report.outcome == "deferred":
        await tracker.release(flight, "worker")
        return "applied"
    result = _result(flight, report)
    examined = await _examined(tracker, flight, result)  # may raise, and the lease stays as it is
    source = await harvest(tracker.desk, flight, result, examined)
    if report.token in tracker.settling or report.token not in tracker.flights:  # handed in twice, or taken back
        return await _complete(tracker, report)
    settled = tracker.settling[report.token] = asyncio.get_running_loop().create_future()
    try:
        tracker.desk.hosts.heard(result)
        finished = await tracker.landing.finish(flight, result, examined, source)
    except Exception:
        await tracker.give_up(flight)
        raise
    finally:
        del tracker.settling[report.token]
        settled.set_result(None)
    return await tracker.store.answer_for(report.token) if finished is None else finished[1]


async def _examined(tracker: Tracker, flight: Flight, result: FetchResult) -> Examined:
    async def give(need: Need) -> Given:
        """The text alone: a further fetch is not ours to make."""
        return await published_text(tracker.store, flight.page) if isinstance(need, NeedText) else None

    return await examine_fetched(flight.page, result, tracker.desk.clock.now(), tracker.settings.content, give)


def _result(flight: Flight, report: Report) -> FetchResult:
    address: Address = address_or_raise(flight.page.url, field="url", rules=STORED_RULES)
    headers = ((b"content-type", report.content_type.encode("latin-1", "replace")),) if report.content_type else ()
    return FetchResult(
        address,
        report.outcome,
        report.reason[:500],
        address,
        fault=report.fault,
        status=None if report.status is None else int(report.status),
        headers=headers,
        body=report.body,
        validators=Validators(report.etag, report.last_modified),
        retry_after_s=None if report.retry_after_s is None else min(float(report.retry_after_s), _LONGEST_QUIET_S),
        requests=min(int(report.requests), _MOST_REQUESTS),
        wire_bytes=int(report.wire_bytes),
        elapsed_s=float(report.elapsed_s),
    )


async def expire(tracker: Tracker) -> int:
    """Take back leases of outside fetchers that ran out; how many."""
    now = tracker.desk.clock.now()
    theirs = [flight for flight in tracker.flights.values() if flight.is_outside]
    ended = 0
    for flight in theirs:
        if flight.until < now:  # looked at anew: it may have been prolonged while we waited
            await tracker.release(flight, "lease-ran-out")
            ended += 1
    return ended


@asynccontextmanager
async def serving(settings: Settings, say: Callable[[str], None], timing: Timing = TIMING) -> AsyncIterator[Tracker]:
    """A tracker that fetches nothing itself: it hands out leases and takes in what came, until the block ends.

    An error that stops it, such as another owner of its store, is raised when the block ends.
    """
    from recrawl.tracker.process import run_beside  # which takes leases back, and so knows this module

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
