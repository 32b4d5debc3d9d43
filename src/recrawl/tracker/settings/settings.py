"""The settings of a tracker: each is declared here once, with its default, what reads it and what it means.

Durations are in seconds and end in `_s`; in files and flags they are written with a unit, such as `6h`. A reader takes
what TOML gave, or the text of a flag, and the name of the setting, and raises `InvalidInput` with a sentence that names
it. Pure.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args

from recrawl.errors import InvalidInput
from recrawl.tracker.clock import DAY_S
from recrawl.tracker.kinds import SINKS, check_kind
from recrawl.units import parse_budget, parse_duration_days
from recrawl.web.content.rules import DEFAULT_CONTENT_RULES, ContentRules
from recrawl.web.fetch.egress import EgressPolicy
from recrawl.web.fetch.retry import DEFAULT_BACKOFF, BackoffRules
from recrawl.web.fetch.settings import DEFAULT_LIMITS, NO_CREDENTIALS, Credentials, FetchLimits
from recrawl.web.url.address import DEFAULT_RULES, AddressRules
from recrawl.web.url.canonical import HostKey
from recrawl.web.url.traps import DiscoveryCaps

Reader = Callable[[Any, str], Any]
_BYTES = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]+)?)\s*(?P<unit>[kmgt]?i?b)\s*/\s*(?P<time>[a-z]+)", re.IGNORECASE)
YEAR_S = 366 * DAY_S
_PREFIXES = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def text(value: Any, name: str) -> str:
    """Any text without control characters."""
    if not isinstance(value, str) or not (value.isprintable() or not value):
        raise InvalidInput(f"is {value!r}, but must be text", field=name)
    return value


def one_of(*choices: str) -> Reader:
    """One of these words."""

    def read(value: Any, name: str) -> str:
        if value not in choices:
            raise InvalidInput(f"is {value!r}, but must be one of {', '.join(choices)}", field=name)
        return str(value)

    return read


def among(table: Mapping[str, object]) -> Reader:
    """One of the names of a table, as it is when a value is read."""

    def read(value: Any, name: str) -> str:
        return str(one_of(*table)(value, name))

    return read


def whole(low: int, high: int) -> Reader:
    """A whole number within bounds."""

    def read(value: Any, name: str) -> int:
        number = _number(value)
        if number is None or number != int(number) or not low <= number <= high:
            raise InvalidInput(f"is {value!r}, but must be a whole number from {low} to {high}", field=name)
        return int(number)

    return read


def number(low: float, high: float) -> Reader:
    """A number within bounds."""

    def read(value: Any, name: str) -> float:
        found = _number(value)
        if found is None or not low <= found <= high:
            raise InvalidInput(f"is {value!r}, but must be a number from {low:g} to {high:g}", field=name)
        return found

    return read


def seconds(low: float, high: float) -> Reader:
    """A duration such as `90s` or `6h`, in seconds, within bounds; 0 needs no unit."""

    def read(value: Any, name: str) -> float:
        if isinstance(value, str) and value.strip() != "0":
            try:
                found = parse_duration_days(value) * DAY_S
            except InvalidInput as error:
                raise InvalidInput(error.problem, field=name) from None
        elif isinstance(value, str) or (value == 0 and not isinstance(value, bool)):
            found = 0.0
        else:
            raise InvalidInput(f"is {value!r}, but must have a unit, such as 90s, 15min or 6h", field=name)
        found = float(f"{found:.9g}")  # 1 s is a day's 86,400th part, and back
        if not low <= found <= high:
            raise InvalidInput(f"is {value!r}, but must be from {low:g} s to {high:g} s", field=name)
        return found

    return read


def budget(value: Any, name: str) -> float:
    """Crawls a day from `2/s` or `5000/day`."""
    try:
        found = parse_budget(text(value, name))
    except InvalidInput as error:
        raise InvalidInput(error.problem, field=name) from None
    if found.crawls_per_day is None:
        raise InvalidInput(f"is {value!r}, but must be crawls in a time, such as 2/s or 5000/day", field=name)
    return found.crawls_per_day


def byte_rate(value: Any, name: str) -> float:
    """Bytes a day from `2GB/day`.

    >>> byte_rate("1.5 MB/h", "bytes")
    36000000.0
    """
    match = _BYTES.fullmatch(text(value, name).strip())
    if match is None:
        raise InvalidInput(f"is {value!r}, but must be bytes in a time, such as 2GB/day", field=name)
    unit = match["unit"].lower()
    base = 1024 if "i" in unit else 1000
    size: float = float(match["number"]) * float(base) ** float(_PREFIXES[unit.rstrip("b").rstrip("i")])
    return size * budget(f"1/{match['time']}", name)


def yes_or_no(value: Any, name: str) -> bool:
    """True or false."""
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if not isinstance(value, bool):
        raise InvalidInput(f"is {value!r}, but must be true or false", field=name)
    return value


def texts(value: Any, name: str) -> tuple[str, ...]:
    """A list of texts."""
    if not isinstance(value, list):
        raise InvalidInput(f"is {value!r}, but must be a list of texts in brackets", field=name)
    return tuple(text(each, f"{name}[{place}]") for place, each in enumerate(value))


def _number(value: Any) -> float | None:
    if isinstance(value, str):
        try:
            value = float(value) if re.fullmatch(r"[0-9.eE+-]+", value) else None
        except ValueError:
            return None
    if value is None or isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return float(value)


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


_UNSAID = object()


def setting(written: str, read: Reader, means: str, *, default: Any = _UNSAID) -> Any:
    """Declare a field of a class as a setting; its default is what is written, as it would be read.

    Args:
        written: the default as one would write it.
        read: what reads it.
        means: one sentence.
        default: the value if nothing is written, where that cannot be read.
    """
    value = read(written, means) if default is _UNSAID else default
    return field(default=value, metadata={"read": read, "means": means, "written": written})


def required(read: Reader, means: str) -> Any:
    """Declare a field of a class as a setting that must be given."""
    return field(metadata={"read": read, "means": means, "written": ""})


def declared(kind: type) -> tuple[Setting, ...]:
    """Return the settings that the fields of a class declare, under their names in a file.

    >>> from dataclasses import make_dataclass
    >>> made = make_dataclass("Made", [("hub_age_s", float, setting("3 days", seconds(0, 1e9), "of a hub"))])
    >>> made().hub_age_s, [each.name for each in declared(made)]
    (259200.0, ['hub-age'])
    """
    return tuple(
        Setting(_written_name(each.name), each.name, *(each.metadata[key] for key in ("read", "means", "written")))
        for each in fields(kind)
        if "read" in each.metadata
    )


def _written_name(field_name: str) -> str:
    """Return the name of a setting from its field: without the unit, with dashes."""
    return field_name.removesuffix("_per_day").removesuffix("_s").replace("_", "-")


@dataclass(frozen=True, slots=True)
class RemovalRules:
    """How often, and over how long, a page must be missing.

    Args:
        recheck_s: how soon a page that is missing is looked at again, at the latest.
    """

    missing_times: int = setting("3", whole(1, 100), "answers 404 until a page is removed")
    missing_over_s: float = setting("1 day", seconds(0, YEAR_S), "from the first to the last")
    gone_times: int = setting("2", whole(1, 100), "answers 410 until a page is removed")
    gone_over_s: float = setting("1h", seconds(0, YEAR_S), "from the first to the last")
    recheck_s: float = 43_200.0
    removed_probe_s: float = setting("30 days", seconds(60, YEAR_S), "looks at removed pages")

    def __post_init__(self) -> None:
        for name in ("missing_times", "gone_times"):
            if not 1 <= getattr(self, name) <= 100:
                raise InvalidInput(f"is {getattr(self, name)}, but must be from 1 to 100", field=name)


DEFAULT_REMOVAL = RemovalRules()


LISTEN = "127.0.0.1:8472"
"""Where the service listens unless told otherwise: this machine alone can reach it."""


@dataclass(frozen=True, slots=True)
class ServiceRules:
    """How the service is reached."""

    names: tuple[str, ...] = setting("", texts, "of hosts by which clients call it, beside `localhost`", default=())
    behind_tls: bool = setting("false", yes_or_no, "a proxy before it speaks TLS")
    trusted_proxies: tuple[str, ...] = setting("", texts, "addresses of proxies that say who asks", default=())


@dataclass(frozen=True, slots=True)
class HookRule:
    """Who may signal changes by a signed hook."""

    name: str = required(text, "in the address of the hook: `/hooks/NAME`")
    secret: str = required(text, "with which messages are signed; `whsec_` and Base64")


ScopeKind = Literal["host", "site", "patterns"]
"""New pages are taken from the host of a named page, from all hosts of its registered domain, or where patterns fit."""
SCOPES: tuple[ScopeKind, ...] = get_args(ScopeKind)

Found = Literal["track", "once", "none"]
"""What becomes of a page that was found: tracked from then on, fetched once, or nothing: sources are for signals."""
FOUND: tuple[Found, ...] = get_args(Found)


@dataclass(frozen=True, slots=True)
class DiscoveryRules:
    """How sites are followed."""

    scope: ScopeKind = setting("host", one_of(*SCOPES), "how far from the pages that were named")
    include: tuple[str, ...] = setting("", texts, "only addresses that one of these patterns fits", default=())
    exclude: tuple[str, ...] = setting("", texts, "no address that one of these patterns fits", default=())
    depth: int = setting("2", whole(0, 20), "links from a page that was named, at most")
    hubs: bool = setting("true", yes_or_no, "read pages for links")
    feeds: bool = setting("true", yes_or_no, "read feeds")
    sitemaps: bool = setting("true", yes_or_no, "read sitemaps")
    hub_age_s: float = setting("3 days", seconds(0, YEAR_S), "until a found page is read for links")
    most_hubs: int = setting("20", whole(0, 100_000), "pages of one host that are read for links")
    oldest_s: float | None = setting("", seconds(60, 100 * YEAR_S), "no address whose date is older", default=None)
    found: Found = setting("track", one_of(*FOUND), "what becomes of found pages")
    profit: float = setting("0.1", number(1e-6, 1e9), "requests expected of a new page, before logs say")
    fades_s: float = setting("1 day", seconds(60, 100 * YEAR_S), "until a third of its interest is left")
    min_interval_s: float = setting("60s", seconds(0, YEAR_S), "between two polls, at least")
    max_interval_s: float = setting("1 day", seconds(1, YEAR_S), "between two polls, at most")
    by_host: int = setting("100000", whole(1, 10**9), "new addresses of one host")
    by_source: int = setting("50000", whole(1, 10**9), "new addresses from one source")
    by_shape: int = setting("20000", whole(1, 10**9), "new addresses that differ in numbers only")
    by_variants: int = setting("4", whole(1, 10**9), "new addresses that hardly differ")
    by_day: int = setting("20000", whole(1, 10**9), "new addresses of one host in a day")
    idle_polls: int = setting("30", whole(1, 10**6), "polls without use until a source retires")
    idle_s: float = setting("30 days", seconds(0, 100 * YEAR_S), "and the time without use")
    audit_s: float = setting("30 days", seconds(60, 100 * YEAR_S), "looks at retired sources")
    poll_bytes: int = setting("1000000", whole(1000, 10**12), "that cost as much as a request")

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
    """Which signals are heard."""

    kinds: tuple[str, ...] = setting("", texts, "that are heard; all by default", default=())
    delay_s: float = setting("0s", seconds(0, YEAR_S), "after a crawl in which signals are dropped")
    callback: str = setting("", text, "public address of the service, for WebSub")

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
    """How a host is treated that differs from the others."""

    pattern: str = required(text, "name of a host, or `*.name`")
    min_gap_s: float | None = setting("", seconds(0, 86_400), "between two requests", default=None)
    max_in_flight: int | None = setting("", whole(1, 1000), "requests at once", default=None)


@dataclass(frozen=True, slots=True)
class GroupRule:
    """Pages that are treated alike: those whose address one of the patterns fits; the first group that fits counts.

    What is None is as the tracker, or discovery, has it. The objective `news` means that its pages are read for links
    to new pages, and nothing else; `urgency`, `life` and `window` are of `captures`.
    """

    name: str = required(text, "of the group")
    patterns: tuple[str, ...] = required(texts, "addresses with `*` for anything")
    importance: float | None = setting("1", number(0, 1e12), "of its pages", default=None)
    objective: GroupObjective | None = setting("", one_of(*get_args(GroupObjective)), "of its pages", default=None)
    min_interval_s: float | None = setting("", seconds(0, 100 * YEAR_S), "between two crawls, at least", default=None)
    max_interval_s: float | None = setting("", seconds(1, 100 * YEAR_S), "between two crawls, at most", default=None)
    hours: str = setting("", text, "hours of the day in which it is crawled, such as `22-6`")
    time_zone: str = setting("UTC", text, "of the hours, such as `Europe/Berlin`")
    urgency_s: float = setting("1 day", seconds(1, 100 * YEAR_S), "until a change is worth a third")
    life: Life = setting("append", one_of(*get_args(Life)), "of a change that is not captured")
    window_s: float = setting("1 day", seconds(1, 100 * YEAR_S), "how long it stays, for life `window`")
    discover: bool | None = setting("", yes_or_no, "follow the sites of its pages", default=None)
    found: Found | None = setting("", one_of(*FOUND), "what becomes of found pages that fit", default=None)
    learn_noise: bool | None = setting("", yes_or_no, "learn what is volatile on its pages", default=None)
    again_after_s: float | None = setting("", seconds(0, 60), "until a page is looked at again", default=None)


@dataclass(frozen=True, slots=True)
class Retention:
    """What is kept, and for how long."""

    observations_s: float = setting("90 days", seconds(60, 100 * YEAR_S), "fetches are remembered")
    versions: int = setting("1", whole(1, 10_000), "texts kept of each page")
    bodies: bool = setting("false", yes_or_no, "keep bodies of versions too")


@dataclass(frozen=True, slots=True)
class SinkRule:
    """Where events go."""

    name: str = required(text, "under which its cursor is kept")
    kind: str = required(among(SINKS), "of the sink")
    target: str = required(text, "file, `-` for standard output, or address")
    secret: str = setting("", text, "for signing; of a webhook")
    kinds: tuple[str, ...] = setting("", texts, "of events; all by default", default=())
    plain_http: bool = setting("false", yes_or_no, "let a webhook go to an `http://` target")


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything a tracker can be told."""

    store: str = setting("recrawl-data", text, "folder of the data, or `postgresql://…`")
    budget_per_day: float = setting("1/s", budget, "crawls in a time; every request counts")
    bytes_per_day: float | None = setting("", byte_rate, "bytes of bodies in a time; none by default", default=None)
    burst: float = setting("1", number(1, 1e6), "crawls that may be made at once after a pause")
    objective: TrackedObjective = setting("harmonic", one_of("harmonic", "freshness"), "what is optimised")
    contact: str = setting("", text, "address or mail of whoever runs the crawler; sent with every request")
    concurrency: int = setting("64", whole(1, 10_000), "fetches at once")
    lease_s: float = setting("300s", seconds(5, 86_400), "how long a page is leased to whoever fetches it")
    min_gap_s: float = setting("1s", seconds(0, 3600), "between two requests to one host")
    min_interval_s: float = setting("1min", seconds(0, 100 * YEAR_S), "between two crawls of a page, at least")
    max_in_flight: int = setting("1", whole(1, 1000), "requests to one host at once")
    pace_by: HostKey = setting("host", one_of("host", "domain", "origin"), "what counts as one host")
    longest_turn_s: float = setting("60s", seconds(0, 600), "wait for the turn of a host, at most")
    again_after_s: float = setting("1s", seconds(0, 60), "until a page is looked at again to know noise")
    respect_max_age: bool = setting("false", yes_or_no, "leave pages alone that servers call fresh")
    drain_s: float = setting("30s", seconds(0, 600), "given to fetches under way when the tracker stops")
    discover: bool = setting("false", yes_or_no, "follow the sites of tracked pages to new pages")
    listen: str = setting(LISTEN, text, "where API and dashboard listen, or `off`")
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
