"""What goes over the wire and is shared by routes: pages, counts, refusals. Times are ISO 8601 in UTC. Pure."""

from __future__ import annotations

from typing import Annotated

import msgspec

from recrawl.store.rows import Observation, PageRow
from recrawl.tracker.clock import iso
from recrawl.tracker.commands.commands import Reply

MOST_LISTED = 1000
MOST_NAMED = 10_000
Url = Annotated[str, msgspec.Meta(min_length=1, max_length=8192)]
Urls = Annotated[list[Url], msgspec.Meta(min_length=1, max_length=MOST_NAMED)]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=300)]
LeaseToken = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class Refused(msgspec.Struct, frozen=True):
    """What was not done, and why."""

    url: str
    reason: str


class Done(msgspec.Struct, frozen=True):
    """What was done: counts by name, and the first twenty that were refused."""

    done: dict[str, int]
    refused: list[Refused]


class Page(msgspec.Struct, frozen=True):
    """A page as it is known."""

    id: int
    url: str
    host: str
    group: str | None
    importance: float
    objective: str | None
    min_interval_s: float | None
    max_interval_s: float | None
    source: str
    role: str
    state: str
    reason: str | None
    added_at: str | None
    attempted_at: str | None
    fetched_at: str | None
    changed_at: str | None
    outcome: str | None
    failures: int
    not_before: str | None
    visits: int
    changes: int
    version: int


class Fetch(msgspec.Struct, frozen=True):
    """One fetch of a page."""

    at: str | None
    outcome: str
    verdict: str | None
    trigger: str
    status: int | None
    fault: str | None
    reason: str | None
    gap_s: float | None
    requests: int
    wire_bytes: int
    elapsed_s: float
    worker: str


def done(reply: Reply) -> Done:
    """The reply of a command."""
    return Done(reply.done, [Refused(each.url, each.reason) for each in reply.rejected])


def page_of(row: PageRow) -> Page:
    """A row as it is told."""
    return Page(
        row.id,
        row.url,
        row.host,
        row.group or None,
        row.importance,
        row.objective,
        row.min_interval_s,
        row.max_interval_s,
        row.source,
        row.role,
        row.state,
        row.reason or None,
        iso(row.added_at),
        iso(row.attempted_at),
        iso(row.fetched_at),
        iso(row.changed_at),
        row.outcome,
        row.failures,
        iso(row.not_before),
        row.visits,
        row.changes,
        row.version,
    )


def fetch_of(seen: Observation) -> Fetch:
    """A fetch as it is told."""
    return Fetch(
        iso(seen.at),
        seen.outcome,
        seen.verdict,
        seen.trigger,
        seen.status,
        seen.fault,
        seen.reason or None,
        seen.gap_s,
        seen.requests,
        seen.wire_bytes,
        seen.elapsed_s,
        seen.worker,
    )
