"""The rows of a store, as plain values. Times are Unix seconds; None is "never" or "not known".

Rows go in and out whole. What a field holds is its owner's business: `belief` is the scheduler's, `memory` is
detection's, and the store keeps both byte for byte.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any, Literal, TypeVar, dataclass_transform, get_args

from recrawl.errors import InvalidInput
from recrawl.outcomes import FaultKind, Outcome

Class = TypeVar("Class")


@dataclass_transform(frozen_default=True)
def record(cls: type[Class]) -> type[Class]:
    """Make a class a dataclass with slots and a hash, whose fields are not to be set: the type checker holds it frozen.

    `dataclass(frozen=True)` holds it frozen while the program runs too, and makes building one ten times as slow: with
    half a dozen rows for each fetch that would be a tenth of what a tracker costs.

    >>> @record
    ... class Point:
    ...     x: int
    ...     y: int = 0
    >>> Point(1) == Point(1, 0), len({Point(1), Point(1, 0)})
    (True, 1)
    """
    return dataclass(slots=True, unsafe_hash=True)(cls)


PageState = Literal["active", "removed", "quarantined", "retired"]
"""`removed`: confirmed gone, looked at rarely; `quarantined`: it broke the crawler; `retired`: no longer tracked."""
PAGE_STATES: tuple[PageState, ...] = get_args(PageState)

PageRole = Literal["page", "source"]
"""`page`: tracked for itself, whether or not it is a source as well; `source`: fetched only for what it leads to."""
PAGE_ROLES: tuple[PageRole, ...] = get_args(PageRole)

SourceKind = Literal["hub", "sitemap", "feed"]
SOURCE_KINDS: tuple[SourceKind, ...] = get_args(SourceKind)
SourceState = Literal["active", "retired"]

Verdict = Literal["first", "unchanged", "changed", "noise"]
"""What detection said of a page that came; `first` is a baseline."""

ChangeKind = Literal[
    "discovered", "changed", "moved", "removed", "restored", "source_retired", "host_degraded", "host_recovered",
    "network_down", "network_up", "quarantined",
]  # fmt: skip
CHANGE_KINDS: tuple[ChangeKind, ...] = get_args(ChangeKind)
END = 2**63 - 1
"""Above every cursor."""

Answer = Literal["applied", "duplicate", "stale"]
"""What became of a result: written now; written before, and nothing was done; or its lease is no longer good."""

PauseKind = Literal["page", "group", "host"]


@dataclass(frozen=True, slots=True)
class NewPage:
    """A page to be tracked. Added again, it keeps what is known of it; a retired one is taken up anew.

    A source that is added as a page becomes one, with the wishes of now, and keeps what is known of it. A page that is
    added as a source stays the page that it is; a retired one becomes a source.

    Args:
        url: in canonical form; the identity of the page.
        host: whose pacing it shares.
        group: of the settings; "" for none.
        importance: above 0, or 0 for a page that is not worth a crawl.
        objective: None for that of the tracker.
        min_interval_s: seconds between two crawls, at least; None if nothing is said, which is not 0.
        max_interval_s: the same at most, None for no bound.
        source: how it came to be known: `user`, `import`, or the address of a source.
        added_at: when.
        role: what it is fetched for.
    """

    url: str
    host: str
    group: str = ""
    importance: float = 1.0
    objective: str | None = None
    min_interval_s: float | None = None
    max_interval_s: float | None = None
    source: str = "user"
    added_at: float = 0.0
    role: PageRole = "page"


@record
class PageRow:
    """All that is known of a page.

    Args:
        id: never given to another page.
        url: see `NewPage`, as for host to role.
        state: whether it is tracked; pauses are kept apart.
        reason: of a state that is not `active`.
        attempted_at: last time a fetch of it ended, however.
        fetched_at: when the last fetch began that told its content: it came whole, or the server said that it is
            unchanged.
        changed_at: last time a change was seen.
        outcome: of the last fetch.
        failures: fetches in a row that brought nothing.
        not_before: it may not be fetched earlier.
        missing: answers in a row that said it is not there.
        missing_since: when the first of them came.
        crashes: times in a row that the crawler died with it in flight.
        etag, last_modified: of the copy, byte for byte.
        validated_url: whose answer they came with, if not `url`.
        raw_digest, text_digest, links_digest, metadata_digest: of the copy, 16 bytes each.
        memory: what detection remembers.
        belief: what the scheduler has learned.
        visits: fetches that brought it or said unchanged.
        changes: changes seen.
        version: number of the version that was last published; 0 for none.
        last_token: of the last lease; a result with a lower one is stale.
        settled_token: of the last result that was applied.
    """

    id: int
    url: str
    host: str
    group: str
    importance: float
    objective: str | None
    min_interval_s: float | None
    max_interval_s: float | None
    source: str
    added_at: float
    role: PageRole = "page"
    state: PageState = "active"
    reason: str = ""
    attempted_at: float | None = None
    fetched_at: float | None = None
    changed_at: float | None = None
    outcome: Outcome | None = None
    failures: int = 0
    not_before: float | None = None
    missing: int = 0
    missing_since: float | None = None
    crashes: int = 0
    etag: bytes | None = None
    last_modified: bytes | None = None
    validated_url: str | None = None
    raw_digest: bytes | None = None
    text_digest: bytes | None = None
    links_digest: bytes | None = None
    metadata_digest: bytes | None = None
    memory: bytes | None = None
    belief: bytes | None = None
    visits: int = 0
    changes: int = 0
    version: int = 0
    last_token: int = 0
    settled_token: int = 0


_PLACES = {field.name: place for place, field in enumerate(fields(PageRow))}
_ALL_FIELDS = attrgetter(*_PLACES)


def edited(row: PageRow, **fields: Any) -> PageRow:
    """A row with other values in these fields: `dataclasses.replace`, several times as fast, for every fetch."""
    values = list(_ALL_FIELDS(row))
    for name, value in fields.items():
        values[_PLACES[name]] = value
    return PageRow(*values)


NOT_SAID = math.nan
"""As the `min_interval_s` of an edit: nothing is said of it from now on. None would leave it as it is."""


@dataclass(frozen=True, slots=True)
class PageEdit:
    """What a user changes of a page; None leaves a field as it is."""

    id: int
    group: str | None = None
    importance: float | None = None
    objective: str | None = None
    min_interval_s: float | None = None
    max_interval_s: float | None = None
    state: PageState | None = None
    reason: str | None = None
    not_before: float | None = None


@record
class HostRow:
    """What is known of a host.

    Args:
        name: host and port as pacing has it.
        min_gap_s: seconds between the starts of two requests, as last decided.
        next_at: no request before, by the gap.
        blocked_until: no request before, as the host asked.
        failures: requests in a row that failed.
        degraded_since: most of its pages fail since then.
        robots: the last answers for robots.txt, in the form of the web layer; written as None: left as it is.
        robots_until: it holds until then.
        learned: priors and trust, in the form of the learner; written as None: left as it is.
    """

    name: str
    min_gap_s: float = 0.0
    next_at: float | None = None
    blocked_until: float | None = None
    failures: int = 0
    degraded_since: float | None = None
    robots: bytes | None = None
    robots_until: float | None = None
    learned: bytes | None = None


@record
class SourceRow:
    """A page that leads to others, or tells of their changes. It stays when it or its page is retired, with its state.

    Args:
        page_id: of the page that is fetched, of either role.
        kind: how it is read.
        found_by: how it came to be known: `user`, or the address of the source that led to it.
        state: whether it is read.
        reason: of a state that is not `active`.
        added_at: when.
        polls: fetches of it that were read.
        found: pages that it led to.
        signals: changes that it told of.
        useful_at: last time it did either.
        memory: what its reader remembers; written as None: left as it is.
    """

    page_id: int
    kind: SourceKind
    found_by: str = "user"
    state: SourceState = "active"
    reason: str = ""
    added_at: float = 0.0
    polls: int = 0
    found: int = 0
    signals: int = 0
    useful_at: float | None = None
    memory: bytes | None = None


@record
class LeaseRow:
    """A page that someone fetches: who, and until when; `token` rises with every lease of the store."""

    page_id: int
    token: int
    worker: str
    leased_at: float
    until: float


@record
class Observation:
    """One fetch as it is remembered.

    Args:
        page_id: of which page.
        token: of the lease under which it was made.
        at: when it ended.
        outcome: what the world answered.
        verdict: what detection said, if the page came.
        trigger: why it was made: `schedule`, or the kind of signal that was heard.
        status: of HTTP.
        fault: of a network error.
        reason: one short text for people.
        gap_s: from the start of the fetch that last told the content to the start of this one; None for a first fetch.
        requests: sent, all of which count against the budget.
        wire_bytes: of bodies.
        elapsed_s: on the network.
        worker: who fetched.
    """

    page_id: int
    token: int
    at: float
    outcome: Outcome
    verdict: Verdict | None = None
    trigger: str = "schedule"
    status: int | None = None
    fault: FaultKind | None = None
    reason: str = ""
    gap_s: float | None = None
    requests: int = 1
    wire_bytes: int = 0
    elapsed_s: float = 0.0
    worker: str = ""


@record
class NewChange:
    """An event for the change log.

    Args:
        kind: what happened.
        detected_at: when it was seen; it happened since `last_seen_unchanged_at`.
        page_id, url: of which page; None and the host's name for events of hosts.
        last_seen_unchanged_at: when the page was last seen as it was before.
        old_digest, new_digest: of the layer that counts.
        trigger: why the fetch was made that saw it.
        detail: more, as JSON text: where a page moved, why it was removed.
        token: of the lease of that fetch, 0 for none.
    """

    kind: ChangeKind
    detected_at: float
    url: str
    page_id: int | None = None
    last_seen_unchanged_at: float | None = None
    old_digest: bytes | None = None
    new_digest: bytes | None = None
    trigger: str = ""
    detail: str = "{}"
    token: int = 0


@dataclass(frozen=True, slots=True)
class Change:
    """An event of the change log: `cursor` counts from 1 without gaps; `id` is the same whoever reads it, and when."""

    cursor: int
    id: str
    event: NewChange


@record
class NewVersion:
    """The text of a version that is published: compressed by the tracker, kept as it is; `digest` is of the text."""

    version: int
    at: float
    digest: bytes
    text: bytes
    body_digest: bytes | None = None


@record
class Result:
    """A finished fetch, to be written in one transaction if its lease is still good.

    Args:
        observation: whose page and token it is.
        page: the row from then on; fields up to `role` and the tokens are left as the store has them.
        host: the row of its host from then on, None to leave it.
        changes: events for the log.
        version: a new version, if one is published.
        source: the row of the page as a source from then on, None to leave it; its `page_id` is the page's.
        answered: the kind of signals that it ends whatever came; all are ended by a verdict (`ends_signals`).
        began_at: when its first request began: it ends no signal that was heard later. None: `elapsed_s` of the
            observation before it ended.
    """

    observation: Observation
    page: PageRow
    host: HostRow | None = None
    changes: tuple[NewChange, ...] = ()
    version: NewVersion | None = None
    source: SourceRow | None = None
    answered: str = ""
    began_at: float | None = None

    @property
    def ends_signals(self) -> bool:
        """Whether what was heard before the fetch is answered: a verdict came, or nobody waits for one any more."""
        return self.observation.verdict is not None or self.page.state == "retired"


@dataclass(frozen=True, slots=True)
class PendingSignal:
    """Signals of one kind heard of a page since the last fetch that told whether it had changed."""

    page_id: int
    kind: str
    count: int
    first_at: float
    last_at: float


@dataclass(frozen=True, slots=True)
class SinkRow:
    """Where a sink is: `cursor` is the last event that it took.

    Args:
        name: of the settings.
        cursor: 0 if it has none yet.
        failures: in a row.
        retry_at: not before.
        stopped: why it takes no more; "" if it does.
    """

    name: str
    cursor: int = 0
    failures: int = 0
    retry_at: float | None = None
    stopped: str = ""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """An event that a sink could not take, and why."""

    sink: str
    cursor: int
    at: float
    reason: str


@dataclass(frozen=True, slots=True)
class Order:
    """What a command asks of the tracker that runs: `kind` names the command, `payload` is JSON."""

    id: int
    kind: str
    payload: bytes
    posted_at: float


def check_new_pages(pages: Sequence[NewPage]) -> None:
    """Refuse a role that is none."""
    for row, page in enumerate(pages):
        _check(page.role, PAGE_ROLES, "role", row)


def check_edits(edits: Sequence[PageEdit]) -> None:
    """Refuse a state that is none."""
    for row, edit in enumerate(edits):
        if edit.state is not None:
            _check(edit.state, PAGE_STATES, "state", row)


def check_sources(rows: Sequence[SourceRow]) -> None:
    """Refuse a kind or a state that is none."""
    for row, source in enumerate(rows):
        _check(source.kind, SOURCE_KINDS, "kind", row)
        _check(source.state, get_args(SourceState), "state", row)


def check_source_pages(rows: Sequence[SourceRow], known: Collection[int]) -> None:
    """Refuse sources of pages that do not exist."""
    for row, source in enumerate(rows):
        if source.page_id not in known:
            raise InvalidInput(
                f"is {source.page_id}, but there is no such page: add it first", field="page_id", row=row
            )


def _check(value: str, allowed: Sequence[str], field: str, row: int) -> None:
    if value not in allowed:
        raise InvalidInput(f"is {value!r}, but must be one of {', '.join(allowed)}", field=field, row=row)


def began(result: Result) -> float:
    """When the fetch of a result began, in Unix seconds."""
    seen = result.observation
    return seen.at - seen.elapsed_s if result.began_at is None else result.began_at


def interval_column(said: float | None) -> float:
    """What the column of a least interval holds: 0 where nothing is said, -1 where 0 is said.

    Stores of earlier versions hold 0 for both, which counts as nothing said, and no row is written again.
    """
    if said is None or math.isnan(said):
        return 0.0
    return said or -1.0
