"""Leases for outside fetchers: they ask what to fetch, fetch it with their own means, and hand in what came.

A lease is durable before it is given out, and outlives a restart of the tracker. A result counts once: handed in again
it is a `duplicate`, after its lease ran out or was given to another it is `stale`, and neither changes anything.
A lease that runs out goes back to the scheduler, which gives the page out again when its time comes. While a page is
leased its host counts as being asked, and after it the gap counts for every request.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass

from recrawl.errors import InvalidInput
from recrawl.outcomes import OUTCOMES, FaultKind, Outcome
from recrawl.store.rows import Answer
from recrawl.tracker.pipeline.examine import Given, Need, NeedText, drive, published_text, validators_for
from recrawl.tracker.tracker import Tracker
from recrawl.tracker.visit import OUTSIDE, Visit
from recrawl.web.conditional import Validators
from recrawl.web.fetch.protocol import FetchResult
from recrawl.web.url.address import STORED_RULES, Address, address_or_raise

MOST_AT_ONCE = 1000
_LONGEST_VALIDATOR_BYTES = 1024
_MOST = 1e15
_MOST_REQUESTS = 1000
_LONGEST_QUIET_S = 7 * 86_400.0
_NO_PAGE: frozenset[Outcome] = frozenset(set(OUTCOMES) - {"ok", "moved", "deferred"})


@dataclass(frozen=True, slots=True)
class WorkItem:
    """A page to be fetched: under which token, until when, and with which validators."""

    url: str
    token: int
    until: float
    etag: bytes | None
    last_modified: bytes | None


@dataclass(frozen=True, slots=True)
class WorkResult:
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


async def lease(tracker: Tracker, most: int, worker: str) -> list[WorkItem]:
    """Lease at most `most` pages to a worker, by its name; durable when this returns."""
    if not 0 <= most <= MOST_AT_ONCE:
        raise InvalidInput(f"is {most}, but must be from 0 to {MOST_AT_ONCE}", field="n")
    if not worker or len(worker) > 200 or not worker.isprintable():
        raise InvalidInput("must be a name of 1 to 200 printable characters", field="worker")
    await expire(tracker)
    most = 0 if tracker.stopping or not tracker.dispatcher.may_take() else most
    visits = await tracker.dispatcher.take(most, OUTSIDE + worker) if most else []
    return [_offer(visit) for visit in visits]


def _offer(visit: Visit) -> WorkItem:
    validators = validators_for(visit.page)
    return WorkItem(visit.page.url, visit.lease.token, visit.lease.until, validators.etag, validators.last_modified)


async def heartbeat(tracker: Tracker, tokens: Sequence[int]) -> list[int]:
    """Prolong leases; the tokens of those that are still good."""
    known = [token for token in tokens if tracker.in_flight.find(token) is not None]
    until = tracker.clock.now() + tracker.settings.lease_s
    good = await tracker.store.heartbeat(known, until)
    for token in good:
        visit = tracker.in_flight.find(token)
        if visit is not None:
            visit.lease_until = until
    return good


async def complete(tracker: Tracker, reports: Sequence[WorkResult]) -> list[Answer]:
    """Take in what came; each answer is given when it is durable, in the order of the reports."""
    for row, report in enumerate(reports):
        _check(report, row, tracker.settings.limits.most_body_bytes)
    return await asyncio.gather(*(_complete(tracker, report) for report in reports))  # written together


def _check(report: WorkResult, row: int, most_bytes: int) -> None:
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


async def _complete(tracker: Tracker, report: WorkResult) -> Answer:
    while (visit := tracker.in_flight.by_token.get(report.token)) is not None and visit.durable is not None:
        await asyncio.wait([visit.durable])  # handed in before, and not durable yet
    if visit is None or not visit.is_remote:
        return await tracker.store.answer_for(report.token)
    if report.outcome == "deferred":
        await tracker.dispatcher.release(visit, "worker")
        return "applied"
    if not await _examine(tracker, visit, report):
        return await tracker.store.answer_for(report.token)
    tracker.hosts.heard(visit.answer)
    try:
        answer = await tracker.completer.complete(visit)
    except Exception:
        await tracker.dispatcher.give_up(visit)
        raise
    return await tracker.store.answer_for(report.token) if answer is None else answer


async def _examine(tracker: Tracker, visit: Visit, report: WorkResult) -> bool:
    """Examine what was handed in; return False if the page was withdrawn meanwhile.

    Nobody else examines the visit meanwhile. If an error is raised, the lease stays as it is.
    """

    async def answer(need: Need) -> Given:
        """Give the text alone: a further fetch is not ours to make."""
        return await published_text(tracker.store, visit.page) if isinstance(need, NeedText) else None

    examining = visit.durable = asyncio.get_running_loop().create_future()
    good = False
    try:
        visit.fetched = _result(visit, report)
        await drive(visit, tracker.clock.now(), tracker.settings.content, answer)
        await tracker.discovery.read(visit)
        good = tracker.in_flight.find(report.token) is visit
    finally:
        if not good:
            visit.durable = None
            examining.cancel()
    return good


def _result(visit: Visit, report: WorkResult) -> FetchResult:
    address: Address = address_or_raise(visit.page.url, field="url", rules=STORED_RULES)
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
    """Take back leases of remote workers that ran out; how many."""
    now, ended = tracker.clock.now(), 0
    for visit in [visit for visit in tracker.in_flight.open() if visit.is_remote]:
        if visit.lease_until < now:  # it may have been prolonged while we waited
            await tracker.dispatcher.release(visit, "lease-ran-out")
            ended += 1
    return ended
