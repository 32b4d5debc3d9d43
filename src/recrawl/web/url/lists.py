"""Many addresses from outside as canonical addresses: each once, the refused counted by rule.

Pings come with thousands of addresses, nearly all of one host and in canonical form already. What a list pays for is
to see that: the origin is read once, path and query are held to a pattern. Every other address goes through
`address.read_address` and `canonical.canonical_form`, so rules and results are the same for all; a test holds both to
the same answer. Only the default rules of `canonical.py` are used, as the tracker does.

    >>> read_urls(["http://a.example/x?b=1&a=2", "http://a.example/x?a=2&b=1#top", "mailto:ann"]).urls
    ('http://a.example/x?a=2&b=1',)
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from recrawl.web.refused import Refused
from recrawl.web.url.address import (
    DEFAULT_RULES,
    PLAIN_FRAGMENT,
    Address,
    AddressRules,
    read_address,
)
from recrawl.web.url.canonical import canonical_form

OTHER_SITE = "other-site"
MANY_PARAMETERS = "many-parameters"
MOST_PARAMETERS = 100
# What neither the parser nor the canonical form alters: these characters, and escapes in upper case of what must be
# escaped. A segment that begins with a dot is left to the parser.
_SAFE = r"A-Za-z0-9_~!$&()*+,;=@\-"
_ESCAPE = r"%(?!00)(?:[018-9A-F][0-9A-F]|2[0-9A-CF]|3[A-F]|40|5[B-E]|60|7[B-DF])"
_SEGMENT = rf"(?!\.)(?:[{_SAFE}.]++|{_ESCAPE})*+"
_PLAIN_TARGET = re.compile(rf"((?:/{_SEGMENT})++)(\?(?:[{_SAFE}./?]++|{_ESCAPE})*+)?({PLAIN_FRAGMENT})")
_AFTER_SCHEME = len("https://")
_ANY_PAGE = Address.of("http", "a.example", 80, "/", False)


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
        if text.count("&") >= MOST_PARAMETERS:
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
    cut = text.find("/", _AFTER_SCHEME)
    if cut > 0 and len(text) <= rules.max_length and _is_plain_origin(text[:cut], rules):
        target = _PLAIN_TARGET.fullmatch(text, cut)
        if target is not None and ";" not in target[1] and (target[2] is None or _is_plain_query(target[2])):
            return text[: target.start(3)]
    address = read_address(text.strip(), rules)
    return address if isinstance(address, Refused) else canonical_form(address).address.url


@lru_cache(maxsize=1024)
def _is_plain_origin(origin: str, rules: AddressRules) -> bool:
    """Whether this is the scheme, host and port of an address as the parser writes them."""
    address = read_address(origin + "/", rules) if len(origin) < rules.max_length else None
    return isinstance(address, Address) and address.target == "/" and address.url == origin + "/"


def _is_plain_query(query: str) -> bool:
    """Whether the canonical form of a query is the query itself: nothing dropped, names in order."""
    last = ""
    for piece in query[1:].split("&"):
        name = piece.partition("=")[0]
        if not piece or name < last or _is_dropped(name):
            return False
        last = name
    return True


@lru_cache(maxsize=4096)
def _is_dropped(name: str) -> bool:
    return bool(canonical_form(_ANY_PAGE.with_target("/?" + (name or "="))).dropped)
