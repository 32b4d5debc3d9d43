"""The table of settings: by which name each is written, what reads it, what it means. Pure.

The settings file, the flags of the commands and docs/settings.md are made from it; nothing else knows a name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, get_args

from recrawl.tracker.kinds import SINKS
from recrawl.tracker.settings.readers import (
    Reader,
    among,
    budget,
    byte_rate,
    number,
    one_of,
    seconds,
    text,
    texts,
    whole,
    yes_or_no,
)
from recrawl.tracker.settings.settings import (
    FOUND,
    LISTEN,
    SCOPES,
    DiscoveryRules,
    GroupObjective,
    GroupRule,
    HookRule,
    HostRule,
    Life,
    RemovalRules,
    Retention,
    ServiceRules,
    Settings,
    SignalRules,
    SinkRule,
)
from recrawl.web.backoff import BackoffRules
from recrawl.web.content_rules import LAYERS, ContentRules
from recrawl.web.fetch_limits import FetchLimits

YEAR_S = 366 * 86_400.0


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting.

    Args:
        name: as it is written.
        field: of the class it fills.
        read: what reads it.
        means: one sentence.
        written: the default as one would write it.
    """

    name: str
    field: str
    read: Reader
    means: str
    written: str


PLAIN = (
    Setting("store", "store", text, "folder of the data, or `postgresql://…`", "recrawl-data"),
    Setting("budget", "budget_per_day", budget, "crawls in a time; every request counts", "1/s"),
    Setting("bytes", "bytes_per_day", byte_rate, "bytes of bodies in a time; none by default", ""),
    Setting("burst", "burst", number(1, 1e6), "crawls that may be made at once after a pause", "1"),
    Setting("objective", "objective", one_of("harmonic", "freshness"), "what is optimised", "harmonic"),
    Setting("contact", "contact", text, "address or mail of whoever runs the crawler; sent with every request", ""),
    Setting("concurrency", "concurrency", whole(1, 10_000), "fetches at once", "64"),
    Setting("lease", "lease_s", seconds(5, 86_400), "how long a page is leased to whoever fetches it", "300s"),
    Setting("min-gap", "min_gap_s", seconds(0, 3600), "between two requests to one host", "1s"),
    Setting(
        "min-interval", "min_interval_s", seconds(0, 100 * YEAR_S), "between two crawls of a page, at least", "1min"
    ),
    Setting("max-in-flight", "max_in_flight", whole(1, 1000), "requests to one host at once", "1"),
    Setting("pace-by", "pace_by", one_of("host", "domain", "origin"), "what counts as one host", "host"),
    Setting("longest-turn", "longest_turn_s", seconds(0, 600), "wait for the turn of a host, at most", "60s"),
    Setting("again-after", "again_after_s", seconds(0, 60), "until a page is looked at again to know noise", "3s"),
    Setting("respect-max-age", "respect_max_age", yes_or_no, "leave pages alone that servers call fresh", "false"),
    Setting("drain", "drain_s", seconds(0, 600), "given to fetches under way when the tracker stops", "30s"),
    Setting("discover", "discover", yes_or_no, "follow the sites of tracked pages to new pages", "false"),
    Setting("listen", "listen", text, "where API and dashboard listen, or `off`", LISTEN),
)
"""Settings of one value: in the file, and as flags."""

TABLES: Mapping[str, tuple[type, tuple[Setting, ...]]] = {
    "limits": (
        FetchLimits,
        (
            Setting("total", "total_s", seconds(0.1, 600), "of one fetch on the network", "30s"),
            Setting("connect", "connect_s", seconds(0.1, 60), "until a connection stands", "10s"),
            Setting(
                "body-bytes",
                "most_body_bytes",
                whole(1000, 1 << 30),
                "of a page, decoded; sitemaps may have 52428800",
                "10485760",
            ),
            Setting("redirects", "most_redirects", whole(0, 20), "that are followed", "10"),
        ),
    ),
    "content": (
        ContentRules,
        (
            Setting(
                "counts",
                "counts",
                one_of(*LAYERS),
                "the digest whose change is a change; `raw` takes nothing for noise",
                "text",
            ),
            Setting("keep", "keep", texts, "CSS selectors of what is read", ""),
            Setting("drop", "drop", texts, "CSS selectors of what is left out", ""),
            Setting("keep-boilerplate", "keep_boilerplate", yes_or_no, "read navigation and footers", "false"),
            Setting("learn-noise", "learn_noise", yes_or_no, "learn what is volatile", "true"),
        ),
    ),
    "removal": (
        RemovalRules,
        (
            Setting("missing-times", "missing_times", whole(1, 100), "answers 404 until a page is removed", "3"),
            Setting("missing-over", "missing_over_s", seconds(0, YEAR_S), "from the first to the last", "1 day"),
            Setting("gone-times", "gone_times", whole(1, 100), "answers 410 until a page is removed", "2"),
            Setting("gone-over", "gone_over_s", seconds(0, YEAR_S), "from the first to the last", "1h"),
            Setting("removed-probe", "removed_probe_s", seconds(60, YEAR_S), "looks at removed pages", "30 days"),
        ),
    ),
    "retry": (
        BackoffRules,
        (
            Setting("first", "first_s", seconds(0, 86_400), "wait after a failure; doubled for each more", "60s"),
            Setting("longest", "longest_s", seconds(0, YEAR_S), "wait after failures, at most", "7 days"),
        ),
    ),
    "retention": (
        Retention,
        (
            Setting("observations", "observations_s", seconds(60, 100 * YEAR_S), "fetches are remembered", "90 days"),
            Setting("versions", "versions", whole(1, 10_000), "texts kept of each page", "1"),
            Setting("bodies", "bodies", yes_or_no, "keep bodies of versions too", "false"),
        ),
    ),
    "discovery": (
        DiscoveryRules,
        (
            Setting("scope", "scope", one_of(*SCOPES), "how far from the pages that were named", "host"),
            Setting("include", "include", texts, "only addresses that one of these patterns fits", ""),
            Setting("exclude", "exclude", texts, "no address that one of these patterns fits", ""),
            Setting("depth", "depth", whole(0, 20), "links from a page that was named, at most", "2"),
            Setting("hubs", "hubs", yes_or_no, "read pages for links", "true"),
            Setting("feeds", "feeds", yes_or_no, "read feeds", "true"),
            Setting("sitemaps", "sitemaps", yes_or_no, "read sitemaps", "true"),
            Setting("hub-age", "hub_age_s", seconds(0, YEAR_S), "until a found page is read for links", "3 days"),
            Setting("most-hubs", "most_hubs", whole(0, 100_000), "pages of one host that are read for links", "20"),
            Setting("oldest", "oldest_s", seconds(60, 100 * YEAR_S), "no address whose date is older", ""),
            Setting("found", "found", one_of(*FOUND), "what becomes of found pages", "track"),
            Setting("profit", "profit", number(1e-6, 1e9), "requests expected of a new page, before logs say", "0.1"),
            Setting("fades", "fades_s", seconds(60, 100 * YEAR_S), "until a third of its interest is left", "1 day"),
            Setting("min-interval", "min_interval_s", seconds(0, YEAR_S), "between two polls, at least", "60s"),
            Setting("max-interval", "max_interval_s", seconds(1, YEAR_S), "between two polls, at most", "1 day"),
            Setting("by-host", "by_host", whole(1, 10**9), "new addresses of one host", "100000"),
            Setting("by-source", "by_source", whole(1, 10**9), "new addresses from one source", "50000"),
            Setting("by-shape", "by_shape", whole(1, 10**9), "new addresses that differ in numbers only", "20000"),
            Setting("by-variants", "by_variants", whole(1, 10**9), "new addresses that hardly differ", "4"),
            Setting("by-day", "by_day", whole(1, 10**9), "new addresses of one host in a day", "20000"),
            Setting("idle-polls", "idle_polls", whole(1, 10**6), "polls without use until a source retires", "30"),
            Setting("idle", "idle_s", seconds(0, 100 * YEAR_S), "and the time without use", "30 days"),
            Setting("audit", "audit_s", seconds(60, 100 * YEAR_S), "looks at retired sources", "30 days"),
            Setting("poll-bytes", "poll_bytes", whole(1000, 10**12), "that cost as much as a request", "1000000"),
        ),
    ),
    "signals": (
        SignalRules,
        (
            Setting("kinds", "kinds", texts, "that are heard; all by default", ""),
            Setting("delay", "delay_s", seconds(0, YEAR_S), "after a crawl in which signals are dropped", "0s"),
            Setting("callback", "callback", text, "public address of the service, for WebSub", ""),
        ),
    ),
    "service": (
        ServiceRules,
        (
            Setting("names", "names", texts, "of hosts by which clients call it, beside `localhost`", ""),
            Setting("behind-tls", "behind_tls", yes_or_no, "a proxy before it speaks TLS", "false"),
            Setting("trusted-proxies", "trusted_proxies", texts, "addresses of proxies that say who asks", ""),
        ),
    ),
}
"""Settings in a table of the file, such as `[limits]`, and what they make."""

LISTS: Mapping[str, tuple[type, tuple[Setting, ...]]] = {
    "hosts": (
        HostRule,
        (
            Setting("pattern", "pattern", text, "name of a host, or `*.name`", ""),
            Setting("min-gap", "min_gap_s", seconds(0, 86_400), "between two requests", ""),
            Setting("max-in-flight", "max_in_flight", whole(1, 1000), "requests at once", ""),
        ),
    ),
    "groups": (
        GroupRule,
        (
            Setting("name", "name", text, "of the group", ""),
            Setting("patterns", "patterns", texts, "addresses with `*` for anything", ""),
            Setting("importance", "importance", number(0, 1e12), "of its pages", "1"),
            Setting("objective", "objective", one_of(*get_args(GroupObjective)), "of its pages", ""),
            Setting("min-interval", "min_interval_s", seconds(0, 100 * YEAR_S), "between two crawls, at least", ""),
            Setting("max-interval", "max_interval_s", seconds(1, 100 * YEAR_S), "between two crawls, at most", ""),
            Setting("hours", "hours", text, "hours of the day in which it is crawled, such as `22-6`", ""),
            Setting("time-zone", "time_zone", text, "of the hours, such as `Europe/Berlin`", "UTC"),
            Setting("urgency", "urgency_s", seconds(1, 100 * YEAR_S), "until a change is worth a third", "1 day"),
            Setting("life", "life", one_of(*get_args(Life)), "of a change that is not captured", "append"),
            Setting("window", "window_s", seconds(1, 100 * YEAR_S), "how long it stays, for life `window`", "1 day"),
            Setting("discover", "discover", yes_or_no, "follow the sites of its pages", ""),
            Setting("found", "found", one_of(*FOUND), "what becomes of found pages that fit", ""),
        ),
    ),
    "sinks": (
        SinkRule,
        (
            Setting("name", "name", text, "under which its cursor is kept", ""),
            Setting("kind", "kind", among(SINKS), "of the sink", ""),
            Setting("target", "target", text, "file, `-` for standard output, or address", ""),
            Setting("secret", "secret", text, "for signing; of a webhook", ""),
            Setting("kinds", "kinds", texts, "of events; all by default", ""),
            Setting("plain-http", "plain_http", yes_or_no, "let a webhook go to an `http://` target", "false"),
        ),
    ),
    "hooks": (
        HookRule,
        (
            Setting("name", "name", text, "in the address of the hook: `/hooks/NAME`", ""),
            Setting("secret", "secret", text, "with which messages are signed; `whsec_` and Base64", ""),
        ),
    ),
}
"""Settings that may be given any number of times, such as `[[groups]]`."""

NETWORK = (
    Setting("ports", "ports", text, "that may be reached on the public internet", "[80, 443]"),
    Setting("allow", "allow", text, 'networks opened by name, such as `{lab = "10.1.0.0/16:8080"}`', ""),
    Setting("resolve", "resolve", text, "names and the address they stand for", ""),
    Setting("own-hosts", "own_hosts", text, "names of this crawler's own service, never crawled", ""),
    Setting("local-names", "local_names", texts, "hosts of a local network to crawl, such as `wiki` or `*.lan`", ""),
    Setting("unverified-tls", "unverified_tls", texts, "origins whose certificate is not checked", ""),
)
"""Of `[network]`: the first four are read together into the policy of the gate."""

OTHERS = {"headers": 'headers by origin, such as `[headers."https://example.com"]`', "opted-out": "hosts left alone"}


def names(settings: tuple[Setting, ...]) -> list[str]:
    """The names of settings."""
    return [each.name for each in settings]


def check_table() -> None:
    """Every setting fills a field that exists; called by the tests."""
    known = {each.name for each in fields(Settings)}
    assert {each.field for each in PLAIN} <= known, "a plain setting fills no field"
    for kind, settings in (*TABLES.values(), *LISTS.values()):
        filled: Any = {each.name for each in fields(kind)}
        assert {each.field for each in settings} <= filled, f"a setting fills no field of {kind.__name__}"
