"""What a fetch may cost, and what every fetch carries: limits, the honest name, credentials, shared memory.

An origin is scheme, host and port. Headers of `https://example.com` go with requests to exactly that origin, and only
as long as a fetch has not left it: after the first hop to another scheme, host or port nothing is sent any more, not
even on the way back or to an origin that has headers of its own, since the way there was chosen by somebody else.

    >>> read_credentials({"https://example.com": {"Authorization": "Bearer secret"}})
    Credentials(origins=('https://example.com',))
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from recrawl.errors import InvalidInput
from recrawl.version import __version__
from recrawl.web.fetch.decoding import ACCEPT_ENCODING, DecodingLimits
from recrawl.web.fetch.egress import EgressPolicy
from recrawl.web.refused import Refused
from recrawl.web.robots.entry import MAX_REDIRECTS as MAX_ROBOTS_REDIRECTS
from recrawl.web.url.address import DEFAULT_RULES, Address, AddressRules, address_or_raise, read_address
from recrawl.web.url.hostname import plain_name

PRODUCT = "recrawl"
_PRODUCT = re.compile(r"[A-Za-z_-]{1,40}")
_VERSION = re.compile(r"[0-9A-Za-z.+_-]{1,40}")
_MAIL = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63})+")


@dataclass(frozen=True, slots=True)
class UserAgent:
    """What the crawler calls itself.

    Args:
        header: the User-Agent line sent with every request.
        token: the product token that robots.txt groups are matched with (RFC 9309, 2.2.1).
    """

    header: str
    token: str


def user_agent(contact: str, *, product: str = PRODUCT, version: str = __version__) -> UserAgent:
    """The user agent with a way to reach its operator: a page about the crawler, or a mail address.

    Raises:
        InvalidInput: without a contact, or for a name that robots.txt could not address.

    >>> user_agent("https://example.org/bot", version="1.2").header
    'recrawl/1.2 (+https://example.org/bot)'
    >>> user_agent("crawl@example.org", version="1.2").header
    'recrawl/1.2 (+mailto:crawl@example.org)'
    """
    if not _PRODUCT.fullmatch(product):
        raise InvalidInput(f"is {product!r}, but must be letters, hyphens and underscores, at most 40", field="product")
    if not _VERSION.fullmatch(version):
        raise InvalidInput(f"is {version!r}, but must be letters, digits and dots, at most 40", field="version")
    return UserAgent(f"{product}/{version} (+{_contact(contact)})", product.lower())


def _contact(contact: str) -> str:
    plain = contact.strip().removeprefix("mailto:")
    if _MAIL.fullmatch(plain):
        return f"mailto:{plain}"
    address = read_address(plain)
    if isinstance(address, Refused) or any(sign in address.url for sign in "()"):
        raise InvalidInput(
            f"is {contact!r}: give a page about your crawler or a mail address, so that site owners can reach you",
            field="contact",
        )
    return address.url


HeaderPairs = tuple[tuple[str, str], ...]

_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_VALUE = re.compile(r"[\t\x20-\x7e]{0,4096}")
# What the protocol or the crawler's honesty needs, and what would undo its bounds.
_RESERVED = frozenset({
    "host", "connection", "content-length", "transfer-encoding", "te", "trailer", "upgrade", "expect", "keep-alive",
    "proxy-authorization", "proxy-connection", "user-agent", "accept-encoding", "range", "if-none-match",
    "if-modified-since", "if-match", "if-unmodified-since", "if-range",
})  # fmt: skip


class Credentials:
    """Headers by origin; made by `read_credentials`. Values never show in its text."""

    __slots__ = ("_by_origin",)

    def __init__(self, by_origin: Mapping[str, HeaderPairs]) -> None:
        self._by_origin = dict(by_origin)

    def headers_for(self, address: Address) -> HeaderPairs:
        """The headers of an address's origin. O(1)."""
        return self._by_origin.get(address.origin, ())

    def __repr__(self) -> str:
        return f"Credentials(origins={tuple(self._by_origin)!r})"


NO_CREDENTIALS = Credentials({})


def read_credentials(settings: Mapping[str, Mapping[str, str]], rules: AddressRules = DEFAULT_RULES) -> Credentials:
    """Credentials from settings: an origin such as `https://example.com` and its headers.

    Raises:
        InvalidInput: for an origin with a path, or a header that cannot be sent or is the crawler's own. The
            sentence never holds a value.
    """
    by_origin: dict[str, HeaderPairs] = {}
    for origin, headers in settings.items():
        field = f"credentials[{origin!r}]"
        address = address_or_raise(origin, field=field, rules=rules)
        if address.target != "/":
            raise InvalidInput("has a path; write the origin alone, such as https://example.com", field=field)
        by_origin[address.origin] = checked_headers(field, headers)
    return Credentials(by_origin)


def checked_headers(field: str, headers: Mapping[str, str]) -> HeaderPairs:
    """Headers of the user as they are sent.

    Raises:
        InvalidInput: for a header that cannot be sent or is the crawler's own. The sentence never holds a value.
    """
    return tuple(_header(field, name, value) for name, value in headers.items())


def _header(field: str, name: str, value: str) -> tuple[str, str]:
    if not _NAME.fullmatch(name):
        raise InvalidInput(f"has the header name {name!r}; write letters, digits and hyphens", field=field)
    if name.lower() in _RESERVED:
        raise InvalidInput(f"sets {name}, which the crawler sets itself; remove it", field=field)
    if not _VALUE.fullmatch(value) or value != value.strip():
        raise InvalidInput(f"has a value of {name} that cannot be sent: only visible ASCII, one line", field=field)
    return name, value


MAX_SHARED_BYTES = 256 << 20
FREE_BYTES = 1 << 20


class MemoryBudget:
    """Byte budget shared by all bodies being read.

    Each fetch has its own cap, but hundreds run at once. A server can send ten mebibytes in forty kilobytes and then
    nothing until the deadline; a few hundred such answers would fill any memory. So what a body takes beyond its first
    mebibyte comes out of one budget for all fetches of a transport. A fetch that finds it used up is put off: it says
    nothing about the page, and the page can be asked for again. The budget holds at least one body of the largest size
    that the settings allow, so that such a page is read when no other large one is under way.

    >>> budget = MemoryBudget(100)
    >>> budget.acquire(80), budget.acquire(30), budget.held_bytes
    (True, False, 80)
    """

    __slots__ = ("held_bytes", "max_bytes")

    def __init__(self, max_bytes: float = MAX_SHARED_BYTES) -> None:
        self.max_bytes = max_bytes
        self.held_bytes = 0

    def acquire(self, count: int) -> bool:
        """Take bytes if there are enough left; one body alone may take all."""
        if self.held_bytes + count > self.max_bytes:
            return False
        self.held_bytes += count
        return True

    def release(self, count: int) -> None:
        """Give back bytes that were taken."""
        self.held_bytes -= count


UNLIMITED = MemoryBudget(math.inf)
"""For one fetch by itself."""


_MOST_ROBOTS_BYTES = 500 * 1024
_MOST_SITEMAP_BYTES = 50 << 20
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

    def __post_init__(self) -> None:
        plain = (
            ("User-Agent", self.user_agent.header),
            ("Accept", self.accept),
            ("Accept-Encoding", ACCEPT_ENCODING),
        )
        object.__setattr__(self, "own_headers", plain)
        object.__setattr__(self, "opted_out", frozenset(plain_name(name, "opted_out") for name in self.opted_out))
