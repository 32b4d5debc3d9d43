"""What discovery is told: how far it may go, how much it may take, what is expected of what it finds. Pure values.

`settings_table.py` says how each is written; docs/discovery.md what follows from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from recrawl.errors import InvalidInput
from recrawl.tracker.clock import DAY_S
from recrawl.tracker.hearing.kinds import check_kind
from recrawl.web.crawl_caps import DEFAULT_CAPS, DiscoveryCaps

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
