r"""Read a robots.txt and match its rules (RFC 9309).

    file = parse_robots(body, "recrawl")            the rules, the delay and the sitemaps for one crawler
    allows("\n".join(file.rules), "/path?query")    whether these rules let a path through

The bytes are cut at 500 KiB, decoded without errors, and split at CR and LF alone. Lines that are no rules
(crawl-delay, unknown ones) do not end a run of user-agent lines, groups for the same crawler are joined, and a product
token is compared whole and without case. Of the rules that match, the longest pattern decides; a tie goes to `Allow`.
"""

from __future__ import annotations

import codecs
import re
from collections import OrderedDict
from dataclasses import dataclass, field
from threading import Lock
from typing import NamedTuple
from urllib.parse import quote

MAX_BYTES = 500 * 1024
MAX_DELAY_S = 30.0
MAX_PARSED_CHARACTERS = 4 << 20
_MAX_SITEMAPS = 500
_LINE_ENDS = re.compile(r"\r\n|\r|\n")
# Many files lack the colon; these names cannot be mistaken without it.
_WITHOUT_COLON = frozenset({"user-agent", "allow", "disallow", "crawl-delay", "sitemap"})
_TOKEN = re.compile(r"[A-Za-z_-]*")
_DELAY = re.compile(r"[0-9]{1,400}(?:\.[0-9]{0,20})?(?:[eE]\+?[0-9]{1,3})?")
_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))

_AGENT = frozenset({"user-agent", "useragent", "user agent"})
_RULES = {"allow": "Allow", "disallow": "Disallow", "dissallow": "Disallow", "dissalow": "Disallow",
          "disalow": "Disallow", "diasllow": "Disallow", "disallaw": "Disallow"}  # fmt: skip
_DELAY_KEYS = frozenset({"crawl-delay", "crawl delay", "crawldelay"})
_SITEMAP = frozenset({"sitemap", "sitemaps", "site-map"})
_KNOWN = _AGENT | _RULES.keys() | _DELAY_KEYS | _SITEMAP

# Nothing to escape or to decode: most paths and most patterns.
_PLAIN = re.compile(r"[A-Za-z0-9_.~/=-]*")
_ESCAPES = re.compile(rb"(?:%[0-9A-Fa-f]{2})+")
_INDEX = "index.html"


@dataclass(frozen=True, slots=True)
class RobotsFile:
    """The part of a robots.txt that holds for one crawler.

    Args:
        rules: `Allow` and `Disallow` lines of its group, in order.
        crawl_delay_s: seconds between requests that the site asks for, 0 to 30, or None.
        sitemaps: values of the sitemap lines, unchecked, at most 500.
    """

    rules: tuple[str, ...]
    crawl_delay_s: float | None
    sitemaps: tuple[str, ...]


def parse_robots(body: bytes, token: str) -> RobotsFile:
    r"""Return the lines of a robots.txt that hold for the crawler `token`. O(length of the first 500 KiB).

    >>> parse_robots(b"User-agent: recrawl\nCrawl-delay: 2\nUser-agent: other\nDisallow: /x", "recrawl").rules
    ('Disallow: /x',)
    """
    reader = _Reader(token.lower())
    for line in _LINE_ENDS.split(_decoded(body)):
        reader.read(*_directive(line))
    chosen = reader.own if reader.found_own else reader.everyone
    delay_s = None if chosen.delay_s is None else min(chosen.delay_s, MAX_DELAY_S)
    return RobotsFile(tuple(chosen.rules), delay_s, tuple(reader.sitemaps))


def allows(rules: str, target: str) -> bool:
    r"""Whether rules let a path and query through. O(rules), and O(length of the text) the first time.

    >>> allows("Disallow: /a\nAllow: /a/b", "/a/b/c"), allows("Disallow: /a", "/a/b/c")
    (True, False)
    """
    return parsed_rules.allows(rules, target)


class ParsedRules:
    """Parsed rules by their text; the least recently used are forgotten first.

    Hosts keep their rules as text, which is small. Hosts with the same robots.txt share the parsed form.

    Args:
        max_characters: text of all rules that are kept parsed; one longer file is kept alone.
    """

    def __init__(self, max_characters: int = MAX_PARSED_CHARACTERS) -> None:
        self._max_characters = max_characters
        self._parsed: OrderedDict[str, _Rules] = OrderedDict()
        self._lock = Lock()
        self.characters = 0

    def __len__(self) -> int:
        return len(self._parsed)

    def allows(self, text: str, target: str) -> bool:
        """Whether the rules in a text let a path and query through."""
        with self._lock:
            rules = self._parsed.get(text)
            if rules is None:
                rules = self._parsed[text] = _compiled(text)
                self.characters += len(text)
                while self.characters > self._max_characters and len(self._parsed) > 1:
                    self.characters -= len(self._parsed.popitem(last=False)[0])
            else:
                self._parsed.move_to_end(text)
        target = _normal(target)
        if not target.startswith(rules.starts):
            return True
        return next((rule.allow for rule in rules.ordered if rule.matches(target)), True)


parsed_rules = ParsedRules()


class _Rule(NamedTuple):
    """One pattern, cut at its stars."""

    allow: bool
    length: int
    parts: tuple[str, ...]
    to_end: bool

    def matches(self, target: str) -> bool:
        """Whether the pattern matches a normal target. O(length of the target) for each star."""
        parts = self.parts
        if not target.startswith(parts[0]):
            return False
        at = len(parts[0])
        if len(parts) == 1:
            return not self.to_end or len(target) == at
        for part in parts[1:-1]:
            found = target.find(part, at)
            if found < 0:
                return False
            at = found + len(part)
        if self.to_end:
            return target.endswith(parts[-1]) and len(target) - len(parts[-1]) >= at
        return target.find(parts[-1], at) >= 0


class _Rules(NamedTuple):
    """Rules in the order in which they decide, and what a target must begin with for one of them to match."""

    ordered: tuple[_Rule, ...]
    starts: tuple[str, ...]


def _compiled(text: str) -> _Rules:
    rules: set[_Rule] = set()
    for line in text.split("\n"):
        verb, _, value = line.partition(":")
        pattern = value.strip()
        if pattern:
            rules.update(_variants(verb == "Allow", pattern))
    ordered = sorted(rules, key=lambda rule: (-rule.length, not rule.allow))
    return _Rules(tuple(ordered), tuple({rule.parts[0] for rule in ordered}))


def _variants(allow: bool, pattern: str) -> set[_Rule]:
    """The rules that one line stands for: a final `$` may be meant as a character, `/index.html` as its folder."""
    if pattern.startswith(("http://", "https://")):  # matches a path that holds such an address
        pattern = "/" + pattern
    written = pattern.removesuffix("$")
    rules = {_rule(allow, _normal(written, wild=True), to_end=written != pattern)}
    if written != pattern:
        rules.add(_rule(allow, _normal(pattern, wild=True), to_end=False))
    elif allow and pattern.endswith("/" + _INDEX):
        rules.add(_rule(allow, _normal(pattern.removesuffix(_INDEX), wild=True), to_end=True))
    return rules


def _rule(allow: bool, pattern: str, *, to_end: bool) -> _Rule:
    return _Rule(allow, len(pattern) + to_end, tuple(re.sub(r"\*+", "*", pattern).split("*")), to_end)


def _normal(text: str, *, wild: bool = False) -> str:
    """One spelling of a path or pattern: each character escaped, but for unreserved ones, `/`, `=` and broken escapes.

    An escaped `/` or `%` stays another character than the plain one; so does an escaped `*` in a pattern.
    """
    if _PLAIN.fullmatch(text):
        return text
    kept = b"/%*" if wild else b"/%"

    def decoded(match: re.Match[bytes]) -> bytes:
        return b"".join(_character(match[0][at : at + 3], kept) for at in range(0, len(match[0]), 3))

    plain = _ESCAPES.sub(decoded, text.encode("utf-8", "replace")).decode("utf-8", "replace")
    return quote(plain, safe="/%=*" if wild else "/%=")


def _character(escape: bytes, kept: bytes) -> bytes:
    character = bytes.fromhex(escape[1:].decode())
    return escape.upper() if character in kept else character


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
            self._delay(float(value) if _DELAY.fullmatch(value) else None)
        elif key in _SITEMAP and value and len(self.sitemaps) < _MAX_SITEMAPS:
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


def _decoded(body: bytes) -> str:
    if len(body) > MAX_BYTES:
        # Half a line could forbid or allow more than the whole one.
        body = body[: max(body.rfind(b"\n", 0, MAX_BYTES), body.rfind(b"\r", 0, MAX_BYTES)) + 1]
    for mark, encoding in _MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(encoding, "replace")
    return body.decode("utf-8", "replace").replace("\0", "")


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


def _longer(one: float | None, other: float | None) -> float | None:
    return other if one is None else one if other is None else max(one, other)
