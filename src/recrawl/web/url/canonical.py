"""One page, one identity: the canonical form of an address, by versioned rules.

Version 1, on top of what `address.py` does (host in lower case, default port and fragment dropped, dots resolved):
percent escapes in upper case and only where needed, an empty query dropped, tracking parameters and session ids
dropped by name, the other parameters in the order of their names. Parameters of equal name keep their order and no
value is rewritten. Rules can differ by host. The version is stored with what was derived from it: a new version
never silently renames old pages.

    >>> from recrawl.web.url.address import read_address
    >>> form = canonical_form(read_address("https://example.com/%7eann?utm_source=x&b=2&a=1#top"))
    >>> form.address.url, form.dropped, form.version
    ('https://example.com/~ann?a=1&b=2', ('utm_source',), 1)
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import translate
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple
from urllib.parse import unquote

import ada_url

from recrawl.web.url.address import Address
from recrawl.web.url.hostname import matches_name

if TYPE_CHECKING:
    from publicsuffixlist import PublicSuffixList

CANONICAL_VERSION = 1
QueryOrder = Literal["sorted", "as-found"]
HostKey = Literal["host", "domain", "origin"]

# Lower-case names; a star stands for any end. Only names that carry no content.
TRACKING_PARAMETERS: tuple[str, ...] = (
    "utm_*", "gclid", "gclsrc", "dclid", "gbraid", "wbraid", "srsltid", "_ga", "_gl", "fbclid", "fb_action_ids",
    "fb_action_types", "fb_source", "igshid", "igsh", "msclkid", "yclid", "ysclid", "twclid", "ttclid", "li_fat_id",
    "mc_cid", "mc_eid", "_hsenc", "_hsmi", "__hssc", "__hstc", "__hsfp", "hsctatracking", "mkt_tok", "vero_id",
    "vero_conv", "oly_anon_id", "oly_enc_id", "wickedid", "rb_clickid", "ml_subscriber", "ml_subscriber_hash", "pk_*",
    "piwik_*", "mtm_*", "matomo_*", "s_cid", "epik", "_openstat", "elqtrackid", "elqtrack",
)  # fmt: skip
SESSION_PARAMETERS: tuple[str, ...] = ("phpsessid", "jsessionid", "aspsessionid*", "cfid", "cftoken")

_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_WILD = re.compile(r"[*?\[]")
_ANY_ORIGIN = "http://a"
_PATH_SESSION = re.compile(r";(?:jsessionid|phpsessid)=[^/?;]*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class HostRules:
    """What differs for one host.

    Args:
        keep: parameters to keep although a rule would drop them.
        drop: further parameters to drop; `*` drops the whole query.
        order: order of the parameters; None is the general order.
    """

    keep: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    order: QueryOrder | None = None


@dataclass(frozen=True, slots=True)
class CanonicalRules:
    """The rules of one version; `hosts` maps `example.com` or `*.example.com` to what differs there."""

    drop: tuple[str, ...] = TRACKING_PARAMETERS + SESSION_PARAMETERS
    order: QueryOrder = "sorted"
    hosts: Mapping[str, HostRules] = field(default_factory=dict)
    version: int = CANONICAL_VERSION

    def for_host(self, host: str) -> HostRules:
        """The rules of the host itself, else of the longest `*.` name above it."""
        named = self.hosts.get(host)
        if named is not None or not self.hosts:
            return named or _NOTHING_SPECIAL
        above = [pattern for pattern in self.hosts if matches_name(host, pattern)]
        return self.hosts[max(above, key=len)] if above else _NOTHING_SPECIAL


_NOTHING_SPECIAL = HostRules()
DEFAULT_CANONICAL_RULES = CanonicalRules()


@dataclass(frozen=True, slots=True)
class Canonical:
    """The canonical address, the parameters that were dropped from it, and the version of the rules."""

    address: Address
    dropped: tuple[str, ...]
    version: int


def canonical_form(address: Address, rules: CanonicalRules = DEFAULT_CANONICAL_RULES) -> Canonical:
    """The identity of a page. O(length), applying it twice changes nothing."""
    path, _, query = address.target.partition("?")
    host_rules = rules.for_host(address.host)
    pieces: list[str] = []
    dropped: list[str] = []
    for piece in query.split("&") if query else ():
        name = _name(piece)
        if piece and _is_dropped(name, rules, host_rules):
            dropped.append(name)
        elif piece:
            pieces.append(_plain_escapes(piece))
    if (host_rules.order or rules.order) == "sorted":
        pieces.sort(key=lambda piece: piece.partition("=")[0])
    target = _plain_path(path) + ("?" + "&".join(pieces) if pieces else "")
    same = target == address.target
    return Canonical(address if same else address.with_target(target), tuple(dropped), rules.version)


@lru_cache(maxsize=65536)
def registered_domain(host: str) -> str:
    """The domain that someone registered, by the bundled public suffix list; an IP address is its own.

    A host that is itself a public suffix, such as `github.io`, is its own domain. No network is used.

    >>> registered_domain("news.bbc.co.uk"), registered_domain("ann.github.io"), registered_domain("10.0.0.1")
    ('bbc.co.uk', 'ann.github.io', '10.0.0.1')
    """
    if ":" in host or host.rpartition(".")[2].isdigit():
        return host
    return _suffixes().privatesuffix(host) or host


def host_key(address: Address, by: HostKey = "host") -> str:
    """The name under which requests are paced: the host, its registered domain, or host with scheme and port.

    >>> from recrawl.web.url.address import read_address
    >>> page = read_address("https://en.example.co.uk:8443/x")
    >>> host_key(page), host_key(page, "domain"), host_key(page, "origin")
    ('en.example.co.uk', 'example.co.uk', 'https://en.example.co.uk:8443')
    """
    if by == "origin":
        return address.origin
    return address.host if by == "host" else registered_domain(address.host)


@lru_cache(maxsize=1)
def _suffixes() -> PublicSuffixList:
    from publicsuffixlist import PublicSuffixList

    return PublicSuffixList()


def _name(piece: str) -> str:
    name = piece.partition("=")[0]
    return (unquote(name) if "%" in name else name).lower()


def _is_dropped(name: str, rules: CanonicalRules, host_rules: HostRules) -> bool:
    if _is_listed(name, host_rules.keep):
        return False
    return _is_listed(name, host_rules.drop) or _is_listed(name, rules.drop)


class _Listed(NamedTuple):
    """Patterns sorted by kind, since an address may have hundreds of parameters and a ping thousands of addresses."""

    names: frozenset[str]
    starts: tuple[str, ...]
    others: re.Pattern[str] | None


def _is_listed(name: str, patterns: tuple[str, ...]) -> bool:
    if not patterns:
        return False
    listed = _listed(patterns)
    if name in listed.names or name.startswith(listed.starts):
        return True
    return listed.others is not None and listed.others.match(name) is not None


@lru_cache(maxsize=1024)
def _listed(patterns: tuple[str, ...]) -> _Listed:
    names: set[str] = set()
    starts: list[str] = []
    others: list[str] = []
    for pattern in (each.lower() for each in patterns):
        if not _WILD.search(pattern):
            names.add(pattern)
        elif pattern[-1] == "*" and not _WILD.search(pattern[:-1]):
            starts.append(pattern[:-1])
        else:
            others.append(translate(pattern))
    return _Listed(frozenset(names), tuple(starts), re.compile("|".join(others)) if others else None)


def _plain_path(path: str) -> str:
    """The path without session ids and needless escapes.

    What a session id leaves behind is read anew, for it may be a dot segment (`/a/..;jsessionid=1/b`) or hold escapes
    that could not be resolved before.
    """
    while True:
        path = _plain_escapes(path)
        left = _PATH_SESSION.sub("", path)
        if left == path:
            return path
        path = ada_url.normalize_url(_ANY_ORIGIN + left)[len(_ANY_ORIGIN) :]


def _plain_escapes(text: str) -> str:
    """Escapes of unreserved characters resolved, the others in upper case (RFC 3986, 6.2.2).

    Text with a broken escape stays as it is: resolving its neighbour could complete it (`%2%35`).
    """
    if "%" not in text or _BROKEN_ESCAPE.search(text):
        return text
    return _ESCAPE.sub(_plain_escape, text)


def _plain_escape(match: re.Match[str]) -> str:
    character = chr(int(match[1], 16))
    return character if character in _UNRESERVED else match[0].upper()
