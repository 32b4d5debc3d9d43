"""One page, one identity: the canonical form of an address, of one or of a list.

On top of what `address.py` does (host in lower case, default port and fragment dropped, dots resolved): percent escapes
in upper case and only where needed, an empty query dropped, tracking parameters and session ids dropped by name, the
other parameters in the order of their names. Parameters of equal name keep their order and no value is rewritten.

    >>> canonical_url("https://example.com/%7eann?utm_source=x&b=2&a=1#top")
    'https://example.com/~ann?a=1&b=2'
    >>> read_urls(["http://a.example/x?b=1&a=2", "http://a.example/x?a=2&b=1#top", "mailto:ann"]).urls
    ('http://a.example/x?a=2&b=1',)
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Literal
from urllib.parse import unquote

import ada_url

from recrawl.web.refused import Refused
from recrawl.web.url.address import DEFAULT_RULES, PLAIN_TARGET, Address, AddressRules, plain_origin, read_address

if TYPE_CHECKING:
    from publicsuffixlist import PublicSuffixList

HostKey = Literal["host", "domain", "origin"]

# Lower-case names; a star matches any end. Only names that carry no content.
TRACKING_PARAMETERS: tuple[str, ...] = (
    "utm_*", "gclid", "gclsrc", "dclid", "gbraid", "wbraid", "srsltid", "_ga", "_gl", "fbclid", "fb_action_ids",
    "fb_action_types", "fb_source", "igshid", "igsh", "msclkid", "yclid", "ysclid", "twclid", "ttclid", "li_fat_id",
    "mc_cid", "mc_eid", "_hsenc", "_hsmi", "__hssc", "__hstc", "__hsfp", "hsctatracking", "mkt_tok", "vero_id",
    "vero_conv", "oly_anon_id", "oly_enc_id", "wickedid", "rb_clickid", "ml_subscriber", "ml_subscriber_hash", "pk_*",
    "piwik_*", "mtm_*", "matomo_*", "s_cid", "epik", "_openstat", "elqtrackid", "elqtrack",
)  # fmt: skip
SESSION_PARAMETERS: tuple[str, ...] = ("phpsessid", "jsessionid", "aspsessionid*", "cfid", "cftoken")
_DROPPED = TRACKING_PARAMETERS + SESSION_PARAMETERS
_DROPPED_NAMES = frozenset(name for name in _DROPPED if name[-1] != "*")
_DROPPED_STARTS = tuple(name[:-1] for name in _DROPPED if name[-1] == "*")
MAX_PARAMETERS = 100
OTHER_SITE = "other-site"
MANY_PARAMETERS = "many-parameters"

_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_ANY_ORIGIN = "http://a"
_PATH_SESSION = re.compile(r";(?:jsessionid|phpsessid)=[^/?;]*", re.IGNORECASE)


def canonical_form(address: Address) -> Address:
    """The identity of a page. O(length), applying it twice changes nothing."""
    path, _, query = address.target.partition("?")
    kept = [_plain_escapes(piece) for piece in query.split("&") if piece and not _is_dropped(piece.partition("=")[0])]
    kept.sort(key=lambda piece: piece.partition("=")[0])
    target = _plain_path(path) + ("?" + "&".join(kept) if kept else "")
    return address if target == address.target else address.with_target(target)


@dataclass(frozen=True, slots=True)
class UrlList:
    """What a list of addresses holds.

    Args:
        urls: canonical addresses, each once, in the order of the list.
        repeated: entries that were there before.
        refused: how many entries each rule refused; `other-site` for addresses outside the site that may be named,
            `many-parameters` for more than 100 in a query, which no page needs and which cost time.
    """

    urls: tuple[str, ...]
    repeated: int = 0
    refused: Mapping[str, int] = field(default_factory=dict)


def read_urls(
    texts: Iterable[str], starts: tuple[str, ...] | None = None, rules: AddressRules = DEFAULT_RULES
) -> UrlList:
    """The canonical addresses of a list. O(characters), raises nothing for any text.

    Args:
        texts: addresses as they came; white space around them is dropped.
        starts: what canonical addresses must begin with, one of these; None for anything.
        rules: which addresses may be named.
    """
    found: dict[str, None] = {}
    refused: Counter[str] = Counter()
    count = 0
    for text in texts:
        count += 1
        if text.count("&") >= MAX_PARAMETERS:
            refused[MANY_PARAMETERS] += 1
            continue
        url = canonical_url(text, rules)
        if isinstance(url, Refused):
            refused[url.rule] += 1
        elif starts is not None and not url.startswith(starts):
            refused[OTHER_SITE] += 1
        else:
            found[url] = None
    return UrlList(tuple(found), count - len(found) - refused.total(), dict(refused))


def canonical_url(text: str, rules: AddressRules = DEFAULT_RULES) -> str | Refused:
    """The canonical form of one address, or the rule that refuses it. O(length).

    >>> canonical_url("https://Example.com/%7eann?utm_source=x")
    'https://example.com/~ann'
    """
    cut = text.find("/", len("https://"))
    if cut > 0 and len(text) <= rules.max_length and plain_origin(text[:cut], rules) is not None:
        # Pings come with thousands of addresses, nearly all of one host and in canonical form already.
        target = PLAIN_TARGET.fullmatch(text, cut)
        if target is not None and ";" not in target[1] and (target[2] is None or _is_plain_query(target[2])):
            return text[: target.start(3)]
    address = read_address(text.strip(), rules)
    return address if isinstance(address, Refused) else canonical_form(address).url


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


@lru_cache(maxsize=4096)
def _is_dropped(name: str) -> bool:
    plain = (unquote(name) if "%" in name else name).lower()
    return plain in _DROPPED_NAMES or plain.startswith(_DROPPED_STARTS)


def _is_plain_query(query: str) -> bool:
    """Whether the canonical form of a query is the query itself: nothing dropped, names in order."""
    last = ""
    for piece in query[1:].split("&"):
        name = piece.partition("=")[0]
        if not piece or name < last or _is_dropped(name):
            return False
        last = name
    return True


def _plain_path(path: str) -> str:
    """The path without session ids and needless escapes.

    What a session id leaves behind is read again, for it may be a dot segment (`/a/..;jsessionid=1/b`) or hold escapes
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
