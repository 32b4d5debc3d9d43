"""Which content sources a page or a site names: feeds, sitemaps, the main page; and the section a page belongs to.

Nothing here fetches. A source that is named is a candidate, no more: whether it is worth its polls shows in what it
yields. `usual_places` are guesses, to be tried once for each host, at the price of a request each.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, NamedTuple

from recrawl.web.content.links import LinkElements, NamedLink
from recrawl.web.robots.entry import RobotsAnswer
from recrawl.web.url.address import DEFAULT_RULES, Address, AddressRules, join_address
from recrawl.web.url.traps import shape_of

SourceKind = Literal["hub", "sitemap", "feed"]
MOST_SOURCES = 20
FEED_TYPES = frozenset(("application/rss+xml", "application/atom+xml", "application/feed+json", "application/rdf+xml"))
USUAL_PLACES: tuple[tuple[SourceKind, str], ...] = (
    ("sitemap", "/sitemap.xml"),
    ("sitemap", "/sitemap_index.xml"),
    ("feed", "/feed"),
    ("feed", "/rss.xml"),
    ("feed", "/atom.xml"),
    ("feed", "/index.xml"),
)
_FEED_PATH = re.compile(
    r"/(?:feeds?|rss2?|atom)(?:\.(?:xml|json|php|rdf|rss|atom))?/?|/[^/]{1,100}\.(?:rss|atom|rdf)|/index\.xml",
    re.IGNORECASE,
)
_SITEMAP_PATH = re.compile(r"/(?:[a-z]+[_-])?sitemaps?(?:[_-]?index)?[_-]?[0-9]{0,3}\.(?:xml|txt)(?:\.gz)?", re.I)
_COMMENTS = re.compile(r"/(?:comments?|replies|kommentare)(?:/|$)", re.IGNORECASE)
_ENDING = re.compile(r"\.[a-z][a-z0-9]{0,4}$")


class SourceLink(NamedTuple):
    """A source that is named somewhere.

    Args:
        kind: what it seems to be.
        address: where it is.
        found_by: `link`, `anchor`, `robots` or `usual-place`.
        foreign: whether it is of another host than the page that names it; with or without `www.` is the same.
    """

    kind: SourceKind
    address: Address
    found_by: str
    foreign: bool


def sources_of_page(
    elements: LinkElements, hrefs: Iterable[str], page: Address, rules: AddressRules = DEFAULT_RULES
) -> tuple[SourceLink, ...]:
    """The feeds and sitemaps that a page names, at most 20, each once. O(links).

    Args:
        elements: of the page's head (`Page.elements`).
        hrefs: links of the page as written; those that look like a feed or a sitemap of the same host count.
        page: the address of the page.
        rules: which addresses may be named.

    Feeds of comments are left out: their entries are no pages of their own.

    >>> from recrawl.web.url.address import read_address
    >>> from recrawl.web.content.page import read_page
    >>> head = read_page(b'<link rel="alternate" type="application/rss+xml" href="/blog/rss">').elements
    >>> [source.address.url for source in sources_of_page(head, ["/a", "feed/"], read_address("http://a.example/"))]
    ['http://a.example/blog/rss', 'http://a.example/feed/']
    """
    base = join_address(page, elements.base, rules) if elements.base else page
    start = base if isinstance(base, Address) else page
    found: dict[str, SourceLink] = {}
    for link in elements.links:
        kind = _kind_of_link(link)
        if kind is not None:
            _add(found, kind, join_address(start, link.href, rules), "link", page)
    for href in hrefs:
        if len(found) >= MOST_SOURCES:
            break
        kind = _kind_of_path(href.partition("#")[0].partition("?")[0])
        if kind is not None:
            address = join_address(start, href, rules)
            if isinstance(address, Address) and not _is_foreign(address, page):
                _add(found, kind, address, "anchor", page)
    return tuple(found.values())[:MOST_SOURCES]


def sources_of_robots(answer: RobotsAnswer, page: Address) -> tuple[SourceLink, ...]:
    """The sitemaps that a robots.txt names, at most 20, as sources. O(sitemaps)."""
    found: dict[str, SourceLink] = {}
    for address in answer.sitemaps[:MOST_SOURCES]:
        _add(found, "sitemap", address, "robots", page)
    return tuple(found.values())


def usual_places(page: Address) -> tuple[SourceLink, ...]:
    """Where sitemap and feed of a site often are, though nothing names them: a handful of guesses."""
    return tuple(SourceLink(kind, page.with_target(path), "usual-place", False) for kind, path in USUAL_PLACES)


def main_page(address: Address) -> Address:
    """The main page of an address's site.

    >>> from recrawl.web.url.address import read_address
    >>> main_page(read_address("https://a.example:8443/x?y=1")).url
    'https://a.example:8443/'
    """
    return address.with_target("/")


def section_of(address: Address) -> str:
    """The section of a page: its site, its folder and the shape of its name; numbers count as the same. O(length).

    Pages of one section are likely made by one template and often change together.

    >>> from recrawl.web.url.address import read_address
    >>> [section_of(read_address("http://a.example" + path)) for path in ("/news/2024/big-day.html", "/news/7/x.html")]
    ['a.example/news/#/*.html', 'a.example/news/#/*.html']
    >>> [section_of(read_address("http://a.example" + path)) for path in ("/news/", "/news/17", "/list?page=2&by=x")]
    ['a.example/news/', 'a.example/news/#', 'a.example/*?by&page']
    """
    path, mark, names = shape_of(address).partition("?")
    folder, _, name = path.rpartition("/")
    if name not in ("", "#"):
        ending = _ENDING.search(name)
        name = "*" + (ending[0] if ending else "")
    elif name == "#":
        written = address.target.partition("?")[0].rpartition("/")[2].lower()
        ending = _ENDING.search(written)
        stem = written[: ending.start()] if ending else written
        name = ("#" if stem.isdigit() else "*") + (ending[0] if ending else "")
    return f"{address.authority}{folder}/{name}{mark}{names}"


def _kind_of_link(link: NamedLink) -> SourceKind | None:
    if "sitemap" in link.rels:
        return "sitemap"
    media = link.type.partition(";")[0].strip()
    is_feed = "feed" in link.rels or ("alternate" in link.rels and media in FEED_TYPES)
    return "feed" if is_feed and not _COMMENTS.search(link.href) else None


def _kind_of_path(path: str) -> SourceKind | None:
    """What the last part of a link looks like; mostly nothing, so that is found out first."""
    last = path[path.rstrip("/").rfind("/") + 1 :] if len(path) <= 4096 else ""
    if _FEED_PATH.fullmatch("/" + last):
        return None if _COMMENTS.search(path) else "feed"
    return "sitemap" if _SITEMAP_PATH.fullmatch("/" + last) else None


def _add(found: dict[str, SourceLink], kind: SourceKind, address: object, how: str, page: Address) -> None:
    if isinstance(address, Address) and address.url not in found and address.url != page.url:
        found[address.url] = SourceLink(kind, address, how, _is_foreign(address, page))


def _is_foreign(address: Address, page: Address) -> bool:
    return address.host.removeprefix("www.") != page.host.removeprefix("www.")
