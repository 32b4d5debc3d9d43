"""The settings of a tracker, as typed values. How each is written, and what it means, is in `settings_table.py`.

Durations are in seconds and end in `_s`; in files and flags they are written with a unit, such as `6h`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from recrawl.tracker.clock import DAY_S
from recrawl.tracker.discovery.rules import DiscoveryRules, Found, SignalRules
from recrawl.tracker.removal import DEFAULT_REMOVAL, RemovalRules
from recrawl.tracker.service_rules import LISTEN, HookRule, ServiceRules
from recrawl.web.address import DEFAULT_RULES, AddressRules
from recrawl.web.backoff import DEFAULT_BACKOFF, BackoffRules
from recrawl.web.canonical import HostKey
from recrawl.web.content_rules import DEFAULT_CONTENT_RULES, ContentRules
from recrawl.web.credentials import NO_CREDENTIALS, Credentials
from recrawl.web.egress import EgressPolicy
from recrawl.web.fetch_limits import DEFAULT_LIMITS, FetchLimits

TrackedObjective = Literal["harmonic", "freshness"]
GroupObjective = Literal["harmonic", "freshness", "captures", "news"]
Life = Literal["append", "overwrite", "window"]


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
        objective: None for that of the tracker. `news`: its pages are read for links to new pages, and nothing else.
        min_interval_s, max_interval_s: bounds between crawls; None for that of the tracker, and for no bound.
        hours: allowed hours of the day such as `22-6`, "" for all.
        time_zone: of the hours, such as `Europe/Berlin`.
        urgency_s: of `captures`: time in which a change that was not captured loses two thirds of its worth.
        life: of `captures`: whether a change stays on the page, is overwritten by the next, or stays for a window.
        window_s: that window.
        discover: whether the sites of its pages are followed; None for what the tracker does.
        found: what becomes of pages that are found and fit the group; None for the rule of discovery.
    """

    name: str
    patterns: tuple[str, ...]
    importance: float | None = None
    objective: GroupObjective | None = None
    min_interval_s: float | None = None
    max_interval_s: float | None = None
    hours: str = ""
    time_zone: str = "UTC"
    urgency_s: float = DAY_S
    life: Life = "append"
    window_s: float = DAY_S
    discover: bool | None = None
    found: Found | None = None


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

    store: str = "recrawl-data"
    budget_per_day: float = 86_400.0
    bytes_per_day: float | None = None
    burst: float = 1.0
    objective: TrackedObjective = "harmonic"
    contact: str = ""
    concurrency: int = 64
    lease_s: float = 300.0
    min_gap_s: float = 1.0
    min_interval_s: float = 60.0
    max_in_flight: int = 1
    pace_by: HostKey = "host"
    longest_turn_s: float = 60.0
    again_after_s: float = 3.0
    respect_max_age: bool = False
    drain_s: float = 30.0
    discover: bool = False
    listen: str = LISTEN
    limits: FetchLimits = DEFAULT_LIMITS
    egress: EgressPolicy = field(default_factory=EgressPolicy)
    credentials: Credentials = NO_CREDENTIALS
    opted_out: frozenset[str] = frozenset()
    address_rules: AddressRules = DEFAULT_RULES
    unverified_tls: frozenset[str] = frozenset()
    content: ContentRules = DEFAULT_CONTENT_RULES
    retry: BackoffRules = DEFAULT_BACKOFF
    removal: RemovalRules = DEFAULT_REMOVAL
    retention: Retention = field(default_factory=Retention)
    discovery: DiscoveryRules = field(default_factory=DiscoveryRules)
    signals: SignalRules = field(default_factory=SignalRules)
    service: ServiceRules = field(default_factory=ServiceRules)
    hosts: tuple[HostRule, ...] = ()
    groups: tuple[GroupRule, ...] = ()
    sinks: tuple[SinkRule, ...] = ()
    hooks: tuple[HookRule, ...] = ()
