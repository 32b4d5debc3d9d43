"""Feeds: RSS, Atom and JSON Feed, read as far as they can be read, within limits and never an exception.

fastfeedparser reads nearly all of them, feedparser what it gives up on and links that are relative to an `xml:base`.
Both are handed bytes and nothing else: given an address they would fetch it, around the gate, and given a file name one
of them would open it. Entity declarations are refused before either sees them, in whatever encoding. What a parser
costs is not in our hands: some made-up feeds take minutes. Foreign feeds belong into `workers.py`, which ends a
parse that takes too long.
"""

from __future__ import annotations

import calendar
import codecs
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from io import BytesIO
from typing import Any, NamedTuple

from recrawl.web.content.charset import encoding_of_label
from recrawl.web.dates import believable, w3c_date
from recrawl.web.refused import Refused, shown
from recrawl.web.url.address import DEFAULT_RULES, Address, AddressRules, join_address

_LONGEST_TITLE = 500
_LONGEST_ID = 2_000
_LONGEST_DATE_LIKE_ID = 40
_LONGEST_FOR_FALLBACK = 1_048_576
_IS_WHOLE = re.compile(rb"^\s*\{|</(?:[\w.-]+:)?(?:rss|feed|rdf)\s*>", re.IGNORECASE)
_ENTRY = re.compile(rb"<(?:[A-Za-z]+:)?(?:item|entry)[\s>/]")
_JSON_DATES = (b"date_published", b"date_modified")
_PAGE_TYPES = ("", "text/html", "application/xhtml+xml")  # without a type, a link leads to a page
_BASE = b"xml:base"
_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|$")
_DOCTYPE, _ENTITY = b"<!DOCTYPE", b"<!ENTITY"
_NAMED_ENCODING = re.compile(rb"\s*<\?xml[^>]{0,200}?\sencoding\s*=\s*[\"']([^\"'>]*)")
_EBCDIC_START = b"\x4c\x6f\xa7\x94"  # "<?xm"


@dataclass(frozen=True, slots=True)
class FeedLimits:
    """What is read of a feed at most."""

    max_bytes: int = 10_485_760
    max_entries: int = 5_000


DEFAULT_FEED_LIMITS = FeedLimits()


class FeedEntry(NamedTuple):
    """One entry: an address or None, its id as the feed gives it, believable times or None, a title of one line."""

    url: str | None
    id: str
    published: float | None
    updated: float | None
    title: str


@dataclass(frozen=True, slots=True)
class Feed:
    """What a feed holds; `problem` is one sentence if something is wrong, also when entries could be read."""

    entries: tuple[FeedEntry, ...]
    problem: str | None = None


def parse_feed(
    body: bytes,
    base: Address,
    now: float,
    limits: FeedLimits = DEFAULT_FEED_LIMITS,
    rules: AddressRules = DEFAULT_RULES,
) -> Feed:
    """Read one feed.

    Args:
        body: the decoded bytes.
        base: the address of the feed, for relative links.
        now: seconds since 1970; times before the web and in the future are left out.
        limits: what is read at most.
        rules: which addresses may be named.

    Entries with neither address nor id are left out, of entries with the same id and address the first counts.
    O(length) for what people publish; raises nothing for any bytes.
    """
    if not body or body.isspace():
        return Feed((), "the feed is empty")
    if body.startswith(_EBCDIC_START):
        return Feed((), "the feed is in EBCDIC, which no feed needs")
    if len(body) > limits.max_bytes:
        return Feed((), f"the feed is larger than {limits.max_bytes} bytes")
    if _declares_entities(body):
        return Feed((), "the feed declares entities, which no feed needs")
    body = _in_known_encoding(body)
    kept = _cut(body, limits.max_entries)
    items, problem = _read(kept, base)
    if len(kept) < len(body) or len(items) > limits.max_entries:
        problem = f"the feed holds more than {limits.max_entries} entries; the rest is not read"
    elif items and problem is None and not _IS_WHOLE.search(body):
        problem = "the feed breaks off; what came of it is read"
        items = items[:-1] if _breaks_off_in_an_address(body) else items
    return Feed(_entries(items[: limits.max_entries], base, now, rules), problem)


def _breaks_off_in_an_address(body: bytes) -> bool:
    """Whether the last entry has an address without an end: it would be another one."""
    starts = [entry.start() for entry in _ENTRY.finditer(body)]
    last = body[starts[-1] :] if starts else b""
    return any(f"<{name}>".encode() in last and f"</{name}>".encode() not in last for name in ("link", "guid", "id"))


def _in_known_encoding(body: bytes) -> bytes:
    """The feed with the label of its encoding set to UTF-8 unless a browser would know it.

    A parser would decode by others too, such as UTF-7, and find in them what was not seen here.
    """
    named = _NAMED_ENCODING.match(body[:1024])
    if named is None or encoding_of_label(named[1].decode("latin-1")) is not None:
        return body
    return body[: named.start(1)] + b"utf-8" + body[named.end(1) :]


def _cut(body: bytes, max_entries: int) -> bytes:
    """The feed up to its last permitted entry, cut before parsing: a parser may spend long on each odd date.

    A JSON feed cannot be cut; with too many dates it is given up.
    """
    if body.lstrip()[:1] == b"{":
        return b"" if sum(body.count(name) for name in _JSON_DATES) > 2 * max_entries else body
    for number, entry in enumerate(_ENTRY.finditer(body)):
        if number == max_entries:
            return body[: entry.start()]
    return body


def _read(body: bytes, base: Address) -> tuple[list[Mapping[str, Any]], str | None]:
    try:
        return _on_their_bases(_read_fast(body), body, base), None
    except Exception as error:  # whatever a foreign parser throws at foreign bytes is one kind of problem
        reason = shown(str(error))
    if len(body) > _LONGEST_FOR_FALLBACK:
        return [], f"the feed cannot be read: {reason}"
    try:
        items = _read_slowly(body)
    except Exception as error:
        return [], f"the feed cannot be read: {shown(str(error))}"
    return items, None if items else f"the feed cannot be read: {reason}"


def _on_their_bases(items: list[Mapping[str, Any]], body: bytes, base: Address) -> list[Mapping[str, Any]]:
    """Entries whose links are joined with the `xml:base` they stand in, which the fast parser does not read."""
    if _BASE not in body or all(_ABSOLUTE.match(_link(item)) for item in items) or len(body) > _LONGEST_FOR_FALLBACK:
        return items
    with_bases = _read_slowly(body, {"content-location": base.url})
    if len(with_bases) != len(items):
        return items
    return [{**item, "link": _link(other), "links": ()} for item, other in zip(items, with_bases, strict=True)]


def _read_fast(body: bytes) -> list[Mapping[str, Any]]:
    import fastfeedparser  # type: ignore[import-untyped]

    parsed = fastfeedparser.parse(
        bytes(body), include_content=False, include_tags=False, include_media=False, include_enclosures=False
    )
    return list(parsed["entries"])


def _read_slowly(body: bytes, headers: Mapping[str, str] | None = None) -> list[Mapping[str, Any]]:
    import feedparser  # type: ignore[import-untyped]

    # A stream, since text or bytes would be taken for a file name or an address first.
    parsed = feedparser.parse(BytesIO(body), response_headers=headers, sanitize_html=False, resolve_relative_uris=False)
    return list(parsed.entries)


def _entries(
    items: Iterable[Mapping[str, Any]], base: Address, now: float, rules: AddressRules
) -> tuple[FeedEntry, ...]:
    kept: dict[tuple[str | None, str], FeedEntry] = {}
    for item in items:
        entry = _entry(item, base, now, rules)
        if entry.url is not None or entry.id:
            kept.setdefault((entry.url, entry.id), entry)
    return tuple(kept.values())


def _entry(item: Mapping[str, Any], base: Address, now: float, rules: AddressRules) -> FeedEntry:
    link = join_address(base, _link(item), rules) if _link(item) else None
    return FeedEntry(
        None if link is None or isinstance(link, Refused) else link.url,
        _text(item.get("id"))[:_LONGEST_ID],
        _time(item, "published", now),
        _time(item, "updated", now),
        " ".join(_text(item.get("title"))[: 4 * _LONGEST_TITLE].split())[:_LONGEST_TITLE],
    )


def _link(item: Mapping[str, Any]) -> str:
    """The link to the page itself: `alternate` or without a relation, of HTML if there is one, else the parser's."""
    links = [link for link in item.get("links") or () if isinstance(link, Mapping)]
    pages = [link for link in links if link.get("rel") in (None, "alternate") and link.get("href")]
    if not pages:
        return _text(item.get("link"))
    return _text(next((link for link in pages if _text(link.get("type")).lower() in _PAGE_TYPES), pages[0])["href"])


def _time(item: Mapping[str, Any], name: str, now: float) -> float | None:
    parsed = item.get(f"{name}_parsed")
    if parsed:
        try:
            return believable(float(calendar.timegm(parsed)), now)
        except (ValueError, OverflowError, TypeError):
            return None
    text = _text(item.get(name))
    return None if _is_read_from_id(text, _text(item.get("id"))) else believable(w3c_date(text), now)


def _is_read_from_id(written: str, entry_id: str) -> bool:
    """Whether a time is no more than the entry's id read as a date.

    fastfeedparser does that for entries without a date and fills the gaps from today: id 7 becomes the 7th of this
    month. A time that agrees with the id in every part the id gives is taken for such a one.
    """
    if not written or not entry_id or len(entry_id) > _LONGEST_DATE_LIKE_ID or "/" in entry_id:
        return False
    from dateutil import parser  # type: ignore[import-untyped]

    try:
        at = datetime.fromisoformat(written).replace(tzinfo=None)
        return bool(parser.parse(entry_id, default=at.replace(hour=0, minute=0, second=0), ignoretz=True) == at)
    except (ValueError, OverflowError, ArithmeticError, TypeError):
        return False


def _text(value: object) -> str:
    """Foreign text that can be stored: no NUL, no half characters."""
    if not isinstance(value, str):
        return ""
    return value.replace("\0", "").encode("utf-8", "replace").decode("utf-8").strip()


def _declares_entities(body: bytes) -> bool:
    if body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\0" in body[:8]:
        body = body.replace(b"\0", b"")
    return _DOCTYPE in body and _ENTITY in body
