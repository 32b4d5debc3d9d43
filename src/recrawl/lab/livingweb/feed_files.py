"""Feeds in RSS and Atom: the newest articles of a hub, else the pages that changed last."""

from __future__ import annotations

from heapq import nlargest
from typing import NamedTuple

from recrawl.lab.livingweb.answer import http_date, w3c_date
from recrawl.lab.livingweb.hubs import newest_articles
from recrawl.lab.livingweb.pages_html import article_title, title
from recrawl.lab.livingweb.world import LivingWorld

MOST_ENTRIES = 20
FEED_PATHS = {"rss": b"/feed.rss", "atom": b"/feed.atom"}
FEED_TYPES = {"rss": b"application/rss+xml", "atom": b"application/atom+xml"}


class Entry(NamedTuple):
    """One line of a feed."""

    path: bytes
    title: bytes
    at: float


def feed_entries(world: LivingWorld, host: int, now: float) -> list[Entry]:
    """What a feed tells now, the newest first. O(pages of the host) without a hub."""
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
