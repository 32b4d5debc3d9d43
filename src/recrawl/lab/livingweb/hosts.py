"""Hosts of a living web: what each is like, and how well a crawler behaves to it.

What a host is like: how honest its sitemap, its validators and its robots rules are, and when it is in trouble.

Kinds are dealt out like cards from a shuffled pack, so that even a small web has nearly every one of them.

How well a crawler behaves, as the hosts see it: requests by status, and breaches of what the host asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeVar, get_args

import numpy as np

from recrawl.errors import InvalidInput
from recrawl.lab.livingweb.chance import share, stream
from recrawl.lab.livingweb.clock import DAY_S

SitemapKind = Literal["honest", "stale", "always-now", "bulk-bumped", "undated", "none"]
FeedKind = Literal["rss", "atom", "none"]
EtagKind = Literal["true", "frozen", "restless", "none"]
ModifiedKind = Literal["true", "frozen", "always-now", "none"]
RobotsKind = Literal["allow", "deny", "crawl-delay", "missing", "failing"]
TroubleKind = Literal["calm", "too-many", "unavailable"]
GoneKind = Literal["not-found", "gone", "soft", "home"]

_ETAGS: tuple[EtagKind, ...] = ("true", "true", "true", "frozen", "restless", "none")
_MODIFIED: tuple[ModifiedKind, ...] = ("true", "true", "frozen", "always-now", "none")
_ROBOTS: tuple[RobotsKind, ...] = ("allow", "deny", "crawl-delay", "missing", "allow", "failing")
_TROUBLES: tuple[TroubleKind, ...] = ("calm", "calm", "too-many", "calm", "calm", "unavailable")
_GONE: tuple[GoneKind, ...] = ("not-found", "gone", "not-found", "soft", "home")
_SLOT_S = DAY_S / 4
_SHORTEST_PHASE_S, _LONGEST_PHASE_S = 300.0, 5400.0
_PHASE_SHARE = 0.4
_FIELD = "every_host"
_Kind = TypeVar("_Kind")


_CHOICES: dict[str, tuple[object, ...]] = {
    "sitemap": get_args(SitemapKind),
    "feed": get_args(FeedKind),
    "etag": get_args(EtagKind),
    "modified": get_args(ModifiedKind),
    "robots": get_args(RobotsKind),
    "trouble": get_args(TroubleKind),
    "gone": get_args(GoneKind),
    "hub": (True, False),
}

# A crawler keeps its delay between departures; on arrival the gap may be a little shorter.
DELAY_TOLERANCE = 0.8


@dataclass(frozen=True, slots=True)
class HostProfile:
    """One host.

    Args:
        name: its host name, without a port.
        sitemap: `stale` is written anew every three days only; `bulk-bumped` dates all pages anew every two
            days and with each redesign, although nothing changed; `undated` has no dates.
        feed: of new articles if the host has a hub, else of changed pages.
        etag: `frozen` never changes although the page does; `restless` changes with each request.
        modified: the same for `Last-Modified`; `frozen` is the birth of the page.
        robots: `deny` closes one section; `failing` answers 503 in phases.
        crawl_delay_s: of the robots rules, in seconds of the web.
        trouble: phases of 429 or of 503.
        gone: how a removed page answers: 404, 410, a page with status 200 that says so, or a redirect home.
        hub: the home page links to short-lived articles.
        max_age_s: of `Cache-Control`; None if there is none.
    """

    name: str
    sitemap: SitemapKind
    feed: FeedKind
    etag: EtagKind
    modified: ModifiedKind
    robots: RobotsKind
    crawl_delay_s: int
    trouble: TroubleKind
    gone: GoneKind
    hub: bool
    max_age_s: int | None


def check_shared(shared: Mapping[str, object]) -> None:
    """Check fields that all hosts are to share.

    Raises:
        InvalidInput: for a field that no host has, or a value that the field cannot have.
    """
    for name, value in shared.items():
        if name in ("crawl_delay_s", "max_age_s"):
            if not ((isinstance(value, int) and 0 <= value <= 86_400) or (name == "max_age_s" and value is None)):
                raise InvalidInput(f"gives {name} {value!r}, but it must be whole seconds, at most a day", field=_FIELD)
        elif name not in _CHOICES:
            known = ", ".join([*_CHOICES, "crawl_delay_s", "max_age_s"])
            raise InvalidInput(f"names {name}, which no host has; choose from {known}", field=_FIELD)
        elif value not in _CHOICES[name]:
            known = ", ".join(str(choice) for choice in _CHOICES[name])
            raise InvalidInput(f"gives {name} {value!r}, but it must be one of {known}", field=_FIELD)


def draw_hosts(count: int, seed: int, domain: str) -> list[HostProfile]:
    """Profiles of all hosts. O(hosts)."""
    random = stream(seed, "hosts")
    sitemaps = _dealt(get_args(SitemapKind), count, random)
    feeds = _dealt(get_args(FeedKind), count, random)
    etags = _dealt(_ETAGS, count, random)
    modified = _dealt(_MODIFIED, count, random)
    robots = _dealt(_ROBOTS, count, random)
    delays = _dealt((1, 2, 5, 10), count, random)
    troubles = _dealt(_TROUBLES, count, random)
    gone = _dealt(_GONE, count, random)
    hubs = _dealt((True, False, False), count, random)
    ages = _dealt((None, 60, None, 600), count, random)
    return [
        HostProfile(
            f"site-{i}.{domain}", sitemaps[i], feeds[i], etags[i], modified[i], robots[i],
            delays[i], troubles[i], gone[i], hubs[i], ages[i],
        )
        for i in range(count)
    ]  # fmt: skip


def phase_end(seed: int, host: int, at: float) -> float | None:
    """When the phase of trouble ends in which a host is at `at`; None if it is in none. O(1).

    Every six hours have a phase of 5 to 90 minutes with a chance of 40 %.
    """
    slot = int(at // _SLOT_S)
    if share(seed + 1, host, 2 * slot) >= _PHASE_SHARE:
        return None
    length = _SHORTEST_PHASE_S + share(seed + 2, host, slot) * (_LONGEST_PHASE_S - _SHORTEST_PHASE_S)
    start = slot * _SLOT_S + share(seed + 3, host, slot) * (_SLOT_S - length)
    return start + length if start <= at < start + length else None


def _dealt(kinds: tuple[_Kind, ...], count: int, random: np.random.Generator) -> list[_Kind]:
    return [kinds[place % len(kinds)] for place in random.permutation(count)]


@dataclass(slots=True)
class HostAudit:
    """What one host saw.

    Args:
        statuses: answers by status.
        denied: requests for addresses that the robots rules close.
        early: requests sooner after the last one than the crawl delay.
        pestering: requests within a phase of trouble after the host had said when to come back.
    """

    statuses: Counter[int] = field(default_factory=Counter)
    denied: int = 0
    early: int = 0
    pestering: int = 0
    last_at: float | None = None
    told_until: float = 0.0

    def note(self, profile: HostProfile, path: bytes, now: float, status: int) -> None:
        """Count one request."""
        self.statuses[status] += 1
        if path == b"/robots.txt":
            return
        if profile.robots == "deny" and path.startswith(b"/private/"):
            self.denied += 1
        delay = profile.crawl_delay_s * DELAY_TOLERANCE if profile.robots == "crawl-delay" else 0.0
        if self.last_at is not None and now - self.last_at < delay:
            self.early += 1
        if now < self.told_until:
            self.pestering += 1
        self.last_at = now

    def told(self, until: float) -> None:
        """Note that the host said to come back at this time."""
        self.told_until = until


class Audit:
    """The audits of all hosts, by number. O(hosts)."""

    def __init__(self, hosts: list[HostProfile]) -> None:
        self._profiles = hosts
        self.hosts = [HostAudit() for _ in hosts]

    def note(self, host: int, path: bytes, now: float, status: int, told_until: float | None) -> None:
        """Count one request to a host, and when the answer said to come back."""
        audit = self.hosts[host]
        audit.note(self._profiles[host], path, now, status)
        if told_until is not None:
            audit.told(told_until)

    def totals(self) -> dict[str, object]:
        """Sums over all hosts."""
        statuses: Counter[int] = Counter()
        for audit in self.hosts:
            statuses.update(audit.statuses)
        return {
            "requests": statuses.total(),
            "statuses": {str(status): count for status, count in sorted(statuses.items())},
            "denied": sum(audit.denied for audit in self.hosts),
            "early": sum(audit.early for audit in self.hosts),
            "pestering": sum(audit.pestering for audit in self.hosts),
        }
