"""One gate for every channel: whatever names a forbidden address, the server there sees no connection."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from typing import NamedTuple

import pytest
from hostile_ground import fetch, guarded, settings_for
from socket_watch import sockets_made

from recrawl.lab.livingweb.hostile import HostileWeb, ScriptedNames, answers, page
from recrawl.web.content.links import addresses_of_links
from recrawl.web.content.page import read_page
from recrawl.web.feeds.feed import parse_feed
from recrawl.web.feeds.sitemap import parse_sitemap
from recrawl.web.fetch.protocol import Channel, FetchJob, FetchResult
from recrawl.web.fetch.transport import Transport
from recrawl.web.refused import Refused
from recrawl.web.robots.entry import robots_answer
from recrawl.web.url.address import Address, join_address, read_address

NOW = 1_700_000_000.0


class Way(NamedTuple):
    """How an address gets from a document into a fetch."""

    document: str
    found: Callable[[FetchResult], list[str]]
    fetched_as: Channel = "page"


def _robots(result: FetchResult) -> list[str]:
    return [address.url for address in robots_answer(200, result.body, "recrawl", result.final).sitemaps]


def _sitemap(result: FetchResult) -> list[str]:
    return [entry.url for entry in parse_sitemap(result.body, result.final, NOW).entries]


def _feed(result: FetchResult) -> list[str]:
    return [entry.url for entry in parse_feed(result.body, result.final, NOW).entries if entry.url]


def _links(result: FetchResult) -> list[str]:
    read = read_page(result.body, "text/html")
    return list(addresses_of_links(read.links, result.final, read.metadata.base))


def _canonical(result: FetchResult) -> list[str]:
    address = join_address(result.final, read_page(result.body, "text/html").metadata.canonical)
    return [] if isinstance(address, Refused) else [address.url]


def _link_header(result: FetchResult) -> list[str]:
    """A hub as WebSub names it; whoever reads the header joins it to the page like any link."""
    written = result.header(b"link").decode("latin-1").partition(">")[0].removeprefix("<")
    address = join_address(result.final, written)
    return [] if isinstance(address, Refused) else [address.url]


def _imported(result: FetchResult) -> list[str]:
    rows = csv.DictReader(io.StringIO(result.body.decode()))
    addresses = [read_address(row["url"]) for row in rows]
    return [address.url for address in addresses if isinstance(address, Address)]


WAYS: dict[str, Way] = {
    "sitemap line of robots.txt": Way("Sitemap: {url}\n", _robots, "sitemap"),
    "loc of a sitemap": Way("<urlset><url><loc>{url}</loc></url></urlset>", _sitemap),
    "loc of a sitemap index": Way(
        "<sitemapindex><sitemap><loc>{url}</loc></sitemap></sitemapindex>", _sitemap, "sitemap"
    ),
    "link of a feed": Way("<rss><channel><item><link>{url}</link></item></channel></rss>", _feed),
    "link of a JSON feed": Way(
        '{{"version": "https://jsonfeed.org/version/1", "items": [{{"id": "1", "url": "{url}"}}]}}', _feed
    ),
    "link of a page": Way("<a href='{url}'>x</a>", _links),
    "link below a base": Way("<base href='{url}'><a href='x'>x</a>", _links),
    "canonical of a page": Way("<link rel=canonical href='{url}'>", _canonical),
    "hub of a page": Way("a page", _link_header, "feed"),
    "imported file": Way("url\n{url}\n", _imported),
}


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("host", ["127.0.0.2", "inner.example", "[::1]", "[::ffff:127.0.0.2]", "mapped.example"])
def test_no_channel_leads_past_the_gate(name: str, host: str) -> None:
    way = WAYS[name]

    async def main() -> tuple[list[FetchResult], HostileWeb, int]:
        async with HostileWeb() as web, HostileWeb(ip="127.0.0.2", port=web.port) as shut:
            names = ScriptedNames()
            names.on("inner.example", ["127.0.0.2"])
            names.on("mapped.example", ["::ffff:127.0.0.2"])
            url = f"http://{host}:{shut.port}/secret"
            web.on("/document", answers(page(way.document.format(url=url).encode(), [("Link", f'<{url}>; rel="hub"')])))
            async with Transport(settings_for(web), resolver=names) as transport:
                document = await fetch(transport, web.url("/document"))
                assert document.outcome == "ok"
                found = [read_address(each) for each in way.found(document)]
                with sockets_made() as made:
                    fetched = [
                        await transport.fetch(FetchJob(each, channel=way.fetched_as))
                        for each in found
                        if isinstance(each, Address)
                    ]
                    return fetched, shut, len(made)

    fetched, shut, sockets = guarded(main())
    assert [result.outcome for result in fetched] == ["refused"]
    assert "refused by the rule" in fetched[0].reason
    assert (shut.connections, sockets) == (0, 0)


@pytest.mark.parametrize("name", WAYS)
def test_every_channel_leads_to_what_is_open(name: str) -> None:
    """The same ways, so that the test above could fail."""
    way = WAYS[name]

    async def main() -> list[FetchResult]:
        async with HostileWeb() as web:
            url = web.url("/open", "b.hostile.test")
            web.on("/document", answers(page(way.document.format(url=url).encode(), [("Link", f'<{url}>; rel="hub"')])))
            web.on("/open", answers(page(b"open")))
            web.on("/x", answers(page(b"open")))
            async with Transport(settings_for(web)) as transport:
                document = await fetch(transport, web.url("/document"))
                return [await fetch(transport, each, way.fetched_as) for each in way.found(document)]

    assert [result.body for result in guarded(main())] == [b"open"]
