"""A site that is followed: a hub, a sitemap and a feed, and the pages that they lead to."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from small_site import Site
from tracker_ground import FAST, Ground

from recrawl.tracker.discovery.discovery import Discovery
from recrawl.tracker.discovery.source import Source
from recrawl.tracker.settings.settings import DiscoveryRules

FOLLOWING = replace(FAST, discover=True, discovery=DiscoveryRules(min_interval_s=0.05, profit=1e6, hub_age_s=0.0))


def article(name: str) -> str:
    """A page with a text."""
    return f"<h1>{name}</h1><p>This is the text of {name}, which is long enough to be read as a page.</p>"


def page_of_links(*paths: str, head: str = "") -> str:
    """A page that links to others."""
    links = "".join(f'<li><a href="{path}">{path}</a></li>' for path in paths)
    return f"<html><head>{head}</head><body><h1>Links</h1><ul>{links}</ul></body></html>"


def sitemap(site: Site, *paths: tuple[str, float]) -> tuple[int, dict[str, str], bytes]:
    """A sitemap with dates."""
    rows = "".join(
        f"<url><loc>{site.url(path)}</loc><lastmod>{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ}</lastmod></url>"
        for path, at in paths
    )
    space = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
    return 200, {"Content-Type": "application/xml"}, f"<urlset {space}>{rows}</urlset>".encode()


def feed(site: Site, *paths: str) -> tuple[int, dict[str, str], bytes]:
    """A feed without dates."""
    items = "".join(f"<item><title>{path}</title><link>{site.url(path)}</link></item>" for path in paths)
    body = f'<rss version="2.0"><channel><title>News</title>{items}</channel></rss>'
    return 200, {"Content-Type": "application/rss+xml"}, body.encode()


def sources_of(ground: Ground) -> Discovery:
    """The sources of a tracker that follows."""
    return ground.sources


def source_at(ground: Ground, path: str) -> Source:
    """The source at an address."""
    return ground.source(ground.site.url(path))


def a_site(site: Site) -> None:
    """A main page that is a hub, a sitemap that robots.txt names, a feed that the main page names."""
    site.answers["/robots.txt"] = (200, {}, f"Sitemap: {site.url('/map.xml')}\nUser-agent: *\nDisallow: /no\n".encode())
    named = '<link rel="alternate" type="application/rss+xml" href="/news.rss">'
    site.answers["/"] = page_of_links("/by-hub", "/no/entry", site.url("/elsewhere", "b"), head=named)
    site.answers["/map.xml"] = sitemap(site, ("/by-map", 1e9))
    site.answers["/news.rss"] = feed(site, "/by-feed")
    for path in ("/by-hub", "/by-map", "/by-feed", "/later-hub", "/later-map", "/later-feed"):
        site.answers[path] = article(path)
