"""All settings by the names under which they are written, from what is declared with their values. Pure.

Rules of the web layer, which knows nothing of settings, have their rows here. The settings file, the flags of the
commands and docs/settings.md are made from these tables; nothing else knows a name.
"""

from __future__ import annotations

from collections.abc import Mapping

from recrawl.tracker.settings.settings import (
    YEAR_S,
    DiscoveryRules,
    GroupRule,
    HookRule,
    HostRule,
    RemovalRules,
    Retention,
    ServiceRules,
    Setting,
    Settings,
    SignalRules,
    SinkRule,
    declared,
    one_of,
    seconds,
    text,
    texts,
    whole,
    yes_or_no,
)
from recrawl.web.content.rules import LAYERS, ContentRules
from recrawl.web.fetch.retry import BackoffRules
from recrawl.web.fetch.settings import FetchLimits

PLAIN = declared(Settings)
"""Settings of one value: in the file, and as flags."""

_LIMITS = (
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
)
_CONTENT = (
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
)
_RETRY = (
    Setting("first", "first_s", seconds(0, 86_400), "wait after a failure; doubled for each more", "60s"),
    Setting("longest", "longest_s", seconds(0, YEAR_S), "wait after failures, at most", "7 days"),
)

TABLES: Mapping[str, tuple[type, tuple[Setting, ...]]] = {
    "limits": (FetchLimits, _LIMITS),
    "content": (ContentRules, _CONTENT),
    "removal": (RemovalRules, declared(RemovalRules)),
    "retry": (BackoffRules, _RETRY),
    "retention": (Retention, declared(Retention)),
    "discovery": (DiscoveryRules, declared(DiscoveryRules)),
    "signals": (SignalRules, declared(SignalRules)),
    "service": (ServiceRules, declared(ServiceRules)),
}
"""Settings in a table of the file, such as `[limits]`, and what they make."""

LISTS: Mapping[str, tuple[type, tuple[Setting, ...]]] = {
    "hosts": (HostRule, declared(HostRule)),
    "groups": (GroupRule, declared(GroupRule)),
    "sinks": (SinkRule, declared(SinkRule)),
    "hooks": (HookRule, declared(HookRule)),
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
