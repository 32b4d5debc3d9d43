"""Sitemaps: an index of files with up to 2,000 addresses each, with dates that are honest, stale, or worth nothing."""

from __future__ import annotations

from collections.abc import Callable

from recrawl.lab.livingweb.answer import w3c_date
from recrawl.lab.livingweb.clock import DAY_S
from recrawl.lab.livingweb.world import LivingWorld

ADDRESSES_A_FILE = 2000
STALE_S = 3 * DAY_S
BULK_S = 2 * DAY_S
_HEAD = b'<?xml version="1.0" encoding="UTF-8"?>\n'
_NAMESPACE = b'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


def sitemap_file(world: LivingWorld, host: int, path: bytes, origin: bytes, now: float) -> bytes | None:
    """The sitemap at a path, None if there is none. O(pages of the file).

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
