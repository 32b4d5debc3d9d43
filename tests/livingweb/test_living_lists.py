"""Sitemaps, feeds, hubs, section lists and clicks say what they should, read by the parsers of the web layer."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from itertools import pairwise

import pytest
from living_client import DAY, Client, host_with, small, visit

from recrawl.lab.livingweb.answers import STALE_S, bulk_bumped_at
from recrawl.lab.livingweb.articles import (
    ARTICLE_CLICKS,
    FADING_S,
    LINKED_S,
    READABLE_S,
    article_click_rate,
    articles_between,
    clicks,
)
from recrawl.lab.livingweb.world import LivingWorld
from recrawl.web.content.page import read_page
from recrawl.web.feeds.feed import parse_feed
from recrawl.web.feeds.sitemap import Sitemap, parse_sitemap
from recrawl.web.url.address import Address, address_or_raise

HOUR = 3600.0


async def _sitemap(client: Client, host: int, path: str = "/sitemap.xml") -> Sitemap:
    name = client.web.world.hosts[host].name
    got = await client.get(name, path)
    assert (got.status, got.headers["content-type"]) == (200, "application/xml")
    return parse_sitemap(got.body, _address(f"http://{name}:{client.web.port}{path}"), now=client.clock())


def _address(url: str) -> Address:
    return address_or_raise(url, field="url")


def _alive(client: Client, host: int, at: float) -> dict[str, float]:
    """URLs that a full and honest sitemap has, and when each page last changed."""
    world = client.web.world
    born_here = [page for page in world.pages_of(host) if world.state(page, at) == "alive"]
    moved_here = [page for page in world.arrivals(host) if world.state(page, at) == "moved"]
    return {world.url(page, client.web.port, at): world.changed_at(page, at) for page in born_here + moved_here}


@pytest.mark.parametrize("kind", ["honest", "stale", "always-now", "bulk-bumped", "undated"])
def test_sitemaps_date_their_pages_honestly_or_not(kind: str) -> None:
    async def talk(client: Client) -> None:
        world = client.web.world
        host = host_with(client.web)
        client.clock.now = now = world.epoch + 10.5 * DAY
        written = world.epoch + 10.5 * DAY // STALE_S * STALE_S if kind == "stale" else now
        sitemap = await _sitemap(client, host)
        assert sitemap.problem is None
        alive = _alive(client, host, written)
        assert {entry.url for entry in sitemap.entries} == set(alive)
        expected: dict[str, Callable[[str], float | None]] = {
            "honest": alive.get,
            "stale": alive.get,
            "always-now": lambda _: now,
            "bulk-bumped": lambda url: max(alive[url], bulk_bumped_at(world, host, now)),
            "undated": lambda _: None,
        }
        for entry in sitemap.entries:
            wanted = expected[kind](entry.url)
            assert entry.lastmod == (None if wanted is None else int(wanted))
        if kind == "bulk-bumped":
            assert max(Counter(entry.lastmod for entry in sitemap.entries).values()) > len(alive) / 2

    visit(small(sitemap=kind), talk)


def test_a_large_sitemap_is_an_index_of_files() -> None:
    async def talk(client: Client) -> None:
        index = await _sitemap(client, 0)
        assert index.kind == "index"
        urls: list[str] = []
        for entry in index.entries:
            part = await _sitemap(client, 0, entry.url.split(str(client.web.port))[1])
            assert len(part.entries) <= 2100
            urls += [page.url for page in part.entries]
        assert len(index.entries) == 3
        assert sorted(urls) == sorted(_alive(client, 0, client.clock()))
        assert (await client.get("site-0.living.test", "/sitemap-4.xml")).status == 404
        assert (await client.get("site-0.living.test", "/sitemap-01.xml")).status == 404

    visit(small(pages=4500, hosts=1, sitemap="honest"), talk)


def test_a_host_may_have_no_sitemap() -> None:
    async def talk(client: Client) -> None:
        assert (await client.get("site-0.living.test", "/sitemap.xml")).status == 404
        assert b"Sitemap" not in (await client.get("site-0.living.test", "/robots.txt")).body

    visit(small(sitemap="none", robots="allow"), talk)


@pytest.mark.parametrize("kind", ["rss", "atom"])
@pytest.mark.parametrize("hub", [True, False])
def test_feeds_tell_the_newest_articles_or_changes(kind: str, hub: bool) -> None:
    async def talk(client: Client) -> None:
        world = client.web.world
        host = host_with(client.web)
        client.clock.now = now = world.epoch + 9 * DAY + 15 * HOUR
        name = world.hosts[host].name
        home = await client.get(name, "/")
        assert f'href="/feed.{kind}"'.encode() in home.body
        got = await client.get(name, f"/feed.{kind}")
        feed = parse_feed(got.body, _address(f"http://{name}:{client.web.port}/feed.{kind}"), now=now)
        assert feed.problem is None
        told = {entry.url: entry for entry in feed.entries}
        if hub:
            linked = [found for found in articles_between(world, host, now - LINKED_S, now) if found.linked_until > now]
            wanted = {f"http://{name}:{client.web.port}{found.path.decode()}" for found in linked[-20:]}
        else:
            alive = {
                world.url(page, client.web.port): world.changed_at(page, now)
                for page in world.pages_of(host)
                if world.state(page, now) == "alive"
            }
            wanted = set(sorted(alive, key=lambda url: alive[url])[-20:])
        assert set(told) == wanted
        assert len(wanted) > 3

    visit(small(feed=kind, hub=hub), talk)


def test_hubs_link_to_articles_for_six_hours_only_and_articles_end() -> None:
    async def talk(client: Client) -> None:
        world = client.web.world
        host = host_with(client.web, hub=True)
        name = world.hosts[host].name
        found = articles_between(world, host, world.epoch, world.epoch + 3 * DAY)[5]
        link = found.path

        async def linked() -> bool:
            return link + b'"' in (await client.get(name, "/")).body.replace(b"?utm_source=hub", b"")

        client.clock.now = found.born - 1 / 1024
        assert not await linked()
        assert (await client.get(name, link.decode())).status == 404
        client.clock.now = found.born
        assert await linked()
        first = await client.get(name, link.decode() + "?utm_source=hub")
        assert first.status == 200
        assert first.said
        client.clock.now = found.born + LINKED_S
        assert not await linked()
        assert (await client.get(name, link.decode())).said == first.said
        client.clock.now = found.born + READABLE_S
        assert (await client.get(name, link.decode())).status == 410

    visit(small(gone="gone"), talk)


def test_new_articles_are_told_by_the_truth() -> None:
    async def talk(client: Client) -> None:
        client.clock.now = client.web.world.epoch + 2 * DAY
        told = await client.truth("/truth/articles")
        hubs = sum(host.hub for host in client.web.world.hosts)
        assert 24 * 2 * hubs * 0.7 < len(told) < 24 * 2 * hubs * 1.5
        readable = [row for row in told if row["gone_at"] > client.clock()]
        assert (await client.url(readable[-1]["url"])).status == 200

    visit(small(), talk)


def test_every_living_page_of_a_host_is_reached_by_links_from_its_home_page() -> None:
    """Home, sections, further lists: what a crawler without a sitemap sees."""

    async def talk(client: Client) -> None:
        world = client.web.world
        host = host_with(client.web)
        start = f"http://{world.hosts[host].name}:{client.web.port}/"
        todo, lists, found = [start], {start}, set()
        while todo:
            url = todo.pop()
            got = await client.url(url)
            assert got.status == 200
            for link in read_page(got.body).links:
                to = start.rstrip("/") + link.href if link.href.startswith("/") else link.href
                if re.search(r"/(\?page=\d+)?$", to):
                    todo += [to] if to not in lists else []
                    lists.add(to)
                else:
                    found.add(to)
        born_here = {
            world.url(page, client.web.port)
            for page in world.pages_of(host)
            if world.state(page, client.clock()) == "alive"
        }
        assert len(born_here) > 100
        assert found >= born_here
        assert (await client.url(start + "guides/?page=99")).status == 404

    visit(small(pages=900, hosts=2, gone="not-found"), talk)


def test_clicks_follow_the_importance_of_pages() -> None:
    world = LivingWorld(small())
    host = max(range(30), key=lambda number: len(world.pages_of(number)) * (not world.hosts[number].hub))
    hits = clicks(world, host, world.epoch + 20 * DAY, world.epoch + 40 * DAY)
    counted = Counter(hit.path for hit in hits)
    always = [page for page in world.pages_of(host) if world.pages.gone[page] > 60 * DAY < world.pages.moved[page]]
    assert len(always) > 5
    for page in always:
        expected = 20 * world.pages.clicks[page]
        assert abs(counted[world.path_bytes(page)] - expected) < 5 * expected**0.5 + 5
    assert all(before.at <= after.at for before, after in pairwise(hits))


def test_clicks_on_articles_fade() -> None:
    world = LivingWorld(small())
    host = next(number for number, profile in enumerate(world.hosts) if profile.hub)
    found = articles_between(world, host, world.epoch, world.epoch + 10 * DAY)
    hits = clicks(world, host, world.epoch, world.epoch + 12 * DAY)
    ages = [hit.at - article.born for article in found for hit in hits if hit.path == article.path]
    assert len(ages) / len(found) == pytest.approx(ARTICLE_CLICKS, rel=0.05)
    assert sum(ages) / len(ages) == pytest.approx(FADING_S, rel=0.05)
    assert article_click_rate(found[0], found[0].born + FADING_S) < article_click_rate(found[0], found[0].born) / 2.7


def test_any_stretch_of_the_access_log_can_be_read_again() -> None:
    async def talk(client: Client) -> None:
        world = client.web.world
        client.clock.now = world.epoch + DAY
        middle = world.epoch + 1234.5
        control = client.web.answers.control_name
        whole = await client.get(control, f"/truth/clicks?until={world.epoch + 7200}")
        first = await client.get(control, f"/truth/clicks?until={middle}")
        second = await client.get(control, f"/truth/clicks?since={middle}&until={world.epoch + 7200}")
        assert first.body + second.body == whole.body
        line = re.compile(
            rb'site-\d+\.living\.test 192\.0\.2\.\d+ - - \[[^]]+\] "GET /\S+ HTTP/1\.1" 200 \d+ "-" "[^"]+"'
        )
        lines = whole.body.splitlines()
        assert len(lines) > 100
        assert all(line.fullmatch(row) for row in lines)

    visit(small(), talk)
