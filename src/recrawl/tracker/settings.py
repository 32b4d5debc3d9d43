"""The settings of a tracker: one typed table, which the settings file, the flags and the documentation share.

A field is a setting; its metadata has the sentence that explains it and, where text is read, what reads it. Durations
are in seconds and end in `_s`; in files and flags they are written with a unit, such as `6h`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from recrawl.tracker.removal import DEFAULT_REMOVAL, RemovalRules
from recrawl.web.backoff import DEFAULT_BACKOFF, BackoffRules
from recrawl.web.canonical import HostKey
from recrawl.web.content_rules import DEFAULT_CONTENT_RULES, ContentRules
from recrawl.web.credentials import NO_CREDENTIALS, Credentials
from recrawl.web.egress import EgressPolicy
from recrawl.web.fetch_limits import DEFAULT_LIMITS, FetchLimits

TrackedObjective = Literal["harmonic", "freshness"]
DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class HostRule:
    """How a host is treated that differs from the others.

    Args:
        pattern: its name, or `*.name` for all below.
        min_gap_s: seconds between two requests.
        max_in_flight: requests at once.
    """

    pattern: str
    min_gap_s: float | None = None
    max_in_flight: int | None = None


@dataclass(frozen=True, slots=True)
class GroupRule:
    """Pages that are treated alike: those whose address one of the patterns fits; the first group that fits counts.

    Args:
        name: of the group.
        patterns: addresses with `*` for anything.
        importance: of each of its pages.
        objective: None for that of the tracker.
        min_interval_s, max_interval_s: bounds between crawls.
        hours: allowed hours of the day such as `22-6`, "" for all.
        time_zone: of the hours, such as `Europe/Berlin`.
    """

    name: str
    patterns: tuple[str, ...]
    importance: float | None = None
    objective: TrackedObjective | None = None
    min_interval_s: float = 0.0
    max_interval_s: float | None = None
    hours: str = ""
    time_zone: str = "UTC"


@dataclass(frozen=True, slots=True)
class Retention:
    """What is kept, and for how long.

    Args:
        observations_s: fetches that were seen.
        versions: texts of each page; at least the last.
        bodies: whether bodies of published versions are kept as well.
    """

    observations_s: float = 90 * DAY_S
    versions: int = 1
    bodies: bool = False


@dataclass(frozen=True, slots=True)
class SinkRule:
    """Where events go.

    Args:
        name: of the sink, under which its cursor is kept.
        kind: `jsonl`, `webhook` or `atom`.
        target: a file, `-` for standard output, or an address.
        secret: for signing, of a webhook.
        kinds: of events that it takes; empty for all.
        plain_http: whether a webhook may go to an http address.
    """

    name: str
    kind: Literal["jsonl", "webhook", "atom"]
    target: str
    secret: str = ""
    kinds: tuple[str, ...] = ()
    plain_http: bool = False


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything a tracker can be told."""

    store: str = field(default="recrawl-data", metadata={"means": "folder of the data, or postgresql://… for a server"})
    budget_per_day: float = field(
        default=86_400.0, metadata={"means": "crawls a day, all requests counted; written as 2/s or 5000/day"}
    )
    bytes_per_day: float | None = field(
        default=None, metadata={"means": "bytes a day that bodies may have on the wire; written as 2GB/day"}
    )
    burst: float = field(default=1.0, metadata={"means": "crawls that may be made at once after a pause"})
    objective: TrackedObjective = field(
        default="harmonic", metadata={"means": "what is optimised where a group says nothing"}
    )
    contact: str = field(
        default="", metadata={"means": "address or mail of whoever runs this crawler; sent with every request"}
    )
    concurrency: int = field(default=64, metadata={"means": "fetches at once"})
    lease_s: float = field(default=300.0, metadata={"means": "how long a page is leased to whoever fetches it"})
    min_gap_s: float = field(default=1.0, metadata={"means": "between two requests to one host"})
    max_in_flight: int = field(default=1, metadata={"means": "requests to one host at once"})
    pace_by: HostKey = field(default="host", metadata={"means": "what counts as one host: host, domain or origin"})
    longest_turn_s: float = field(
        default=60.0, metadata={"means": "how long a fetch waits for the turn of its host before it is put off"}
    )
    again_after_s: float = field(
        default=3.0, metadata={"means": "until a page is fetched once more to tell change from noise"}
    )
    drain_s: float = field(default=30.0, metadata={"means": "given to fetches under way when the tracker is stopped"})
    limits: FetchLimits = field(default=DEFAULT_LIMITS, metadata={"means": "bounds of one fetch"})
    egress: EgressPolicy = field(
        default_factory=EgressPolicy, metadata={"means": "networks and ports that may be reached"}
    )
    credentials: Credentials = field(default=NO_CREDENTIALS, metadata={"means": "headers by origin"})
    opted_out: frozenset[str] = field(
        default=frozenset(), metadata={"means": "hosts whose owners asked not to be crawled"}
    )
    content: ContentRules = field(default=DEFAULT_CONTENT_RULES, metadata={"means": "what counts as a change"})
    retry: BackoffRules = field(default=DEFAULT_BACKOFF, metadata={"means": "waits after failures"})
    removal: RemovalRules = field(default=DEFAULT_REMOVAL, metadata={"means": "when a missing page is removed"})
    retention: Retention = field(default_factory=Retention, metadata={"means": "what is kept"})
    hosts: tuple[HostRule, ...] = field(default=(), metadata={"means": "hosts that are treated otherwise"})
    groups: tuple[GroupRule, ...] = field(default=(), metadata={"means": "pages that are treated alike"})
    sinks: tuple[SinkRule, ...] = field(default=(), metadata={"means": "where events go"})
