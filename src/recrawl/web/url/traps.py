"""Traps for crawlers: their signs in one address, and caps on newly found addresses.

Calendars, session paths and relative links that climb into themselves make addresses without end. Some show in one
address: endless depth, segments that repeat. Others show only in many: offer each address that is new, in canonical
form, with the page, feed or sitemap that named it; a refusal names the cap, and `refused` counts them by rule, for
reports. Memory grows with the addresses that are taken, never with those that are refused.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

import xxhash

from recrawl.errors import InvalidInput
from recrawl.web.refused import Refused, safe_text
from recrawl.web.url.address import Address

MAX_DEPTH = 20
MAX_REPEATS = 2
MAX_PARAMETERS = 20
_DIGIT = re.compile(r"[0-9]")


def trap_sign(address: Address) -> Refused | None:
    """The sign of a trap in an address, or None. O(length).

    >>> from recrawl.web.url.address import read_address
    >>> trap_sign(read_address("http://example.com/a/b/a/b/a/b")).rule
    'repeated-segment'
    """
    path, _, query = address.target.partition("?")
    segments = [segment for segment in path.split("/") if segment]
    if len(segments) > MAX_DEPTH:
        return Refused("deep-path", safe_text(address.url), f"its path has more than {MAX_DEPTH} segments")
    if any(count > MAX_REPEATS for count in Counter(segments).values()):
        return Refused("repeated-segment", safe_text(address.url), f"a segment stands more than {MAX_REPEATS} times")
    if query.count("&") >= MAX_PARAMETERS:
        return Refused("many-parameters", safe_text(address.url), f"it has more than {MAX_PARAMETERS} parameters")
    return None


@dataclass(frozen=True, slots=True)
class DiscoveryCaps:
    """How many new addresses are taken.

    Args:
        by_host: of one host.
        by_source: named by one page, feed or sitemap.
        by_shape: of one host and one shape: paths that differ only in parts with digits, queries only in values.
        by_variants: that differ only in upper and lower case and in the order of the query.
    """

    by_host: int = 100_000
    by_source: int = 50_000
    by_shape: int = 20_000
    by_variants: int = 4

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if getattr(self, name) < 1:
                raise InvalidInput(f"is {getattr(self, name)}, but must be at least 1", field=name)


DEFAULT_CAPS = DiscoveryCaps()


@dataclass(slots=True)
class Discovered:
    """The new addresses that were taken so far, as counts.

    >>> from recrawl.web.url.address import read_address
    >>> found = Discovered(DiscoveryCaps(by_variants=1))
    >>> [found.offer(read_address(f"http://example.com/{path}"), "home") is None for path in ("a", "b", "A")]
    [True, True, False]
    """

    caps: DiscoveryCaps = DEFAULT_CAPS
    refused: Counter[str] = field(default_factory=Counter)
    _taken: Counter[int] = field(default_factory=Counter)

    def offer(self, address: Address, source: str) -> Refused | None:
        """Take a new address, or say which rule refuses it. O(length)."""
        sign = trap_sign(address) or self._full(address, source)
        if sign is not None:
            self.refused[sign.rule] += 1
        return sign

    def _full(self, address: Address, source: str) -> Refused | None:
        counted = (
            ("host-cap", self.caps.by_host, _key("host", address.host), "of this host"),
            ("source-cap", self.caps.by_source, _key("source", source), "from one source"),
            ("shape-cap", self.caps.by_shape, _key("shape", address.host, shape_of(address)), "of this shape"),
            ("variants-cap", self.caps.by_variants, _key("one", address.host, _folded(address)), "that hardly differ"),
        )
        for rule, most, key, which in counted:
            if self._taken[key] >= most:  # reading a counter adds nothing to it
                return Refused(rule, safe_text(address.url), f"{most} addresses {which} are known already")
        self._taken.update(key for _, _, key, _ in counted)
        return None


def shape_of(address: Address) -> str:
    """An address without what its pages number: parts of the path with a digit, and values of the query.

    >>> from recrawl.web.url.address import read_address
    >>> shape_of(read_address("http://example.com/Cal/2024-05/day?y=1&x=2"))
    '/cal/#/day?x&y'
    """
    path, _, query = address.target.lower().partition("?")
    names = sorted(pair.partition("=")[0] for pair in query.split("&")) if query else []
    plain = "/".join("#" if _DIGIT.search(part) else part for part in path.split("/"))
    return plain + ("?" + "&".join(names) if names else "")


def _folded(address: Address) -> str:
    path, _, query = address.target.lower().partition("?")
    return path + "?" + "&".join(sorted(query.split("&")))


def _key(*parts: str) -> int:
    """A number in place of the text, which may be long; that two texts share one is too rare to matter here."""
    return xxhash.xxh3_64_intdigest("\0".join(parts).encode())
