"""Headers and credentials that the user gives to one origin, and to no other.

An origin is scheme, host and port. Headers of `https://example.com` go with requests to exactly that origin, and only
as long as a fetch has not left it: after the first hop to another scheme, host or port nothing is sent any more, not
even on the way back or to an origin that has headers of its own, since the way there was chosen by somebody else.

    >>> credentials = read_credentials({"https://example.com": {"Authorization": basic("me", "secret")}})
    >>> credentials
    Credentials(origins=('https://example.com',))
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping

from recrawl.errors import InvalidInput
from recrawl.web.url.address import DEFAULT_RULES, Address, AddressRules, address_or_raise

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


def basic(user: str, password: str) -> str:
    """The value of an Authorization header for a user name and password (RFC 7617).

    >>> basic("me", "secret")
    'Basic bWU6c2VjcmV0'
    """
    if ":" in user:
        raise InvalidInput("holds a colon, which this kind of login cannot carry", field="user")
    return "Basic " + b64encode(f"{user}:{password}".encode()).decode("ascii")


def _header(field: str, name: str, value: str) -> tuple[str, str]:
    if not _NAME.fullmatch(name):
        raise InvalidInput(f"has the header name {name!r}; write letters, digits and hyphens", field=field)
    if name.lower() in _RESERVED:
        raise InvalidInput(f"sets {name}, which the crawler sets itself; remove it", field=field)
    if not _VALUE.fullmatch(value) or value != value.strip():
        raise InvalidInput(f"has a value of {name} that cannot be sent: only visible ASCII, one line", field=field)
    return name, value
