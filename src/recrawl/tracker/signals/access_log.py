r"""Hits from access logs in the common and the combined format, as Apache and nginx write them.

    counts = LogCounts()
    for hit in read_access_log(blocks, rules, counts): ...

A hit is a GET that was answered 2xx or 304, with the canonical address, the Unix time, and how often. Addresses come
from the request, from the virtual host at the beginning of a line where the log has it, and from the site in the rules.
Every line that is no hit is counted: `skipped` by what it is (another method, another status, a robot), `refused` by
what is wrong with it. Streams of any length take bounded memory; nothing raises for any bytes.

    >>> line = b'192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] "GET /a?b=1 HTTP/1.0" 200 2326 "-" "Mozilla/5.0"'
    >>> rules = LogRules(now=1e9, site=Address.of("https", "a.example", 443, "/", False))
    >>> list(read_access_log([[line]], rules, LogCounts()))
    [Hit(url='https://a.example/a?b=1', at=971211336.0, hits=1.0)]
"""

from __future__ import annotations

import calendar
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from recrawl.errors import InvalidInput
from recrawl.tracker.signals.log_lines import LineReport
from recrawl.web.dates import believable, w3c_date
from recrawl.web.refused import Refused
from recrawl.web.url.address import DEFAULT_RULES, Address, AddressRules, read_address
from recrawl.web.url.canonical import canonical_url

_MOST_KEPT = 65_536
# Everything up to the first bracket, the time, the request, the status, and the rest. Nothing is tried twice.
_PLAIN_LINE = re.compile(
    rb"([^\[\"]*+)\[([^\]\"]{1,64}+)\] \"([A-Z]{1,20}+) ([^ \"\\\x00-\x1f]++)(?: HTTP/[0-9.]++)?\" ([0-9]{3}) (.*+)"
)
_ANY_LINE = re.compile(
    rb"([^\[\"]*+)\[([^\]\"]{1,64}+)\]\s*+\"((?:[^\"\\]|\\.)*+)\"\s++([0-9]{3})(?![0-9])(.*+)", re.DOTALL
)
_REQUEST = re.compile(r"([A-Za-z]{1,20})\s++(\S++)(?:\s++HTTP/[0-9.]++)?\s*+", re.ASCII)
_ESCAPE = re.compile(rb"\\(?:x([0-9A-Fa-f]{2})|(.))", re.DOTALL)
_CLF_TIME = re.compile(
    r"([0-9]{1,2})/([A-Za-z]{3})/([0-9]{4}):([0-9]{2}):([0-9]{2}):([0-9]{2})(?:[.,][0-9]{1,9})?"
    r"(?:\s?(?:([+-])([0-9]{2}):?([0-9]{2})|Z|UTC|GMT))?"
)
_UNIX_TIME = re.compile(r"([0-9]{9,11})(?:\.[0-9]{1,9})?|([0-9]{12,14})")
_MONTHS = {name: number for number, name in enumerate(
    ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), start=1)}  # fmt: skip
_CLIENT = re.compile(rb"[0-9A-Fa-f]*[.:][0-9A-Fa-f.:]+")
_SITE_NAME = re.compile(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::([0-9]{1,5}))?")
_ROBOT = re.compile(
    rb"(?<!cu)bot(?:\b|[/;_-])|crawl|spider|slurp|fetch|archiver|feed|rss|scrap|monitor|uptime|preview|validator|facebookexternal"
    rb"|^(?:curl|wget|python|go-http|java/|okhttp|libwww|perl|ruby|php|apache-http|axios|node|recrawl)",
    re.IGNORECASE,
)


class Hit(NamedTuple):
    """Requests for one page: its canonical address, the Unix time, how many."""

    url: str
    at: float
    hits: float


@dataclass(frozen=True, slots=True)
class LogRules:
    """How lines are read.

    Args:
        now: Unix seconds; later times, but for a day, cannot be.
        site: whose pages are meant where a log has paths only; None if it has whole addresses.
        skip_robots: whether obvious robots, by their user agent, do not count.
        addresses: which addresses may be named.
    """

    now: float
    site: Address | None = None
    skip_robots: bool = True
    addresses: AddressRules = DEFAULT_RULES


@dataclass(slots=True)
class LogCounts:
    """What became of the lines of a log.

    Args:
        lines: that were read, empty ones left out.
        hits: that were found.
        skipped: readable lines that are no hit, by `method`, `status` and `robot`.
        refused: lines that cannot be used, by `malformed`, `request`, `time`, `no-site`, `too-long`, `hits`, or
            `address-` and the rule that refuses the address.
        report: on the file as a whole.
    """

    lines: int = 0
    hits: float = 0.0
    skipped: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    report: LineReport = field(default_factory=LineReport)

    @property
    def readable(self) -> float:
        """Lines that could be read, whether they are hits or not; rows of a table count by their hits."""
        return self.hits + self.skipped.total()

    @property
    def problem(self) -> str | None:
        """One sentence on what is wrong with the file as a whole, or None."""
        return self.report.problem


def site_of(text: str, site_field: str = "host", rules: AddressRules = DEFAULT_RULES) -> Address:
    """The site that a user names, as a host with or without scheme and port; https if there is none.

    Raises:
        InvalidInput: for what can be no site.

    >>> site_of("a.example").url, site_of("http://a.example:8080/").url
    ('https://a.example/', 'http://a.example:8080/')
    """
    written = text.strip()
    address = read_address(written if "://" in written else f"https://{written}", rules)
    if isinstance(address, Refused):
        raise InvalidInput(f"cannot be used: {address.sentence}", field=site_field)
    if address.target != "/":
        raise InvalidInput(f"is {address.url}; give the host alone, such as {address.origin}", field=site_field)
    return address


class Targets:
    """Canonical addresses of the targets in a log; most targets come again and again, so answers are kept."""

    def __init__(self, rules: LogRules) -> None:
        self._origin = None if rules.site is None else rules.site.origin
        self._rules = rules.addresses
        self._known: dict[tuple[str | None, bytes], str | None] = {}

    def url(self, target: bytes, origin: str | None, counts: LogCounts) -> str | None:
        """The address of a target, given the origin of its line if that is known; None, counted, if it has none."""
        key = (origin, target)
        try:
            found = self._known[key]
        except KeyError:
            if len(self._known) >= _MOST_KEPT:
                self._known.clear()
            found = self._known[key] = self._read(target, origin or self._origin)
        if found is not None and found[0] != "!":
            return found
        counts.refused["no-site" if found is None else found[1:]] += 1
        return None

    def _read(self, target: bytes, origin: str | None) -> str | None:
        """The address, None where a site is needed, or `!` and the name of what is wrong."""
        text = target.decode("utf-8", "surrogateescape")
        if text.startswith("/"):
            if origin is None:
                return None
            text = origin + text
        elif "://" not in text[:12]:
            return "!request"
        url = canonical_url(text, self._rules)
        return f"!address-{url.rule}" if isinstance(url, Refused) else url


def read_access_log(blocks: Iterable[list[bytes]], rules: LogRules, counts: LogCounts) -> Iterator[Hit]:
    """The hits in the lines of a log. O(bytes), raises nothing for any bytes.

    Args:
        blocks: lines, as `log_lines.line_blocks` gives them with `counts.report`.
        rules: how to read them.
        counts: what became of them; complete when the last hit has been given.
    """
    targets, times, robots = Targets(rules), _Times(rules.now), _Robots()
    for lines in blocks:
        good = counts.readable
        for line in lines:
            parts = _parts(line, counts)
            if parts is None:
                continue
            before, stamp, target, rest = parts
            if rules.skip_robots and robots.is_one(rest):
                counts.skipped["robot"] += 1
                continue
            at = times.at(stamp)
            if at is None:
                counts.refused["time"] += 1
                continue
            origin = _virtual_host(before, rules.site) if before.count(b" ") > 3 else None
            url = targets.url(target, origin, counts)
            if url is not None:
                counts.hits += 1.0
                yield Hit(url, at, 1.0)
        if counts.readable > good:
            counts.report.useful()
    counts.refused.update({"too-long": counts.report.too_long} if counts.report.too_long else {})
    counts.lines += counts.report.too_long


def read_time(text: str) -> float | None:
    """Unix seconds of a time as logs write it: in the format of Apache, ISO 8601, Unix seconds or milliseconds.

    >>> read_time("10/Oct/2000:13:55:36 -0700"), read_time("2000-10-10T20:55:36Z"), read_time("971211336.000")
    (971211336.0, 971211336.0, 971211336.0)
    """
    text = text.strip()
    if len(text) > 64:
        return None
    unix = _UNIX_TIME.fullmatch(text)
    if unix is not None:
        return float(text) if unix[1] else float(text) / 1000.0
    match = _CLF_TIME.fullmatch(text)
    if match is None:
        return w3c_date(text)
    day, month, year, hour, minute, second, sign, zone_hours, zone_minutes = match.groups()
    number = _MONTHS.get(month.lower(), 0)
    if not number or not 1 <= int(day) <= calendar.monthrange(max(int(year), 1), number)[1]:
        return None
    if int(year) < 1970 or int(hour) > 23 or int(minute) > 59 or int(second) > 60:
        return None
    zone_s = 0 if sign is None else (3600 * int(zone_hours) + 60 * int(zone_minutes)) * (-1 if sign == "-" else 1)
    moment = calendar.timegm((int(year), number, int(day), int(hour), int(minute), min(int(second), 59)))
    return float(moment - zone_s)


def _parts(line: bytes, counts: LogCounts) -> tuple[bytes, bytes, bytes, bytes] | None:
    """What stands before the time, the time, the target and the rest of a line that is a hit."""
    match = _PLAIN_LINE.fullmatch(line)
    if match is not None:
        before, stamp, method, target, status, rest = match.groups()
    else:
        if not line or line.isspace():
            return None
        slow = _ANY_LINE.fullmatch(line)
        if slow is None:
            counts.lines += 1
            counts.refused["malformed"] += 1
            return None
        before, stamp, request, status, rest = slow.groups()
        asked = _REQUEST.fullmatch(_ESCAPE.sub(_unescaped, request).decode("latin-1"))
        if asked is None:
            counts.lines += 1
            counts.refused["request"] += 1
            return None
        method, target = asked[1].encode("latin-1"), asked[2].encode("latin-1")
    counts.lines += 1
    if method != b"GET":
        counts.skipped["method"] += 1
        return None
    if status[0] != 50 and status != b"304":  # 50 is the digit 2
        counts.skipped["status"] += 1
        return None
    return before, stamp, target, rest


class _Times:
    """Times of stamps; lines of a log share them."""

    def __init__(self, now: float) -> None:
        self._now = now
        self._known: dict[bytes, float | None] = {}

    def at(self, stamp: bytes) -> float | None:
        try:
            return self._known[stamp]
        except KeyError:
            if len(self._known) >= _MOST_KEPT:
                self._known.clear()
            found = believable(read_time(stamp.decode("latin-1")), self._now)
            self._known[stamp] = found
            return found


class _Robots:
    """Which user agents are robots by their own account."""

    def __init__(self) -> None:
        self._known: dict[bytes, bool] = {}

    def is_one(self, rest: bytes) -> bool:
        """By what follows the status: the size and, in the combined format, referrer and user agent in quotes."""
        if rest[-1:] != b'"':
            return False
        agent = rest[rest.rfind(b' "') + 2 : -1]
        try:
            return self._known[agent]
        except KeyError:
            if len(self._known) >= _MOST_KEPT // 16:
                self._known.clear()
            found = self._known[agent] = _ROBOT.search(agent) is not None
            return found


def _virtual_host(before: bytes, site: Address | None) -> str | None:
    """The origin that the first word of a line names, if the second is the address of a client."""
    words = before.split(b" ", 2)
    if len(words) < 3 or not _CLIENT.fullmatch(words[1]):
        return None
    name = _SITE_NAME.fullmatch(words[0].decode("latin-1"))
    if name is None:
        return None
    if site is not None and name[1].lower() == site.host:
        return site.origin
    port = name[2] or "443"
    return f"https://{name[1]}" if port == "443" else f"http://{name[1]}" + ("" if port == "80" else f":{port}")


def _unescaped(match: re.Match[bytes]) -> bytes:
    return bytes([int(match[1], 16)]) if match[1] else match[2]
