r"""Links of a page, links of `Link` headers, and what a page says about itself in its head.

Nothing here parses HTML: `content/page.py` hands in its parse. Links are as written; `addresses_of_links` makes
addresses of them and leaves out what is no page.

    >>> link_headers([b'<https://hub.example/>; rel="hub", </feed>; rel=self'])[1].href
    '/feed'
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode

from recrawl.web.fetch.settings import PRODUCT
from recrawl.web.url.address import DEFAULT_RULES, Address, AddressRules, join_address, plain_target

MAX_LINKS = 10_000
MAX_ELEMENTS = 200
MAX_HREF = 4096  # characters; a longer link is no address
MAX_META = 1000
MAX_TITLES = 100  # that are looked at for one that is not of an image
_MAX_HEADERS = 16_384
_HTML_SPACE = "\t\n\f\r "
_FOREIGN = frozenset(("svg", "math", "x-g", "x-th"))  # the last two where the guard of the parser renamed them
_UNENDORSED = frozenset(("nofollow", "sponsored", "ugc"))
_LINK_VALUE = re.compile(r"<([^<>]*)>((?:[^\",<]++|\"(?:[^\"\\]|\\.)*+\")*+)")
_PARAMETER = re.compile(r";\s*+([\w*-]++)\s*+=\s*+(?:\"((?:[^\"\\]|\\.)*+)\"|([^\s;,\"]++))", re.ASCII)


class Link(NamedTuple):
    """The target of a link, as written but for outer white space; `followed` is False for nofollow, sponsored, ugc."""

    href: str
    followed: bool


class NamedLink(NamedTuple):
    """A link with its relations and media type in lower case, the target as written but for outer white space."""

    rels: frozenset[str]
    href: str
    type: str


class LinkElements(NamedTuple):
    """The `<link>` elements of a document in order, and the `<base href>` they are relative to, empty if none."""

    links: tuple[NamedLink, ...]
    base: str = ""


NO_ELEMENTS = LinkElements(())


class Metadata(NamedTuple):
    """What a page says about itself; empty where it says nothing.

    Args:
        title: its title.
        description: its description.
        canonical: the address it gives as its own, as written.
        language: the `lang` of the document.
        base: what its links are relative to, as written.
        robots: directives for robots in lower case, sorted, such as `noindex`.
        refresh: where the page sends its readers by itself, as written.
    """

    title: str = ""
    description: str = ""
    canonical: str = ""
    language: str = ""
    base: str = ""
    robots: tuple[str, ...] = ()
    refresh: str = ""

    @property
    def may_index(self) -> bool:
        """Whether the page may be kept and shown."""
        return "noindex" not in self.robots

    @property
    def may_follow(self) -> bool:
        """Whether the links of the page may be followed."""
        return "nofollow" not in self.robots


def robots_directives(*contents: str) -> tuple[str, ...]:
    """Directives of `<meta name=robots>` or of an `X-Robots-Tag` header for all robots, sorted.

    >>> robots_directives("NoIndex, follow", "none")
    ('follow', 'nofollow', 'noindex')
    """
    found = {part.strip().lower() for content in contents for part in content[:MAX_META].split(",")}
    if "none" in found:
        found = (found - {"none"}) | {"noindex", "nofollow"}
    return tuple(sorted(found - {""}))


def read_links(parser: LexborHTMLParser) -> tuple[Link, ...]:
    """Return the links of a page, at most 10,000; without those that are hidden, mere fragments or too long."""
    found: list[Link] = []
    for node in parser.css("a[href]"):
        attributes = node.attributes
        href = (attributes.get("href") or "").strip(_HTML_SPACE)
        if not href or href[0] == "#" or len(href) > MAX_HREF:
            continue
        if "hidden" in attributes or _hides(attributes.get("style")):
            continue
        found.append(Link(href, _is_endorsed(attributes.get("rel"))))
        if len(found) == MAX_LINKS:
            break
    return tuple(found)


def read_elements(parser: LexborHTMLParser) -> tuple[NamedLink, ...]:
    """Return the `<link>` elements of a page, at most 200."""
    found: list[NamedLink] = []
    for node in parser.css("link[rel][href]")[:MAX_ELEMENTS]:
        attributes = node.attributes
        rel, href = _short(attributes, "rel", MAX_META), _short(attributes, "href", MAX_HREF)
        if rel and href:
            found.append(NamedLink(frozenset(rel.lower().split()), href, _short(attributes, "type", MAX_META).lower()))
    return tuple(found)


def link_headers(values: Iterable[bytes]) -> tuple[NamedLink, ...]:
    """Return the links in the values of `Link` headers (RFC 8288). O(length), at most 16 KiB.

    Links with an `anchor` speak of another page and are left out.
    """
    found: list[NamedLink] = []
    for value in _LINK_VALUE.finditer(b", ".join(values)[:_MAX_HEADERS].decode("latin-1")):
        given: dict[str, str] = {}
        for name, quoted, plain in _PARAMETER.findall(value[2]):
            given.setdefault(name.lower(), re.sub(r"\\(.)", r"\1", quoted) or plain)
        href = value[1].strip()
        if href and len(href) <= MAX_HREF and given.get("rel") and "anchor" not in given:
            rels = frozenset(given["rel"].lower().split())
            found.append(NamedLink(rels, href, given.get("type", "").lower()))
    return tuple(found[:MAX_ELEMENTS])


def _is_endorsed(rel: str | None) -> bool:
    return rel is None or _UNENDORSED.isdisjoint(rel[:MAX_META].lower().split())


def _hides(style: str | None) -> bool:
    return style is not None and "display:none" in style[:MAX_META].lower().replace(" ", "")


def read_metadata(nodes: Iterable[tuple[str, LexborNode]], product: str = PRODUCT) -> Metadata:
    """What the title, meta, link and base tags of a page say; the first of each counts, all of robots do.

    Args:
        nodes: the tags with their names, in the order of the document.
        product: the name of the crawler; what is said to it counts as what is said to all robots.
    """
    found: dict[str, str] = {}
    robots: list[str] = []
    spoken_to, titles = ("robots", product.lower()), 0
    for tag, node in nodes:
        if tag == "title":
            titles += 1
            if "title" not in found and titles <= MAX_TITLES and not _is_of_image(node):
                found["title"] = _tidy(node.text(), MAX_META)
            continue
        attributes = node.attributes
        if tag == "meta":
            name = (attributes.get("name") or "").lower()
            if name in spoken_to:
                robots.append(attributes.get("content") or "")
            elif name == "description":
                found.setdefault("description", _tidy(attributes.get("content") or "", MAX_META))
            elif (attributes.get("http-equiv") or "").lower() == "refresh":
                found.setdefault("refresh", (attributes.get("content") or "")[:MAX_META].partition(";")[2].strip())
        elif tag == "html":
            found.setdefault("language", _short(attributes, "lang", 35))
        elif tag == "base":
            if "href" in attributes:
                found.setdefault("base", _short(attributes, "href", MAX_HREF))
        elif "canonical" in (attributes.get("rel") or "")[:MAX_META].lower().split():
            found.setdefault("canonical", _short(attributes, "href", MAX_HREF))
    return Metadata(robots=robots_directives(*robots), **found)


def _is_of_image(title: LexborNode) -> bool:
    parent = title.parent
    while parent is not None and parent.tag != "head":
        if parent.tag in _FOREIGN:
            return True
        parent = parent.parent
    return False


def addresses_of_links(
    links: Iterable[Link], page: Address, base: str = "", rules: AddressRules = DEFAULT_RULES
) -> dict[str, Link]:
    """The links that are addresses of pages: each address once, with the first link to it. O(links).

    Args:
        links: links of a page, as written.
        page: the address the page was fetched from.
        base: the page's `<base href>`, as written.
        rules: which addresses may be named.
    """
    start = _start_of_links(page, base, rules)
    origin = start.origin
    found: dict[str, Link] = {}
    for link in links:
        target = plain_target(start, link.href, rules)  # most links need no more
        address = join_address(start, link.href, rules) if target is None else None
        if target is not None:
            found.setdefault(origin + target, link)
        elif isinstance(address, Address):
            found.setdefault(address.url, link)
    return found


def _start_of_links(page: Address, base: str, rules: AddressRules) -> Address:
    """What links are relative to: the `<base href>` of a page, or the page where there is none that can be used."""
    start = join_address(page, base, rules) if base else page
    return start if isinstance(start, Address) else page


def _short(attributes: Mapping[str, str | None], name: str, most: int) -> str:
    value = (attributes.get(name) or "").strip(_HTML_SPACE)
    return value if len(value) <= most else ""


def _tidy(text: str, most: int) -> str:
    if len(text) <= most:
        return " ".join(text.split())
    # More than is kept is looked at, since white space falls away.
    return " ".join(text[: 8 * most].split())[:most]
