"""Read feeds: RSS, Atom, RDF and JSON Feed, as far as they can be read, within limits and without an exception.

expat reads what is well-formed (`feeds/xml.py`), feedparser what is not. feedparser is handed a stream and nothing
else: given text it would open a file of that name or fetch it, around the gate. Entity declarations are refused before
a parser sees them, in every encoding. Some made-up feeds take feedparser minutes: foreign feeds belong into
`workers.py`, which ends a parse that takes too long.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any, NamedTuple
from xml.parsers import expat

import msgspec

from recrawl.web.content.links import MAX_ELEMENTS, MAX_HREF, NO_ELEMENTS, LinkElements, NamedLink
from recrawl.web.dates import believable, mail_date, w3c_date
from recrawl.web.feeds.xml import BROKEN_OFF, MAX_TEXT, Stop, XmlReader, in_utf8
from recrawl.web.refused import Refused, safe_text
from recrawl.web.url.address import DEFAULT_RULES, Address, AddressRules, join_address

MAX_BYTES = 10_485_760
MAX_ENTRIES = 5_000
_MAX_ID = 2_000
_MAX_FOR_FALLBACK = 1_048_576
_IS_WHOLE = re.compile(rb"</(?:[\w.-]+:)?(?:rss|feed|rdf)\s*>", re.IGNORECASE)
_ENTRY = re.compile(rb"<(?:[A-Za-z]+:)?(?:item|entry)[\s>/]")
_DECLARATION = re.compile(rb"\s*<\?xml[^>]*\?>")
_PAGE_TYPES = ("", "text/html", "application/xhtml+xml")  # without a type, a link leads to a page
_EBCDIC_START = b"\x4c\x6f\xa7\x94"  # "<?xm"
_BREAKS_OFF = "the feed breaks off; what came of it is read"

_ROOTS = frozenset({"rss", "feed", "RDF"})
_ITEMS = frozenset({"item", "entry"})
_ITEM_DEPTH = 3
# Prefixes that are in use for elements of the feed itself, and for its dates.
_OWN = frozenset({"", "atom", "atom10", "a10", "rss"})
_OF_DATES = _OWN | {"dc", "dcterms"}
_DATES = {
    "pubDate": "published", "published": "published", "issued": "published", "date": "published",
    "created": "published", "updated": "updated", "modified": "updated",
}  # fmt: skip


class FeedEntry(NamedTuple):
    """One entry: an address or None, its id as the feed gives it, believable times or None."""

    url: str | None
    id: str
    published: float | None
    updated: float | None


@dataclass(frozen=True, slots=True)
class Feed:
    """What a feed holds.

    Args:
        entries: what could be read, in order.
        problem: one sentence if something is wrong, also when entries could be read.
        elements: links of the feed itself, such as its hub.
    """

    entries: tuple[FeedEntry, ...]
    problem: str | None = None
    elements: LinkElements = NO_ELEMENTS


def parse_feed(
    body: bytes,
    base: Address,
    now: float,
    rules: AddressRules = DEFAULT_RULES,
    *,
    max_entries: int = MAX_ENTRIES,
    max_bytes: int = MAX_BYTES,
) -> Feed:
    """Read one feed. O(length) for what people publish; raises nothing for any bytes.

    Args:
        body: the decoded bytes.
        base: the address of the feed, for relative links.
        now: seconds since 1970; times before the web and in the future are left out.
        rules: which addresses may be named.
        max_entries: entries that are read.
        max_bytes: a larger feed is not read.

    Entries with neither address nor id are left out, of entries with the same id and address the first counts.
    """
    if not body or body.isspace():
        return Feed((), "the feed is empty")
    if body.startswith(_EBCDIC_START):
        return Feed((), "the feed is in EBCDIC, which no feed needs")
    if len(body) > max_bytes:
        return Feed((), f"the feed is larger than {max_bytes} bytes")
    content = in_utf8(body)
    if b"<!DOCTYPE" in content and b"<!ENTITY" in content:
        return Feed((), "the feed declares entities, which no feed needs")
    is_json = content.lstrip()[:1] == b"{"
    found = _read_json(content) if is_json else _read_xml(content, base, rules, max_entries)
    problem = found.problem
    if len(found.items) > max_entries:
        problem = f"the feed holds more than {max_entries} entries; the rest is not read"
    entries = _entries(found.items[:max_entries], base, now, rules)
    return Feed(entries, problem, LinkElements(tuple(found.links[:MAX_ELEMENTS])))


Items = list[Mapping[str, Any]]
"""Entries with `links`, `link`, `id`, `published` and `updated`, as feedparser names them."""


class _Found(NamedTuple):
    """What a parser found: entries, what is wrong, links of the feed itself."""

    items: Items
    problem: str | None = None
    links: Sequence[NamedLink] = ()


def _read_json(content: bytes) -> _Found:
    try:
        found = msgspec.json.decode(content)
        written = found["items"]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        return _Found([], f"the feed cannot be read: {safe_text(str(error))}")
    items: Items = [
        {
            "link": item.get("url") or item.get("external_url"),
            "id": str(item.get("id") or ""),
            "published": item.get("date_published"),
            "updated": item.get("date_modified"),
        }
        for item in (written if isinstance(written, list) else ())
        if isinstance(item, dict)
    ]
    return _Found(items, None if items else "the feed holds no items that can be read")


def _read_xml(content: bytes, base: Address, rules: AddressRules, max_entries: int) -> _Found:
    reader = _FeedReader(base, rules, max_entries)
    try:
        reader.read(content)
    except Stop as stop:
        return _Found(reader.items, f"the feed cannot be read to its end: {stop}", reader.links)
    except expat.ExpatError as error:
        items = [*reader.items, *([reader.item] if reader.item else [])]
        if error.code in BROKEN_OFF and (items or reader.links):
            return _Found(items, _BREAKS_OFF, reader.links)
        return _read_broken(content, base, max_entries, str(error))
    return _Found(reader.items, None, reader.links)


class _FeedReader(XmlReader):
    """Takes links, ids and dates right below an entry, links joined with the `xml:base` they stand in."""

    max_depth = 256  # entries may hold pages
    may_have_type = True

    def __init__(self, base: Address, rules: AddressRules, max_entries: int) -> None:
        super().__init__()
        self.items: Items = []
        self.links: list[NamedLink] = []
        self.item: dict[str, Any] | None = None
        self._max_entries = max_entries
        self._rules = rules
        self._bases = [(0, base)]
        self._item_depth = 0
        self._reading = ""
        self._pieces: list[str] = []
        self._length = 0

    def opened(self, name: str, attributes: dict[str, str]) -> None:
        if "xml:base" in attributes:
            base = join_address(self._bases[-1][1], attributes["xml:base"], self._rules)
            if isinstance(base, Address):
                self._bases.append((self.depth, base))
        prefix, _, local = name.rpartition(":")
        if self.item is not None:
            if self.depth == self._item_depth + 1:
                self._child(prefix, local, attributes)
        elif self.depth == 1:
            if local not in _ROOTS:
                raise Stop(f"its outermost element is {safe_text(local)}")
        elif self.depth <= _ITEM_DEPTH and local in _ITEMS:
            about = attributes.get("rdf:about", "")
            self.item, self._item_depth = {"links": [], "id": about}, self.depth
        elif local == "link" and prefix in _OWN and len(self.links) < MAX_ELEMENTS and "href" in attributes:
            self.links += _named([{**attributes, "href": self._joined(attributes["href"])}])

    def text(self, data: str) -> None:
        if self._reading and self.depth == self._item_depth + 1 and self._length <= MAX_TEXT:
            self._length += len(data)
            self._pieces.append(data)

    def closed(self, name: str) -> None:  # noqa: ARG002
        if self._bases[-1][0] == self.depth:
            self._bases.pop()
        if self.item is None:
            return
        if self.depth == self._item_depth + 1 and self._reading:
            text = "".join(self._pieces).strip()
            if text:
                self._keep(self._reading, text)
            self._reading = ""
        elif self.depth == self._item_depth:
            self.items.append(self.item)
            self.item = None
            if len(self.items) > self._max_entries:
                raise Stop("it holds too many entries")

    def _child(self, prefix: str, local: str, attributes: dict[str, str]) -> None:
        assert self.item is not None
        self._pieces, self._length, self._reading = [], 0, ""
        if prefix in _OF_DATES and local in _DATES:
            self._reading = local
        elif prefix not in _OWN:
            return
        elif local == "link" and attributes.get("href"):
            self.item["links"].append({**attributes, "href": self._joined(attributes["href"])})
        elif local in ("link", "id"):
            self._reading = local
        elif local == "guid":
            self._reading = "permalink" if attributes.get("isPermaLink") == "true" else "guid"

    def _keep(self, name: str, text: str) -> None:
        assert self.item is not None
        if name in _DATES:
            self.item.setdefault(_DATES[name], text)
        elif name == "link":
            self.item.setdefault("link", self._joined(text))
        else:
            self.item["id"] = self.item["id"] or text
            if name == "permalink" or (name == "guid" and text.startswith(("http://", "https://"))):
                self.item["permalink"] = self._joined(text)

    def _joined(self, link: str) -> str:
        address = join_address(self._bases[-1][1], link, self._rules)
        return address.url if isinstance(address, Address) else link


def _named(links: Iterable[Mapping[str, Any]]) -> list[NamedLink]:
    """Links of the feed itself, from attributes as feedparser has them."""
    found = ((_text(link.get("rel")), _text(link.get("href")), _text(link.get("type"))) for link in links)
    return [
        NamedLink(frozenset(rel.lower().split()), href, kind.lower())
        for rel, href, kind in found
        if rel and 0 < len(href) <= MAX_HREF
    ]


def _read_broken(content: bytes, base: Address, max_entries: int, reason: str) -> _Found:
    """What feedparser makes of a feed that is no XML."""
    unreadable = f"the feed cannot be read: {safe_text(reason)}"
    if len(content) > _MAX_FOR_FALLBACK:
        return _Found([], unreadable)
    import feedparser  # type: ignore[import-untyped]

    # Cut before parsing: it may spend long on each odd date. The encoding is UTF-8 now, whatever the feed declares.
    starts = [entry.start() for entry in _ENTRY.finditer(content)]
    kept = _DECLARATION.sub(b"", content if len(starts) <= max_entries else content[: starts[max_entries]], count=1)
    try:
        parsed = feedparser.parse(
            BytesIO(kept),
            response_headers={"content-location": base.url, "content-type": "application/xml; charset=utf-8"},
            sanitize_html=False,
            resolve_relative_uris=False,
        )
    except Exception as error:  # a foreign parser may throw anything at foreign bytes
        return _Found([], f"the feed cannot be read: {safe_text(str(error))}")
    items, links = list(parsed.entries), _named(parsed.feed.get("links", ()))
    if not items:
        return _Found([], unreadable, links)
    if len(starts) > max_entries:
        return _Found(items, f"the feed holds more than {max_entries} entries; the rest is not read", links)
    if _IS_WHOLE.search(content):
        return _Found(items, None, links)
    last = content[starts[-1] :] if starts else b""
    cut = any(f"<{name}>".encode() in last and f"</{name}>".encode() not in last for name in ("link", "guid", "id"))
    return _Found(items[:-1] if cut else items, _BREAKS_OFF, links)  # an address without an end would be another one


def _entries(items: Items, base: Address, now: float, rules: AddressRules) -> tuple[FeedEntry, ...]:
    kept: dict[tuple[str | None, str], FeedEntry] = {}
    for item in items:
        link = _link(item)
        address = join_address(base, link, rules) if link and "\ufffd" not in link else None
        url = None if address is None or isinstance(address, Refused) else address.url
        entry = FeedEntry(
            url, _text(item.get("id"))[:_MAX_ID], _time(item, "published", now), _time(item, "updated", now)
        )
        if entry.url is not None or entry.id:
            kept.setdefault((entry.url, entry.id), entry)
    return tuple(kept.values())


def _link(item: Mapping[str, Any]) -> str:
    """The link to the page itself: `alternate` or without a relation, of HTML if there is one, else any that is named.

    Attributes of links are as feedparser has them.
    """
    links = [link for link in item.get("links") or () if isinstance(link, Mapping)]
    pages = [link for link in links if link.get("rel") in (None, "alternate") and link.get("href")]
    if pages:
        page = next((link for link in pages if _text(link.get("type")).lower() in _PAGE_TYPES), pages[0])
        return _text(page["href"])
    return _first_text(item.get("link"), item.get("permalink"), *(link.get("href") for link in links))


def _first_text(*values: object) -> str:
    return next((text for value in values if (text := _text(value))), "")


def _time(item: Mapping[str, Any], name: str, now: float) -> float | None:
    parsed = item.get(f"{name}_parsed")
    if parsed:
        try:
            return believable(float(calendar.timegm(parsed)), now)
        except (ValueError, OverflowError, TypeError):
            return None
    text = _text(item.get(name))
    at = w3c_date(text)
    return believable(mail_date(text) if at is None else at, now)


def _text(value: object) -> str:
    """Foreign text that can be stored: no NUL, no half characters."""
    if not isinstance(value, str):
        return ""
    return value.replace("\0", "").encode("utf-8", "replace").decode("utf-8").strip()
