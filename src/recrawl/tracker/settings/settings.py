"""The settings of a tracker as typed values; `table.py` says how each is written and what it means.

Durations are in seconds and end in `_s`; in files and flags they are written with a unit, such as `6h`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from recrawl.errors import InvalidInput
from recrawl.tracker.clock import DAY_S
from recrawl.tracker.kinds import check_kind
from recrawl.web.address import DEFAULT_RULES, AddressRules
from recrawl.web.backoff import DEFAULT_BACKOFF, BackoffRules
from recrawl.web.canonical import HostKey
from recrawl.web.content_rules import DEFAULT_CONTENT_RULES, ContentRules
from recrawl.web.crawl_caps import DEFAULT_CAPS, DiscoveryCaps
from recrawl.web.credentials import NO_CREDENTIALS, Credentials
from recrawl.web.egress import EgressPolicy
from recrawl.web.fetch_limits import DEFAULT_LIMITS, FetchLimits


@dataclass(frozen=True, slots=True)
class RemovalRules:
    """How often, and over how long, a page must be missing.

    Args:
        missing_times: answers 404, or pages that look like one, in a row.
        missing_over_s: from the first of them to the last.
        gone_times: the same for 410.
        gone_over_s: the same for 410.
        recheck_s: how soon a page that is missing is looked at again, at the latest.
        removed_probe_s: how often a removed page is looked at once more.
    """

    missing_times: int = 3
    missing_over_s: float = 86_400.0
    gone_times: int = 2
    gone_over_s: float = 3_600.0
    recheck_s: float = 43_200.0
    removed_probe_s: float = 30 * 86_400.0

    def __post_init__(self) -> None:
        for name in ("missing_times", "gone_times"):
            if not 1 <= getattr(self, name) <= 100:
                raise InvalidInput(f"is {getattr(self, name)}, but must be from 1 to 100", field=name)


DEFAULT_REMOVAL = RemovalRules()


LISTEN = "127.0.0.1:8472"
"""Where the service listens unless told otherwise: this machine alone can reach it."""


@dataclass(frozen=True, slots=True)
class ServiceRules:
    """How the service is reached.

    Args:
        names: of hosts by which clients call it, beside those of this machine.
        behind_tls: a proxy before it speaks TLS.
        trusted_proxies: addresses or networks of proxies that say who asks.
    """

    names: tuple[str, ...] = ()
    behind_tls: bool = False
    trusted_proxies: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HookRule:
    """Who may signal changes by a signed hook.

    Args:
        name: in the address of the hook.
        secret: with which messages are signed.
    """

    name: str
    secret: str


ScopeKind = Literal["host", "site", "patterns"]
"""New pages are taken from the host of a named page, from all hosts of its registered domain, or where patterns fit."""
SCOPES: tuple[ScopeKind, ...] = get_args(ScopeKind)

Found = Literal["track", "once", "none"]
"""What becomes of a page that was found: tracked from then on, fetched once, or nothing: sources are for signals."""
FOUND: tuple[Found, ...] = get_args(Found)


@dataclass(frozen=True, slots=True)
class DiscoveryRules:
    """How sites are followed.

    Args:
        scope: how far from the pages that were named.
        include: patterns of addresses; with some, only addresses that fit one are taken.
        exclude: patterns of addresses that are not taken.
        depth: links from a page that was named, at most; what a sitemap or feed lists is one away.
        hubs, feeds, sitemaps: which kinds of sources are read.
        hub_age_s: a page that was found is read for links once it is known for so long.
        most_hubs: pages of one host that are read for links.
        oldest_s: an address whose date is older is not taken; None for no bound.
        found: what becomes of pages that are found.
        profit: requests expected of a new page in all, of importance 1, before logs say more.
        fades_s: time in which interest in a new page falls to a third, before logs say more.
        min_interval_s, max_interval_s: between two polls of a source.
        by_host, by_source, by_shape, by_variants, by_day: new addresses taken; see `DiscoveryCaps`; `by_day` of one
            host in a day.
        idle_polls, idle_s: a source that brought nothing for so many polls and so long is retired.
        audit_s: looks at a retired source.
        poll_bytes: so many bytes of a source cost as much as one request more.
    """

    scope: ScopeKind = "host"
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    depth: int = 2
    hubs: bool = True
    feeds: bool = True
    sitemaps: bool = True
    hub_age_s: float = 3 * DAY_S
    most_hubs: int = 20
    oldest_s: float | None = None
    found: Found = "track"
    profit: float = 0.1
    fades_s: float = DAY_S
    min_interval_s: float = 60.0
    max_interval_s: float = DAY_S
    by_host: int = DEFAULT_CAPS.by_host
    by_source: int = DEFAULT_CAPS.by_source
    by_shape: int = DEFAULT_CAPS.by_shape
    by_variants: int = DEFAULT_CAPS.by_variants
    by_day: int = 20_000
    idle_polls: int = 30
    idle_s: float = 30 * DAY_S
    audit_s: float = 30 * DAY_S
    poll_bytes: int = 1_000_000

    def __post_init__(self) -> None:
        if self.scope == "patterns" and not self.include:
            raise InvalidInput("is 'patterns', but there is no pattern to include", field="scope")
        if self.min_interval_s > self.max_interval_s:
            raise InvalidInput("is above max-interval", field="min-interval")
        for name in ("include", "exclude"):
            for pattern in getattr(self, name):
                if not pattern or pattern.count("*") > 8 or len(pattern) > 2000:
                    raise InvalidInput(f"{pattern!r} has more than eight `*` or 2000 characters", field=name)

    @property
    def caps(self) -> DiscoveryCaps:
        """Bounds on addresses that are taken."""
        return DiscoveryCaps(self.by_host, self.by_source, self.by_shape, self.by_variants)

    @property
    def decay(self) -> float:
        """Decay of interest per day, before logs say more."""
        return DAY_S / self.fades_s


@dataclass(frozen=True, slots=True)
class SignalRules:
    """Which signals are heard.

    Args:
        kinds: those that are listened to; none for all.
        delay_s: a signal within so long of a crawl tells of what the crawl saw, and is dropped.
        callback: the public address of this tracker's service, for WebSub; "" for none.
    """

    kinds: tuple[str, ...] = ()
    delay_s: float = 0.0
    callback: str = ""

    def __post_init__(self) -> None:
        for kind in self.kinds:
            check_kind(kind, "kinds")
        if self.callback and not self.callback.startswith(("http://", "https://")):
            raise InvalidInput(f"is {self.callback!r}, but must be an http or https address", field="callback")

    def hears(self, kind: str) -> bool:
        """Whether signals of a kind are listened to."""
        return not self.kinds or kind in self.kinds


LONGEST_INTERVAL_S = 100 * 366 * 86_400.0
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
        kind: of the table of sinks, such as `jsonl`.
        target: a file, `-` for standard output, or an address.
        secret: for signing, of a webhook.
        kinds: of events that it takes; empty for all.
        plain_http: whether a webhook may go to an http address.
    """

    name: str
    kind: str
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


def fits_bounds(low: float | None, high: float | None) -> bool:
    """Return whether the shortest and longest interval of a page can hold together, in seconds."""
    low = low or 0.0
    return 0 <= low <= LONGEST_INTERVAL_S and (high is None or (high >= 1 and low <= high))


def check_patterns(groups: Sequence[GroupRule]) -> None:
    """Refuse patterns that could take long, more than eight `*` in one, and bounds that contradict each other."""
    for group in groups:
        if not group.name or not group.patterns:
            raise InvalidInput("needs a name and at least one pattern", field=f"groups.{group.name}")
        if not fits_bounds(group.min_interval_s, group.max_interval_s):
            raise InvalidInput("has a min-interval above its max-interval", field=f"groups.{group.name}")
        for pattern in group.patterns:
            if not pattern or pattern.count("*") > 8 or len(pattern) > 2000:
                raise InvalidInput(
                    f"{pattern!r} has more than eight `*` or 2000 characters", field=f"groups.{group.name}"
                )
