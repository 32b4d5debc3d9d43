"""Leases for outside fetchers, in batches: ask what to fetch, say that it still goes on, hand in what came.

A lease is durable before it is given out. A result counts once: handed in again it is `duplicate`, after its lease
ran out `stale`; neither changes anything, so whoever heard no answer asks again.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from litestar import Router, post
from litestar.params import JSONBody

from recrawl.outcomes import FaultKind, Outcome
from recrawl.service.api.json_body import JsonBody
from recrawl.service.api.schemas import LeaseToken
from recrawl.service.context import InService
from recrawl.service.errors import ApiError
from recrawl.tracker.clock import iso
from recrawl.tracker.remote_workers import MOST_AT_ONCE, WorkItem, WorkResult, complete, heartbeat, lease

MOST_RESULTS = 1000
_RESULT_BYTES = 48 << 20
_Amount = Annotated[float, msgspec.Meta(ge=0, le=1e15)]
_Count = Annotated[int, msgspec.Meta(ge=0, le=10**15)]
_Header = Annotated[str, msgspec.Meta(max_length=1024)]


class Wish(msgspec.Struct, forbid_unknown_fields=True):
    """How many pages a worker wants, and its name."""

    n: Annotated[int, msgspec.Meta(ge=1, le=MOST_AT_ONCE)]
    worker: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class Lease(msgspec.Struct):
    """A page to be fetched: send the validators as If-None-Match and If-Modified-Since."""

    url: str
    token: int
    until: str | None
    etag: str | None
    last_modified: str | None


class Leases(msgspec.Struct):
    """Pages to be fetched; none if nothing is worth its price now."""

    leases: list[Lease]


class Tokens(msgspec.Struct, forbid_unknown_fields=True):
    """Leases that go on."""

    tokens: Annotated[list[LeaseToken], msgspec.Meta(min_length=1, max_length=MOST_AT_ONCE)]


class Good(msgspec.Struct):
    """Those that are still good, and longer so now."""

    good: list[int]


class Fetched(msgspec.Struct, forbid_unknown_fields=True):
    """What came of a lease.

    `outcome` is one of the words of the tracker: `ok`, `not-modified`, `missing`, … or `deferred` to give it back.
    A page that came has its `body` in Base64, or its `text`.
    """

    token: LeaseToken
    outcome: Outcome
    body: bytes = b""
    text: str | None = None
    content_type: Annotated[str, msgspec.Meta(max_length=300)] = ""
    etag: _Header | None = None
    last_modified: _Header | None = None
    status: Annotated[int, msgspec.Meta(ge=0, le=999)] | None = None
    fault: FaultKind | None = None
    reason: Annotated[str, msgspec.Meta(max_length=2000)] = ""
    retry_after_s: _Amount | None = None
    requests: _Count = 1
    wire_bytes: _Count = 0
    elapsed_s: _Amount = 0.0


class Results(msgspec.Struct, forbid_unknown_fields=True):
    """What came, in any order."""

    results: Annotated[list[Fetched], msgspec.Meta(min_length=1, max_length=MOST_RESULTS)]


class Answers(msgspec.Struct):
    """What became of each result, in the order of the results."""

    answers: list[Literal["applied", "duplicate", "stale"]]


@post("/leases", opt={"scope": "fetch"}, dto=JsonBody[Wish], return_dto=None, status_code=200)
async def take(data: JSONBody[Wish], service: InService) -> Leases:
    """Lease pages that are worth their price now; each is yours until its time, or until you hand in what came."""
    return Leases([_lease(each) for each in await lease(service.tracker, data.n, data.worker)])


@post("/leases/heartbeat", opt={"scope": "fetch"}, dto=JsonBody[Tokens], return_dto=None, status_code=200)
async def prolong(data: JSONBody[Tokens], service: InService) -> Good:
    """Prolong leases."""
    return Good(await heartbeat(service.tracker, data.tokens))


@post("/leases/complete", opt={"scope": "fetch"}, dto=JsonBody[Results], return_dto=None, status_code=200,
      request_max_body_size=_RESULT_BYTES)  # fmt: skip
async def hand_in(data: JSONBody[Results], service: InService) -> Answers:
    """Hand in what came; the answers are given when all of it is durable."""
    return Answers(await complete(service.tracker, [report_of(each, row) for row, each in enumerate(data.results)]))


def report_of(came: Fetched, row: int) -> WorkResult:
    """A result as the tracker takes it."""
    body = came.body
    if came.text is not None:
        if body:
            raise ApiError(422, "a result has a body or a text, not both", f"results[{row}].text", row)
        body = came.text.encode("utf-8", "replace")
    return WorkResult(
        came.token,
        came.outcome,
        body,
        came.content_type or ("text/html; charset=utf-8" if came.text is not None else ""),
        _bytes(came.etag),
        _bytes(came.last_modified),
        came.status,
        came.fault,
        came.reason,
        came.retry_after_s,
        came.requests,
        came.wire_bytes,
        came.elapsed_s,
    )


def _lease(offer: WorkItem) -> Lease:
    return Lease(offer.url, offer.token, iso(offer.until), _text(offer.etag), _text(offer.last_modified))


def _text(header: bytes | None) -> str | None:
    return None if header is None else header.decode("latin-1")


def _bytes(header: str | None) -> bytes | None:
    return None if header is None else header.encode("latin-1", "replace")


ROUTES = Router("/api/v1", tags=["leases"], route_handlers=[take, prolong, hand_in])
