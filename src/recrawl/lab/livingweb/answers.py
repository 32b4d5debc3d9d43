"""Answers as values and bytes: requests, validators and the 304 that follows from them, sitemaps, feeds. No IO."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import lru_cache
from heapq import nlargest
from http import HTTPStatus
from typing import NamedTuple

from recrawl.lab.livingweb.articles import (
    article_title,
    newest_articles,
    title,
)
from recrawl.lab.livingweb.chance import mix
from recrawl.lab.livingweb.clock import DAY_S
from recrawl.lab.livingweb.hosts import HostProfile
from recrawl.lab.livingweb.laws import GRID
from recrawl.lab.livingweb.world import LivingWorld

HTML = b"text/html; charset=utf-8"
_DAYS = (b"Mon", b"Tue", b"Wed", b"Thu", b"Fri", b"Sat", b"Sun")
_MONTHS = (b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec")
_LINES = {
    status.value: b"HTTP/1.1 %d %b\r\nServer: living\r\nDate: " % (status, status.phrase.encode())
    for status in HTTPStatus
}


ADDRESSES_A_FILE = 2000
STALE_S = 3 * DAY_S
BULK_S = 2 * DAY_S
_HEAD = b'<?xml version="1.0" encoding="UTF-8"?>\n'
_NAMESPACE = b'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'

MOST_ENTRIES = 20
FEED_PATHS = {"rss": b"/feed.rss", "atom": b"/feed.atom"}
FEED_TYPES = {"rss": b"application/rss+xml", "atom": b"application/atom+xml"}


class Request(NamedTuple):
    """What the living web reads of a request.

    Args:
        host: the host name in lower case, without a port.
        port: the port as sent, with its colon, or nothing.
        path: without the query.
        query: without the question mark.
        if_none_match: as sent.
        if_modified_since: as sent.
    """

    host: bytes
    port: bytes
    path: bytes
    query: bytes = b""
    if_none_match: bytes | None = None
    if_modified_since: bytes | None = None


class Answer(NamedTuple):
    """What is sent back; `headers` are whole lines."""

    status: int
    body: bytes = b""
    content_type: bytes = HTML
    headers: bytes = b""


def encode_answer(answer: Answer, now: float, *, with_body: bool = True, close: bool = False) -> bytes:
    """The bytes of an answer, body included unless the method was HEAD."""
    bodiless = answer.status == HTTPStatus.NOT_MODIFIED
    length = (
        b"" if bodiless else b"\r\nContent-Type: %b\r\nContent-Length: %d" % (answer.content_type, len(answer.body))
    )
    return b"%b%b%b\r\n%b%b\r\n%b" % (
        _LINES[answer.status],
        http_date(int(now)),
        length,
        b"Connection: close\r\n" if close else b"",
        answer.headers,
        answer.body if with_body and not bodiless else b"",
    )


@lru_cache(maxsize=1024)
def http_date(unix: int) -> bytes:
    """A moment as HTTP has it.

    >>> http_date(0)
    b'Thu, 01 Jan 1970 00:00:00 GMT'
    """
    t = time.gmtime(unix)
    return b"%b, %02d %b %04d %02d:%02d:%02d GMT" % (
        _DAYS[t.tm_wday], t.tm_mday, _MONTHS[t.tm_mon - 1], t.tm_year, t.tm_hour, t.tm_min, t.tm_sec,
    )  # fmt: skip


def w3c_date(unix: float) -> bytes:
    """A moment as sitemaps and Atom have it.

    >>> w3c_date(0)
    b'1970-01-01T00:00:00Z'
    """
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(unix)).encode()


def redirect(status: int, location: bytes) -> Answer:
    """An answer that sends the client elsewhere."""
    return Answer(status, b"<p>See <a href=%b>here</a>.</p>" % location, headers=b"Location: %b\r\n" % location)


class Shown(NamedTuple):
    """What validators are made from.

    Args:
        page: its number.
        version: real changes so far.
        design: redesigns of the host so far.
        born: Unix seconds.
        modified: when its bytes last changed, noise aside.
        noisy: whether no two answers need be the same.
    """

    page: int
    version: int
    design: int
    born: float
    modified: float
    noisy: bool


class Validators(NamedTuple):
    """The values sent; None for one that the host does not send."""

    etag: bytes | None
    modified: bytes | None

    def lines(self) -> bytes:
        """Header lines."""
        etag = b"" if self.etag is None else b"ETag: %b\r\n" % self.etag
        return etag if self.modified is None else b"%bLast-Modified: %b\r\n" % (etag, self.modified)


def validators(profile: HostProfile, shown: Shown, now: float) -> Validators:
    """What a host says of a page now."""
    return Validators(_etag(profile, shown, now), _modified(profile, shown, now))


def is_not_modified(request: Request, sent: Validators) -> bool:
    """Whether the answer is 304; If-None-Match goes before If-Modified-Since."""
    if request.if_none_match is not None and sent.etag is not None:
        wanted = [tag.strip().removeprefix(b"W/") for tag in request.if_none_match.split(b",")]
        return sent.etag.removeprefix(b"W/") in wanted
    return sent.modified is not None and request.if_modified_since == sent.modified


def _etag(profile: HostProfile, shown: Shown, now: float) -> bytes | None:
    if profile.etag == "none":
        return None
    if profile.etag == "frozen":
        return b'"%x"' % shown.page
    if profile.etag == "restless":
        return b'"%016x"' % mix(shown.page, int(now * GRID))
    return b'%b"%x-%x-%x"' % (b"W/" if shown.noisy else b"", shown.page, shown.version, shown.design)


def _modified(profile: HostProfile, shown: Shown, now: float) -> bytes | None:
    if profile.modified == "none":
        return None
    if profile.modified == "frozen":
        return http_date(int(shown.born))
    if profile.modified == "always-now":
        return http_date(int(now))
    # A second change may follow within the second of the first: until it is over, the truth is to say nothing.
    return None if int(shown.modified) == int(now) else http_date(int(shown.modified))


def sitemap_file(world: LivingWorld, host: int, path: bytes, origin: bytes, now: float) -> bytes | None:
    """Sitemaps: an index of files with up to 2,000 addresses each, with dates that are honest, stale, or worth nothing.

    The sitemap at a path, None if there is none. O(pages of the file).

    Args:
        world: the web.
        host: whose sitemap.
        path: `/sitemap.xml`, or `/sitemap-3.xml` where one file is not enough.
        origin: what addresses begin with, such as `http://site-1.living.test:8080`.
        now: Unix seconds.
    """
    kind = world.hosts[host].sitemap
    pages = world.pages_of(host)
    files = -(-len(pages) // ADDRESSES_A_FILE)
    number = _file_number(path)
    if kind == "none" or number is None or not 0 <= number <= files or (files == 1 and number):
        return None
    if kind == "stale":
        now = world.epoch + (now - world.epoch) // STALE_S * STALE_S
    if number == 0 and files > 1:
        rows = [b"<sitemap><loc>%b/sitemap-%d.xml</loc></sitemap>" % (origin, file + 1) for file in range(files)]
        return b"%b<sitemapindex %b>\n%b\n</sitemapindex>\n" % (_HEAD, _NAMESPACE, b"\n".join(rows))
    part = pages[max(0, number - 1) * ADDRESSES_A_FILE :][:ADDRESSES_A_FILE]
    date = _dates(world, host, now)
    rows = [
        b"<url><loc>%b%b</loc>%b</url>" % (origin, world.path_bytes(page), date(page))
        for page in part
        if world.state(page, now) == "alive"
    ]
    if number == files or files == 1:
        rows += [
            b"<url><loc>%b%b</loc>%b</url>" % (origin, world.moved_path_bytes(page), date(page))
            for page in world.arrivals(host)
            if world.state(page, now) == "moved"
        ]
    return b"%b<urlset %b>\n%b\n</urlset>\n" % (_HEAD, _NAMESPACE, b"\n".join(rows))


def _file_number(path: bytes) -> int | None:
    if path == b"/sitemap.xml":
        return 0
    digits = path.removeprefix(b"/sitemap-").removesuffix(b".xml")
    return int(digits) if digits.isdigit() and len(digits) < 6 and path == b"/sitemap-%d.xml" % int(digits) else None


def _dates(world: LivingWorld, host: int, now: float) -> Callable[[int], bytes]:
    kind = world.hosts[host].sitemap
    if kind == "undated":
        return lambda _: b""
    if kind == "always-now":
        return lambda _: _lastmod(now)
    if kind == "bulk-bumped":
        return lambda page: _lastmod(max(world.changed_at(page, now), bulk_bumped_at(world, host, now)))
    return lambda page: _lastmod(world.changed_at(page, now))


def bulk_bumped_at(world: LivingWorld, host: int, now: float) -> float:
    """When a `bulk-bumped` host last dated all its pages anew: every two days, and with each redesign."""
    last = world.redesigns(host).last(now - world.epoch)
    regular = (now - world.epoch) // BULK_S * BULK_S
    return world.epoch + max(regular, last or 0.0)


def _lastmod(unix: float) -> bytes:
    return b"<lastmod>%b</lastmod>" % w3c_date(unix)


class Entry(NamedTuple):
    """One line of a feed."""

    path: bytes
    title: bytes
    at: float


def feed_entries(world: LivingWorld, host: int, now: float) -> list[Entry]:
    """Feeds in RSS and Atom: the newest articles of a hub, else the pages that changed last.

    What a feed tells now, the newest first. O(pages of the host) without a hub.
    """
    if world.hosts[host].hub:
        newest = newest_articles(world, host, now, MOST_ENTRIES)
        return [Entry(found.path, article_title(world, host, found.number), found.born) for found in newest]
    alive = (page for page in world.pages_of(host) if world.state(page, now) == "alive")
    latest = nlargest(MOST_ENTRIES, ((world.changed_at(page, now), page) for page in alive))
    return [Entry(world.path_bytes(page), title(world, page), at) for at, page in latest]


def feed_file(world: LivingWorld, host: int, origin: bytes, now: float) -> bytes:
    """The feed of a host in its format."""
    name = world.hosts[host].name.encode()
    entries = feed_entries(world, host, now)
    if world.hosts[host].feed == "atom":
        return _atom(name, origin, entries, now)
    items = [
        b"<item><title>%b</title><link>%b%b</link><guid>%b%b#%d</guid><pubDate>%b</pubDate></item>"
        % (entry.title, origin, entry.path, origin, entry.path, int(entry.at), http_date(int(entry.at)))
        for entry in entries
    ]
    return (
        b'<?xml version="1.0" encoding="UTF-8"?>\n<rss version="2.0"><channel><title>%b</title><link>%b/</link>'
        b"<description>What is new</description>\n%b\n</channel></rss>\n"
    ) % (name, origin, b"\n".join(items))


def _atom(name: bytes, origin: bytes, entries: list[Entry], now: float) -> bytes:
    rows = [
        b'<entry><title>%b</title><link href="%b%b"/><id>%b%b#%d</id><updated>%b</updated></entry>'
        % (entry.title, origin, entry.path, origin, entry.path, int(entry.at), w3c_date(entry.at))
        for entry in entries
    ]
    return (
        b'<?xml version="1.0" encoding="UTF-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom"><title>%b</title>'
        b"<id>%b/</id><updated>%b</updated>\n%b\n</feed>\n"
    ) % (name, origin, w3c_date(entries[0].at if entries else now), b"\n".join(rows))
