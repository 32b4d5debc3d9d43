"""Links of a page, with anchor text, place and region; and what a page says about itself in its head.

Nothing here parses: `content/page.py` hands in the nodes of its one parse. Links are as written; `addresses_of_links`
makes addresses of them and leaves out what is no page.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from selectolax.lexbor import LexborNode

from recrawl.web.fetch.user_agent import PRODUCT
from recrawl.web.url.address import DEFAULT_RULES, Address, AddressRules, join_address
from recrawl.web.url.link_urls import link_urls

Region = Literal["main", "nav", "header", "footer", "aside"]
MOST_HREF = 4096  # characters; a longer link is no address
MOST_ANCHOR = 200
MOST_META = 1000
MOST_TITLES = 100  # that are looked at for one that is not of an image
_HTML_SPACE = "\t\n\f\r "
_FOREIGN = frozenset(("svg", "math", "x-g", "x-th"))  # the last two where the guard of the parser renamed them
_UNENDORSED = frozenset(("nofollow", "sponsored", "ugc"))
_new_tuple = tuple.__new__  # half the time of a named tuple's own constructor, and pages have many links


class Link(NamedTuple):
    """A link as written.

    Args:
        href: the target, as written but for outer white space.
        anchor: the visible text, at most 200 characters.
        position: its number among the links of the page, from 0 in the order of the document.
        region: the part of the page it stands in.
        followed: False where `rel` says nofollow, sponsored or ugc.
    """

    href: str
    anchor: str
    position: int
    region: Region
    followed: bool


class Metadata(NamedTuple):
    """What a page says about itself; empty where it says nothing.

    Args:
        title: its title.
        description: its description.
        canonical: the address it gives as its own, as written.
        language: the `lang` of the document.
        base: what its links are relative to, as written.
        robots: directives for robots in lower case, sorted, such as `noindex`.
    """

    title: str = ""
    description: str = ""
    canonical: str = ""
    language: str = ""
    base: str = ""
    robots: tuple[str, ...] = ()

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
    found = {part.strip().lower() for content in contents for part in content[:MOST_META].split(",")}
    if "none" in found:
        found = (found - {"none"}) | {"noindex", "nofollow"}
    return tuple(sorted(found - {""}))


def read_link(node: LexborNode, position: int, region: Region) -> Link | None:
    """The link of an `<a href>`; None if it is hidden, or its target is empty, a mere fragment or too long."""
    attributes = node.attributes
    href = attributes.get("href")
    if not href:
        return None
    if href[0] <= " " or href[-1] <= " ":
        href = href.strip(_HTML_SPACE)
        if not href:
            return None
    if href[0] == "#" or len(href) > MOST_HREF:
        return None
    followed = True
    if len(attributes) > 1:
        if "hidden" in attributes or ("style" in attributes and _hides(attributes["style"])):
            return None
        followed = "rel" not in attributes or _is_endorsed(attributes["rel"])
    text = node.text()
    anchor = " ".join(text.split()) if len(text) <= MOST_ANCHOR else _tidy(text, MOST_ANCHOR)
    return _new_tuple(Link, (href, anchor, position, region, followed))


def _is_endorsed(rel: str | None) -> bool:
    return rel is None or _UNENDORSED.isdisjoint(rel[:MOST_META].lower().split())


def _hides(style: str | None) -> bool:
    return style is not None and "display:none" in style[:MOST_META].lower().replace(" ", "")


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
            if "title" not in found and titles <= MOST_TITLES and not _is_of_image(node):
                found["title"] = _tidy(node.text(), MOST_META)
            continue
        attributes = node.attributes
        if tag == "meta":
            name = (attributes.get("name") or "").lower()
            if name in spoken_to:
                robots.append(attributes.get("content") or "")
            elif name == "description":
                found.setdefault("description", _tidy(attributes.get("content") or "", MOST_META))
        elif tag == "html":
            found.setdefault("language", _short(attributes, "lang", 35))
        elif tag == "base":
            if "href" in attributes:
                found.setdefault("base", _short(attributes, "href", MOST_HREF))
        elif "canonical" in (attributes.get("rel") or "")[:MOST_META].lower().split():
            found.setdefault("canonical", _short(attributes, "href", MOST_HREF))
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
    found: dict[str, Link] = {}
    written = tuple(links)
    for url, link in zip(link_urls(start, [link[0] for link in written], rules), written, strict=True):
        if url is not None and url not in found:
            found[url] = link
    return found


def canonical_address(metadata: Metadata, page: Address) -> Address | None:
    """The address a page gives as its own, or None if it gives none that can be used."""
    if not metadata.canonical:
        return None
    address = join_address(_start_of_links(page, metadata.base), metadata.canonical)
    return address if isinstance(address, Address) else None


def _start_of_links(page: Address, base: str, rules: AddressRules = DEFAULT_RULES) -> Address:
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
