"""Many links of one page made addresses at once; the common ones without a call of the parser.

A page has dozens of links, and nearly all are plain: a path on the same host, or a whole address with a plain name.
What the parser would write for these is known beforehand, and a test holds both to the same answer. Every other link
goes through `address.join_address`, so rules and results are the same for all.

    >>> from recrawl.web.url.address import read_address
    >>> link_urls(read_address("https://example.com/news/today"), ["../about#team", "//other.example/x", "mailto:me"])
    ['https://example.com/about', 'https://other.example/x', None]
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from recrawl.web.refused import Refused
from recrawl.web.url.address import (
    DEFAULT_RULES,
    PLAIN_FRAGMENT,
    PLAIN_NAME,
    PLAIN_QUERY,
    PLAIN_SEGMENTS,
    Address,
    AddressRules,
    join_address,
)
from recrawl.web.url.hostname import check_host_name

_PLAIN_LINK = re.compile(rf"(/|(?:\.\./)*)((?!/){PLAIN_SEGMENTS}(?:{PLAIN_QUERY})?){PLAIN_FRAGMENT}")
_PLAIN_URL = re.compile(rf"(https?://)({PLAIN_NAME})(?:(/{PLAIN_SEGMENTS}(?:{PLAIN_QUERY})?){PLAIN_FRAGMENT})?")


def link_urls(base: Address, links: Iterable[str], rules: AddressRules = DEFAULT_RULES) -> list[str | None]:
    """The address that each link on the page `base` points to, None where a rule refuses it. O(characters).

    Args:
        base: the address that links are relative to.
        links: as written, without white space around them.
        rules: which addresses may be named.
    """
    path = base.target.partition("?")[0]
    origin = base.url[: len(base.url) - len(base.target)]
    folder = path[: path.rfind("/") + 1]
    most = rules.max_length
    found: list[str | None] = []
    for link in links:
        match = _PLAIN_LINK.fullmatch(link)
        if match is not None and len(link) <= most:
            up, rest = match.groups()
            if not up:
                url = origin + (path if rest[:1] == "?" else folder) + rest
            elif up == "/":
                url = origin + up + rest
            else:
                url = origin + _above(folder, len(up) // 3) + rest
            if rest or up:  # a mere fragment keeps the query, and the parser knows how
                found.append(url if len(url) <= most else None)
                continue
        found.append(_url(base, link, rules))
    return found


def _url(base: Address, link: str, rules: AddressRules) -> str | None:
    match = _PLAIN_URL.fullmatch(link)
    if match is not None:
        scheme, host, target = match.groups()
        url = f"{scheme}{host}{target or '/'}"
        if "xn--" not in host and len(link) <= rules.max_length and len(url) <= rules.max_length:
            return url if check_host_name(host, rules.local_names) is None else None
    address = join_address(base, link, rules)
    return None if isinstance(address, Refused) else address.url


def _above(folder: str, levels: int) -> str:
    """The folder so many levels up; there is none above the root."""
    for _ in range(levels):
        folder = folder[: folder.rfind("/", 0, -1) + 1] or "/"
    return folder
