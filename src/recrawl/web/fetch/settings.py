"""What a fetch may cost, and what every fetch carries."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import lru_cache

from recrawl.errors import InvalidInput
from recrawl.web.fetch.codecs import ACCEPT_ENCODING
from recrawl.web.fetch.credentials import NO_CREDENTIALS, Credentials, HeaderPairs
from recrawl.web.fetch.decoding import DecodingLimits
from recrawl.web.fetch.egress import EgressPolicy, check_target
from recrawl.web.fetch.user_agent import UserAgent
from recrawl.web.refused import Refused
from recrawl.web.robots.entry import MAX_REDIRECTS as MAX_ROBOTS_REDIRECTS
from recrawl.web.url.address import DEFAULT_RULES, Address, AddressRules
from recrawl.web.url.hostname import plain_name

_MOST_ROBOTS_BYTES = 500 * 1024
_MOST_SITEMAP_BYTES = 50 << 20
_ORIGINS_REMEMBERED = 4096
ACCEPT_PAGE = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.5"


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """Hard bounds of one fetch.

    Args:
        total_s: seconds on the network, all hops together; the wait for a turn does not count.
        connect_s: seconds for name look-up, connection and TLS handshake of one hop.
        most_body_bytes: decoded bytes of a page, and, give or take 64 KiB, bytes on the wire.
        most_error_body_bytes: decoded bytes that are read of an error page.
        most_codings: content codings in a chain.
        most_expansion: decoded bytes for each byte of the wire, counted from 1 MiB on.
        most_redirects: hops that are followed.
        most_headers: header lines of a response.
        longest_line_bytes: of the status line and of a header line.
    """

    total_s: float = 30.0
    connect_s: float = 10.0
    most_body_bytes: int = 10 << 20
    most_error_body_bytes: int = 64 << 10
    most_codings: int = 2
    most_expansion: float = 250.0
    most_redirects: int = 10
    most_headers: int = 128
    longest_line_bytes: int = 8190

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value = getattr(self, name)
            low, high = _BOUNDS[name]
            if not (math.isfinite(value) and low <= value <= high):
                raise InvalidInput(f"is {value}, but must be from {low:g} to {high:g}", field=name)

    def decoding(self, *, is_error: bool) -> DecodingLimits:
        """The bounds of one body."""
        most_bytes = min(self.most_error_body_bytes, self.most_body_bytes) if is_error else self.most_body_bytes
        return _decoding_limits(most_bytes, self.most_codings, self.most_expansion)


@lru_cache(maxsize=64)
def _decoding_limits(most_bytes: int, most_codings: int, most_expansion: float) -> DecodingLimits:
    return DecodingLimits(most_bytes, most_codings, most_expansion)


_BOUNDS: dict[str, tuple[float, float]] = {
    "total_s": (0.001, 3600.0),
    "connect_s": (0.001, 600.0),
    "most_body_bytes": (0, 1 << 30),
    "most_error_body_bytes": (0, 1 << 24),
    "most_codings": (0, 4),
    "most_expansion": (1.0, 1e6),
    "most_redirects": (0, 20),
    "most_headers": (1, 1000),
    "longest_line_bytes": (256, 1 << 20),
}

DEFAULT_LIMITS = FetchLimits()


def robots_limits(limits: FetchLimits) -> FetchLimits:
    """The bounds of a robots.txt: five redirects and the first 500 KiB (RFC 9309, 2.3.1.2 and 2.5)."""
    most_bytes = min(limits.most_body_bytes, _MOST_ROBOTS_BYTES)
    return replace(limits, most_redirects=min(limits.most_redirects, MAX_ROBOTS_REDIRECTS), most_body_bytes=most_bytes)


def sitemap_limits(limits: FetchLimits) -> FetchLimits:
    """The bounds of a sitemap: 52,428,800 bytes as sitemaps.org has it; lists of addresses compress well."""
    return replace(limits, most_body_bytes=_MOST_SITEMAP_BYTES, most_expansion=1000.0)


@dataclass(frozen=True, slots=True)
class FetchSettings:
    """What every fetch carries.

    Args:
        user_agent: the honest name with a contact.
        limits: hard bounds.
        egress: what may be dialled.
        address_rules: which addresses a redirect may name.
        credentials: headers by origin.
        opted_out: host names whose owners asked not to be crawled, in any spelling; `*.name` for all below.
        honour_noindex: whether a page with `X-Robots-Tag: noindex` is left unread.
        accept: the Accept header.
        unverified_tls: origins whose certificate is not checked, each named by the user.
    """

    user_agent: UserAgent
    limits: FetchLimits = DEFAULT_LIMITS
    egress: EgressPolicy = field(default_factory=EgressPolicy)
    address_rules: AddressRules = DEFAULT_RULES
    credentials: Credentials = NO_CREDENTIALS
    opted_out: frozenset[str] = frozenset()
    honour_noindex: bool = True
    accept: str = ACCEPT_PAGE
    unverified_tls: frozenset[str] = frozenset()
    own_headers: HeaderPairs = field(init=False, repr=False, compare=False)
    open_origins: dict[str, bool] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        plain = (
            ("User-Agent", self.user_agent.header),
            ("Accept", self.accept),
            ("Accept-Encoding", ACCEPT_ENCODING),
        )
        object.__setattr__(self, "own_headers", plain)
        object.__setattr__(self, "opted_out", frozenset(plain_name(name, "opted_out") for name in self.opted_out))

    def may_ask(self, address: Address) -> bool:
        """The early check of the gate, which looks at nothing but the origin and is remembered for the last 4,096."""
        origin = address.origin
        known = self.open_origins.get(origin)
        if known is None:
            if len(self.open_origins) >= _ORIGINS_REMEMBERED:
                self.open_origins.clear()
            known = not isinstance(check_target(address, self.egress), Refused)
            self.open_origins[origin] = known
        return known
