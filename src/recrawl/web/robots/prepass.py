"""What must happen to a robots.txt before a parser sees it (RFC 9309).

The bytes are cut at 500 KiB, decoded whatever they are, and split at CR and LF alone. Then the group for this
crawler is picked here: lines that are no rules (crawl-delay, unknown ones) do not end a run of user-agent lines,
groups for the same crawler are joined, and a product token is compared whole and without case. What is left are the
rules that hold for us, the delay, and the sitemaps.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, field

MOST_BYTES = 500 * 1024
LONGEST_DELAY_S = 30.0
_MOST_SITEMAPS = 500
_LINE_ENDS = re.compile(r"\r\n|\r|\n")
# Many files lack the colon; these names cannot be mistaken without it.
_WITHOUT_COLON = frozenset({"user-agent", "allow", "disallow", "crawl-delay", "sitemap"})
_TOKEN = re.compile(r"[A-Za-z_-]*")
_DELAY = re.compile(r"[0-9]{1,400}(?:\.[0-9]{0,20})?(?:[eE]\+?[0-9]{1,3})?")

_AGENT = frozenset({"user-agent", "useragent", "user agent"})
_RULES = {"allow": "Allow", "disallow": "Disallow", "dissallow": "Disallow", "dissalow": "Disallow",
          "disalow": "Disallow", "diasllow": "Disallow", "disallaw": "Disallow"}  # fmt: skip
_DELAY_KEYS = frozenset({"crawl-delay", "crawl delay", "crawldelay"})
_SITEMAP = frozenset({"sitemap", "sitemaps", "site-map"})
_KNOWN = _AGENT | _RULES.keys() | _DELAY_KEYS | _SITEMAP


@dataclass(frozen=True, slots=True)
class Prepared:
    """The part of a robots.txt that holds for one crawler.

    Args:
        rules: `Allow` and `Disallow` lines of its group, in order.
        crawl_delay_s: seconds between requests that the site asks for, 0 to 30, or None.
        delay_clamped: whether the site asked for more than 30 seconds.
        sitemaps: values of the sitemap lines, unchecked, at most 500.
        cut: whether the file was longer than 500 KiB.
    """

    rules: tuple[str, ...]
    crawl_delay_s: float | None
    delay_clamped: bool
    sitemaps: tuple[str, ...]
    cut: bool


def prepare(body: bytes, token: str) -> Prepared:
    r"""The lines of a robots.txt that hold for the crawler `token`. O(length of the first 500 KiB).

    >>> prepare(b"User-agent: recrawl\nCrawl-delay: 2\nUser-agent: other\nDisallow: /x", "recrawl").rules
    ('Disallow: /x',)
    """
    text, cut = _decoded(body)
    reader = _Reader(token.lower())
    for line in _LINE_ENDS.split(text):
        reader.read(*_directive(line))
    chosen = reader.own if reader.found_own else reader.everyone
    delay_s = None if chosen.delay_s is None else min(chosen.delay_s, LONGEST_DELAY_S)
    return Prepared(tuple(chosen.rules), delay_s, delay_s != chosen.delay_s, tuple(reader.sitemaps), cut)


@dataclass(slots=True)
class _Group:
    rules: list[str] = field(default_factory=list)
    delay_s: float | None = None


@dataclass(slots=True)
class _Reader:
    """The groups for this crawler and for everyone, line by line.

    A run of user-agent lines lasts until the first rule; a delay inside it holds for every agent of the run.
    """

    token: str
    own: _Group = field(default_factory=_Group)
    everyone: _Group = field(default_factory=_Group)
    found_own: bool = False
    sitemaps: list[str] = field(default_factory=list)
    _current: list[_Group] = field(default_factory=list)
    _run_delay_s: float | None = None
    _in_run: bool = False

    def read(self, key: str, value: str) -> None:
        if key in _AGENT:
            self._agent(_agent(value))
        elif key in _RULES:
            self._in_run = False
            for group in self._current:
                group.rules.append(f"{_RULES[key]}: {value}")
        elif key in _DELAY_KEYS:
            self._delay(_seconds(value))
        elif key in _SITEMAP and value and len(self.sitemaps) < _MOST_SITEMAPS:
            self.sitemaps.append(value)

    def _agent(self, agent: str) -> None:
        if not self._in_run:
            self._current, self._run_delay_s, self._in_run = [], None, True
        group = self.own if agent == self.token else self.everyone if agent == "*" else None
        self.found_own = self.found_own or group is self.own
        if group is not None and not any(group is other for other in self._current):
            self._current.append(group)
            group.delay_s = _longer(group.delay_s, self._run_delay_s)

    def _delay(self, seconds: float | None) -> None:
        self._run_delay_s = _longer(self._run_delay_s, seconds)
        for group in self._current:
            group.delay_s = _longer(group.delay_s, seconds)


def _decoded(body: bytes) -> tuple[str, bool]:
    cut = len(body) > MOST_BYTES
    if cut:
        # Half a line could forbid or allow more than the whole one.
        body = body[: max(body.rfind(b"\n", 0, MOST_BYTES), body.rfind(b"\r", 0, MOST_BYTES)) + 1]
    for mark, encoding in (
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
    ):
        if body.startswith(mark):
            return body[len(mark) :].decode(encoding, "replace"), cut
    return body.decode("utf-8", "replace").replace("\0", ""), cut


def _directive(line: str) -> tuple[str, str]:
    """Name and value of a line, by plain string functions: no line can make this slow."""
    line = line.partition("#")[0].strip()
    name, colon, value = line.partition(":")
    if colon:
        key = name.strip().lower()
        if key in _KNOWN:
            return key, value.strip()
    key, _, value = line.partition(" ")
    return (key.lower(), value.strip()) if key.lower() in _WITHOUT_COLON else ("", "")


def _agent(value: str) -> str:
    """The product token of a user-agent line: what stands before a version or a blank; `*` for everyone."""
    if value.startswith("*") and (len(value) == 1 or value[1].isspace()):
        return "*"
    match = _TOKEN.match(value)
    return "" if match is None else match[0].lower()


def _seconds(value: str) -> float | None:
    match = _DELAY.fullmatch(value)
    return None if match is None else float(value)


def _longer(one: float | None, other: float | None) -> float | None:
    return other if one is None else one if other is None else max(one, other)
